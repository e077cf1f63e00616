"""The nodes of a forest as the kernels compare them: productions, children and equal subtrees."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.ragged import ends_of
from treedot.trees import Forest
from treedot.trees.derived import intern_nodes


class Nodes:
    """The nodes of some trees; with ``labels``, the nodes with other labels are cut down to leaves.

    A node that is cut stays in its parent's production and matches nothing itself; what stood
    below it stays in the tree, detached.
    """

    def __init__(self, forest: Forest, labels: Collection[str] | None = None) -> None:
        self.forest = forest
        self.cut = labels is not None
        self._interned: tuple[IntArray, IntArray] | None = None
        self.n_productions = forest.n_productions
        self.production, (self.start, self.child) = forest.production, forest.children
        if labels is not None:
            kept = np.array([text in labels for text in forest.labels], bool)[forest.label]
            self.production = np.where(kept, self.production, np.int32(-1))
            arity = np.where(kept, forest.arity, 0)
            self.child = self.child[np.repeat(kept, forest.arity)]
            self.start = ends_of(arity)

    @property
    def subtree(self) -> IntArray:
        """A number for every node's subtree: equal subtrees, equal numbers, children before parents."""
        return self._cut_subtrees()[0] if self.cut else self.forest.subtree

    @property
    def distinct_subtrees(self) -> IntArray:
        """For every distinct subtree, in the order of its number, the first node it is rooted at."""
        return self._cut_subtrees()[1] if self.cut else self.forest.distinct_subtrees

    def _cut_subtrees(self) -> tuple[IntArray, IntArray]:
        # Not cached_property, whose lock (in Python 3.11) stays locked in a process forked meanwhile.
        if self._interned is None:
            self._interned = intern_nodes(self.forest.label, self.start, self.child, True)
        return self._interned

    def production_counts(self, first: int, last: int) -> IntArray:
        """Return how often the trees from ``first`` to ``last - 1`` hold each production."""
        part = self.production[self.forest.offsets[first] : self.forest.offsets[last]]
        return np.bincount(part[part >= 0], minlength=self.n_productions)
