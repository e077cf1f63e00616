"""The subtree kernel of Vishwanathan & Smola (2002): complete subtrees only, in linear time."""

from __future__ import annotations

import math

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, WordArray
from treedot._runtime.hashing import mix64
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.kernels import toolkit_subtrees
from treedot.kernels.features import FeatureKernel, leaf_gram, leaf_pair, leaf_pairs
from treedot.kernels.subset.one_pair import label_keys
from treedot.kernels.toolkit_subtrees import RULES
from treedot.kernels.tree_kernel import MAX_PAIRS, gram_by_rows, joined, unit
from treedot.parameters import SUBTREE_CONVENTIONS, checked_choice, checked_flag
from treedot.trees import Forest

Sums = dict[int, float]  # hash of each subtree to its weights, in order of appearance


class SubtreeKernel(FeatureKernel):
    """Counts the complete subtrees that two trees share.

    A pair of equal subtrees that are not leaves counts λ^(p-1), where p is the number of nodes with
    children in the subtree: the subset tree kernel restricted to fragments that reach the leaves.

    Parameters
    ----------
    decay : float, default=0.4
        The decay λ, in [0, 1]; small values let large subtrees count less.
    normalize : bool, default=False
        Divide K(a, b) by √(K(a, a) K(b, b)).
    convention : {"paper", "collins-duffy", "kelp", "svm-light-tk"}, default="paper"
        ``"paper"`` is the above. In ``"collins-duffy"`` a pair counts λ^p, exactly λ times as much.
        ``"kelp"`` and ``"svm-light-tk"`` are the kernels that these programs compute, to reproduce their
        results: ``"collins-duffy"``, except that some pairs of unequal subtrees count as well. KeLP passes
        over children with different productions; SVM-LIGHT-TK matches a leaf with any child of the same
        label. Neither is positive semidefinite in general.
    leaves : bool, default=False
        Also count every pair of equal leaves (1, or λ in the other conventions).
    max_pairs : int, default=2**27
        The largest number of pairs of nodes of two trees, with ``"kelp"`` and ``"svm-light-tk"``. The other
        conventions keep no Δ in memory and ignore it.

    See Also
    --------
    SubsetTreeKernel : The kernel of all fragments, whose nodes have all of their children or none.

    References
    ----------
    S. V. N. Vishwanathan & A. J. Smola, "Fast Kernels for String and Tree Matching", NIPS 2002. KeLP calls
    this kernel ``SubTreeKernel``, SVM-LIGHT-TK has it as ``-F 0``.

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
            both, rule = joined(x, y), RULES[self.convention]

            def row(i: int, others: IntArray) -> FloatArray:
                rows, columns = np.full(others.size, i), others
                if y is None:  # only the lower half
                    rows, columns = columns, rows
                return toolkit_subtrees.pairs(both, rows, columns, self.decay, rule, self.max_pairs)

            raw = gram_by_rows(x, y, row, threads)
            return raw + self.decay * leaf_gram(x, y, threads) if self.leaves else raw
        return unit(self.convention, self.decay) * super()._raw_gram(x, y, threads)

    def _raw_pairs(
        self, x: Forest, rows: IntArray, columns: IntArray, threads: Threads = ONE_THREAD
    ) -> FloatArray:
        if self.convention in RULES:
            rule = RULES[self.convention]
            raw = toolkit_subtrees.pairs(x, rows, columns, self.decay, rule, self.max_pairs, threads)
            return raw + self.decay * leaf_pairs(x, rows, columns, threads) if self.leaves else raw
        return unit(self.convention, self.decay) * super()._raw_pairs(x, rows, columns, threads)

    def _raw_pair(self, x: Forest, y: Forest) -> float:
        if self.convention in RULES:
            raw = toolkit_subtrees.pair(x, y, self.decay, RULES[self.convention], self.max_pairs)
            return raw + self.decay * leaf_pair(x, y) if self.leaves else raw
        (sums, own), (others, _) = (
            side.derived(_HashedSubtrees).sums(self.decay, self.leaves) for side in (x, y)
        )
        return unit(self.convention, self.decay) * (own if x is y else _sum_shared(sums, others))

    def _features(self, forest: Forest) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the tree, the number of the subtree, and √λ^(p-1) for every node that counts."""
        counts = (forest.arity > 0) | self.leaves
        tree = forest.tree_of_node[counts]
        return tree, forest.subtree[counts], _weights(self.decay, _productions(forest)[counts])


def _weights(decay: float, productions: FloatArray) -> FloatArray:
    """Return √λ^(p-1) for numbers p of productions; 1 for leaves, where p is 0."""
    weights: FloatArray = np.power(math.sqrt(decay), np.maximum(productions - 1.0, 0.0))
    return weights


def _productions(forest: Forest) -> FloatArray:
    """Return the number of nodes with children in the subtree of every node."""
    inner = np.concatenate([[0], np.cumsum(forest.arity > 0)])
    end = np.arange(1, forest.n_nodes + 1)
    counts: FloatArray = (inner[end] - inner[end - forest.subtree_size]).astype(np.float64)
    return counts


class _HashedSubtrees:
    """The subtrees of a one-tree forest as hashes, which are the same in all forests.

    Within one forest, equal subtrees have equal numbers, but packing two trees into one forest takes far
    longer than comparing them. So each subtree has a 64-bit hash here; two different subtrees collide with a
    probability of 10⁻¹⁹. The sums for the last settings are cached.
    """

    def __init__(self, forest: Forest) -> None:
        size = forest.n_nodes
        self._codes, self._productions = np.empty(size, np.uint64), np.empty(size)
        given = forest.label, forest.arity, label_keys(forest), np.empty(size, np.int64)
        with np.errstate(over="ignore"):  # hashes wrap around
            _hash_subtrees(*given, self._codes, self._productions)
        self._kept: tuple[tuple[float, bool], tuple[Sums, float]] | None = None

    def sums(self, decay: float, leaves: bool) -> tuple[Sums, float]:
        """Return Σ √λ^(p-1) over the copies of each counted subtree, and the sum of the squares."""
        kept = self._kept
        if kept is None or kept[0] != (decay, leaves):
            counts = (self._productions > 0) | leaves
            sums: Sums = {}
            weights = _weights(decay, self._productions[counts])
            for code, weight in zip(self._codes[counts].tolist(), weights.tolist(), strict=True):
                sums[code] = sums.get(code, 0.0) + weight
            kept = self._kept = (decay, leaves), (sums, _sum_shared(sums, sums))
        return kept[1]


def _sum_shared(sums: Sums, others: Sums) -> float:
    """Return the sum of the products of equal subtrees, in the order of ``_raw_gram``, to the last bit."""
    total = 0.0
    for code, weight in sums.items():
        if code in others:
            total += weight * others[code]
    return total


@njit_borrowing
def _hash_subtrees(
    label: IntArray, arity: IntArray, key: WordArray, stack: IntArray, code: WordArray,
    productions: FloatArray,
) -> None:  # fmt: skip
    """Write the hash of its subtree and its number of productions for every node of a tree."""
    height = 0
    for node in range(label.size):
        begin = height - arity[node]
        code[node] = mix64(key[label[node]] + np.uint64(arity[node]))
        productions[node] = 1.0 if arity[node] > 0 else 0.0
        for k in range(begin, height):
            code[node] = mix64(code[node] + code[stack[k]])
            productions[node] += productions[stack[k]]
        stack[begin] = node
        height = begin + 1
