"""The classes of trees to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treedot._pages.printable import first_few
from treedot.errors import ParameterError
from treedot.trees import Forest


def check_classes(classes: Sequence[Any], before: int = 0) -> None:
    """Raise where a tree has no class: None, NaN or an empty text; or one that no file can hold.

    ``before`` trees come before these, so that the message names the right one.

    Examples
    --------
    >>> check_classes(["a", None])
    Traceback (most recent call last):
    treedot.errors.ParameterError: 1 of 2 trees have no class, tree 2 is the first: leave them out
    """
    missing = [i for i, name in enumerate(classes) if name is None or name != name or name == ""]
    if missing:
        trees = f"the trees {before + 1} to {before + len(classes)}" if before else f"{len(classes)} trees"
        raise ParameterError(
            f"{len(missing)} of {trees} have no class, tree {before + missing[0] + 1} is the first: "
            "leave them out"
        )
    odd = next((x for x in classes if isinstance(x, str) and any("\ud800" <= c <= "\udfff" for c in x)), None)
    if odd is not None:
        raise ParameterError(f"the class {odd!r} is no Unicode text, with half of a surrogate pair")


def column_values(trees: Forest, column: str) -> Sequence[Any]:
    """Return the values of a column; raise if there is none of that name."""
    if column not in trees.columns:
        there = first_few(trees.columns) or "none: use a table, such as .tsv"
        raise ParameterError(f"there is no column {column!r}; the columns are {there}")
    return trees.columns[column]


def class_names(trees: Forest, column: str, before: int = 0) -> list[str]:
    """Return a column as texts; raise if it, or one of its values, is missing."""
    values = column_values(trees, column)
    try:
        check_classes(values, before)
    except ParameterError as error:
        raise ParameterError(f"column {column!r}: {error}") from None
    return [str(value) for value in values]
