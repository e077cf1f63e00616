"""How commands read trees: from files, or from the command line itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator

from treedot.cli.pipes import note
from treedot.cli.progress import Progress
from treedot.errors import SourceError
from treedot.readers import iter_trees, read_trees
from treedot.trees import Forest


def read_all(source: str, options: argparse.Namespace, skipped: Skipped) -> Forest:
    """Return the trees of a file, or the one that stands on the command line itself."""
    return Forest.concat(batches(source, options, skipped))


def batches(source: str, options: argparse.Namespace, skipped: Skipped) -> Iterator[Forest]:
    """Yield the trees of a file, or the one that stands on the command line itself."""
    if source.lstrip().startswith("("):
        yield read_trees([source])
        return
    found = 0
    for batch in _of_file(source, options, skipped, 8192):
        found += len(batch)
        yield batch
    if not found:
        raise SourceError(f"{source}: there is no tree in it")


def streamed(
    sources: Iterable[str], options: argparse.Namespace, skipped: Skipped, progress: Progress
) -> Iterator[Forest]:
    """Yield the trees of files in small batches, each counted when it has been dealt with."""
    for source in sources:
        for batch in _of_file(source, options, skipped, 2048, progress.read):
            yield batch
            progress.advance(len(batch))
        progress.finished(source)


def _of_file(
    source: str,
    options: argparse.Namespace,
    skipped: Skipped,
    batch_size: int,
    on_read: Callable[[int], object] | None = None,
) -> Iterator[Forest]:
    return iter_trees(
        source,
        options.format,
        column=options.column,
        unit=options.unit,
        batch_size=batch_size,
        on_bad=skipped.callback,
        on_read=on_read,
        n_jobs=getattr(options, "jobs", None),
    )


class Skipped:
    """Counts the trees that were left out with ``--skip-bad``, and says so at the end."""

    def __init__(self, skips: bool) -> None:
        self.errors = 0
        self.callback = self._one if skips else None

    def _one(self, error: SourceError) -> None:
        self.errors += 1
        note(f"skipped {error}")

    def report(self) -> None:
        """Say how many were left out, if any."""
        if self.errors:
            note(f"left out {self.errors} bad tree(s)")
