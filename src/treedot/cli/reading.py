"""Read the trees of a command, from files or from the command line itself."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence

import treedot as td
from treedot._runtime.timing import Stopwatch
from treedot.cli.pipes import note
from treedot.cli.progress import Progress
from treedot.errors import SourceError

TABLES = ("tsv", "csv", "jsonl", "parquet", "arrow")


def read_all(source: str, options: argparse.Namespace, skipped: Skipped) -> td.Forest:
    """Return the trees of a file, or of a text in brackets."""
    return td.Forest.concat(batches(source, options, skipped))


def batches(source: str, options: argparse.Namespace, skipped: Skipped) -> Iterator[td.Forest]:
    """Yield the trees of a file in batches, or the tree of a text in brackets."""
    if source.lstrip().startswith("("):
        yield td.read_trees([source])
        return
    found = 0
    for batch in _of_file(source, options, skipped, 8192):
        found += len(batch)
        yield batch
    if not found:
        raise SourceError(f"{source}: no trees found")


def streamed(sources: Sequence[str], options: argparse.Namespace, skipped: Skipped) -> Iterator[td.Forest]:
    """Yield the trees of files in small batches, and show how much of the files has been read."""
    sizes = [os.path.getsize(source) if os.path.isfile(source) else None for source in sources]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    trees = read = 0
    watch = Stopwatch()
    with Progress("B", total) as progress:
        for source, size in zip(sources, sizes, strict=True):

            def on_read(position: int, before: int = read) -> None:
                progress(before + position)

            for batch in _of_file(source, options, skipped, 2048, on_read):
                yield batch
                trees += len(batch)
                progress.describe(after=f"{trees} trees, {trees / max(watch.seconds, 1e-9):.0f} trees/s")
            read += size or 0
            progress(read)
    if not trees:
        raise SourceError(f"no trees found to {options.command}")


def _of_file(
    source: str,
    options: argparse.Namespace,
    skipped: Skipped,
    batch_size: int,
    on_read: Callable[[int], object] | None = None,
) -> Iterator[td.Forest]:
    return td.iter_trees(
        source,
        options.format,
        column=options.column or _remembered_column(source, options),
        unit=options.unit,
        batch_size=batch_size,
        on_bad=skipped.callback,
        on_read=on_read,
        n_jobs=getattr(options, "jobs", None),
    )


def _remembered_column(source: str, options: argparse.Namespace) -> str | None:
    """Return the tree column that the model remembers, if the file is a table that has it."""
    from treedot.readers.sources import format_of
    from treedot.readers.tables import NoColumnError

    column = getattr(options, "remembered_column", None)
    if column is None or not os.path.isfile(source) or (options.format or format_of(source)) not in TABLES:
        return None
    try:
        next(td.iter_trees(source, options.format, column=column, batch_size=1), None)
    except NoColumnError:
        return None
    except SourceError:
        pass  # reading reports it
    return column


class Skipped:
    """Reports trees that are left out because of ``--skip-bad``, and their number at the end."""

    def __init__(self, skips: bool) -> None:
        self.errors = 0
        self.callback = self._one if skips else None

    def _one(self, error: SourceError) -> None:
        self.add(1, str(error))

    def add(self, trees: int, *messages: str) -> None:
        """Add to the number of bad trees, and print the reasons."""
        self.errors += trees
        for message in messages:
            note(f"skipped {message}")

    def report(self) -> None:
        """Print how many trees were left out, if any."""
        if self.errors:
            note(f"left out {self.errors} bad tree(s)")
