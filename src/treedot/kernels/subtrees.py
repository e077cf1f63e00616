"""The distinct subtrees of a set of trees: what the shared programme and the explicit space run over."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from treedot.kernels.delta import Items
from treedot.trees import Forest

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.signedinteger[Any]]


class SubtreeItems:
    """The distinct subtrees of some trees of a forest as items, and how often each tree holds each."""

    def __init__(self, forest: Forest, first: int, last: int) -> None:
        nodes = slice(forest.offsets[first], forest.offsets[last])
        used = np.unique(forest.subtree[nodes])  # numbers follow first appearance: children before parents
        root = forest.distinct_subtrees[used]
        start, child = forest.children
        arity = forest.arity[root].astype(np.int64)
        own_start = np.concatenate([[0], np.cumsum(arity)])
        edges = np.arange(own_start[-1]) + np.repeat(start[root] - own_start[:-1], arity)
        children = np.searchsorted(used, forest.subtree[child[edges]]).astype(np.int32)
        self.items = Items(forest.production[root], own_start, children)

        item = np.searchsorted(used, forest.subtree[nodes])
        tree = np.repeat(np.arange(last - first), forest.sizes[first:last])
        inner = forest.arity[nodes] > 0
        keys, count = np.unique(tree[inner] * used.size + item[inner], return_counts=True)
        per_tree = np.searchsorted(keys, np.arange(last - first + 1) * used.size)
        self.counts: tuple[IntArray, IntArray, FloatArray] = (
            per_tree,
            keys % max(used.size, 1),
            count.astype(np.float64),
        )

    def count_matrix(self) -> Any:
        """Return the counts as a sparse matrix, trees by subtrees."""
        from scipy.sparse import csr_matrix

        start, item, count = self.counts
        return csr_matrix((count, item, start), shape=(start.size - 1, self.items.production.size))
