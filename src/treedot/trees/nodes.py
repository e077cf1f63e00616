"""The nodes of a forest as the dynamic programmes see them: productions, children, equal subtrees."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np

from treedot.trees import Forest
from treedot.trees.columns import intern_nodes
from treedot.types import IntArray


class Nodes:
    """The nodes of some trees; with ``labels``, the nodes with other labels are cut down to leaves.

    A node that is cut keeps its place in its parent's production and matches nothing itself; what stood
    below it stays in the tree, detached.
    """

    def __init__(self, forest: Forest, labels: Collection[str] | None = None) -> None:
        self.offsets = forest.offsets
        self.label = forest.label
        self.n_productions = forest.n_productions
        self.production, (self.start, self.child) = forest.production, forest.children
        self._uncut = forest if labels is None else None
        if labels is not None:
            kept = np.array([text in labels for text in forest.labels], bool)[forest.label]
            self.production = np.where(kept, self.production, np.int32(-1))
            arity = np.where(kept, forest.arity, 0)
            self.child = self.child[np.repeat(kept, forest.arity)]
            self.start = np.concatenate([[0], np.cumsum(arity)])

    @cached_property
    def subtrees(self) -> tuple[IntArray, IntArray]:
        """A number for every node's subtree, children before parents, and the first node of each number."""
        if self._uncut is not None:
            return self._uncut.subtree, self._uncut.distinct_subtrees
        return intern_nodes(self.label, self.start, self.child, True)

    @property
    def sizes(self) -> IntArray:
        """The number of nodes of each tree."""
        return np.diff(self.offsets)

    @cached_property
    def production_labels(self) -> IntArray:
        """The label of every production (of those that were cut, nothing in particular)."""
        labels = np.zeros(self.n_productions, np.int32)
        inner = self.production >= 0
        labels[self.production[inner]] = self.label[inner]
        return labels

    def production_counts(self, first: int, last: int) -> IntArray:
        """Return how often the trees from ``first`` to ``last - 1`` hold each production."""
        part = self.production[self.offsets[first] : self.offsets[last]]
        return np.bincount(part[part >= 0], minlength=self.n_productions)
