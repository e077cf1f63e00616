"""Keep encoders in memory for the next call, since they know the labels that they have met.

Looking a label up is much cheaper than hashing it and drawing its vector. So vectorizers with equal settings
share one encoder, which stays in memory for their next call. All that stay take at most ``LIMIT`` bytes
together.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from treedot.vectors.spec import DenseSpec, SparseSpec

LIMIT = 1 << 30  # bytes: as much as the label table of one dense encoder may take
LEAST = 1 << 20  # bytes that an encoder counts as, at least


class Encoder(Protocol):
    """What can be kept."""

    @property
    def nbytes(self) -> int:
        """How much memory it keeps."""


E = TypeVar("E", bound=Encoder)


class _Kept(NamedTuple):
    spec: DenseSpec | SparseSpec
    learned: tuple[Any, ...]
    encoder: Any

    def fits(self, spec: DenseSpec | SparseSpec, learned: tuple[Any, ...]) -> bool:
        return (self.spec is spec or self.spec == spec) and _same(self.learned, learned)


_kept: list[_Kept] = []  # the last used first; changed only under the lock
_lock = Lock()


def kept_encoder(spec: DenseSpec | SparseSpec, learned: tuple[Any, ...], make: Callable[[], E]) -> E:
    """Return the encoder of some settings and of what was learned; make it if it is not kept.

    ``learned`` holds arrays and numbers, which are compared by content. The same object is not compared: an
    array that was given once must not change.
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
    """Drop the encoders that were not used for longest until the others are within the limit.

    For the end of a call, in which an encoder may have met many new labels. The last used one always stays.
    """
    with _lock:
        _trim()


def clear_encoders() -> None:
    """Drop the encoders that vectorizers keep in memory for their next call.

    Vectorizers with equal settings share an encoder, which stays in memory since it knows the labels that it
    has met. All encoders that stay take at most 1 GiB together: when there are more, those not used for
    longest are dropped. The next call of ``transform`` makes what it needs.

    See Also
    --------
    DistributedTreeVectorizer, FragmentVectorizer : Their calls of ``transform`` keep encoders.

    Examples
    --------
    >>> from treedot.vectors import DistributedTreeVectorizer, clear_encoders
    >>> vectors = DistributedTreeVectorizer(n_components=1024).transform(["(S (NP Ann) (VP runs))"])
    >>> clear_encoders()
    """
    with _lock:
        _kept.clear()


def _find(spec: DenseSpec | SparseSpec, learned: tuple[Any, ...]) -> _Kept | None:
    """Return what is kept for some settings, and make it the last used."""
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
    """Give a child process a lock of its own: a thread that does not exist there may hold the other."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)
