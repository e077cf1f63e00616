"""Keep encoders, with the labels that they have met, in memory for the next call.

Looking up a label is much cheaper than hashing it and drawing its vector. So vectorizers with equal settings
share one encoder, which stays in memory. All encoders together take at most ``LIMIT`` bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from treedot.vectors.spec import DenseSpec, SparseSpec

LIMIT = 1 << 30  # bytes, the limit of the label table of one dense encoder
LEAST = 1 << 20  # bytes; a smaller encoder counts as this


class Encoder(Protocol):
    """An encoder, with the memory that it takes."""

    @property
    def nbytes(self) -> int:
        """The memory that it takes, in bytes."""


E = TypeVar("E", bound=Encoder)


class _Kept(NamedTuple):
    spec: DenseSpec | SparseSpec
    learned: tuple[Any, ...]
    encoder: Any

    def fits(self, spec: DenseSpec | SparseSpec, learned: tuple[Any, ...]) -> bool:
        return (self.spec is spec or self.spec == spec) and _same(self.learned, learned)


_kept: list[_Kept] = []  # the most recently used first; changed only under the lock
_lock = Lock()


def kept_encoder(spec: DenseSpec | SparseSpec, learned: tuple[Any, ...], make: Callable[[], E]) -> E:
    """Return the encoder for a spec and for what was learned; call ``make`` if there is none yet.

    ``learned`` holds arrays and numbers, which are compared by value. Identical objects count as equal, so an
    array must not change after it was passed.
    """
    with _lock:
        found = _find(spec, learned)
    if found is None:
        made = make()  # without the lock: it may take seconds
        with _lock:
            found = _find(spec, learned)  # another thread may have been faster
            if found is None:
                found = _Kept(spec, learned, made)
                _kept.insert(0, found)
                _trim()
    encoder: E = found.encoder
    return encoder


def trim_encoders() -> None:
    """Drop the least recently used encoders until the others are within the limit.

    Call it after encoding, when an encoder may have met many new labels. The last used encoder always stays.
    """
    with _lock:
        _trim()


def clear_encoders() -> None:
    """Drop the encoders that vectorizers keep in memory for their next call.

    Vectorizers with equal settings share an encoder, which remembers the labels that it has met. All encoders
    together take at most 1 GiB: the least recently used are dropped first. The next call of ``transform``
    makes a new encoder.

    See Also
    --------
    DistributedTreeVectorizer, FragmentVectorizer : Their method ``transform`` keeps encoders.

    Examples
    --------
    >>> from treedot.vectors import DistributedTreeVectorizer, clear_encoders
    >>> vectors = DistributedTreeVectorizer(n_components=1024).transform(["(S (NP Ann) (VP runs))"])
    >>> clear_encoders()
    """
    with _lock:
        _kept.clear()


def _find(spec: DenseSpec | SparseSpec, learned: tuple[Any, ...]) -> _Kept | None:
    """Return the entry for a spec and for what was learned, and mark it as the last used."""
    for place, entry in enumerate(_kept):
        if entry.fits(spec, learned):
            _kept.insert(0, _kept.pop(place))
            return entry
    return None


def _trim() -> None:
    total = 0
    for place, entry in enumerate(_kept):
        total += max(LEAST, entry.encoder.nbytes)
        if total > LIMIT and place > 0:
            del _kept[place:]
            return


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(x is y or np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def _after_fork() -> None:
    """Give a child process a new lock: the old one may be held by a thread that only the parent has."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)
