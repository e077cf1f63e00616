"""The columns of a forest: a class, a file, or any other value for each tree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from treedot._pages.printable import first_few
from treedot.errors import LimitError

if TYPE_CHECKING:
    from treedot.trees.forest import Forest

MAX_EMPTY = 2**27  # cells filled with None, of 8 bytes each


def listed(forests: Iterable[Forest]) -> list[Forest]:
    """Return forests as a list; raise LimitError if their joined columns would be nearly all empty."""
    parts: list[Forest] = []
    names: dict[str, None] = {}
    rows = filled = 0
    for forest in forests:
        parts.append(forest)
        names |= dict.fromkeys(forest.columns)
        rows += len(forest)
        filled += len(forest) * len(forest.columns)
        if len(names) * rows - filled > MAX_EMPTY:
            raise LimitError(
                f"the first {rows:,} trees have {len(names):,} columns ({first_few(names)}), nearly all of "
                "them empty: read the trees in batches with iter_trees, or from a table with fewer columns"
            )
    return parts


def joined_columns(parts: Sequence[Forest]) -> dict[str, list[Any]]:
    """Concatenate the columns of forests, with None where a forest lacks a column."""
    names = dict.fromkeys(name for part in parts for name in part.columns)
    rows = sum(map(len, parts))
    columns: dict[str, list[Any]] = {name: [None] * rows for name in names}
    start = 0
    for part in parts:
        for name, values in part.columns.items():
            columns[name][start : start + len(part)] = values
        start += len(part)
    return columns


def rows_to_columns(rows: Sequence[Mapping[str, Any]], names: Collection[str]) -> dict[str, list[Any]]:
    """Turn rows into the named columns, with None where a row lacks one, in time linear in the values.

    Examples
    --------
    >>> rows_to_columns([{"a": 1, "c": 0}, {"a": 2, "b": 3}], ["a", "b"])
    {'a': [1, 2], 'b': [None, 3]}
    """
    if 2 * sum(map(len, rows)) >= len(rows) * len(names):  # the faster way if few values are missing
        return {name: [row.get(name) for row in rows] for name in names}
    columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in names}
    for k, row in enumerate(rows):
        for name, value in row.items():
            if name in columns:
                columns[name][k] = value
    return columns


class Columns(dict[str, Sequence[Any]]):
    """The columns of a forest by name; the error for an unknown name lists the known ones."""

    def __missing__(self, name: str) -> NoReturn:
        choices = f"choose one of {first_few(self)}" if self else "there are none"
        raise KeyError(f"there is no column {name!r}: {choices}")
