"""The names and literals of trees, and how far they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot.clones.similarity import multiset_similarity
from treedot.errors import ParameterError


def names_of(columns: Mapping[str, Sequence[Any]], trees: Sequence[int]) -> list[IntArray] | None:
    """Return the names and literals of trees; None if a tree does not store them separately."""
    texts = columns.get("blurred")
    if texts is None:
        return None
    known = [texts[i] for i in trees]
    if any(text is None for text in known):
        return None
    for text in known:
        if not (isinstance(text, str) or _is_list(text)):
            raise ParameterError(
                f"the column blurred must hold a list of names and literals for each tree, not {text!r}: "
                "rename the column if it means something else"
            )
    return known


def agreement(texts: Sequence[Any] | None) -> float | None:
    """Return the mean similarity of the names and literals of the first tree with all others."""
    return None if texts is None else float(np.mean([multiset_similarity(texts[0], x) for x in texts[1:]]))


def _is_list(value: Any) -> bool:
    try:
        return np.ndim(value) == 1
    except ValueError:  # nested lists of different lengths
        return False
