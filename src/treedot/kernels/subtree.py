"""The subtree kernel of Vishwanathan & Smola (2002): complete subtrees only, in linear time."""

from __future__ import annotations

import math

import numpy as np

from treedot.array_types import FloatArray, IntArray
from treedot.kernels import toolkit_subtrees
from treedot.kernels.base import MAX_PAIRS, TreeKernel, unit
from treedot.kernels.features import feature_gram, feature_pairs, leaf_gram, leaf_pairs
from treedot.kernels.toolkit_subtrees import RULES
from treedot.parameters import SUBTREE_CONVENTIONS, checked_choice, checked_flag
from treedot.threads import ONE_THREAD, Threads
from treedot.trees import Forest


class SubtreeKernel(TreeKernel):
    """Counts the complete subtrees that two trees share.

    A pair of equal subtrees that are not leaves counts λ^(p-1), where p is the number of nodes with
    children in the subtree: the subset tree kernel restricted to fragments that reach the leaves.

    Parameters
    ----------
    decay, normalize, max_pairs
        See ``TreeKernel``; no Δ is kept in memory here, so ``max_pairs`` makes no difference but with
        ``"kelp"`` and ``"svm-light-tk"``, where it limits all pairs of nodes.
    convention : {"paper", "collins-duffy", "kelp", "svm-light-tk"}
        ``"paper"`` is the above. In ``"collins-duffy"`` a pair counts λ^p, exactly λ times as much.
        ``"kelp"`` and ``"svm-light-tk"`` are what these programs compute, to reproduce results of theirs:
        ``"collins-duffy"``, but pairs of nodes count too whose subtrees differ in some ways. In KeLP
        children with different productions are passed over; in SVM-LIGHT-TK a leaf goes with any child of
        its label. Neither is positive semidefinite in general.
    leaves : bool
        Also count every pair of equal leaves (1, or λ in the other convention).

    Examples
    --------
    >>> SubtreeKernel(decay=0.5)("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))")
    1.0
    >>> SubtreeKernel(decay=0.5, leaves=True)("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))")
    2.0
    >>> a, b = "(A (B b) (C c))", "(A (B b) (C d))"  # which share the subtree (B b), and no other
    >>> [SubtreeKernel(0.5, convention=name)(a, b) for name in ("collins-duffy", "kelp")]
    [0.5, 0.75]
    """

    def __init__(
        self,
        decay: float = 0.4,
        *,
        normalize: bool = False,
        convention: str = "paper",
        leaves: bool = False,
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        super().__init__(decay, normalize=normalize, max_pairs=max_pairs)
        self.convention = checked_choice("convention", convention, SUBTREE_CONVENTIONS)
        self.leaves = checked_flag("leaves", leaves)

    def _raw_gram(self, x: Forest, y: Forest | None, threads: Threads = ONE_THREAD) -> FloatArray:
        if self.convention in RULES:
            raw = toolkit_subtrees.gram(x, y, self.decay, RULES[self.convention], self.max_pairs, threads)
            return raw + self.decay * leaf_gram(x, y, threads) if self.leaves else raw
        both = x if y is None else x + y
        raw = feature_gram(*self._subtrees(both), len(both), len(x), y is None, threads)
        return unit(self.convention, self.decay) * raw

    def _raw_pairs(
        self, x: Forest, rows: IntArray, columns: IntArray, threads: Threads = ONE_THREAD
    ) -> FloatArray:
        if self.convention in RULES:
            rule = RULES[self.convention]
            raw = toolkit_subtrees.pairs(x, rows, columns, self.decay, rule, self.max_pairs, threads)
            return raw + self.decay * leaf_pairs(x, rows, columns, threads) if self.leaves else raw
        raw = feature_pairs(*self._subtrees(x), len(x), rows, columns, threads)
        return unit(self.convention, self.decay) * raw

    def _log_pair(self, x: Forest, y: Forest) -> float:
        value = self._raw_pair(x, y)  # at most the number of pairs of nodes
        return math.log(value) if value > 0 else -math.inf

    def _subtrees(self, forest: Forest) -> tuple[IntArray, IntArray, FloatArray]:
        """Return for every node that counts its tree, the number of its subtree, and √λ^(p-1)."""
        counts = (forest.arity > 0) | self.leaves
        tree = forest.tree_of_node[counts]
        expanded = np.maximum(_productions(forest)[counts] - 1.0, 0.0)  # a leaf has nothing to expand
        return tree, forest.subtree[counts], np.power(math.sqrt(self.decay), expanded)


def _productions(forest: Forest) -> FloatArray:
    """Return for every node the number of nodes with children in its subtree."""
    inner = np.concatenate([[0], np.cumsum(forest.arity > 0)])
    end = np.arange(1, forest.n_nodes + 1)
    counts: FloatArray = (inner[end] - inner[end - forest.subtree_size]).astype(np.float64)
    return counts
