"""The command ``treedot index``: an index of source code or trees, to search in."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import treedot as td
from treedot._storage.files import check_target
from treedot.cli.options import PATHS_HELP, add_output, add_units
from treedot.cli.pipes import show
from treedot.cli.progress import Progress
from treedot.cli.units import NO_UNITS, Reading, is_code, iter_units, report_skipped
from treedot.errors import ParameterError, SourceError
from treedot.languages import LANGUAGES, language_of
from treedot.readers.folders import Skipped, walk


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("paths", nargs="+", metavar="PATH", help=PATHS_HELP)
    add_output(command, "INDEX", "the file to write")
    command.add_argument(
        "--update",
        action="store_true",
        help="bring an index up to date where there is one: what is at the PATHs is read again if it has "
        "changed, and removed if it is gone; what is elsewhere stays",
    )
    command.add_argument("--overwrite", action="store_true", help="replace the file if there is one")
    add_units(command)


def run(options: argparse.Namespace) -> None:
    """Make an index of source code or trees, to search in.

    Write one file that treedot search finds similar units in. Names and literals do not count: a renamed copy
    is found as well as an equal one. The index appears, or takes the place of the old one, when it is
    complete.

    Example: treedot index src -o code.index
    """
    from treedot._storage.locks import lock

    if not options.update:
        _build(options)
        return
    with lock(options.output):  # another process may be making it
        if os.path.exists(options.output):
            _update(td.TreeIndex.open(options.output), options)
        else:
            _build(options)


def _build(options: argparse.Namespace) -> None:
    from treedot.clones.report.text import count_of

    check_target(Path(options.output), *options.paths)
    if os.path.exists(options.output) and not options.overwrite:
        raise ParameterError(
            f"{options.output} exists: --update brings it up to date, --overwrite replaces it"
        )
    reading = Reading.asked(options)
    skipped = Skipped()
    with Progress() as progress:
        forests = iter_units(options.paths, reading, on_skip=skipped, n_jobs=options.jobs, digest=_digest)
        made = td.TreeIndex.build(
            _some(forests),
            options.output,
            overwrite=options.overwrite,
            reading=reading._asdict(),
            n_jobs=options.jobs,
            progress=progress,
        )
    report_skipped(skipped)
    show(f"{count_of(len(made), 'unit')} in {options.output}")


def _some(forests: Iterator[td.Forest]) -> Iterator[td.Forest]:
    """Yield forests; raise where there is no tree in them."""
    is_empty = True
    for forest in forests:
        is_empty = is_empty and not len(forest)
        yield forest
    if is_empty:
        raise SourceError(f"there is no tree to make an index of: {NO_UNITS}")


def _update(found: td.TreeIndex, options: argparse.Namespace) -> None:
    """Replace the units of the files of some paths that have changed, and remove those that are gone."""
    if options.unit or options.language or options.min_nodes:
        raise ParameterError(
            "--update reads as the index was made: leave out --unit, --language and --min-nodes"
        )
    reading = Reading.of(found.reading)
    columns = zip(found.column("file"), found.column("digest"), strict=True)
    old = {file: content for file, content in columns if isinstance(file, str)}
    known = {_real_path(file): file for file in old}

    def name(path: str) -> str:
        """Return the name by which the index knows a file, however its path is written now."""
        return known.get(_real_path(path), path)

    files = ((name(path), path) for path in _code_files(options.paths, reading.language))
    same = {file for file, path in files if old.get(file) == _digest(path)}
    tops = [_real_path(path) for path in options.paths]
    changed = {file for file in old if file not in same and _is_under(_real_path(file), tops)}
    before, skipped = len(found), Skipped()
    with Progress() as progress:
        forests = iter_units(
            options.paths,
            reading,
            only=lambda path: name(path) not in same,
            on_skip=skipped,
            n_jobs=options.jobs,
            digest=_digest,
        )
        found.update(_named(forests, name), files=changed, n_jobs=options.jobs, progress=progress)
    report_skipped(skipped)
    show(f"{len(found):,} units in {options.output}, before {before:,}; {len(same):,} files were unchanged")


def _named(forests: Iterable[td.Forest], name: Callable[[str], str]) -> Iterator[td.Forest]:
    for forest in forests:
        names = {file: name(file) for file in set(forest.columns["file"])}
        forest.columns["file"] = [names[file] for file in forest.columns["file"]]
        yield forest


def _code_files(paths: Iterable[str], language: str | None) -> list[str]:
    """Return the source files of some paths."""

    def wanted(name: str) -> bool:
        return language_of(name) in (LANGUAGES if language is None else (language,))

    code = [path for path in paths if is_code(path)]
    return [file.path for file in walk(code, wanted)] if code else []


def _digest(path: str) -> str:
    """Return what changes when the content of a file does; nothing where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError:
        return ""


def _real_path(path: str) -> str:
    """Return what is the same for a file however its path is written; a text that is no path as it is."""
    try:
        return os.path.realpath(path)
    except ValueError:  # the names in an index may be anything
        return path


def _is_under(file: str, paths: Iterable[str]) -> bool:
    """Tell whether a file is one of some paths, or inside of one; all are real paths."""
    return any(file == path or file.startswith(path.rstrip(os.sep) + os.sep) for path in paths)
