"""Read examples by column: trees, numbers and texts from frames, dictionaries, forests and files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._pages.printable import first_few
from treedot._runtime.array_types import FloatArray, IntArray
from treedot.errors import ParameterError
from treedot.models.inputs.links import Pairs
from treedot.readers import read_trees
from treedot.readers.objects import read_items
from treedot.readers.on_bad import OnBad
from treedot.readers.tables import DEFAULT_COLUMN
from treedot.trees import Forest

Name = str | tuple[str, ...] | None  # of a column, of the two columns of a pair, or of the only column


class Columns(NamedTuple):
    """The names of the columns that make up an example; ``trees`` is (None,) if an example is just a tree.

    ``pair`` are two of the tree columns, whose equal words are linked, or none.

    Examples
    --------
    >>> Columns.make(None, ["overlap"], None)
    Columns(trees=('tree',), numbers=('overlap',), texts=(), pair=())
    """

    trees: tuple[str | None, ...] = (None,)
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()

    @classmethod
    def make(cls, trees: Any, numbers: Any, texts: Any, pair: Any = None) -> Self:
        """Check the names; without a tree column, trees are in ``tree`` if other columns are named."""
        given = {
            "pair_columns": pair,
            "tree_columns": trees,
            "number_columns": numbers,
            "text_columns": texts,
        }
        named = {name: _names(name, value) for name, value in given.items() if value is not None}
        both = named.get("pair_columns", ())
        if pair is not None and len(both) != 2:
            raise ParameterError(f"pair_columns must name two columns of trees, not {pair!r}")
        every = [column for columns in named.values() for column in columns]
        if len(set(every)) != len(every):
            twice = next(column for column in every if every.count(column) > 1)
            raise ParameterError(f"the column {twice!r} is named twice: name every column once")
        if not any(named.values()) and trees is None:
            return cls()
        chosen = (*both, *named.get("tree_columns", () if both else (DEFAULT_COLUMN,)))
        if not chosen:
            raise ParameterError("tree_columns must name at least one column")
        return cls(chosen, named.get("number_columns", ()), named.get("text_columns", ()), both)

    @property
    def are_named(self) -> bool:
        """Whether examples are rows of a table."""
        return self.trees != (None,)


class Table:
    """Columns of equal length: forests, arrays of numbers, lists of texts, or a whole frame.

    Two columns that are a pair hold linked trees; the ``Pairs`` as they were read have the names of both.
    """

    def __init__(self, values: Mapping[Name, Any]) -> None:
        self._values = dict(values)

    def __len__(self) -> int:
        return len(next(iter(self._values.values())))

    def __getitem__(self, name: Name) -> Any:
        return self._values[name]

    def with_values(self, values: Mapping[Name, Any]) -> Table:
        """Return the table with other values in some columns."""
        return Table(self._values | dict(values))

    def take(self, rows: IntArray) -> Table:
        """Return the table of the given rows."""
        return Table({name: _taken(values, rows) for name, values in self._values.items()})


def read_table(source: Any, columns: Columns, first_row: int = 0) -> Table:
    """Read the columns of examples; an error names the row and column of an invalid value.

    ``read_trees`` reads files, and any source if the columns have no names. The trees of a Forest are its
    first tree column, unless another column has that name. ``first_row`` is the number of rows in earlier
    batches.

    Examples
    --------
    >>> pairs = {"text": ["(A b)"], "hypothesis": ["(A c)"], "overlap": ["0.5"]}
    >>> table = read_table(pairs, Columns(("text", "hypothesis"), ("overlap",)))
    >>> table["hypothesis"], table["overlap"]
    (<Forest of 1 trees, 2 nodes, 2 labels>, array([0.5]))
    """
    if not columns.are_named:
        return Table({None: read_trees(source)})
    found = _named_columns(source, columns)
    values: dict[Name, Any] = {}
    values |= {name: _trees(found[str(name)], _Places(str(name), first_row)) for name in columns.trees}
    values |= {name: _numbers(found[name], _Places(name, first_row)) for name in columns.numbers}
    values |= {name: _texts(found[name], _Places(name, first_row)) for name in columns.texts}
    return Table(values | _linked(values, columns.pair))


def _linked(values: Mapping[Name, Any], pair: tuple[str, ...]) -> dict[Name, Any]:
    """Return both columns of a pair with linked words, and the pair as it was read."""
    if not pair:
        return {}
    read = Pairs(*(values[name] for name in pair))
    linked = read.linked()
    return {pair[0]: linked.texts, pair[1]: linked.hypotheses, pair: read}


def readable_rows(
    others: Mapping[str, Any], columns: Columns, n_rows: int, on_bad: OnBad, source: str, first_row: int
) -> IntArray:
    """Return the rows whose cells in all tree columns after the first are trees.

    The errors of other rows go to ``on_bad``; they name the source and the row, counting from ``first_row``.
    If ``on_bad`` does not skip errors, no row is checked, and ``read_table`` raises the first error.
    """
    good = np.arange(n_rows)
    for name in (str(name) for name in columns.trees[1:] if on_bad.skips and name in others):
        cells, places = _cells(others[name]), _Places(name, first_row)
        rows = good.tolist()
        left_out = "(not counting rows that were skipped)"
        where = [f"{source}, {places.of(row)} {left_out}" for row in rows]
        _, kept = read_items([cells[row] for row in rows], where.__getitem__, on_bad)
        good = good[kept]
    return good


def check_trees(table: Table, columns: Columns) -> None:
    """Raise ParameterError if a named tree column holds single nodes only."""
    for name in columns.trees if columns.are_named else ():
        forest = table[name]
        if len(forest) and not forest.arity.any():
            raise ParameterError(
                f"column {name!r} holds no trees: each is a single node, such as {forest[0]}"
            )


def _names(parameter: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise ParameterError(f"{parameter} must be a list of column names, not {value!r}")
    for name in value:
        if not isinstance(name, str):
            raise ParameterError(f"{parameter} must be a list of column names, but {name!r} is not a text")
    return tuple(value)


def _named_columns(source: Any, columns: Columns) -> dict[str, Any]:
    """Return the values of all columns as the source holds them."""
    wanted = [str(name) for name in columns.trees] + [*columns.numbers, *columns.texts]
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        source = read_trees(source, column=wanted[0])
    if isinstance(source, Forest):
        source = {wanted[0]: source, **source.columns}
    names = _column_names(source)
    missing = [name for name in wanted if name not in names]
    if missing:
        there = first_few(names) or "none"
        raise ParameterError(f"there is no column {missing[0]!r}; the columns are {there}")
    found = {name: source[name] for name in wanted}
    sizes = {name: len(values) for name, values in found.items()}
    if len(set(sizes.values())) > 1:
        raise ParameterError(f"the columns differ in length: {sizes}")
    return found


def _column_names(source: Any) -> list[str]:
    if isinstance(source, Mapping):
        return list(source)
    for attribute in ("column_names", "columns"):  # of Arrow, and of frames
        names = getattr(source, attribute, None)
        if names is not None and not callable(names):
            return list(names)
    raise ParameterError(
        "named columns need a data frame, an Arrow table, a dictionary of columns, a Forest with "
        f"columns, or a file, not {type(source).__name__}"
    )


def _listed(values: Any) -> list[Any]:
    return list(values.to_pylist() if hasattr(values, "to_pylist") else values)


class _Places(NamedTuple):
    """Describes the cells of a column in errors."""

    column: str
    first_row: int

    def of(self, row: int) -> str:
        return f"row {self.first_row + row + 1}, column {self.column!r}"


def finite_numbers(values: Any, column: str) -> FloatArray:
    """Return a column as finite numbers; an error names the row and column of an invalid value."""
    return _numbers(values, _Places(column, 0))


def _trees(values: Any, places: _Places) -> Forest:
    return values if isinstance(values, Forest) else read_items(_cells(values), places.of, OnBad())[0]


def _cells(values: Any) -> list[Any]:
    """Return the cells of a tree column, with None for NaN, which data frames use for missing values."""
    return [None if isinstance(x, float) and math.isnan(x) else x for x in _listed(values)]


def _numbers(values: Any, places: _Places) -> FloatArray:
    items = _listed(values)
    numbers = np.array([_number(item) for item in items], np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ParameterError(f"{places.of(int(bad[0]))}: {items[bad[0]]!r:.40} is not a finite number")
    return numbers


def _number(item: Any) -> float:
    try:
        return float(item)
    except (ValueError, TypeError, OverflowError):
        return math.nan


def _texts(values: Any, places: _Places) -> list[str]:
    items = _listed(values)
    for i, item in enumerate(items):
        if not isinstance(item, str):
            raise ParameterError(f"{places.of(i)}: expected a text, found {item!r:.40}")
    return items


def _taken(values: Any, rows: IntArray) -> Any:
    if isinstance(values, list):
        return [values[i] for i in rows.tolist()]
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]
