"""Ragged arrays: pieces of different sizes, concatenated in one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from treedot._runtime.array_types import IntArray


def ends_of(sizes: Any) -> IntArray:
    """Return 0, and the end of each piece."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def places_of(starts: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the positions of the elements of pieces that begin at ``starts``, and ``ends_of(sizes)``.

    Examples
    --------
    >>> places_of(np.array([7, 0]), np.array([2, 3]))
    (array([7, 8, 0, 1, 2]), array([0, 2, 5]))
    """
    ends = ends_of(sizes)
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], sizes), ends
