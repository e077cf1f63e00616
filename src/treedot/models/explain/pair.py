"""What two trees share: their subset tree kernel, fragment by fragment and node by node."""

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
    """A fragment of two trees.

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
        """Return the fields, and of the nodes only the numbers of occurrences."""
        occurrences = f"nodes_a=<{len(self.nodes_a)} occurrences>, nodes_b=<{len(self.nodes_b)} occurrences>"
        return f"SharedFragment(fragment={self.fragment!r}, value={self.value!r}, {occurrences})"


@dataclass(frozen=True, eq=False, repr=False)
class PairExplanation(Shown):
    """The kernel of two trees taken apart; what ``explain_pair`` returns.

    Attributes
    ----------
    a, b : Tree
        The trees.
    value : float
        Their kernel: the sum of ``values_a`` and ``others``, and that of ``values_b`` and ``others``.
    values_a, values_b : array
        The Shapley value of every node of each tree, in post-order, the other tree being fixed; 0 for leaves.
    others : dict
        What belongs to no inner node, by name.
    fragments : list of SharedFragment
        The fragments that add the most, the first the most.
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
        """What all fragments that are not listed add to the kernel together."""
        return self.value - sum(self.others.values()) - sum(shared.value for shared in self.fragments)

    def __repr__(self) -> str:
        """Return one line; ``str`` has all of it."""
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
    """Take the subset tree kernel of two trees apart.

    A fragment with p productions that occurs c times in one tree and d times in the other adds c·d·λ^(p - 1).
    A node's share is its equal part, 1/p, of every occurrence that it is part of: its Shapley value, with the
    other tree fixed (and, where the kernel is normalised, the lengths). The shares are those of all
    fragments, of which there may be exponentially many; the list has the strongest within a budget.

    Parameters
    ----------
    a, b : bracket text, Tree, nested lists, or a Forest of one tree
        The trees.
    kernel : SubsetTreeKernel, default=None
        By default ``SubsetTreeKernel()``.
    budget : int or None, default=4
        The largest cost of a fragment that may be listed; None is for all, in small trees.
    n_fragments : int, default=10
        How many fragments are listed.

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
        raise ParameterError(
            f"a pair is explained for SubsetTreeKernel(weighting='count'), not for {kernel!r}"
        )
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
    """Return by how much the sum of Δ is multiplied: by the convention's unit, and divided by the lengths."""
    scale = unit(kernel.convention, kernel.decay)
    if kernel.normalize:
        raw = SubsetTreeKernel(**{**kernel.get_params(), "normalize": False})
        scale *= math.exp(-(raw.log(x, x) + raw.log(y, y)) / 2) if raw(x, y) > 0 else 0.0
    return scale


def _shared(x: Forest, y: Forest, encoder: SparseEncoder, scale: float, wanted: int) -> list[SharedFragment]:
    """Return the bounded fragments of both trees that add the most to the kernel."""
    ours, theirs = encoder.occurrences(x), encoder.occurrences(y)
    _, left, right = np.intersect1d(ours.key, theirs.key, assume_unique=True, return_indices=True)
    values = scale * ours.value[left] * theirs.value[right]  # the same sign twice
    found = []
    for k in np.argsort(-values, kind="stable")[:wanted].tolist():
        nodes = ours.nodes_of(left[k]), theirs.nodes_of(right[k])
        found.append(SharedFragment(fragment_at(x, nodes[0][0]), float(values[k]), *nodes))
    return found
