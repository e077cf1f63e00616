"""Sort integers, and look up values in sorted arrays."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import Array, IntArray


def locate(wanted: Array, known: Array) -> tuple[IntArray, IntArray]:
    """Return the positions of the values that are in a sorted array, and their positions in it.

    Examples
    --------
    >>> locate(np.array([7, 1, 9, 3]), np.array([3, 5, 7]))
    (array([0, 3]), array([2, 0]))
    """
    where = np.searchsorted(known, wanted)
    which = np.flatnonzero(where < known.size)
    which = which[known[where[which]] == wanted[which]]
    return which, where[which]


def runs(values: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct values of a sorted array, and the start of each run, followed by the end."""
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    start = np.concatenate([[0], changes, [values.size]]) if values.size else np.zeros(1, np.int64)
    return values[start[:-1]], start


def order_of(values: IntArray) -> IntArray:
    """Return the stable order of non-negative integers.

    If value and position fit into 63 bits together, they are sorted as one integer. This takes a tenth of the
    time of a stable sort.

    Examples
    --------
    >>> order_of(np.array([7, 1, 9, 1]))
    array([1, 3, 0, 2], dtype=int32)
    """
    bits = values.size.bit_length()
    if int(values.max(initial=0)).bit_length() + bits > 63:
        return np.argsort(values, kind="stable")
    places = values.astype(np.int64) << bits
    places |= np.arange(values.size)
    places.sort()
    places &= (1 << bits) - 1
    return places.astype(np.int32 if bits < 32 else np.int64)
