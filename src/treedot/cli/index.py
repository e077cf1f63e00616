"""The command ``treedot index``: build an index of source code or trees for ``treedot search``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import treedot as td
from treedot._storage.files import check_target
from treedot.cli.files_read import is_under, real_path
from treedot.cli.options import PATHS_HELP, add_output, add_units
from treedot.cli.pipes import show
from treedot.cli.progress import Progress
from treedot.cli.units import NO_UNITS, asked_reading, is_code, iter_units, report_skipped
from treedot.errors import ParameterError, SourceError
from treedot.readers.folders import Skipped
from treedot.search.reading import Reading, digest_of


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("paths", nargs="+", metavar="PATH", help=PATHS_HELP)
    add_output(command, "INDEX", "the file to write")
    command.add_argument(
        "--update",
        action="store_true",
        help="update an existing index: read changed files at the PATHs again, and remove deleted ones; "
        "files elsewhere stay as they are",
    )
    command.add_argument("--overwrite", action="store_true", help="replace an existing file")
    command.add_argument(
        "--metric", metavar="METRIC", help="a folder that treedot tune wrote: searches use this similarity"
    )
    add_units(command)


def run(options: argparse.Namespace) -> None:
    """Build an index of source code or trees to search.

    Write an index file, in which treedot search finds similar units. Rare names, literals and constructs
    count more than frequent ones. Renamed copies are found, too. An existing index is replaced only when the
    new one is complete.

    Example: treedot index src -o code.index
    """
    from treedot._storage.locks import lock

    if not options.update:
        _build(options)
        return
    with lock(options.output):  # another process may be building it
        if os.path.exists(options.output):
            _update(td.TreeIndex.open(options.output), options)
        else:
            _build(options)


def _build(options: argparse.Namespace) -> None:
    from treedot.clones.report.text import count_of
    from treedot.vectors import Metric

    check_target(Path(options.output), *options.paths)
    if os.path.exists(options.output) and not options.overwrite:
        raise ParameterError(f"{options.output} exists: --update updates it, --overwrite replaces it")
    metric = None if options.metric is None else Metric.load(options.metric)
    reading = asked_reading(options)
    if metric is None:
        reading = reading._replace(identifiers="keep", literals="keep")
    else:
        reading = reading.like(metric.facts.get("reading", {}))
    skipped = Skipped()
    with Progress() as progress:
        forests = iter_units(options.paths, reading, on_skip=skipped, n_jobs=options.jobs, digest=digest_of)
        made = td.TreeIndex.build(
            _some(forests),
            options.output,
            metric=metric,
            idf=metric is None,
            overwrite=options.overwrite,
            reading=reading.stored(),
            n_jobs=options.jobs,
            progress=progress,
        )
    report_skipped(skipped)
    show(f"{count_of(len(made), 'unit')} in {options.output}")


def _some(forests: Iterator[td.Forest]) -> Iterator[td.Forest]:
    """Yield the forests; raise SourceError at the end if they had no trees."""
    is_empty = True
    for forest in forests:
        is_empty = is_empty and not len(forest)
        yield forest
    if is_empty:
        raise SourceError(f"no trees found to index: {NO_UNITS}")


def _update(found: td.TreeIndex, options: argparse.Namespace) -> None:
    """Replace the units of files at the paths that have changed, and remove those of deleted files."""
    given = ("unit", "language", "min_nodes", "metric", "exclude", "include_vendored")
    if any(getattr(options, name) for name in given):
        raise ParameterError(
            "--update keeps the settings of the index: remove --unit, --language, --min-nodes, --metric, "
            "--exclude and --include-vendored"
        )
    reading = Reading.of(found.reading)
    columns = zip(found.column("file"), found.column("digest"), strict=True)
    old = {file: content for file, content in columns if isinstance(file, str)}
    known = {real_path(file): file for file in old}

    def name(path: str) -> str:
        """Return the path under which a file is stored in the index, which may be spelled differently."""
        return known.get(real_path(path), path)

    files = ((name(path), path) for path in _code_files(options.paths, reading))
    same = {file for file, path in files if old.get(file) == digest_of(path)}
    tops = [real_path(path) for path in options.paths]
    changed = {file for file in old if file not in same and is_under(real_path(file), tops)}
    before, skipped = len(found), Skipped()
    with Progress() as progress:
        forests = iter_units(
            options.paths,
            reading,
            only=lambda path: name(path) not in same,
            on_skip=skipped,
            n_jobs=options.jobs,
            digest=digest_of,
        )
        found.update(_named(forests, name), files=changed, n_jobs=options.jobs, progress=progress)
    report_skipped(skipped)
    show(f"{len(found):,} units in {options.output} (before: {before:,}); {len(same):,} unchanged files")


def _named(forests: Iterable[td.Forest], name: Callable[[str], str]) -> Iterator[td.Forest]:
    """Yield the forests with ``name`` applied to their files."""
    for forest in forests:
        names = {file: name(file) for file in set(forest.columns["file"])}
        forest.columns["file"] = [names[file] for file in forest.columns["file"]]
        yield forest


def _code_files(paths: Iterable[str], reading: Reading) -> list[str]:
    """Return the source files at the paths."""
    code = [path for path in paths if is_code(path)]
    return list(reading.files(code)) if code else []
