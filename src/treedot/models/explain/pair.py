"""Explain the subset tree kernel of two trees, fragment by fragment and node by node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treedot.errors import ParameterError
from treedot.kernels import SubsetTreeKernel
from treedot.kernels.tree_kernel import unit
from treedot.models.explain.pair_shares import kernel_shares
from treedot.models.explain.shown import Shown
from treedot.parameters import checked_integer
from treedot.readers import read_tree
from treedot.trees import Forest, Tree
from treedot.vectors.sparse.encoder import SparseEncoder
from treedot.vectors.sparse.occurrences import fragment_at
from treedot.vectors.spec import SparseSpec

BUDGET = 4
LEAVES = "equal leaves"


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
        Their kernel. It is the sum of ``values_a`` and ``others``, and also of ``values_b`` and ``others``.
    values_a, values_b : array
        The Shapley value of every node of one tree, in post-order, with the other tree fixed; 0 for leaves.
    others : dict
        Contributions that belong to no inner node, by name.
    fragments : list of SharedFragment
        The fragments that add most to the kernel, strongest first.
    """

    a: Tree
    b: Tree
    value: float
    values_a: np.ndarray
    values_b: np.ndarray
    others: dict[str, float]
    fragments: list[SharedFragment]

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
    kernel: SubsetTreeKernel | None = None,
    *,
    budget: int | None = BUDGET,
    n_fragments: int = 10,
) -> PairExplanation:
    """Explain the subset tree kernel of two trees.

    A fragment with p productions that occurs c times in one tree and d times in the other adds c·d·λ^(p - 1).
    A node gets an equal share, 1/p, of every occurrence that it is part of. This is its Shapley value, with
    the other tree fixed (and, if the kernel is normalised, the lengths). All fragments count, of which there
    may be exponentially many; only the strongest within a budget are listed.

    Parameters
    ----------
    a, b : bracket text, Tree, nested lists, or a Forest of one tree
        The trees.
    kernel : SubsetTreeKernel, default=None
        The kernel; by default ``SubsetTreeKernel()``.
    budget : int or None, default=4
        The largest cost of a listed fragment; None lists fragments of any cost, for small trees.
    n_fragments : int, default=10
        The number of fragments to list.

    Returns
    -------
    PairExplanation
        The parts of the kernel.

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
    if not isinstance(kernel, SubsetTreeKernel) or kernel.weighting != "count":
        raise ParameterError(f"cannot explain {kernel!r}: use a SubsetTreeKernel with weighting='count'")
    x, y = read_tree(a), read_tree(b)
    n_fragments = checked_integer("n_fragments", n_fragments, 0)
    value, scale = kernel(x, y), _scale(kernel, x, y)
    values = [scale * shares for shares in kernel_shares(x, y, kernel.decay)]
    inner = scale * SubsetTreeKernel(kernel.decay, max_pairs=kernel.max_pairs)(x, y)
    others = {LEAVES: value - inner} if kernel.leaves else {}
    spec = SparseSpec(decay=kernel.decay, budget=budget, damping="linear", normalize=False, dtype="float64")
    found = _shared(x, y, SparseEncoder(spec), scale, n_fragments)
    return PairExplanation(x[0], y[0], value, values[0], values[1], others, found)


def _scale(kernel: SubsetTreeKernel, x: Forest, y: Forest) -> float:
    """Return the factor of the sum of Δ: the unit of the convention, divided by the lengths if normalised."""
    scale = unit(kernel.convention, kernel.decay)
    if kernel.normalize:
        raw = SubsetTreeKernel(**{**kernel.get_params(), "normalize": False})
        scale *= math.exp(-(raw.log(x, x) + raw.log(y, y)) / 2) if raw(x, y) > 0 else 0.0
    return scale


def _shared(x: Forest, y: Forest, encoder: SparseEncoder, scale: float, wanted: int) -> list[SharedFragment]:
    """Return the shared bounded fragments that add most to the kernel."""
    ours, theirs = encoder.occurrences(x), encoder.occurrences(y)
    _, left, right = np.intersect1d(ours.key, theirs.key, assume_unique=True, return_indices=True)
    values = scale * ours.value[left] * theirs.value[right]  # the signs cancel
    found = []
    for k in np.argsort(-values, kind="stable")[:wanted].tolist():
        nodes = ours.nodes_of(left[k]), theirs.nodes_of(right[k])
        found.append(SharedFragment(fragment_at(x, nodes[0][0]), float(values[k]), *nodes))
    return found
