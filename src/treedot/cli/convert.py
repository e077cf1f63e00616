"""The command ``treedot convert``: write trees in another format."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from treedot._storage.files import check_target
from treedot.cli.options import SOURCE_HELP, add_output, add_reading
from treedot.cli.pipes import note
from treedot.cli.reading import Skipped, streamed
from treedot.readers.folders import Skipped as LeftOut
from treedot.readers.folders import walk


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


def run(options: argparse.Namespace) -> None:
    """Write trees in another format.

    Write the trees of files and folders to one file. Memory does not grow with the number of trees. In a
    folder, convert reads every file with a known suffix (with --format, of that format only), except files
    that .gitignore or .treedotignore exclude.

    Example: treedot convert pages/ -o pages.parquet
    """
    from treedot.trees.writers import check_suffix, forest_file

    check_suffix(options.output)
    left_out = LeftOut()
    sources = list(_files(options.trees, options.format, left_out))
    check_target(Path(options.output), *sources)
    skipped = Skipped(options.skip_bad)
    with forest_file(options.output) as writer:
        for batch in streamed(sources, options, skipped):
            writer.write(batch)
    skipped.report()
    if left_out.counts:
        note(f"left out of folders: {left_out}")


def _files(sources: list[str], format: str | None, on_skip: LeftOut) -> Iterator[str]:
    """Yield the sources; for a folder, yield its files that have a known suffix."""
    from treedot.readers.sources import is_known

    for source in sources:
        if os.path.isdir(source):
            yield from (file.path for file in walk([source], lambda name: is_known(name, format), on_skip))
        else:
            yield source
