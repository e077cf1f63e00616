"""The distinct subtrees of some trees, and how often each tree holds each of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.ragged import places_of
from treedot.trees.nodes import Nodes


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

        inner = span.start + np.flatnonzero(nodes.production[span] >= 0)
        tree = forest.tree_of_node[inner] - first
        keys, copies = np.unique(tree * used.size + place[number[inner]], return_counts=True)
        limits = np.arange(last - first + 1) * used.size
        start = np.searchsorted(keys, limits)
        subtree = keys - np.repeat(limits[:-1], np.diff(start))
        self.counts = Counts(start, subtree, copies.astype(np.float64))

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
