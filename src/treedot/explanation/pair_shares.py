"""How much each node of two trees adds to their subset tree kernel: Shapley values by integrated gradients.

With a multiplier z for every inner node of one tree, ``Δ(m, n) = z_m ∏ (1 + λ Δ(children))``, the kernel is a
polynomial in which a shared fragment of p productions is λ^(p - 1) times the product of its p multipliers. At
z = t·1 the derivative by one of them is (λt)^(p - 1), and its integral over t from 0 to 1 is λ^(p - 1)/p: an
equal share of the fragment. So the shares are integrals of gradients of the kernel with decay λt, which
are polynomials of t: Gauss-Legendre quadrature with half as many points as there are productions is exact.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from treedot.array_types import FloatArray, IntArray
from treedot.errors import LimitError, RangeError
from treedot.jit import njit
from treedot.trees import Forest

EXACT = 24  # inner nodes, up to which as many points are taken as make the integral exact
FIRST_POINTS = 5
TOLERANCE = 1e-7  # of the sum of all shares: by how much they may change with more points, in the end
MAX_PAIRS = 2**24  # of nodes: two tables of 128 MiB

TreeNodes = tuple[IntArray, IntArray, IntArray]  # productions, and where each node's children stand


def kernel_shares(a: Forest, b: Forest, decay: float) -> tuple[FloatArray, FloatArray]:
    """Return the share of every node of a tree, and of every node of another, in their kernel.

    Each sums to the kernel: the shares of one tree's nodes are taken with the other tree fixed.
    """
    if a.n_nodes * b.n_nodes > MAX_PAIRS:
        raise LimitError(
            f"trees of {a.n_nodes} and {b.n_nodes} nodes have more than {MAX_PAIRS} pairs of nodes: "
            "compare smaller trees"
        )
    both = Forest.concat([a, b])
    start, child = both.children
    cut, edges = a.n_nodes, start[a.n_nodes]
    ours = both.production[:cut], start[: cut + 1], child[:edges]
    theirs = both.production[cut:], start[cut:] - edges, child[edges:] - cut
    most = int(min(np.count_nonzero(forest.arity) for forest in (a, b)))  # productions of a shared fragment
    shares = _adaptive(ours, theirs, decay, max(1, math.ceil(most / 2)), most <= EXACT)
    return shares[:cut], shares[cut:]


def _adaptive(ours: TreeNodes, theirs: TreeNodes, decay: float, enough: int, exact: bool) -> FloatArray:
    """Integrate with so many points that it is exact, or with more and more until nothing changes."""
    if exact:
        return _integrated(ours, theirs, decay, enough)
    points = FIRST_POINTS
    shares = _integrated(ours, theirs, decay, points)
    while points < enough:
        points = min(points + max(2, points // 4), enough)
        before, shares = shares, _integrated(ours, theirs, decay, points)
        if np.abs(shares - before).max() <= TOLERANCE * np.abs(shares).sum() / 2:  # the sum of both trees
            break
    return shares


def _integrated(ours: TreeNodes, theirs: TreeNodes, decay: float, points: int) -> FloatArray:
    total = np.zeros(ours[0].size + theirs[0].size)
    with np.errstate(over="ignore", invalid="ignore"):
        for t, weight in zip(*_quadrature(points), strict=True):
            total += weight * _gradients(ours, theirs, decay * t)
    if not np.isfinite(total).all():
        raise RangeError("the kernel of these trees is too large for a float: use a smaller decay")
    return total


@lru_cache(maxsize=64)
def _quadrature(points: int) -> tuple[FloatArray, FloatArray]:
    """Return points between 0 and 1, and their weights."""
    x, weight = np.polynomial.legendre.leggauss(points)
    return (x + 1) / 2, weight / 2


@njit
def _gradients(ours: TreeNodes, theirs: TreeNodes, decay: float) -> FloatArray:
    """Return the derivatives of the kernel by the multipliers of all nodes, at 1, with some decay.

    The fragments of which a pair of nodes is part are ``above`` · Δ: what grows down from it is Δ, and
    ``above`` is the derivative of the kernel by Δ, passed down from the parents' pair.
    """
    production, start, child = ours
    its_production, its_start, its_child = theirs
    n, m = production.size, its_production.size
    delta, above = np.zeros((n, m)), np.ones((n, m))
    for i in range(n):
        for j in range(m):
            if production[i] >= 0 and production[i] == its_production[j]:
                delta[i, j] = 1.0
                for k in range(start[i + 1] - start[i]):
                    delta[i, j] *= 1.0 + decay * delta[child[start[i] + k], its_child[its_start[j] + k]]
    found = np.zeros(n + m)
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            if delta[i, j] == 0.0:
                continue
            through = above[i, j] * delta[i, j]
            found[i] += through
            found[n + j] += through
            for k in range(start[i + 1] - start[i]):
                x, y = child[start[i] + k], its_child[its_start[j] + k]
                above[x, y] += decay * through / (1.0 + decay * delta[x, y])
    return found
