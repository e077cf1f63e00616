"""The information content, in bits, of the productions that trees share: rare ones count more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treedot._runtime.array_types import BoolArray, FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.ragged import places_of

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
    n_trees : integer array
        The number of trees in the languages in which each production occurs. So a production is not rare
        because its language is.
    """

    def __init__(
        self, productions: IntArray, bounds: IntArray, frequency: IntArray, n_trees: IntArray
    ) -> None:
        self.productions, self.bounds = productions, bounds
        self.frequency, self.n_trees = frequency, n_trees
        bits = np.log2((n_trees + BACKGROUND) / np.maximum(frequency, 1))
        self.bits = np.rint(bits * FINENESS).astype(np.int64)

    def of(self, trees: IntArray) -> Information:
        """Return the information of some of the trees, with their frequency among all trees."""
        places, bounds = places_of(self.bounds[trees], np.diff(self.bounds)[trees])
        kept, productions = np.unique(self.productions[places], return_inverse=True)
        return Information(productions, bounds, self.frequency[kept], self.n_trees[kept])

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


def languages_of(columns: Mapping[str, Sequence[Any]], count: int) -> list[str]:
    """Return the language of every tree, from their columns; trees without one have the same."""
    return [str(language or "") for language in columns.get("language", [""] * count)]


def in_languages(languages: Sequence[str], copies: Sequence[Sequence[int]]) -> BoolArray:
    """Return a table that says in which languages each distinct tree has copies."""
    number = {language: k for k, language in enumerate(sorted(set(languages)))}
    table = np.zeros((len(copies), max(1, len(number))), bool)
    for tree, some in enumerate(copies):
        table[tree, [number[languages[i]] for i in some]] = True
    return table


def trees_of_languages(occurs: BoolArray, table: BoolArray) -> IntArray:
    """Return for each production the number of trees in the languages in which it occurs.

    ``occurs`` says for each language which productions occur in it; ``table`` is that of ``in_languages``.
    """
    return np.asarray(table.sum(axis=0) @ occurs, np.int64)


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
