"""The subtree kernel of Vishwanathan & Smola (2002): complete subtrees only, in linear time."""

from __future__ import annotations

import math

import numpy as np

from treedot.kernels.base import FloatArray, TreeKernel
from treedot.kernels.features import feature_gram
from treedot.trees import Forest


class SubtreeKernel(TreeKernel):
    """Counts the complete subtrees that two trees share.

    A pair of equal subtrees that are not leaves counts λ^(p-1), where p is the number of nodes with
    children in the subtree: the subset tree kernel restricted to fragments that reach the leaves.

    Examples
    --------
    >>> SubtreeKernel(decay=0.5)("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))")
    1.0
    """

    def _raw_gram(self, x: Forest, y: Forest | None) -> FloatArray:
        both = x if y is None else x + y
        inner = both.arity > 0
        tree = np.repeat(np.arange(len(both)), both.sizes)[inner]
        root_decay = math.sqrt(self.decay)
        weight = np.power(root_decay, _productions(both)[inner] - 1.0)
        return feature_gram(tree, both.subtree[inner], weight, len(both), len(x), y is None)

    def _log_pair(self, x: Forest, y: Forest) -> float:
        value = float(self._raw_gram(x, y)[0, 0])  # at most the number of pairs of nodes
        return math.log(value) if value > 0 else -math.inf


def _productions(forest: Forest) -> FloatArray:
    """Return for every node the number of nodes with children in its subtree."""
    inner = np.concatenate([[0], np.cumsum(forest.arity > 0)])
    end = np.arange(1, forest.n_nodes + 1)
    counts: FloatArray = (inner[end] - inner[end - forest.subtree_size]).astype(np.float64)
    return counts
