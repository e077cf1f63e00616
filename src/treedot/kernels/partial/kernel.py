"""The partial tree kernel of Moschitti (2006), for trees whose productions are rarely equal as a whole."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.errors import LimitError
from treedot.kernels.partial.gram import Families, PartialDelta, shared_partial_delta
from treedot.kernels.partial.label_sums import label_gram, label_pairs
from treedot.kernels.partial.logs import log_sum
from treedot.kernels.partial.one_pair import kernel_of_pair
from treedot.kernels.partial.pairwise import sums_by_family, trees_by_family
from treedot.kernels.partial.subsequences import Side, Weights
from treedot.kernels.subset.pairwise import Trees
from treedot.kernels.tiled_kernel import TiledKernel
from treedot.kernels.tree_kernel import MATCHING, MAX_PAIRS, Limited, joined
from treedot.parameters import GAPS, checked_choice, checked_integer, checked_not_negative, checked_share
from treedot.trees import Forest

EQUAL = np.ones(1)  # the similarity of equal labels
MAX_CHILDREN = 2**31 - 1  # no node has more children


class PartialTreeKernel(TiledKernel):
    r"""Counts the partial trees that two trees share.

    A partial tree is a connected part of a tree in which a node has any subset of its children, in order. So
    two nodes match as far as some of their children do; the subset tree kernel requires all children to
    match. The kernel is the sum over all pairs of nodes of

    ``Δ(n1, n2) = μ (λ² + Σ λ^g ∏ Δ(child of n1, child of n2))``

    if the nodes are inner nodes with equal labels, where the sum is over all pairs of equally long
    subsequences of their children; ``Δ = μ λ² terminal_factor`` if the labels are equal and one node is a
    leaf; and 0 otherwise.

    Parameters
    ----------
    decay : float, default=0.4
        The decay λ, in [0, 1]. A partial tree counts λ² for every node without children in it, and λ for
        every child skipped between two others.
    mu : float, default=0.4
        The factor μ, in [0, 1]. A partial tree counts μ for every node.
    gaps : {"toolkit", "span"}, default="toolkit"
        The meaning of g. ``"toolkit"``: the number of children skipped between the first and the last child
        of the subsequences, as in KeLP and SVM-LIGHT-TK. ``"span"``: the number of all children from the
        first to the last, as in the published formula.
    terminal_factor : float, default=1.0
        The factor for pairs of equal labels if at least one node is a leaf. With a factor other than 1, this
        is a kernel only if no label occurs both at leaves and at inner nodes; otherwise the matrix may have
        negative eigenvalues.
    max_length : int, default=None
        The longest subsequence of children that counts; 5 in SVM-LIGHT-TK.
    normalize : bool, default=False
        Divide K(a, b) by √(K(a, a) K(b, b)).
    max_pairs : int, default=2**27
        See ``TreeKernel``. It also limits the number of pairs of children of two nodes.

    See Also
    --------
    SubsetTreeKernel : Its fragments have all children of a node or none.
    SmoothedPartialTreeKernel : Similar labels match partially.
    DistributedTreeVectorizer : With ``kernel="partial"``, vectors for many trees.

    References
    ----------
    A. Moschitti, "Efficient Convolution Kernels for Dependency and Constituent Syntactic Trees", ECML 2006.
    KeLP calls this kernel ``PartialTreeKernel``, SVM-LIGHT-TK has it as ``-F 3``.

    Examples
    --------
    >>> kernel = PartialTreeKernel(decay=0.5, mu=0.5)
    >>> kernel("(NP (DT a) (NN tree))", "(NP (DT a) (JJ old) (NN tree))")
    0.9462890625
    >>> kernel("(NP (DT a))", "(NP (DT a))")  # a: 1/8, (DT a): 3/16, (NP (DT a)): 7/32
    0.53125
    """

    _tile_type = PartialDelta

    def __init__(
        self,
        decay: float = 0.4,
        *,
        mu: float = 0.4,
        gaps: str = "toolkit",
        terminal_factor: float = 1.0,
        max_length: int | None = None,
        normalize: bool = False,
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        super().__init__(decay, normalize=normalize, max_pairs=max_pairs)
        self.mu = checked_share("mu (μ)", mu)
        self.gaps: str = checked_choice("gaps", gaps, GAPS)
        self.terminal_factor = checked_not_negative("terminal_factor", terminal_factor)
        if max_length is not None:
            max_length = checked_integer("max_length", max_length, at_least=1)
        self.max_length = max_length

    def _weights(self, similarity: FloatArray = EQUAL) -> Weights:
        node = self.mu * self.decay**2
        step = 1.0 if self.gaps == "toolkit" else self.decay**2
        leaf = node * self.terminal_factor
        longest = min(self.max_length or 0, MAX_CHILDREN)
        return Weights(self.decay, self.mu, step, node, leaf, longest, similarity)

    def _nodes(self, forest: Forest) -> Families:
        return Families(forest)

    def _whole(self, forest: Forest, nodes: Families) -> PartialDelta:
        return forest.derived(shared_partial_delta)

    def _tile_gram(self, tile: PartialDelta, threads: Threads) -> FloatArray:
        return tile.gram(self._weights(tile.similarity), threads)

    def _sides(self, forest: Forest, nodes: Families) -> tuple[Trees, Side]:
        """Return the nodes of every tree by family."""
        return forest.derived(trees_by_family)

    def _limited(self) -> Limited:
        if self.terminal_factor != 1:  # no vectors exist for such a kernel
            return MATCHING
        return Limited(instead="compare the vectors of DistributedTreeVectorizer with kernel='partial'")

    def _raw_gram(self, x: Forest, y: Forest | None, threads: Threads = ONE_THREAD) -> FloatArray:
        self._check_widths(widest(x).max(initial=0), widest(x if y is None else y).max(initial=0))
        nodes = self._nodes(joined(x, y))
        out = label_gram(nodes, len(x), y is None, self._weights(nodes.labels.value), threads)
        out += self._tiled_gram(x, y, nodes, threads)
        return out

    def _raw_pairs(
        self, x: Forest, rows: IntArray, columns: IntArray, threads: Threads = ONE_THREAD
    ) -> FloatArray:
        most = widest(x)
        self._check_widths(most[rows], most[columns])
        nodes = self._nodes(x)
        weights = self._weights(nodes.labels.value)
        sums = sums_by_family(*self._sides(x, nodes), rows, columns, weights, self.max_pairs, threads)
        raw = self._complete(sums, nodes, rows, columns, threads)
        return raw + label_pairs(nodes, rows, columns, weights, threads)

    def _raw_pair(self, x: Forest, y: Forest) -> float:
        most = widest(y)
        self._check_widths(widest(x), most)
        value = kernel_of_pair(x, y, self._weights(), int(most[0]), self.max_pairs)
        return self._pair_of_many(x, y) if value is None else value

    def _pair_of_many(self, x: Forest, y: Forest) -> float:
        """Return the kernel of two one-tree forests, computed as two trees of one forest."""
        return float(self._raw_pairs(x + y, np.array([0]), np.array([1]))[0])

    def _log_pair(self, x: Forest, y: Forest) -> float:
        self._check_widths(widest(x), widest(y))
        nodes = self._nodes(x + y)
        weights = self._weights(nodes.labels.value)
        labels = label_pairs(nodes, np.array([0]), np.array([1]), weights)
        return log_sum(self._only_tile(nodes, 0, 1), weights, float(labels[0]))

    def _check_widths(self, rows: IntArray, columns: IntArray) -> None:
        """Raise LimitError if two nodes have more than ``max_pairs`` pairs of children."""
        most = int((np.asarray(rows) * columns).max(initial=0))
        if most > self.max_pairs:
            raise LimitError(
                f"two nodes have up to {most} pairs of children, more than max_pairs={self.max_pairs}: "
                "raise max_pairs (this costs time, not memory), or use SubsetTreeKernel"
            )


def widest(forest: Forest) -> IntArray:
    """Return the largest number of children of a node in every tree."""
    arity = forest.arity.astype(np.int64)
    return np.maximum.reduceat(arity, forest.offsets[:-1]) if len(forest) else arity
