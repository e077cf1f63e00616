"""Shares of nodes: what every fragment contributes, divided equally among the nodes that it is made of.

A fragment is there as long as all of its inner nodes are. So a score that adds up contributions of
occurrences of fragments is a game of the inner nodes, v(S) = Σ contributions of the occurrences that lie
within S, and the Shapley value of a node is its equal share of every occurrence that it is part of.
"""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit
from treedot.vectors.sparse.occurrences import Occurrences


def node_shares(found: Occurrences, contribution: FloatArray, n_nodes: int) -> FloatArray:
    """Return the Shapley value of every node, given what each distinct fragment contributes.

    A fragment's contribution is divided equally among its occurrences, and theirs among their nodes.
    """
    each = (contribution / found.counts)[found.fragment] / found.productions
    return _spread(each, found.root, found.base, found.part, found.position, n_nodes)


@njit
def _spread(
    share: FloatArray, root: IntArray, base: IntArray, part: IntArray, position: IntArray, n_nodes: int
) -> FloatArray:
    """Add every occurrence's share to each of its nodes: the last first, each to the two it is made of."""
    values = np.zeros(n_nodes)
    for k in range(share.size - 1, -1, -1):
        if position[k] < 0:
            values[root[k]] += share[k]
        else:
            share[base[k]] += share[k]
            share[part[k]] += share[k]
    return values
