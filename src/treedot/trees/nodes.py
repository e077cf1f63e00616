"""The nodes of a forest as the kernels compare them: productions, children and equal subtrees."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot.trees import Forest


class Nodes:
    """The nodes of a forest; subclasses may replace productions, children and subtrees."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.n_productions = forest.n_productions
        self.production, (self.start, self.child) = forest.production, forest.children

    @property
    def subtrees(self) -> tuple[IntArray, IntArray]:
        """The number of every node's subtree, and the first root of each distinct subtree."""
        return self.forest.subtree, self.forest.distinct_subtrees

    def production_counts(self, first: int, last: int) -> IntArray:
        """Return how often each production occurs in the trees ``first`` to ``last - 1``."""
        part = self.production[self.forest.offsets[first] : self.forest.offsets[last]]
        return np.bincount(part[part >= 0], minlength=self.n_productions)
