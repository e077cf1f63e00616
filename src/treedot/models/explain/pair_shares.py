"""The share of each node in the subset tree kernel of two trees: Shapley values by integrated gradients.

With a multiplier z for every inner node of one tree, ``Δ(m, n) = z_m ∏ (1 + λ Δ(children))``, the kernel is a
polynomial in which a shared fragment of p productions is λ^(p - 1) times the product of its p multipliers. At
z = t·1 the derivative by one of them is (λt)^(p - 1), and its integral over t from 0 to 1 is λ^(p - 1)/p: an
equal share of the fragment. So the shares are integrals of gradients of the kernel with decay λt. These are
polynomials of t, so Gauss-Legendre quadrature is exact with half as many points as there are productions.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing, njit_of_steps
from treedot.errors import LimitError, RangeError
from treedot.trees import Forest

EXACT = 24  # with at most this many inner nodes, the quadrature is exact
FIRST_POINTS = 5
TOLERANCE = 1e-7  # stop when more points change the shares by less than this share of their sum
MAX_PAIRS = 2**24  # pairs of nodes: a table of 64 MiB

TreeNodes = tuple[IntArray, IntArray, IntArray]  # productions, starts of children, children


class Matches(NamedTuple):
    """The pairs of nodes with equal productions, children before their parents.

    ``child[start[k]:start[k + 1]]`` are the pairs of children of pair k that match, too.
    """

    ours: IntArray
    theirs: IntArray
    start: IntArray
    child: IntArray


def kernel_shares(a: Forest, b: Forest, decay: float) -> tuple[FloatArray, FloatArray]:
    """Return the shares of the nodes of ``a``, and those of the nodes of ``b``, in the kernel of both.

    Each array sums to the kernel, since the shares of one tree's nodes assume that the other tree is fixed.
    """
    _check_pairs(a, b.n_nodes)
    matches, shares = _shares(a, b, np.ones(1), decay)
    return _summed(matches.ours, shares, a.n_nodes), _summed(matches.theirs, shares, b.n_nodes)


def weighted_shares(a: Forest, others: Forest, weights: FloatArray, decay: float) -> FloatArray:
    """Return the shares of the nodes of ``a`` in the weighted sum of its kernels with several trees.

    All trees are matched at once, as many as fit into a table of pairs of nodes.
    """
    _check_pairs(a, int(others.sizes.max(initial=0)))
    total, first = np.zeros(a.n_nodes), 0
    while first < len(others):
        room = others.offsets[first] + MAX_PAIRS // a.n_nodes
        last = int(np.searchsorted(others.offsets, room, side="right")) - 1
        matches, shares = _shares(a, others[first:last], weights[first:last], decay)
        total += _summed(matches.ours, shares, a.n_nodes)
        first = last
    return total


def _check_pairs(a: Forest, n_nodes: int) -> None:
    if a.n_nodes * n_nodes > MAX_PAIRS:
        raise LimitError(
            f"trees of {a.n_nodes} and {n_nodes} nodes have more than {MAX_PAIRS} pairs of nodes: "
            "explain smaller trees"
        )


def _shares(a: Forest, others: Forest, weights: FloatArray, decay: float) -> tuple[Matches, FloatArray]:
    """Match the nodes of one tree with those of several, and return the weighted share of every pair."""
    both = Forest.concat([a, others])
    start, child = both.children
    cut, edges = a.n_nodes, start[a.n_nodes]
    ours = both.production[:cut], start[: cut + 1], child[:edges]
    theirs = both.production[cut:], start[cut:] - edges, child[edges:] - cut
    matches = Matches._make(_match(ours, theirs))
    inner = np.bincount(others.tree_of_node[others.arity > 0], minlength=1)
    most = int(min(np.count_nonzero(a.arity), inner.max()))  # productions of a shared fragment
    each = weights[others.tree_of_node[matches.theirs]]
    return matches, _adaptive(matches, each, decay, max(1, math.ceil(most / 2)), most <= EXACT)


def _summed(nodes: IntArray, shares: FloatArray, n_nodes: int) -> FloatArray:
    """Return the sum of shares over the pairs of each node."""
    return np.bincount(nodes, shares, n_nodes).astype(np.float64)


def _adaptive(matches: Matches, weights: FloatArray, decay: float, enough: int, exact: bool) -> FloatArray:
    """Return the share of every matched pair.

    ``enough`` points integrate exactly. Without ``exact``, fewer are tried first, then more and more until
    the shares converge.
    """
    if exact:
        return _integrated(matches, weights, decay, enough)
    points = FIRST_POINTS
    shares = _integrated(matches, weights, decay, points)
    while points < enough:
        points = min(points + max(2, points // 4), enough)
        before, shares = shares, _integrated(matches, weights, decay, points)
        if np.abs(shares - before).sum() <= TOLERANCE * np.abs(shares).sum():
            break
    return shares


def _integrated(matches: Matches, weights: FloatArray, decay: float, points: int) -> FloatArray:
    """Return the share of every matched pair, by quadrature with this number of points."""
    total = np.zeros(matches.ours.size)
    with np.errstate(over="ignore", invalid="ignore"):
        for t, weight in zip(*_quadrature(points), strict=True):
            total += weight * _gradient(matches.start, matches.child, weights, decay * t)
    if not np.isfinite(total).all():
        raise RangeError("the kernel of these trees is too large for a float: use a smaller decay")
    return total


@lru_cache(maxsize=64)
def _quadrature(points: int) -> tuple[FloatArray, FloatArray]:
    """Return the points of Gauss-Legendre quadrature between 0 and 1, and their weights."""
    x, weight = np.polynomial.legendre.leggauss(points)
    return (x + 1) / 2, weight / 2


@njit_of_steps(lambda ours, theirs: ours[0].size * theirs[0].size)
def _match(ours: TreeNodes, theirs: TreeNodes) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the columns of ``Matches``."""
    production, start, child = ours
    its_production, its_start, its_child = theirs
    number = np.full((production.size, its_production.size), -1, np.int32)
    pairs, edges = 0, 0
    for i in range(production.size):
        for j in range(its_production.size):
            if production[i] >= 0 and production[i] == its_production[j]:
                number[i, j] = pairs
                pairs, edges = pairs + 1, edges + start[i + 1] - start[i]
    left, right = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
    first, below = np.zeros(pairs + 1, np.int64), np.empty(edges, np.int32)
    pairs, edges = 0, 0
    for i in range(production.size):
        for j in range(its_production.size):
            if number[i, j] < 0:
                continue
            left[pairs], right[pairs] = i, j
            for k in range(start[i + 1] - start[i]):
                found = number[child[start[i] + k], its_child[its_start[j] + k]]
                if found >= 0:
                    below[edges] = found
                    edges += 1
            pairs += 1
            first[pairs] = edges
    return left, right, first, below[:edges]


def _gradient(start: IntArray, child: IntArray, weights: FloatArray, decay: float) -> FloatArray:
    """Return for every pair of nodes the sum of w λ^(p - 1) over the shared fragments that contain it."""
    delta = np.ones(weights.size)
    _differentiate(start, child, decay, delta, weights.copy())
    return delta


@njit_borrowing
def _differentiate(
    start: IntArray, child: IntArray, decay: float, delta: FloatArray, above: FloatArray
) -> None:
    """Replace ``delta``, which is 1, by the sums of ``_gradient``; ``above`` begins as the weights.

    The weight w is that of the pair, which is the same for all pairs of two trees. The sum is ``above`` · Δ,
    where ``above`` is the derivative of the kernel by Δ, passed down from the parents' pair. The product is
    the derivative by a node's multiplier at 1.
    """
    n = start.size - 1
    for pair in range(n):
        for k in range(start[pair], start[pair + 1]):
            delta[pair] *= 1.0 + decay * delta[child[k]]
    for pair in range(n - 1, -1, -1):
        for k in range(start[pair], start[pair + 1]):
            above[child[k]] += decay * above[pair] * delta[pair] / (1.0 + decay * delta[child[k]])
        delta[pair] *= above[pair]  # its parents have been visited: the old value is no longer needed
