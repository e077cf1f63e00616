"""The last encoders, kept for what they know of labels: looking a label up is cheaper than hashing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from treedot.encode import DenseSpec, SparseSpec

KEPT = 4  # encoders, the last used ones, whose label tables stay in memory

E = TypeVar("E")

_kept: list[tuple[DenseSpec | SparseSpec, tuple[Any, ...], Any]] = []


def kept_encoder(spec: DenseSpec | SparseSpec, learned: tuple[Any, ...], make: Callable[[], E]) -> E:
    """Return the encoder of a spec and of what was learned, made anew unless it is one of the last used.

    What was learned is told apart by identity: whoever learns something new makes new objects.
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


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
