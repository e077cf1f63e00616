"""The class of every training tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treedot._pages.printable import first_few
from treedot.errors import ParameterError
from treedot.trees import Forest


def check_classes(classes: Sequence[Any], before: int = 0) -> None:
    """Raise ParameterError if a class is missing (None, NaN or an empty text) or is not valid Unicode.

    ``before`` is the number of trees in earlier batches; messages count trees from there.

    Examples
    --------
    >>> check_classes(["a", None])
    Traceback (most recent call last):
    treedot.errors.ParameterError: 1 of 2 trees have no class, the first is tree 2: leave these trees out
    """
    missing = [i for i, name in enumerate(classes) if name is None or name != name or name == ""]
    if missing:
        trees = f"the trees {before + 1} to {before + len(classes)}" if before else f"{len(classes)} trees"
        raise ParameterError(
            f"{len(missing)} of {trees} have no class, the first is tree {before + missing[0] + 1}: "
            "leave these trees out"
        )
    odd = next((x for x in classes if isinstance(x, str) and any("\ud800" <= c <= "\udfff" for c in x)), None)
    if odd is not None:
        raise ParameterError(f"the class {odd!r} is not valid Unicode: it holds a lone surrogate")


def column_values(trees: Forest, column: str) -> Sequence[Any]:
    """Return the values of a column; raise ParameterError if it does not exist."""
    if column not in trees.columns:
        there = first_few(trees.columns) or "none: read the trees from a table, such as a .tsv file"
        raise ParameterError(f"there is no column {column!r}; the columns are {there}")
    return trees.columns[column]


def class_names(trees: Forest, column: str, before: int = 0) -> list[str]:
    """Return the classes in a column as texts; raise ParameterError if the column or a class is missing."""
    values = column_values(trees, column)
    try:
        check_classes(values, before)
    except ParameterError as error:
        raise ParameterError(f"column {column!r}: {error}") from None
    return [str(value) for value in values]
