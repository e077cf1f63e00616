"""Shares of nodes: what every fragment contributes, divided equally among the nodes that it is made of.

A fragment is there as long as all of its inner nodes are. So a score that adds up contributions of
occurrences of fragments is a game of the inner nodes, v(S) = Σ contributions of the occurrences that lie
within S, and the Shapley value of a node is its equal share of every occurrence that it is part of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot.vectors.sparse.occurrences import Occurrences

T = TypeVar("T")
Candidates = tuple[FloatArray, Callable[[int], T]]  # values of fragments, and a share by a fragment's number


def node_shares(found: Occurrences, contribution: FloatArray, n_nodes: int) -> FloatArray:
    """Return the Shapley value of every node, given what each distinct fragment contributes.

    A fragment's contribution is divided equally among its occurrences, and theirs among their nodes.
    """
    each = (contribution / found.counts)[found.fragment] / found.productions
    values = np.zeros(n_nodes)
    _spread(each, found.root, found.base, found.part, found.position, values)
    return values


def strongest(candidates: Iterable[Candidates[T]], sign: int, wanted: int) -> list[T]:
    """Return the shares of the fragments that raise a score the most, or lower it with the sign -1."""
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
    """Add every occurrence's share to each of its nodes: the last first, each to the two it is made of."""
    for k in range(share.size - 1, -1, -1):
        if position[k] < 0:
            values[root[k]] += share[k]
        else:
            share[base[k]] += share[k]
            share[part[k]] += share[k]
