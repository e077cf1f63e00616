"""Read the examples of a model: trees, or rows of several columns of trees, numbers and texts."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import treedot as td
from treedot.cli.reading import Skipped, batches
from treedot.errors import ParameterError, SourceError

if TYPE_CHECKING:
    from treedot.models.inputs.table import Columns


def read_examples(sources: Sequence[str], options: argparse.Namespace, columns: Columns) -> td.Forest:
    """Return the trees of all files, read from the first tree column; the other columns stay text.

    ``options.remembered_column``, if set, is the column of trees that the model was trained with.
    """
    set_column(options, columns)
    skipped = Skipped(options.skip_bad)
    forests = (iter_examples(source, options, columns, skipped) for source in sources)
    forest = td.Forest.concat(itertools.chain.from_iterable(forests))
    skipped.report()
    return forest


def iter_examples(
    source: str, options: argparse.Namespace, columns: Columns, skipped: Skipped
) -> Iterator[td.Forest]:
    """Yield the trees of a file; with --skip-bad, leave out rows with a bad tree in any column."""
    from treedot.models.inputs.table import readable_rows
    from treedot.readers.on_bad import OnBad

    read = found = 0
    for batch in batches(source, options, skipped):
        good = readable_rows(batch.columns, columns, len(batch), OnBad(skipped.callback), source, read)
        read += len(batch)
        found += good.size
        if good.size:
            yield batch if good.size == len(batch) else batch[good]
    if not found:
        raise SourceError(f"{source}: no row has trees that can all be read")


def set_column(options: argparse.Namespace, columns: Columns) -> None:
    """Set --column to the first tree column of a model, if its columns have names."""
    if columns.are_named:
        if options.column is not None:
            named = ", ".join(map(str, columns.trees))
            raise ParameterError(f"the trees are in the columns {named}: remove --column")
        options.column = columns.trees[0]
