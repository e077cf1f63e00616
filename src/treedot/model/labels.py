"""The classes of trees to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treedot.errors import ParameterError


def check_labels(labels: Sequence[Any]) -> None:
    """Raise where a tree has no class: None, NaN or an empty text.

    Examples
    --------
    >>> check_labels(["a", None])
    Traceback (most recent call last):
    treedot.errors.ParameterError: 1 of 2 trees have no class, tree 2 is the first: leave them out
    """
    missing = [i for i, label in enumerate(labels) if label is None or label != label or label == ""]
    if missing:
        raise ParameterError(
            f"{len(missing)} of {len(labels)} trees have no class, tree {missing[0] + 1} is the first: "
            "leave them out"
        )
