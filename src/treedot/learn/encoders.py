"""The last encoders, kept for what they know of labels: looking a label up is cheaper than hashing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from treedot.encode import DenseSpec, SparseSpec

KEPT = 4  # encoders, the last used ones, whose label tables stay in memory

E = TypeVar("E")

_kept: list[tuple[DenseSpec | SparseSpec, tuple[Any, ...], Any]] = []


def kept_encoder(spec: DenseSpec | SparseSpec, learned: tuple[Any, ...], make: Callable[[], E]) -> E:
    """Return the encoder of a spec and of what was learned, made anew unless it is one of the last used.

    What was learned, arrays and numbers, is compared by its content, but for what is the very same object:
    whoever gives an array again must not have changed it.
    """
    global _kept
    known = _kept  # other threads may put another list in its place at any time, but never change this one
    for entry in known:
        if (entry[0] is spec or entry[0] == spec) and _same(entry[1], learned):
            if entry is not known[0]:
                _kept = [entry, *(other for other in known if other is not entry)]
            return entry[2]
    encoder = make()
    _kept = [(spec, learned, encoder), *known[: KEPT - 1]]
    return encoder


def clear_encoders() -> None:
    """Drop the encoders that vectorizers keep in memory for their next call.

    The last four are kept, whichever vectorizers they belong to, since they know the labels that they have
    seen: a dense one takes up to half a gigabyte. The next call of ``transform`` makes what it needs.

    Examples
    --------
    >>> from treedot.learn import DistributedTreeVectorizer, clear_encoders
    >>> vectors = DistributedTreeVectorizer(n_components=1024).transform(["(S (NP Ann) (VP runs))"])
    >>> clear_encoders()
    """
    global _kept
    _kept = []


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(x is y or np.array_equal(x, y) for x, y in zip(a, b, strict=True))
