"""Hash productions and trees by their labels to keys that are the same in all files.

A key is a sum of scrambled words, one for each label and its place; those of labels are the keys that vectors
are drawn from, with a domain of their own. Different productions have the same key with a probability of
2^-62, different trees with one of 2^-128.
"""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import IntArray, WordArray
from treedot._runtime.hashing import GOLDEN, keys, mix_words
from treedot._runtime.ragged import ends_of
from treedot._runtime.sorted_arrays import order_of
from treedot.trees import Forest

KEY_BITS = 63
CELL_BITS = (16, 24)  # at least, at most
DOMAIN = "duplicates"


def tree_keys(forest: Forest) -> WordArray:
    """Return two words for every tree, shape ``(n, 2)``: equal trees, equal words."""
    if not len(forest):
        return np.zeros((0, 2), np.uint64)
    place = np.arange(forest.n_nodes) - np.repeat(forest.offsets[:-1], forest.sizes)
    arity = mix_words(forest.arity.astype(np.uint64) + np.uint64(GOLDEN))[:, None]
    words = keys(0, forest.labels, DOMAIN)[forest.label] + arity + _counted(place)[:, None]
    return np.add.reduceat(mix_words(words), forest.offsets[:-1])


def content_order(sizes: IntArray, keys: WordArray) -> IntArray:
    """Return an order of distinct trees that depends on what they are: by size, then by their keys."""
    return np.lexsort((keys[:, 1], keys[:, 0], sizes))


def production_keys(forest: Forest) -> WordArray:
    """Return a word for every distinct production, in the order of their numbers."""
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
    """Return the keys of occurrences, from 0, of productions in a tree; odd ones are no first occurrences."""
    words = mix_words(production + _counted(occurrence)) >> np.uint64(2)
    return words.astype(np.int64) << 1 | (occurrence > 0)


def _counted(numbers: IntArray) -> WordArray:
    return numbers.astype(np.uint64) * np.uint64(GOLDEN)


class RarestFirst:
    """An order of elements by how frequent they are, which takes a bounded memory.

    Keys fall into cells by their first bits. Those bits are replaced by the rank of the cell, the one with
    the fewest elements first; the others are kept. So different keys have different numbers, whose order is
    that of frequency but for elements that share a cell with a more frequent one.

    Parameters
    ----------
    counts : array of int32
        How many elements of all trees are in each of the cells, ``n_cells`` of them.
    """

    def __init__(self, counts: IntArray) -> None:
        self._low = low_bits(len(counts))
        self._rank = np.empty(len(counts), np.int32)
        self._rank[order_of(counts)] = np.arange(len(counts), dtype=np.int32)

    def numbers(self, keys: IntArray) -> IntArray:
        """Return the numbers of some elements."""
        rank = self._rank[keys >> self._low].astype(np.int64)
        return rank << self._low | (keys & ((1 << self._low) - 1))


def n_cells(n_elements: int) -> int:
    """Return how many cells there are for so many elements of all trees."""
    fewest, most = CELL_BITS
    return 1 << min(max(n_elements.bit_length() - 1, fewest), most)


def low_bits(cells: int) -> int:
    """Return how many bits of a key do not tell its cell."""
    return KEY_BITS - (cells.bit_length() - 1)
