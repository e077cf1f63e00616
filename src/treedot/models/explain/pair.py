"""Explain the kernel of two trees, fragment by fragment and node by node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot.kernels import BoundedTreeKernel, SubsetTreeKernel
from treedot.kernels.kernel import Kernel
from treedot.kernels.tree_kernel import TreeKernel, checked_tree_kernel, unit
from treedot.models.explain.listed_fragments import BUDGET, LEAVES, fragment_encoder, is_counted, log_norms
from treedot.models.explain.pair_shares import kernel_shares
from treedot.models.explain.removal import removal_values
from treedot.models.explain.shares import node_shares
from treedot.models.explain.shown import Shown
from treedot.models.explain.tree_values import REMOVAL, SHAPLEY
from treedot.parameters import checked_integer
from treedot.readers import read_tree
from treedot.trees import Forest, Tree
from treedot.vectors.sparse.occurrences import Occurrences, fragment_at


class SharedFragment(NamedTuple):
    """A fragment that two trees share.

    Attributes
    ----------
    fragment : Tree
        The fragment.
    value : float
        What it adds to the kernel: λ^(p - 1) for every pair of its occurrences.
    nodes_a, nodes_b : list of list of int
        The inner nodes of every occurrence in each tree, in post-order.
    """

    fragment: Tree
    value: float
    nodes_a: list[list[int]]
    nodes_b: list[list[int]]

    def __repr__(self) -> str:
        """Return the fields, with only the numbers of occurrences for the nodes."""
        occurrences = f"nodes_a=<{len(self.nodes_a)} occurrences>, nodes_b=<{len(self.nodes_b)} occurrences>"
        return f"SharedFragment(fragment={self.fragment!r}, value={self.value!r}, {occurrences})"


@dataclass(frozen=True, eq=False, repr=False)
class PairExplanation(Shown):
    """The parts of the kernel of two trees; the result of ``explain_pair``.

    Attributes
    ----------
    a, b : Tree
        The trees.
    value : float
        Their kernel. If the values are Shapley values, it is the sum of ``values_a`` and ``others``, and also
        of ``values_b`` and ``others``.
    values_a, values_b : array
        The value of every node of one tree, in post-order, with the other tree fixed; 0 for leaves.
    others : dict
        Contributions that belong to no inner node, by name.
    fragments : list of SharedFragment
        The fragments that add most to the kernel, strongest first; empty if values are by removal.
    values_are : {"shapley", "removal"}
        What the values are. ``"removal"``: by how much the kernel falls if the children of this node are
        removed; these values overlap, so their sum has no meaning.
    """

    a: Tree
    b: Tree
    value: float
    values_a: np.ndarray
    values_b: np.ndarray
    others: dict[str, float]
    fragments: list[SharedFragment]
    values_are: str = SHAPLEY

    format = "treedot pair explanation"

    @property
    def unlisted(self) -> float:
        """The sum of what all unlisted fragments add to the kernel."""
        return self.value - sum(self.others.values()) - sum(shared.value for shared in self.fragments)

    def __repr__(self) -> str:
        """Return a summary in one line; ``str`` returns the whole explanation."""
        sizes = f"{self.a.size} and {self.b.size}"
        return f"<PairExplanation of the kernel {self.value!r}: trees of {sizes} nodes>"


def explain_pair(
    a: Any,
    b: Any,
    kernel: Kernel | None = None,
    *,
    budget: int | None = BUDGET,
    n_fragments: int = 10,
) -> PairExplanation:
    """Explain the kernel of two trees.

    In the subset tree kernel, a fragment with p productions that occurs c times in one tree and d times in
    the other adds c·d·λ^(p - 1). A node gets an equal share, 1/p, of every occurrence that it is part of.
    This is its Shapley value, with the other tree fixed (and, if the kernel is normalised, the lengths). All
    fragments count, of which there may be exponentially many; only the strongest within a budget are listed.
    ``BoundedTreeKernel`` is explained in the same way, by the fragments within its own budget.

    For all other kernels, and for combinations of kernels, the value of a node is the kernel minus the kernel
    of the tree in which this node is a leaf, with lengths computed again. ``values_are`` is then
    ``"removal"``, and no fragments are listed.

    Parameters
    ----------
    a, b : bracket text, Tree, nested lists, or a Forest of one tree
        The trees.
    kernel : Kernel, default=None
        A kernel of trees, or a combination of such kernels; by default ``SubsetTreeKernel()``.
    budget : int or None, default=4
        The largest cost of a listed fragment; None lists fragments of any cost, for small trees.
    n_fragments : int, default=10
        The number of fragments to list.

    Returns
    -------
    PairExplanation
        The parts of the kernel.

    Raises
    ------
    ParameterError
        If ``kernel`` is not a kernel.
    LimitError
        If the trees are too large.

    See Also
    --------
    explain : Explain the decision of a model.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel, explain_pair
    >>> found = explain_pair("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))", SubsetTreeKernel(0.5))
    >>> found.value, found.values_a
    (2.5, array([0.  , 0.  , 0.  , 1.25, 1.25]))
    >>> for shared in found.fragments:
    ...     print(shared.fragment, round(shared.value, 2))
    (NP DT NN) 1.0
    (NN tree) 1.0
    (NP DT (NN tree)) 0.5
    """
    kernel = SubsetTreeKernel() if kernel is None else kernel
    if not isinstance(kernel, Kernel):
        checked_tree_kernel("kernel", kernel)
    x, y = read_tree(a), read_tree(b)
    n_fragments = checked_integer("n_fragments", n_fragments, 0)
    if isinstance(kernel, BoundedTreeKernel):
        return _of_bounded_kernel(x, y, kernel, budget, n_fragments)
    if is_counted(kernel):
        return _of_subset_kernel(x, y, kernel, budget, n_fragments)
    value, values_a = removal_values(x, lambda trees: kernel.gram(trees, y)[:, 0])
    _, values_b = removal_values(y, lambda trees: kernel.gram(trees, x)[:, 0])
    return PairExplanation(x[0], y[0], value, values_a, values_b, {}, [], REMOVAL)


def _of_subset_kernel(
    x: Forest, y: Forest, kernel: SubsetTreeKernel, budget: int | None, n_fragments: int
) -> PairExplanation:
    value, scale = kernel(x, y), unit(kernel.convention, kernel.decay) * _scale(kernel, x, y)
    values = [scale * shares for shares in kernel_shares(x, y, kernel.decay)]
    inner = scale * SubsetTreeKernel(kernel.decay, max_pairs=kernel.max_pairs)(x, y)
    others = {LEAVES: value - inner} if kernel.leaves else {}
    found = _Shared.of(x, y, kernel.decay, budget, scale).strongest(n_fragments)
    return PairExplanation(x[0], y[0], value, values[0], values[1], others, found)


def _of_bounded_kernel(
    x: Forest, y: Forest, kernel: BoundedTreeKernel, budget: int | None, n_fragments: int
) -> PairExplanation:
    scale, most = _scale(kernel, x, y), kernel.budget if budget is None else min(budget, kernel.budget)
    every = _Shared.of(x, y, kernel.decay, kernel.budget, scale)
    listed = every if most == kernel.budget else _Shared.of(x, y, kernel.decay, most, scale)
    found = listed.strongest(n_fragments)
    return PairExplanation(x[0], y[0], kernel(x, y), *every.node_values(), {}, found)


def _scale(kernel: TreeKernel, x: Forest, y: Forest) -> float:
    """Return the factor by which a kernel is divided by the lengths of two trees, if it is normalised."""
    return math.exp(-float(log_norms(kernel, x)[0] + log_norms(kernel, y)[0]))


class _Shared(NamedTuple):
    """The fragments within a budget that two trees share: their numbers in each, and what they add."""

    x: Forest
    y: Forest
    ours: Occurrences
    theirs: Occurrences
    left: IntArray
    right: IntArray
    values: FloatArray

    @classmethod
    def of(cls, x: Forest, y: Forest, decay: float, budget: int | None, scale: float) -> Self:
        encoder = fragment_encoder(decay, budget)
        ours, theirs = encoder.occurrences(x), encoder.occurrences(y)
        _, left, right = np.intersect1d(ours.key, theirs.key, assume_unique=True, return_indices=True)
        values = scale * ours.value[left] * theirs.value[right]  # the signs cancel
        return cls(x, y, ours, theirs, left, right, values)

    def node_values(self) -> tuple[FloatArray, FloatArray]:
        """Return the shares of the nodes of each tree."""
        ours, theirs = np.zeros(self.ours.value.size), np.zeros(self.theirs.value.size)
        ours[self.left], theirs[self.right] = self.values, self.values
        return (
            node_shares(self.ours, ours, self.x.n_nodes),
            node_shares(self.theirs, theirs, self.y.n_nodes),
        )

    def strongest(self, wanted: int) -> list[SharedFragment]:
        """Return the fragments that add most to the kernel."""
        found = []
        for k in np.argsort(-self.values, kind="stable")[:wanted].tolist():
            nodes = self.ours.nodes_of(self.left[k]), self.theirs.nodes_of(self.right[k])
            found.append(SharedFragment(fragment_at(self.x, nodes[0][0]), float(self.values[k]), *nodes))
        return found
