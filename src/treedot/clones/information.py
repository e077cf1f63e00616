"""The information content, in bits, of the productions that trees share: rare ones count more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing

BACKGROUND = 100  # added to the number of trees, since a few trees do not show which productions are common
FINENESS = 2**20  # units per bit: sums of integers do not depend on their order


class Information:
    """The information of productions: log₂((trees + 100) / trees with this production).

    Parameters
    ----------
    productions, bounds : integer array
        The distinct productions of tree i are ``productions[bounds[i]:bounds[i + 1]]``, in ascending order.
    frequency : integer array
        The number of trees that have each production.
    n_trees : int
        The number of trees.
    """

    def __init__(self, productions: IntArray, bounds: IntArray, frequency: IntArray, n_trees: int) -> None:
        self.productions, self.bounds = productions, bounds
        bits = np.log2((n_trees + BACKGROUND) / np.maximum(frequency, 1))
        self.bits = np.rint(bits * FINENESS).astype(np.int64)

    def shared(self, trees: Sequence[int]) -> float:
        """Return the bits of the productions that occur in all of the trees."""
        common, *others = (self.productions[self.bounds[i] : self.bounds[i + 1]] for i in trees)
        for other in others:
            common = np.intersect1d(common, other, assume_unique=True)
        return int(self.bits[common].sum()) / FINENESS

    def shared_by_two(self, a: IntArray, b: IntArray) -> FloatArray:
        """Return the bits of the productions that trees ``a[k]`` and ``b[k]`` share, for every k."""
        total = np.zeros(len(a), np.int64)
        _add_shared_bits(self.productions, self.bounds, self.bits, a, b, total)
        return total / FINENESS


@njit_borrowing
def _add_shared_bits(
    productions: IntArray, bounds: IntArray, bits: IntArray, a: IntArray, b: IntArray, total: IntArray
) -> None:
    for k in range(total.size):
        j = bounds[b[k]]
        for i in range(bounds[a[k]], bounds[a[k] + 1]):
            while j < bounds[b[k] + 1] and productions[j] < productions[i]:
                j += 1
            if j < bounds[b[k] + 1] and productions[j] == productions[i]:
                total[k] += bits[productions[i]]
