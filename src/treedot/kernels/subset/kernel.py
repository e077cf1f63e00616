"""The subset tree kernel of Collins & Duffy (2001), with fast algorithms for one pair and for sets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.threads import ONE_THREAD, Span, Threads
from treedot.errors import ParameterError
from treedot.kernels.features import gram_of, leaf_gram, leaf_pair, leaf_pairs
from treedot.kernels.fragments.space import write_out
from treedot.kernels.subset import one_pair, pairwise
from treedot.kernels.subset.gram import FragmentKernel
from treedot.kernels.tree_kernel import (
    ALL_FRAGMENTS,
    MAX_PAIRS,
    Limited,
    check_pairs,
    gram_by_rows,
    joined,
    read_sides,
    unit,
)
from treedot.parameters import CONVENTIONS, SUBTREE_CONVENTIONS, checked_choice, checked_flag
from treedot.trees import Forest
from treedot.trees.nodes import Nodes

WEIGHTINGS = ("count", "distinct")
ALGORITHMS = ("auto", "TK", "FTK", "shared")


class SubsetTreeKernel(FragmentKernel):
    """Counts the tree fragments that two trees share.

    A fragment is a subtree of more than one node in which every node has all of its children or none.
    With ``Δ(n1, n2) = ∏ (1 + λ Δ(children))`` for nodes with equal productions, else 0, the kernel is
    the sum of Δ over all pairs of nodes, so a shared fragment with p productions counts λ^(p-1).

    Parameters
    ----------
    decay : float, default=0.4
        The decay λ, in [0, 1]; small values let large fragments count less.
    normalize : bool, default=False
        Divide by √(K(a, a) K(b, b)).
    convention : {"paper", "collins-duffy"}, default="paper"
        ``"paper"`` is the formula above. ``"collins-duffy"`` uses ``Δ = λ ∏ (1 + Δ(children))``, like much
        other software; the kernel is then exactly λ times as large.
    leaves : bool, default=False
        Also count every pair of equal leaves, like some software: 1, or λ with ``"collins-duffy"``.
    weighting : {"count", "distinct"}, default="count"
        ``"count"`` weighs a fragment by how often it occurs in each tree. ``"distinct"`` counts it once
        per tree (the paper's trivial weighting, with ``decay=1``). It lists all fragments, so it only suits
        small trees.
    algorithm : {"auto", "TK", "FTK", "shared"}, default="auto"
        The algorithm, which does not change the values. ``"TK"`` fills a table over all pairs of nodes, for
        each pair of trees (Collins & Duffy 2001). ``"FTK"`` visits only pairs of nodes with equal
        productions, for each pair of trees (Moschitti 2006). ``"shared"`` computes Δ once for every pair of
        distinct subtrees of the whole set (after Shin et al. 2011). ``"auto"`` uses ``"FTK"`` for one pair
        and ``"shared"`` for sets. The method ``pairs`` uses ``"FTK"`` unless the algorithm is ``"TK"``.
    max_pairs : int, default=2**27
        See ``TreeKernel``. ``"TK"`` counts all pairs of nodes. If two trees have too many matching pairs of
        nodes, ``"auto"`` and ``"shared"`` compare distinct subtrees instead; ``"TK"`` and ``"FTK"`` raise
        ``LimitError``.

    See Also
    --------
    BoundedTreeKernel : The same kernel with fragments of bounded cost.
    PartialTreeKernel : The kernel in which a node may keep any of its children.
    FragmentVectorizer : Sparse rows with the same fragments, for many trees.
    DistributedTreeVectorizer : Dense vectors that approximate this kernel.

    References
    ----------
    M. Collins & N. Duffy, "Convolution Kernels for Natural Language", NIPS 2001. A. Moschitti, "Making Tree
    Kernels Practical for Natural Language Learning", EACL 2006. K. Shin, M. Cuturi & T. Kuboyama, "Mapping
    Kernels for Trees", ICML 2011. Zanzotto & Dell'Arciprete (2012) call this kernel TK, KeLP calls it
    ``SubSetTreeKernel``, and SVM-LIGHT-TK has it as ``-F 1``.

    Examples
    --------
    >>> kernel = SubsetTreeKernel(decay=0.5)
    >>> kernel("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))")
    2.5
    >>> kernel.gram(["(A b)", "(A c)", "(B (A b))"])
    array([[1. , 0. , 1. ],
           [0. , 1. , 0. ],
           [1. , 0. , 2.5]])
    """

    def __init__(
        self,
        decay: float = 0.4,
        *,
        normalize: bool = False,
        convention: str = "paper",
        leaves: bool = False,
        weighting: str = "count",
        algorithm: str = "auto",
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        super().__init__(decay, normalize=normalize, max_pairs=max_pairs)
        self.convention = _checked_convention(convention)
        self.leaves = checked_flag("leaves", leaves)
        self.weighting = checked_choice("weighting", weighting, WEIGHTINGS)
        self.algorithm: str = checked_choice("algorithm", algorithm, ALGORITHMS)

    def work(self, X: Any, Y: Any = None) -> int:
        """Return the number of entries of Δ that the algorithm computes for ``gram(X, Y)``, unnormalised.

        ``"TK"`` computes Δ for all pairs of nodes of all pairs of trees, ``"FTK"`` for the pairs with equal
        productions, ``"shared"`` for the pairs of distinct subtrees with equal productions.

        Parameters
        ----------
        X : source of trees
            The trees of the rows, as ``read_trees`` takes them.
        Y : source of trees, default=None
            The trees of the columns. Without Y, each pair of trees, or of distinct subtrees, counts once.

        Returns
        -------
        int
            The number of entries.
        """
        if self.weighting == "distinct":
            raise ParameterError("work() needs weighting='count': weighting='distinct' does not compute Δ")
        x, y = read_sides(X, Y)
        nodes, columns = Nodes(joined(x, y)), None if y is None else (len(x), len(x) + len(y))
        algorithm = self._algorithm(x, y)
        if algorithm == "TK":
            return _table_work(nodes.forest.sizes, len(x), columns)
        matching = _fast_work(nodes, len(x), columns)
        if self.algorithm == "FTK" or (algorithm == "FTK" and matching <= self.max_pairs):
            return matching
        return sum(tile.work for tile in self._tiles(nodes, (0, len(x)), columns))

    def _algorithm(self, x: Forest, y: Forest | None) -> str:
        if self.algorithm != "auto":
            return self.algorithm
        return "FTK" if len(x) == 1 and (y is None or len(y) == 1) else "shared"

    def _raw_gram(self, x: Forest, y: Forest | None, threads: Threads = ONE_THREAD) -> FloatArray:
        if self.weighting == "distinct":
            raw = _explicit_gram(x, y, self.decay, threads)
        elif self._algorithm(x, y) == "shared":
            raw = super()._raw_gram(x, y, threads)
        else:
            raw = self._looped_gram(x, y, threads)
        if self.leaves:
            raw += leaf_gram(x, y, threads)
        if self.convention != "paper":
            raw *= unit(self.convention, self.decay)
        return raw

    def _raw_pair(self, x: Forest, y: Forest) -> float:
        if self.weighting == "distinct" or self.algorithm not in ("auto", "FTK"):
            return super()._raw_pair(x, y)
        value = one_pair.sum_of_pair(x, y, self.decay, self.max_pairs)
        if value is None:
            return super()._raw_pair(x, y)
        if self.leaves:
            value += leaf_pair(x, y)
        return unit(self.convention, self.decay) * value

    def _raw_pairs(
        self, x: Forest, rows: IntArray, columns: IntArray, threads: Threads = ONE_THREAD
    ) -> FloatArray:
        if self.weighting == "distinct":
            return super()._raw_pairs(x, rows, columns, threads)
        raw = self._sums(x, rows, columns, threads)
        if self.leaves:
            raw += leaf_pairs(x, rows, columns, threads)
        return unit(self.convention, self.decay) * raw

    def _sums(self, x: Forest, rows: IntArray, columns: IntArray, threads: Threads) -> FloatArray:
        """Return ΣΔ of each pair of trees by the algorithm "TK" or "FTK"."""
        trees = x.derived(pairwise.trees_by_production)
        if self.algorithm == "TK":
            return pairwise.table_pairs(trees, rows, columns, self.decay, self.max_pairs, threads)
        if self.algorithm == "FTK":
            raw, entries = pairwise.fast_pairs(
                trees, rows, columns, self.decay, self.max_pairs, threads=threads
            )
            check_pairs(int(entries.max(initial=0)), self.max_pairs, ALL_FRAGMENTS)
            return raw
        return self._fast_pairs(Nodes(x), trees, rows, columns, threads)

    def _looped_gram(self, x: Forest, y: Forest | None, threads: Threads) -> FloatArray:
        both = joined(x, y)
        both.derived(pairwise.trees_by_production)  # computed once, before the threads start

        def row(i: int, others: IntArray) -> FloatArray:
            return self._sums(both, np.full(others.size, i), others, ONE_THREAD)

        return gram_by_rows(x, y, row, threads)

    def _limited(self) -> Limited:
        return ALL_FRAGMENTS

    def _log_pair(self, x: Forest, y: Forest) -> float:
        if self.weighting == "distinct":
            return super()._log_pair(x, y)
        result: float = self._only_tile(Nodes(x + y), 0, 1).log_sum(self.decay)
        if self.leaves:
            equal = leaf_pair(x, y)
            result = float(np.logaddexp(result, math.log(equal) if equal else -math.inf))
        share = unit(self.convention, self.decay)
        return result + math.log(share) if share > 0 else -math.inf


def _table_work(sizes: IntArray, n_rows: int, columns: Span | None) -> int:
    """Return the entries of Δ of "TK": all pairs of nodes of all pairs of trees."""
    rows = int(sizes[:n_rows].sum())
    if columns is not None:
        return rows * int(sizes[n_rows:].sum())
    return (rows**2 + int((sizes**2).sum())) // 2


def _fast_work(nodes: Nodes, n_rows: int, columns: Span | None) -> int:
    """Return the entries of Δ of "FTK": the pairs of nodes with equal productions."""
    rows = nodes.production_counts(0, n_rows)
    if columns is not None:
        return int(rows @ nodes.production_counts(*columns))
    inner = nodes.production >= 0
    keys = nodes.forest.tree_of_node[inner] * nodes.n_productions + nodes.production[inner]
    own = np.unique(keys, return_counts=True)[1]
    return (int(rows @ rows) + int(own @ own)) // 2


def _explicit_gram(x: Forest, y: Forest | None, decay: float, threads: Threads) -> FloatArray:
    """Return the Gram matrix in which a fragment counts once per tree, by listing all fragments."""
    space, vectors = write_out(joined(x, y))
    vectors.data = space.weights(decay)[vectors.indices]
    return gram_of(vectors, len(x), y is None, threads)


def _checked_convention(name: str) -> str:
    """Return a convention; raise ParameterError that names the one that the programs of a name follow."""
    if name in SUBTREE_CONVENTIONS and name not in CONVENTIONS:
        leaves = ", leaves=True" if name == "kelp" else ""
        raise ParameterError(
            f"convention={name!r} belongs to subtree kernels; for the subset trees of this program, use "
            f"convention='collins-duffy'{leaves}"
        )
    chosen: str = checked_choice("convention", name, CONVENTIONS)
    return chosen
