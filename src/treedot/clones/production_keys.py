"""Hash productions and trees by their labels, to keys that are the same in all processes and files.

A key is a sum of hashes, one for each label and its position. Labels are hashed like those of vectors, with
another domain. Two different productions have the same key with a probability of 2^-62, two different trees
with 2^-128.
"""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import IntArray, WordArray
from treedot._runtime.hashing import GOLDEN, keys, mix_words
from treedot._runtime.ragged import ends_of
from treedot._runtime.sorted_arrays import order_of
from treedot.trees import Forest

KEY_BITS = 63
CELL_BITS = (16, 24)  # the smallest and the largest number
DOMAIN = "duplicates"


def tree_keys(forest: Forest) -> WordArray:
    """Return the keys of all trees, in an array of shape ``(n, 2)``; equal trees have equal keys."""
    if not len(forest):
        return np.zeros((0, 2), np.uint64)
    place = np.arange(forest.n_nodes) - np.repeat(forest.offsets[:-1], forest.sizes)
    arity = mix_words(forest.arity.astype(np.uint64) + np.uint64(GOLDEN))[:, None]
    words = keys(0, forest.labels, DOMAIN)[forest.label] + arity + _counted(place)[:, None]
    return np.add.reduceat(mix_words(words), forest.offsets[:-1])


def content_order(sizes: IntArray, keys: WordArray) -> IntArray:
    """Return the order of distinct trees by size, then by key, so that it depends only on their content."""
    return np.lexsort((keys[:, 1], keys[:, 0], sizes))


def production_keys(forest: Forest) -> WordArray:
    """Return the key of every distinct production, in the order of production numbers."""
    label = keys(0, forest.labels, DOMAIN)[:, 0]
    start, child = forest.children
    first = forest.distinct_productions
    count = forest.arity[first]
    bounds = ends_of(count)
    place = np.arange(bounds[-1]) - np.repeat(bounds[:-1], count)
    children = child[place + np.repeat(start[first], count)]
    words = mix_words(label[forest.label[children]] + _counted(place + 1))
    total = np.add.reduceat(words, bounds[:-1]) if len(first) else words
    return np.asarray(mix_words(total + mix_words(label[forest.label[first]])))


def element_keys(production: WordArray, occurrence: IntArray) -> IntArray:
    """Return the keys of productions in a tree, where ``occurrence`` counts repeats from 0.

    Keys of first occurrences are even, keys of repeats are odd.
    """
    words = mix_words(production + _counted(occurrence)) >> np.uint64(2)
    return words.astype(np.int64) << 1 | (occurrence > 0)


def _counted(numbers: IntArray) -> WordArray:
    return numbers.astype(np.uint64) * np.uint64(GOLDEN)


class RarestFirst:
    """Numbers keys so that rare ones come first, in bounded memory.

    The high bits of a key select its cell. They are replaced by the rank of the cell, by ascending number of
    elements; the low bits are kept. So different keys have different numbers, ordered by frequency, except
    that a rare key may share its cell with a frequent one.

    Parameters
    ----------
    counts : array of int32
        The number of elements of all trees in each of the ``n_cells`` cells.
    """

    def __init__(self, counts: IntArray) -> None:
        self._low = low_bits(len(counts))
        self._rank = np.empty(len(counts), np.int32)
        self._rank[order_of(counts)] = np.arange(len(counts), dtype=np.int32)

    def numbers(self, keys: IntArray) -> IntArray:
        """Return numbers that order the keys by rarity.

        Parameters
        ----------
        keys : array of int64
            The keys.

        Returns
        -------
        array of int64
            One number for each key, smaller for rarer ones.
        """
        rank = self._rank[keys >> self._low].astype(np.int64)
        return rank << self._low | (keys & ((1 << self._low) - 1))


def n_cells(n_elements: int) -> int:
    """Return the number of cells to use for ``n_elements`` elements."""
    fewest, most = CELL_BITS
    return 1 << min(max(n_elements.bit_length() - 1, fewest), most)


def low_bits(cells: int) -> int:
    """Return the number of low bits of a key, which do not select its cell."""
    return KEY_BITS - (cells.bit_length() - 1)
