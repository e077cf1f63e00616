"""Divide the contributions of fragments equally among their inner nodes: Shapley values.

A fragment occurs if all of its inner nodes are present. So a score that sums the contributions of fragment
occurrences is a game of the inner nodes: v(S) is the sum over the occurrences within S. The Shapley value of
a node is its equal share of every occurrence that it is part of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot.vectors.sparse.occurrences import Occurrences

T = TypeVar("T")
Candidates = tuple[FloatArray, Callable[[int], T]]  # the values of fragments, and a function to their shares


def node_shares(found: Occurrences, contribution: FloatArray, n_nodes: int) -> FloatArray:
    """Return the Shapley value of every node, given the contribution of each distinct fragment.

    A contribution is divided equally among the fragment's occurrences, then among the nodes of each.
    """
    each = (contribution / found.counts)[found.fragment] / found.productions
    values = np.zeros(n_nodes)
    _spread(each, found.root, found.base, found.part, found.position, values)
    return values


def strongest(candidates: Iterable[Candidates[T]], sign: int, wanted: int) -> list[T]:
    """Return the shares of the fragments that raise a score most or, if ``sign`` is -1, lower it most."""
    found = [
        (values[k], make(k))
        for values, make in candidates
        for k in np.argsort(-values, kind="stable")[::sign][:wanted].tolist()
        if sign * values[k] > 0
    ]
    return [share for _, share in sorted(found, key=lambda pair: -sign * pair[0])[:wanted]]


@njit_borrowing
def _spread(
    share: FloatArray, root: IntArray, base: IntArray, part: IntArray, position: IntArray, values: FloatArray
) -> None:
    """Add every occurrence's share to its nodes, by passing it down to the two parts of the occurrence."""
    for k in range(share.size - 1, -1, -1):
        if position[k] < 0:
            values[root[k]] += share[k]
        else:
            share[base[k]] += share[k]
            share[part[k]] += share[k]
