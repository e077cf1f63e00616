"""The command ``treedot convert``: write trees in another format."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from treedot._storage.files import check_target
from treedot.cli.options import SOURCE_HELP, add_include_vendored, add_output, add_reading
from treedot.cli.pipes import note
from treedot.cli.reading import Skipped, streamed
from treedot.errors import SourceError
from treedot.languages import language_of
from treedot.readers.code.foreign_folders import foreign_folder
from treedot.readers.code.settings import MAX_BYTES
from treedot.readers.folders import NOT_WRITTEN, read_file, walk
from treedot.readers.folders import Skipped as LeftOut


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("trees", nargs="+", metavar="TREES", help="folder, or " + SOURCE_HELP)
    add_output(
        command,
        "FILE",
        "the file to write: .parquet, .arrow or .feather (trees with their columns); .mrg, .txt or .brackets "
        "(brackets, one tree per line, without columns); .nwk (Newick); .klp (KeLP); .svmlight "
        "(SVM-LIGHT-TK)",
    )
    add_reading(command)
    add_include_vendored(command)


def run(options: argparse.Namespace) -> None:
    """Write trees in another format.

    Write the trees of files and folders to one file. Memory does not grow with the number of trees. In a
    folder, convert reads every file with a known suffix (with --format, of that format only), except files
    that .gitignore or .treedotignore exclude, and source code that nobody wrote for the project.

    Example: treedot convert pages/ -o pages.parquet
    """
    from treedot.trees.writers import check_suffix, forest_file

    check_suffix(options.output)
    left_out = LeftOut()
    sources = list(_files(options.trees, options, left_out))
    check_target(Path(options.output), *sources)
    skipped = Skipped(options.skip_bad)
    with forest_file(options.output) as writer:
        for batch in streamed(sources, options, skipped):
            writer.write(batch)
    skipped.report()
    if left_out.counts:
        note(f"left out of folders: {left_out}")


def _files(sources: list[str], options: argparse.Namespace, on_skip: LeftOut) -> Iterator[str]:
    """Yield the sources; for a folder, yield its files that have a known suffix."""
    from treedot.readers.sources import is_known

    for source in sources:
        if not os.path.isdir(source):
            yield source
            continue
        code = None if options.include_vendored else set(_code(source, on_skip))
        for file in walk([source], lambda name: is_known(name, options.format), on_skip):
            if code is None or language_of(file.path) is None or file.path in code:
                yield file.path


def _code(folder: str, on_skip: LeftOut) -> Iterator[str]:
    """Yield the source files of a folder that somebody wrote for the project."""
    from treedot.readers.code.source_files import reason_to_skip

    def count(path: str, reason: str) -> None:
        if reason in NOT_WRITTEN:  # the walk over all files counts the others
            on_skip(path, reason)

    for file in walk([folder], lambda name: language_of(name) is not None, count, (), foreign_folder):
        try:
            reason = reason_to_skip(read_file(file, MAX_BYTES), file.path, language_of(file.path) or "")
        except SourceError:  # reading reports it
            reason = None
        if reason not in NOT_WRITTEN:
            yield file.path
        else:
            on_skip(file.path, reason)
