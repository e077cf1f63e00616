"""The command ``treedot dups``: near-duplicates in source code."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import treedot as td
from treedot._storage.files import check_target, write_whole
from treedot.cli.options import (
    add_jobs,
    add_language,
    add_no_cache,
    add_output,
    add_similarity,
    refuse_folder,
)
from treedot.cli.pipes import note, reader_may_leave
from treedot.cli.progress import Progress
from treedot.errors import ParameterError, SourceError
from treedot.languages import language_of
from treedot.parameters import CODE_UNITS, REPORT_FORMATS, checked_choice, checked_integer
from treedot.readers.folders import Skipped

if TYPE_CHECKING:
    from treedot.cli.changes import Changes
    from treedot.clones.baseline import Baseline
    from treedot.clones.groups import DuplicateGroup
    from treedot.clones.near_duplicates import NearDuplicates
SETTINGS: dict[str, type] = {
    "unit": str,
    "language": str,
    "min_nodes": int,
    "threshold": float,
    "top": int,
    "format": str,
    "baseline": Path,
    "exclude": list,
}
SUFFIXES = {".html": "html", ".htm": "html", ".json": "json", ".sarif": "sarif", ".md": "markdown"}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.set_defaults(failed=2)  # 1 is the exit code for duplicates
    command.add_argument(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="source files, or folders of source files (default: the current folder)",
    )
    command.add_argument("--unit", choices=CODE_UNITS, help="what to compare (default: function)")
    add_language(command, "read only files in this language", "all")
    add_similarity(command)
    command.add_argument(
        "--exclude",
        action="append",
        metavar="PATTERN",
        help="leave out files that match a pattern, as in .gitignore; may be given several times",
    )
    command.add_argument("--top", type=int, metavar="N", help="show only the first N groups (default: all)")
    command.add_argument(
        "--format",
        choices=REPORT_FORMATS,
        help="format of the report (default: from the suffix of FILE, else text)",
    )
    add_output(
        command,
        "FILE",
        "write the report to a file: .html, .json, .sarif, .md, or text (default: print it)",
        required=False,
    )
    new = command.add_argument_group("only new near-duplicates")
    new.add_argument(
        "--changed-since",
        metavar="REF",
        help="show only near-duplicates of functions that are new or changed since a git commit",
    )
    new.add_argument(
        "--baseline", metavar="FILE", help="show only near-duplicates that are not in this baseline"
    )
    new.add_argument("--write-baseline", metavar="FILE", help="write all near-duplicates to a baseline")
    new.add_argument("--fail-on-new", action="store_true", help="exit with 1 if any group is shown")
    add_no_cache(command)
    add_jobs(command, "processes or threads")


def run(options: argparse.Namespace) -> int:
    """Find near-duplicates in source code.

    List groups of functions (or classes, or files) that are copies of each other, even if renamed and edited;
    the groups that share most come first. Names, literals, comments and layout do not matter. Settings can
    also be in [dups] of treedot.toml or [tool.treedot.dups] of pyproject.toml. A comment 'treedot: ignore' in
    or above a function excludes it. Exit codes: 0 success, 1 groups found with --fail-on-new, 2 wrong command
    line or bad input. For files of trees, use treedot batch dups.

    Example: treedot dups src -o report.html
    """
    from treedot.cli.changes import Changes
    from treedot.clones.baseline import read_baseline, unit_names, write_baseline
    from treedot.clones.duplicates import near_duplicates
    from treedot.clones.report.formats import duplicates_report

    refuse_folder(options.output, "dups")
    _complete(options)
    _check_targets(options, options.paths)
    known = None if options.baseline is None else read_baseline(Path(options.baseline))
    changes = None if options.changed_since is None else Changes(options.changed_since, Path.cwd())

    skipped = Skipped()
    bad: list[SourceError] = []
    with Progress() as progress:
        units = _units(options, options.paths, on_skip=skipped, on_bad=bad.append)
        forest = td.Forest.concat(progress.over(units))
    _check_targets(options, set(forest.columns.get("file", ())))
    limited: list[int] = []
    found = near_duplicates(
        forest,
        threshold=options.threshold,
        min_nodes=options.min_nodes,
        n_jobs=options.jobs,
        on_limit=limited.append,
    )
    if options.write_baseline is not None:
        names = unit_names(forest, options.unit)
        write_baseline(Path(options.write_baseline), forest, found, names)
    groups = _shown(options, forest, found, known, changes)

    def lines(file: str) -> list[str]:
        from treedot.readers.code.source_files import source_lines

        return source_lines(file, options.language or language_of(file) or "")

    report = duplicates_report(forest, groups[: options.top], options.format, sources=lines)
    if options.output is None:
        with reader_may_leave():
            print(report, end="")
    else:
        with write_whole(Path(options.output)) as aside:
            aside.write_text(report, encoding="utf-8")
    for text in _notes(options, forest, bad, limited, known):
        note(text)
    note(_summary(options, forest, groups, skipped))
    return 1 if options.fail_on_new and groups else 0


def _complete(options: argparse.Namespace) -> None:
    """Fill in the options that are not given, from the settings of the project or by default; check them."""
    from treedot.cli.settings import apply_settings
    from treedot.clones.duplicates import MIN_NODES, THRESHOLD

    if options.format is None and options.output is not None:
        options.format = SUFFIXES.get(Path(options.output).suffix.lower())
    apply_settings(options, SETTINGS, Path.cwd())
    defaults = {"unit": "function", "min_nodes": MIN_NODES, "threshold": THRESHOLD, "format": "text"}
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    checked_choice("--unit", options.unit, CODE_UNITS)
    checked_choice("--format", options.format, REPORT_FORMATS)
    if options.top is not None:
        checked_integer("--top", options.top, at_least=1)


def _units(options: argparse.Namespace, paths: Sequence[Any], **how: Any) -> Iterator[td.Forest]:
    """Yield the units of the paths as they are compared, without names and literals."""
    return td.iter_code(
        paths,
        settings=td.readers.CodeSettings(options.unit, "blur", "blur", options.min_nodes, blurred=True),
        language=options.language,
        exclude=options.exclude or (),
        n_jobs=options.jobs,
        **how,
    )


def _shown(
    options: argparse.Namespace,
    forest: td.Forest,
    found: NearDuplicates,
    known: Baseline | None,
    changes: Changes | None,
) -> list[DuplicateGroup]:
    """Return the groups to show: with a baseline or a commit, only the new ones."""
    from treedot.clones.baseline import unit_names
    from treedot.clones.groups import groups_of
    from treedot.clones.identities import units_of
    from treedot.clones.new_duplicates import new_duplicates

    def old(paths: Sequence[Path]) -> td.Forest:
        """Return the units of files; skip files that cannot be read."""
        return td.Forest.concat(_units(options, paths, on_bad=lambda error: None))

    if known is None and changes is None:
        return groups_of(found)
    units = units_of(forest, unit_names(forest, options.unit)) if known is not None else ()
    changed = None if changes is None else changes.changed(forest, options.paths, old)
    return new_duplicates(found, known=known, units=units, changed=changed)


def _check_targets(options: argparse.Namespace, sources: Iterable[str]) -> None:
    """Raise an error if a file to write is not writable or is a source, or if the report is the baseline."""
    baselines = {Path(path).resolve() for path in (options.baseline, options.write_baseline) if path}
    for target in filter(None, (options.output, options.write_baseline)):
        check_target(Path(target), *sources)
    if options.output is not None and Path(options.output).resolve() in baselines:
        raise ParameterError(f"{options.output} is the baseline: choose another file for the report")


def _notes(
    options: argparse.Namespace,
    forest: td.Forest,
    bad: Iterable[SourceError],
    limited: Iterable[int],
    known: Baseline | None,
) -> Iterator[str]:
    """Yield notes about files that could not be read, units with too many duplicates, and old baselines."""
    from treedot.clones.report.text import count_of
    from treedot.readers.code.grammars import grammar_changes

    if known is not None and not known.knows_pairs:
        yield (
            f"{options.baseline} is a baseline of version {known.version}, which stores groups but not "
            "pairs: a new copy of one member of a known group may go unnoticed; "
            f"renew it with --write-baseline {options.baseline}"
        )
    if known is not None and (changes := grammar_changes(known.grammars, forest.columns.get("language", ()))):
        yield f"{options.baseline} {changes}; renew it with --write-baseline {options.baseline}"
    for error in bad:
        yield f"left out {error}"
    for count in limited:
        yield (
            f"found too many near-duplicates of {count_of(count, options.unit)}; not all of them were "
            "compared: exclude generated code with --exclude, or raise --threshold"
        )


def _summary(
    options: argparse.Namespace, forest: td.Forest, groups: Sequence[DuplicateGroup], skipped: Skipped
) -> str:
    """Return a sentence that says how many units were compared and left out, and how many groups found."""
    from treedot.clones.report.text import count_of

    left_out = f"; left out: {skipped}" if skipped.counts else ""
    if not len(forest):
        return f"nothing to compare: no {options.unit} has {options.min_nodes} nodes or more{left_out}"
    files = len(set(forest.columns["file"]))
    copies = len({i for group in groups for i in group.members})
    new = "new " if options.baseline is not None else ""
    return (
        f"{count_of(len(groups), new + 'group')} of {count_of(copies, options.unit)}, among "
        f"{count_of(len(forest), options.unit)} of at least {options.min_nodes} nodes in "
        f"{count_of(files, 'file')}{left_out}"
    )
