"""The distinct subtrees of a set of trees: what the shared programme and the explicit space run over."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treedot.trees.nodes import Nodes
from treedot.types import FloatArray, IntArray


class Items(NamedTuple):
    """Nodes or distinct subtrees: their productions (-1 for leaves) and children, which stand before them."""

    production: IntArray
    start: IntArray
    child: IntArray


class DistinctSubtrees:
    """The distinct subtrees of some trees as items, and how often each tree holds each."""

    def __init__(self, nodes: Nodes, first: int, last: int) -> None:
        span = slice(nodes.offsets[first], nodes.offsets[last])
        subtree, distinct = nodes.subtrees
        used = np.unique(subtree[span])  # numbers follow first appearance: children before parents
        root = distinct[used]
        arity = nodes.start[root + 1] - nodes.start[root]
        own_start = np.concatenate([[0], np.cumsum(arity)])
        edges = np.arange(own_start[-1]) + np.repeat(nodes.start[root] - own_start[:-1], arity)
        children = np.searchsorted(used, subtree[nodes.child[edges]]).astype(np.int32)
        self.items = Items(nodes.production[root], own_start, children)

        inner = nodes.production[span] >= 0
        item = np.searchsorted(used, subtree[span][inner])
        tree = np.repeat(np.arange(last - first), nodes.sizes[first:last])[inner]
        keys, count = np.unique(tree * used.size + item, return_counts=True)
        per_tree = np.searchsorted(keys, np.arange(last - first + 1) * used.size)
        self.counts: tuple[IntArray, IntArray, FloatArray] = (
            per_tree,
            keys % max(used.size, 1),
            count.astype(np.float64),
        )

    @property
    def totals(self) -> FloatArray:
        """How often all trees together hold each subtree."""
        _, item, count = self.counts
        return np.bincount(item, count, self.items.production.size).astype(np.float64)  # also where empty

    def count_matrix(self) -> Any:
        """Return the counts as a sparse matrix, trees by subtrees."""
        from scipy.sparse import csr_matrix

        start, item, count = self.counts
        return csr_matrix((count, item, start), shape=(start.size - 1, self.items.production.size))

    def weighed(self, weights: FloatArray) -> FloatArray:
        """Return for every subtree the sum of the weights (rows) of the trees that hold it."""
        total: FloatArray = self.count_matrix().T @ weights
        return total
