"""The command ``treedot dups``: near-duplicates in source code."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from treedot._storage.files import check_target, write_whole
from treedot.cli.changes import Changes
from treedot.cli.pipes import note, reader_may_leave
from treedot.cli.progress import Count
from treedot.cli.settings import apply_settings
from treedot.clones.baseline import Baseline, read_baseline, unit_names, write_baseline
from treedot.clones.duplicates import MIN_NODES, THRESHOLD, near_duplicates
from treedot.clones.groups import DuplicateGroup, groups_of
from treedot.clones.identities import units_of
from treedot.clones.near_duplicates import NearDuplicates
from treedot.clones.new_duplicates import new_duplicates
from treedot.clones.report.formats import duplicates_report
from treedot.clones.report.text import count_of
from treedot.errors import ParameterError, SourceError
from treedot.languages import language_of
from treedot.parameters import CODE_UNITS, REPORT_FORMATS, checked_choice, checked_integer
from treedot.readers import CodeSettings, iter_code
from treedot.readers.code.grammars import grammar_changes
from treedot.readers.code.source_files import source_lines
from treedot.readers.folders import Skipped
from treedot.trees import Forest

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
DEFAULTS = {"unit": "function", "min_nodes": MIN_NODES, "threshold": THRESHOLD, "format": "text"}


def run(options: argparse.Namespace) -> int:
    """Print the near-duplicates of source files; return 1 where there are new ones and that is a failure."""
    if options.format is None and options.output is not None:
        options.format = SUFFIXES.get(Path(options.output).suffix.lower())
    apply_settings(options, SETTINGS, Path.cwd())
    for name, value in DEFAULTS.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    for name in ("column", "skip_bad"):
        if getattr(options, name):
            raise ParameterError(
                f"--{name.replace('_', '-')} is for files of trees, and this compares source code: leave it "
                "out, or give a folder to write to, such as -o out/"
            )
    checked_choice("--unit", options.unit, CODE_UNITS)
    checked_choice("--format", options.format, REPORT_FORMATS)
    if options.top is not None:
        checked_integer("--top", options.top, at_least=1)
    _check_targets(options, options.paths)
    known = None if options.baseline is None else read_baseline(Path(options.baseline))
    changes = None if options.changed_since is None else Changes(options.changed_since, Path.cwd())

    skipped = Skipped()
    bad: list[SourceError] = []
    with Count() as count:
        forest = count.over(_units(options, options.paths, on_skip=skipped, on_bad=bad.append))
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
    report = duplicates_report(
        forest, groups[: options.top], options.format, sources=_lines(options.language)
    )
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


def _units(options: argparse.Namespace, paths: Sequence[Any], **how: Any) -> Iterator[Forest]:
    """Yield the units of paths that are compared, without names and literals."""
    return iter_code(
        paths,
        settings=CodeSettings(options.unit, "blur", "blur", options.min_nodes, blurred=True),
        language=options.language,
        exclude=options.exclude or (),
        n_jobs=options.jobs,
        **how,
    )


def _shown(
    options: argparse.Namespace,
    forest: Forest,
    found: NearDuplicates,
    known: Baseline | None,
    changes: Changes | None,
) -> list[DuplicateGroup]:
    """Return the groups; with a baseline or a commit, only what is not known and what has changed."""
    if known is None and changes is None:
        return groups_of(found)
    units = units_of(forest, unit_names(forest, options.unit)) if known is not None else ()
    changed = None
    if changes is not None:
        changed = changes.changed(forest, options.paths, lambda paths: _old(options, paths))
    return new_duplicates(found, known=known, units=units, changed=changed)


def _old(options: argparse.Namespace, paths: Sequence[Path]) -> Forest:
    """Return the units of files as they were; those that cannot be read have none."""
    return Forest.concat(_units(options, paths, on_bad=lambda error: None))


def _check_targets(options: argparse.Namespace, sources: Iterable[str]) -> None:
    """Raise where a file to write cannot be written, or is one that is read; the report is no baseline."""
    baselines = {Path(path).resolve() for path in (options.baseline, options.write_baseline) if path}
    for target in filter(None, (options.output, options.write_baseline)):
        check_target(Path(target), *sources)
    if options.output is not None and Path(options.output).resolve() in baselines:
        raise ParameterError(f"{options.output} is the baseline: write the report to another file")


def _lines(language: str | None) -> Callable[[str], list[str]]:
    """Return what reads the lines of a source file."""
    return lambda file: source_lines(file, language or language_of(file) or "")


def _notes(
    options: argparse.Namespace,
    forest: Forest,
    bad: Iterable[SourceError],
    limited: Iterable[int],
    known: Baseline | None,
) -> Iterator[str]:
    """Yield notes on files that could not be read, on limits, and on an old baseline."""
    if known is not None and not known.knows_pairs:
        yield (
            f"{options.baseline} is a baseline of version {known.version}, which is weaker: "
            "it holds groups and not pairs, so that a new copy of one member of a known group may pass; "
            f"renew it with --write-baseline {options.baseline}"
        )
    if known is not None and (changes := grammar_changes(known.grammars, forest.columns.get("language", ()))):
        yield f"{options.baseline} {changes}; renew it with --write-baseline {options.baseline}"
    for error in bad:
        yield f"left out {error}"
    for count in limited:
        yield (
            f"{count_of(count, options.unit)} met a limit: so much is like them that not all of it was "
            "compared; leave generated code out by --exclude, or raise --threshold"
        )


def _summary(
    options: argparse.Namespace, forest: Forest, groups: Sequence[DuplicateGroup], skipped: Skipped
) -> str:
    """Return how much was compared, and what was left out."""
    left_out = f"; left out: {skipped}" if skipped.counts else ""
    if not len(forest):
        what = f"there is no {options.unit} of at least {options.min_nodes} nodes, so nothing was compared"
        return f"{what}{left_out}"
    files = len(set(forest.columns["file"]))
    copies = len({i for group in groups for i in group.members})
    new = "new " if options.baseline is not None else ""
    return (
        f"{count_of(len(groups), new + 'group')} of {count_of(copies, options.unit)}, among "
        f"{count_of(len(forest), options.unit)} of at least {options.min_nodes} nodes in "
        f"{count_of(files, 'file')}{left_out}"
    )
