"""The command ``treedot dups``: near-duplicates in source code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import treedot as td
from treedot._storage.files import check_target, write_whole
from treedot.cli.files_read import FilesRead
from treedot.cli.options import (
    add_choice_of_files,
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
from treedot.parameters import CODE_UNITS, REPORT_FORMATS, TESTS, checked_choice, checked_integer

if TYPE_CHECKING:
    from treedot.cli.changes import Changes
    from treedot.clones.baseline import Baseline
    from treedot.clones.blocks import DuplicateBlocks
    from treedot.clones.groups import DuplicateGroup
    from treedot.clones.near_duplicates import NearDuplicates
SETTINGS: dict[str, type] = {
    "unit": str,
    "language": str,
    "min_nodes": int,
    "threshold": float,
    "top": int,
    "blocks": bool,
    "tests": str,
    "format": str,
    "baseline": Path,
    "exclude": list,
    "include_vendored": bool,
}
ON_TERMINAL = 30  # groups on a terminal, unless --top is given
DESCRIBED = ("html", "json")  # formats that describe the run
SUFFIXES = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".sarif": "sarif",
    ".md": "markdown",
    ".txt": "text",
}


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
    add_choice_of_files(command)
    command.add_argument(
        "--blocks",
        action=argparse.BooleanOptionalAction,
        help="also find blocks of statements copied between different functions, classes and scripts "
        "(default: yes for functions; not with the options for new near-duplicates)",
    )
    command.add_argument(
        "--top",
        type=int,
        metavar="N",
        help="show only the first N groups, and the first N of blocks (default: all, on a terminal 30)",
    )
    command.add_argument(
        "--tests",
        choices=TESTS,
        help="where to show groups that lie wholly in tests, or skip them (default: last)",
    )
    command.add_argument(
        "--format",
        choices=REPORT_FORMATS,
        help="format of the report (default: from the suffix of FILE, else text)",
    )
    add_output(
        command,
        "FILE",
        "write the report to a file: .html, .json, .sarif, .md or .txt (default: print it)",
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
    new.add_argument(
        "--write-baseline",
        metavar="FILE",
        help="record all near-duplicates in a baseline; without -o and --fail-on-new, do not print them",
    )
    new.add_argument(
        "--fail-on-new",
        action="store_true",
        help="exit with 1 if there is a group to show: with --changed-since or --baseline, a new one",
    )
    add_no_cache(command)
    add_jobs(command, "processes or threads")


def run(options: argparse.Namespace) -> int:
    """Find near-duplicates in source code.

    List groups of functions (or classes, or files) that are copies of each other, even if renamed and edited;
    the groups that share most come first. Copied blocks of statements in different functions follow. Names,
    literals, comments and layout do not matter. With
    --changed-since or --baseline, members that are new or changed come first and are marked (new). Settings
    can also be in [dups] of treedot.toml or [tool.treedot.dups] of pyproject.toml. A comment 'treedot:
    ignore' in or above a function excludes it. Exit codes: 0 success, 1 groups found with --fail-on-new, 2
    wrong command line or bad input. For files of trees, use treedot batch dups.

    Example: treedot dups src -o report.html
    """
    from treedot.cli.changes import Changes
    from treedot.cli.dups_blocks import find_blocks, units_and_files
    from treedot.cli.dups_remarks import advice, remarks, summary
    from treedot.clones.baseline import read_baseline, unit_names, write_baseline
    from treedot.clones.duplicates import near_duplicates
    from treedot.clones.listed import in_sections

    refuse_folder(options.output, "dups")
    _complete(options)
    _check_targets(options, options.paths)
    known = None if options.baseline is None else read_baseline(Path(options.baseline))
    changes = None if options.changed_since is None else Changes(options.changed_since, Path.cwd())

    read = FilesRead()
    bad: list[SourceError] = []
    with Progress("files") as progress:
        units = _units(
            options,
            options.paths,
            only=read.add,
            on_skip=read.skip,
            on_bad=bad.append,
            progress=progress,
        )
        forest = td.Forest.concat(units)
    read.check(options.paths, options.language or "source")
    if bad and len(bad) == len(read):
        raise bad[0]
    _check_targets(options, set(forest.columns.get("file", ())))
    limited: list[int] = []
    limited_blocks: list[int] = []
    forest, files = units_and_files(forest, options.unit)
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
    blocks = find_blocks(options, files, forest, groups, limited_blocks.append) if options.blocks else None
    groups = in_sections(groups, options.tests)
    if options.write_baseline is None or options.output is not None or options.fail_on_new:
        _report(options, forest, groups, blocks, read)
    else:
        note(f"recorded all near-duplicates: --baseline {options.write_baseline} shows only new ones")
    for text in remarks(options, forest, bad, limited, limited_blocks, known):
        note(text)
    note(summary(options, forest, groups, blocks, read.skip))
    if not (options.fail_on_new and groups):
        return 0
    note(advice(options))
    return 1


def _complete(options: argparse.Namespace) -> None:
    """Fill in the options that are not given, from the settings of the project or by default; check them."""
    from treedot.cli.dups_blocks import check_blocks, searches_blocks
    from treedot.cli.settings import apply_settings, folder_of
    from treedot.clones.duplicates import MIN_NODES, THRESHOLD, checked_settings

    suffix = Path(options.output or "").suffix
    if options.format is None:
        options.format = SUFFIXES.get(suffix.lower())
    check_blocks(options)
    apply_settings(options, SETTINGS, folder_of(options.paths))
    if options.format is None and suffix:
        raise ParameterError(
            f"cannot write {options.output}: {suffix} is not the suffix of a report; use one of "
            f"{', '.join(SUFFIXES)}, or set --format to one of {', '.join(REPORT_FORMATS)}"
        )
    defaults = {
        "unit": "function",
        "min_nodes": MIN_NODES,
        "threshold": THRESHOLD,
        "tests": "last",
        "format": "text",
    }
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    options.blocks = searches_blocks(options)
    checked_settings(options.threshold, options.min_nodes)
    checked_choice("--unit", options.unit, CODE_UNITS)
    checked_choice("--tests", options.tests, TESTS)
    checked_choice("--format", options.format, REPORT_FORMATS)
    if options.top is not None:
        checked_integer("--top", options.top, at_least=1)


def _units(options: argparse.Namespace, paths: Sequence[Any], **how: Any) -> Iterator[td.Forest]:
    """Yield the units of the paths as they are compared, without names and literals."""
    all_code = bool(options.include_vendored)
    return td.iter_code(
        paths,
        settings=td.readers.CodeSettings(
            options.unit,
            "blur",
            "blur",
            options.min_nodes,
            blurred=True,
            statements=options.blocks,
            stubs=all_code,
        ),
        language=options.language,
        exclude=options.exclude or (),
        include_vendored=all_code,
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
    from treedot.clones.identities import units_of
    from treedot.clones.listed import groups_of
    from treedot.clones.new_duplicates import new_duplicates

    def old(paths: Sequence[Path]) -> td.Forest:
        """Return the units of files; skip files that cannot be read."""
        return td.Forest.concat(_units(options, paths, on_bad=lambda error: None))

    if known is None and changes is None:
        return groups_of(found)
    units = units_of(forest, unit_names(forest, options.unit)) if known is not None else ()
    changed = None if changes is None else changes.changed(forest, options.paths, old)
    return new_duplicates(found, known=known, units=units, changed=changed)


def _report(
    options: argparse.Namespace,
    forest: td.Forest,
    groups: Sequence[DuplicateGroup],
    blocks: DuplicateBlocks | None,
    read: FilesRead,
) -> None:
    """Print the report of groups and blocks, or write it to a file."""
    from treedot._pages.colours import shows_colours
    from treedot.cli.dups_run import run_of
    from treedot.clones.report.formats import duplicates_report
    from treedot.readers.code.source_files import source_lines

    def lines(file: str) -> list[str]:
        return source_lines(file, options.language or language_of(file) or "")

    about = run_of(options, read, len(forest)) if options.format in DESCRIBED else None
    is_watched = options.output is None and options.format == "text" and sys.stdout.isatty()
    top = ON_TERMINAL if options.top is None and is_watched else options.top
    report = duplicates_report(
        forest,
        groups,
        options.format,
        sources=lines,
        blocks=blocks,
        top=top,
        about=about,
        coloured=is_watched and shows_colours(sys.stdout),
    )
    if options.output is None:
        with reader_may_leave():
            print(report, end="")
        longest = max(len(groups), len(blocks.groups) if blocks else 0)
        if is_watched and options.top is None and longest > ON_TERMINAL:
            note(
                f"this is the beginning of the list: --top {longest} shows all of it, -o report.html shows "
                "the copies side by side"
            )
    else:
        with write_whole(Path(options.output)) as aside:
            aside.write_text(report, encoding="utf-8")


def _check_targets(options: argparse.Namespace, sources: Iterable[str]) -> None:
    """Raise an error if a file to write is not writable or is a source, or if the report is the baseline."""
    baselines = {Path(path).resolve() for path in (options.baseline, options.write_baseline) if path}
    for target in filter(None, (options.output, options.write_baseline)):
        check_target(Path(target), *sources)
    if options.output is not None and Path(options.output).resolve() in baselines:
        raise ParameterError(f"{options.output} is the baseline: choose another file for the report")
