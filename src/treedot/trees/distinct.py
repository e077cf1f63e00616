"""The distinct subtrees of a range of trees, and how often each tree contains each of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.ragged import places_of
from treedot.trees.nodes import Nodes


class Subtrees(NamedTuple):
    """Distinct subtrees: the production at the root of each (-1 for leaves), and its children.

    Subtree ``i`` has the children ``child[start[i]:start[i + 1]]``, which have lower numbers.
    """

    production: IntArray
    start: IntArray
    child: IntArray


class Counts(NamedTuple):
    """How often each tree contains each subtree, without leaves.

    Tree ``i`` has ``subtree[k]`` ``copies[k]`` times, for ``k`` from ``start[i]`` to ``start[i + 1] - 1``.
    """

    start: IntArray
    subtree: IntArray
    copies: FloatArray


class DistinctSubtrees:
    """The distinct subtrees of the trees ``first`` to ``last - 1``, and their counts in each tree."""

    def __init__(self, nodes: Nodes, first: int, last: int) -> None:
        forest = nodes.forest
        span = slice(forest.offsets[first], forest.offsets[last])
        number, distinct = nodes.subtrees
        held = np.zeros(distinct.size, bool)
        held[number[span]] = True
        used = np.flatnonzero(held)  # numbers follow first appearance: children before parents
        place = np.empty(held.size, np.int32)
        place[used] = np.arange(used.size)
        root = distinct[used]
        arity = nodes.start[root + 1] - nodes.start[root]
        edges, own_start = places_of(nodes.start[root], arity)
        self.subtrees = Subtrees(nodes.production[root], own_start, place[number[nodes.child[edges]]])
        self.root = root  # a node that is the root of each

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
        """How often each subtree occurs in all trees together."""
        _, subtree, count = self.counts
        return np.bincount(subtree, count, len(self)).astype(np.float64)  # bincount of nothing is integer

    def count_matrix(self) -> Any:
        """Return the counts as a sparse matrix, trees by subtrees."""
        from scipy.sparse import csr_matrix

        start, subtree, count = self.counts
        return csr_matrix((count, subtree, start), shape=(start.size - 1, len(self)))
