"""The subset tree kernel of Collins & Duffy (2001), fast: for one pair and for whole sets."""

from __future__ import annotations

import math

import numpy as np

from treedot.kernels import delta
from treedot.kernels.base import MAX_PAIRS, FloatArray, TreeKernel, one_of
from treedot.kernels.features import feature_gram, gram_of
from treedot.kernels.fragments import write_out
from treedot.kernels.subtrees import SubtreeItems
from treedot.parameters import checked_flag
from treedot.trees import Forest

CONVENTIONS = ("paper", "collins-duffy")
WEIGHTINGS = ("count", "distinct")


class SubsetTreeKernel(TreeKernel):
    """Counts the tree fragments that two trees share.

    A fragment is a subtree of more than one node in which every node has all of its children or none.
    With ``Δ(n1, n2) = ∏ (1 + λ Δ(children))`` for nodes with equal productions, else 0, the kernel is
    the sum of Δ over all pairs of nodes, so a shared fragment with p productions counts λ^(p-1).

    Parameters
    ----------
    decay : float
        λ in [0, 1].
    normalize : bool
        Divide by √(K(a, a) K(b, b)).
    convention : {"paper", "collins-duffy"}
        ``"paper"`` is the above. ``"collins-duffy"`` uses ``Δ = λ ∏ (1 + Δ(children))``, as much other
        software does, which is exactly λ times as large.
    leaves : bool
        Also count every pair of equal leaves (1, or λ in the other convention), as some software does.
    weighting : {"count", "distinct"}
        ``"count"`` weighs a fragment by how often it occurs in each tree. ``"distinct"`` counts it once
        per tree (the paper's trivial weighting, with ``decay=1``); this one writes the fragments out,
        so it is for small trees.
    max_pairs : int
        See ``TreeKernel``.

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
        normalize: bool = False,
        *,
        convention: str = "paper",
        leaves: bool = False,
        weighting: str = "count",
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        super().__init__(decay, normalize, max_pairs)
        self.convention = one_of("convention", convention, CONVENTIONS)
        self.leaves = checked_flag("leaves", leaves)
        self.weighting = one_of("weighting", weighting, WEIGHTINGS)

    @property
    def _unit(self) -> float:
        return self.decay if self.convention == "collins-duffy" else 1.0

    def _raw_gram(self, x: Forest, y: Forest | None) -> FloatArray:
        if self.weighting == "distinct":
            raw = _explicit_gram(x, y, self.decay)
        elif len(x) == 1 and (y is None or len(y) == 1):
            raw = np.array([[self._pair(x, x if y is None else y)]])
        else:
            raw = self._shared_gram(x, y)
        if self.leaves:
            raw += _leaf_gram(x, y)
        return self._unit * raw

    def _pair(self, x: Forest, y: Forest) -> float:
        """Moschitti's (2006) fast tree kernel: only pairs of nodes with equal productions are visited."""
        rows, columns, layout, pairs = _node_items(x, y)
        if pairs > self.max_pairs:  # equal subtrees may be many
            return float(self._shared_gram(x, None if x is y else y)[0, 0])
        values = np.empty(pairs)
        delta.fill(rows, columns, layout, self.decay, x is y, values)
        return float(values.sum())

    def _log_pair(self, x: Forest, y: Forest) -> float:
        if self.weighting == "distinct":
            value = float(self._raw_gram(x, y)[0, 0])
            return math.log(value) if value > 0 else -math.inf
        rows, columns, layout, pairs = _node_items(x, y)
        self._check_pairs(pairs)
        mantissa, exponent = delta.fill_scaled(
            rows, columns, layout, self.decay, np.empty(pairs), np.empty(pairs, np.int64)
        )
        shared = math.log(mantissa) + exponent * math.log(2.0) if mantissa > 0 else -math.inf
        if self.leaves:
            equal = float(_leaf_gram(x, y)[0, 0])
            shared = float(np.logaddexp(shared, math.log(equal) if equal else -math.inf))
        return shared + math.log(self._unit) if self._unit > 0 else -math.inf

    def _shared_gram(self, x: Forest, y: Forest | None) -> FloatArray:
        """One dynamic programme over the distinct subtrees of the whole set (after Shin et al. 2011)."""
        if y is None:
            programme = x.derived("shared programme", lambda: _Programme(x, None))  # whatever λ is
        else:
            programme = _Programme(x, y)
        if programme.pairs > self.max_pairs:
            return self._tiled_gram(x, y, programme.pairs)
        return programme.run(self.decay)

    def _tiled_gram(self, x: Forest, y: Forest | None, pairs: int) -> FloatArray:
        if len(x) == 1 and (y is None or len(y) == 1):
            self._check_pairs(pairs)
        if y is None:
            a, b = x[: len(x) // 2], x[len(x) // 2 :]
            across = self._shared_gram(a, b)
            return np.block([[self._shared_gram(a, None), across], [across.T, self._shared_gram(b, None)]])
        if len(x) >= len(y):
            parts = [self._shared_gram(part, y) for part in (x[: len(x) // 2], x[len(x) // 2 :])]
            return np.concatenate(parts, axis=0)
        parts = [self._shared_gram(x, part) for part in (y[: len(y) // 2], y[len(y) // 2 :])]
        return np.concatenate(parts, axis=1)


def _node_items(x: Forest, y: Forest) -> tuple[delta.Items, delta.Items, delta.Blocks, int]:
    both = x + y
    start, child = both.children
    cut = x.n_nodes
    rows = delta.Items(both.production[:cut], start[: cut + 1], child)
    columns = delta.Items(
        both.production[cut:], start[cut:] - start[cut], child[start[cut] :] - np.int32(cut)
    )
    return rows, columns, *delta.blocks(rows, columns, both.n_productions)


class _Programme:
    """What the shared dynamic programme needs besides λ."""

    def __init__(self, x: Forest, y: Forest | None) -> None:
        both = x if y is None else x + y
        self.symmetric = y is None
        self.rows = SubtreeItems(both, 0, len(x))
        self.columns = self.rows if y is None else SubtreeItems(both, len(x), len(both))
        self.shape = (len(x), len(x) if y is None else len(y))
        self.layout, self.pairs = delta.blocks(self.rows.items, self.columns.items, both.n_productions)

    def run(self, decay: float) -> FloatArray:
        """Return the Gram matrix for one λ."""
        values = np.empty(self.pairs)
        delta.fill(self.rows.items, self.columns.items, self.layout, decay, self.symmetric, values)
        out = np.empty(self.shape)
        delta.gram(
            self.rows.items, self.layout, values, *self.rows.counts, *self.columns.counts, self.symmetric, out
        )
        return out


def _leaf_gram(x: Forest, y: Forest | None) -> FloatArray:
    """Return the number of pairs of equal leaves for every pair of trees."""
    both = x if y is None else x + y
    leaf = both.arity == 0
    tree = np.repeat(np.arange(len(both)), both.sizes)[leaf]
    return feature_gram(tree, both.label[leaf], np.ones(tree.size), len(both), len(x), y is None)


def _explicit_gram(x: Forest, y: Forest | None, decay: float) -> FloatArray:
    """Return the kernel in which a fragment counts once per tree, by writing all fragments out."""
    both = x if y is None else x + y
    index, vectors = write_out(both)
    vectors.data = index.weights(decay)[vectors.indices]
    return gram_of(vectors, len(x), y is None)
