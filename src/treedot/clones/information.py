"""The information, in bits, of the productions that trees share: rare ones count more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing

BACKGROUND = 100  # trees without a production that are taken as seen: a few trees do not tell what is common
FINENESS = 2**20  # of a bit: whole numbers have the same sum in any order


class Information:
    """How many bits the productions of different trees tell: log₂((trees + 100) / trees that have it).

    Parameters
    ----------
    productions, bounds : integer array
        The different productions of every tree, ascending: of tree i, ``bounds[i]`` to ``bounds[i + 1]``.
    frequency : integer array
        Of every production, how many of all trees have it.
    n_trees : int
        How many trees there are in all.
    """

    def __init__(self, productions: IntArray, bounds: IntArray, frequency: IntArray, n_trees: int) -> None:
        self.productions, self.bounds = productions, bounds
        bits = np.log2((n_trees + BACKGROUND) / np.maximum(frequency, 1))
        self.bits = np.rint(bits * FINENESS).astype(np.int64)

    def shared(self, trees: Sequence[int]) -> float:
        """Return the bits of the productions that are in all of the trees."""
        common, *others = (self.productions[self.bounds[i] : self.bounds[i + 1]] for i in trees)
        for other in others:
            common = np.intersect1d(common, other, assume_unique=True)
        return int(self.bits[common].sum()) / FINENESS

    def shared_by_two(self, a: IntArray, b: IntArray) -> FloatArray:
        """Return the bits of the productions that are in both trees, for many pairs."""
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
