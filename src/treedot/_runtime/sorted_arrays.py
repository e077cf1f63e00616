"""Sort integers, and look values up in sorted arrays."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import Array, IntArray
from treedot._runtime.jit import njit

DIGIT = 11  # bits to sort by at a time: three passes for integers below 2^33


def locate(wanted: Array, known: Array) -> tuple[IntArray, IntArray]:
    """Return the positions of the values that a sorted array contains, and where it has them.

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
    """Return the distinct values of a sorted array, and where each begins (with the end of all)."""
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    start = np.concatenate([[0], changes, [values.size]]) if values.size else np.zeros(1, np.int64)
    return values[start[:-1]], start


def order_of(values: IntArray) -> IntArray:
    """Return the stable order of non-negative integers."""
    return _sorted_order(values, np.arange(values.size, dtype=np.int32 if values.size < 2**31 else np.int64))


@njit
def _sorted_order(values: IntArray, order: IntArray) -> IntArray:
    """Sort by ``DIGIT`` bits at a time, the lowest first."""
    value = values
    largest = values.max() if values.size else 0
    for shift in range(0, 64, DIGIT):
        if largest >> shift == 0:
            break
        place = np.zeros((1 << DIGIT) + 1, np.int64)
        for x in value:
            place[((x >> shift) & ((1 << DIGIT) - 1)) + 1] += 1
        place = np.cumsum(place)
        sorted_order, sorted_value = np.empty_like(order), np.empty_like(value)
        for k in range(order.size):
            digit = (value[k] >> shift) & ((1 << DIGIT) - 1)
            sorted_order[place[digit]], sorted_value[place[digit]] = order[k], value[k]
            place[digit] += 1
        order, value = sorted_order, sorted_value
    return order
