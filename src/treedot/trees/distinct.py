"""The distinct subtrees of some trees, and how often each tree holds each of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit
from treedot._runtime.ragged import places_of
from treedot.trees.nodes import Nodes

FEW = 64


class Subtrees(NamedTuple):
    """Distinct subtrees: the production at the root of each (-1 for leaves) and the subtrees below it.

    Subtree ``i`` has the children ``child[start[i]:start[i + 1]]``, which are numbered lower than it is.
    """

    production: IntArray
    start: IntArray
    child: IntArray


class Counts(NamedTuple):
    """How often each tree holds each subtree, leaves left out.

    Tree ``i`` holds ``copies[k]`` of ``subtree[k]`` for ``k`` from ``start[i]`` to ``start[i + 1] - 1``.
    """

    start: IntArray
    subtree: IntArray
    copies: FloatArray


@njit
def _count_subtrees(
    offsets: IntArray, production: IntArray, number: IntArray, place: IntArray, n_places: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the counts of the subtrees of some trees: of each tree, in the order of the subtrees' places."""
    start = np.zeros(offsets.size, np.int64)
    subtree = np.empty(offsets[-1] - offsets[0], np.int64)
    copies = np.empty(subtree.size)
    count = np.zeros(n_places)  # in one tree
    end = 0
    for tree in range(offsets.size - 1):
        begin = end
        for node in range(offsets[tree], offsets[tree + 1]):
            if production[node] >= 0:
                own = place[number[node]]
                if count[own] == 0.0:
                    subtree[end] = own
                    end += 1
                count[own] += 1.0
        _sort(subtree[begin:end])
        for k in range(begin, end):
            copies[k], count[subtree[k]] = count[subtree[k]], 0.0
        start[tree + 1] = end
    return start, subtree[:end].copy(), copies[:end].copy()


@njit
def _sort(values: IntArray) -> None:
    """Sort integers in place; few ones fast, of which most stand where they belong."""
    if values.size > FEW:
        values.sort()
        return
    for k in range(1, values.size):
        value, at = values[k], k
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


class DistinctSubtrees:
    """The distinct subtrees of the trees ``first`` to ``last - 1``, and how often each tree holds each."""

    def __init__(self, nodes: Nodes, first: int, last: int) -> None:
        forest = nodes.forest
        span = slice(forest.offsets[first], forest.offsets[last])
        number = nodes.subtree
        held = np.zeros(nodes.distinct_subtrees.size, bool)
        held[number[span]] = True
        used = np.flatnonzero(held)  # numbers follow first appearance: children before parents
        place = np.empty(held.size, np.int32)
        place[used] = np.arange(used.size)
        root = nodes.distinct_subtrees[used]
        arity = nodes.start[root + 1] - nodes.start[root]
        edges, own_start = places_of(nodes.start[root], arity)
        self.subtrees = Subtrees(nodes.production[root], own_start, place[number[nodes.child[edges]]])
        self.root = root  # a node at which each begins

        offsets = forest.offsets[first : last + 1]
        self.counts = Counts(*_count_subtrees(offsets, nodes.production, number, place, used.size))

    def __len__(self) -> int:
        return int(self.subtrees.production.size)

    @property
    def totals(self) -> FloatArray:
        """How often all trees together hold each subtree."""
        _, subtree, count = self.counts
        return np.bincount(subtree, count, len(self)).astype(np.float64)  # also where empty

    def count_matrix(self) -> Any:
        """Return the counts as a sparse matrix, trees by subtrees."""
        from scipy.sparse import csr_matrix

        start, subtree, count = self.counts
        return csr_matrix((count, subtree, start), shape=(start.size - 1, len(self)))

    def weight_sums(self, weights: FloatArray) -> FloatArray:
        """Return for every subtree the sum of the weights (rows) of the trees that hold it."""
        total: FloatArray = self.count_matrix().T @ weights
        return total
