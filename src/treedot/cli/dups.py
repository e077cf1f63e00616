"""The command ``treedot dups``: near-duplicates in source code."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from treedot.cli.changes import Changes
from treedot.cli.pipes import note, reader_may_leave
from treedot.cli.progress import Count
from treedot.cli.settings import apply_settings
from treedot.errors import ParameterError, SourceError
from treedot.files import check_target, write_whole
from treedot.languages import language_of
from treedot.parameters import CODE_UNITS, REPORT_FORMATS, checked_choice, checked_integer
from treedot.readers.code import CodeSettings, iter_code
from treedot.readers.code.source_files import source_lines
from treedot.readers.folders import Skipped
from treedot.report import duplicates_report
from treedot.report.text import count_of
from treedot.search.baseline import new_groups, read_baseline, write_baseline
from treedot.search.duplicate_groups import DuplicateGroup
from treedot.search.duplicates import MIN_NODES, THRESHOLD, find_duplicates
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
    forest = _read(options, skipped, bad)
    _check_targets(options, set(forest.columns.get("file", ())))
    limited: list[int] = []
    groups = find_duplicates(
        forest,
        threshold=options.threshold,
        min_nodes=options.min_nodes,
        n_jobs=options.jobs,
        on_limit=limited.append,
    )
    if options.write_baseline is not None:
        write_baseline(Path(options.write_baseline), forest, groups)
    if known is not None:
        groups = list(new_groups(forest, groups, known))
    if changes is not None:
        groups = [group for group in groups if _is_touched(forest, group, changes)]
    report = duplicates_report(
        forest, groups[: options.top], options.format, sources=_lines(options.language)
    )
    if options.output is None:
        with reader_may_leave():
            print(report, end="")
    else:
        with write_whole(Path(options.output)) as aside:
            aside.write_text(report, encoding="utf-8")
    for text in _notes(options, bad, limited):
        note(text)
    note(_summary(options, forest, groups, skipped))
    return 1 if options.fail_on_new and groups else 0


def _read(options: argparse.Namespace, skipped: Skipped, bad: list[SourceError]) -> Forest:
    """Read what is compared, without names and literals; note which files could not be read."""
    settings = CodeSettings(options.unit, "blur", "blur", options.min_nodes, blurred=True)
    with Count() as count:
        return count.over(
            iter_code(
                options.paths,
                settings=settings,
                language=options.language,
                exclude=options.exclude or (),
                on_skip=skipped,
                on_bad=bad.append,
                n_jobs=options.jobs,
            )
        )


def _check_targets(options: argparse.Namespace, sources: Iterable[str]) -> None:
    """Raise where a file to write cannot be written, or is one that is read; the report is no baseline."""
    baselines = {Path(path).resolve() for path in (options.baseline, options.write_baseline) if path}
    for target in filter(None, (options.output, options.write_baseline)):
        check_target(Path(target), *sources)
    if options.output is not None and Path(options.output).resolve() in baselines:
        raise ParameterError(f"{options.output} is the baseline: write the report to another file")


def _is_touched(forest: Forest, group: DuplicateGroup, changes: Changes) -> bool:
    place = [forest.columns[name] for name in ("file", "start", "end")]
    return any(changes.touch(*(column[i] for column in place)) for i in group.members)


def _lines(language: str | None) -> Callable[[str], list[str]]:
    """Return what reads the lines of a source file."""
    return lambda file: source_lines(file, language or language_of(file) or "")


def _notes(options: argparse.Namespace, bad: Iterable[SourceError], limited: Iterable[int]) -> Iterator[str]:
    """Yield what is to be said of files that could not be read, and of limits."""
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
    copies = sum(len(group.members) for group in groups)
    new = "new " if options.baseline is not None else ""
    return (
        f"{count_of(len(groups), new + 'group')} of {count_of(copies, options.unit)}, among "
        f"{count_of(len(forest), options.unit)} of at least {options.min_nodes} nodes in "
        f"{count_of(files, 'file')}{left_out}"
    )
