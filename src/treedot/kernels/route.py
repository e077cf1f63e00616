"""The route kernel of Aiolli, Da San Martino & Sperduti (2009): the positions of labels in a tree."""

from __future__ import annotations

import math

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot.errors import LimitError
from treedot.kernels.features import FeatureKernel
from treedot.kernels.tree_kernel import MAX_PAIRS
from treedot.parameters import STARTS, checked_choice
from treedot.trees import Forest


class RouteKernel(FeatureKernel):
    """Counts the routes that two trees share.

    A route leads from a node down to itself or to a descendant. It is the sequence of child positions on the
    way (first child, second child, …), with the label of the last node. Two equal routes of k steps count
    λ^k:

    ``K = Σ λ^k c_a(r) c_b(r)``

    where c_a(r) is the number of occurrences of the route r, of k steps, in the tree a.

    Parameters
    ----------
    decay : float, default=0.4
        The decay λ, in [0, 1]; small values let long routes count less.
    start : {"any", "root"}, default="any"
        Where routes start: at any node, or only at the root. From the root, nodes match only nodes at the
        same position in the other tree.
    normalize : bool, default=False
        Divide K(a, b) by √(K(a, a) K(b, b)).
    max_pairs : int, default=2**27
        The largest total number of routes in all trees of a call.

    References
    ----------
    F. Aiolli, G. Da San Martino & A. Sperduti, "Route Kernels for Trees", ICML 2009.

    Examples
    --------
    >>> kernel = RouteKernel(decay=0.5)
    >>> kernel("(S (A a) (B b))", "(S (A a) (B c))")  # S: 1, A: 1 + 1/2, a: 1 + 1/2 + 1/4, B: 1 + 1/2
    5.75
    >>> kernel("(S A B)", "(S B A)")  # the labels S, A and B, in other places
    3.0
    >>> RouteKernel(decay=0.5, start="root")("(S A B)", "(S A C)")
    1.5
    """

    def __init__(
        self,
        decay: float = 0.4,
        *,
        start: str = "any",
        normalize: bool = False,
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        super().__init__(decay, normalize=normalize, max_pairs=max_pairs)
        self.start: str = checked_choice("start", start, STARTS)

    def _features(self, forest: Forest) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the tree, a number that equal routes share, and √λ^k for every route."""
        routes = forest.n_nodes if self.start == "root" else int(forest.depth.sum())
        if routes > self.max_pairs:
            raise LimitError(
                f"the trees have {routes} routes, more than max_pairs={self.max_pairs}: raise max_pairs "
                "(about 70 bytes each), or compare fewer trees at a time"
            )
        node, route, length = _from_root(forest) if self.start == "root" else _from_anywhere(forest)
        return forest.tree_of_node[node], route, np.power(math.sqrt(self.decay), length)


def _from_anywhere(forest: Forest) -> tuple[IntArray, IntArray, IntArray]:
    """Return the end, a number that equal routes share, and the length of every route.

    Routes grow upwards from all nodes, one step at a time.
    """
    above, position = _steps(forest)
    node = at = np.arange(forest.n_nodes)  # the last node of each route, and the first one so far
    route, used, length = _numbered(np.zeros(node.size, np.int64), forest.label), 0, 0
    found = [(node, route, np.zeros(node.size, np.int64))]
    while node.size:
        used += int(route.max()) + 1
        longer = above[at] >= 0
        node, at, route, length = node[longer], at[longer], route[longer], length + 1
        route = _numbered(route, position[at])
        at = above[at]
        found.append((node, used + route, np.full(node.size, length)))
    nodes, routes, lengths = (np.concatenate(part) for part in zip(*found, strict=True))
    return nodes, routes, lengths


def _from_root(forest: Forest) -> tuple[IntArray, IntArray, IntArray]:
    """Return the end, the number and the length of the routes from roots, which grow downwards."""
    above, position = _steps(forest)
    length = forest.depth.astype(np.int64) - 1
    by_length = np.argsort(length, kind="stable")
    path, used = np.zeros(forest.n_nodes, np.int64), 1
    for nodes in np.split(by_length, np.flatnonzero(np.diff(length[by_length])) + 1)[1:]:
        path[nodes] = used + _numbered(path[above[nodes]], position[nodes])
        used = int(path[nodes].max()) + 1
    return np.arange(forest.n_nodes), _numbered(path, forest.label), length


def _steps(forest: Forest) -> tuple[IntArray, IntArray]:
    """Return the parent of every node (-1 for a root), and its position among its siblings."""
    start, child = forest.children
    position = np.zeros(forest.n_nodes, np.int64)
    position[child] = np.arange(child.size) - np.repeat(start[:-1], forest.arity)[: child.size]
    return forest.parent, position


def _numbered(a: IntArray, b: IntArray) -> IntArray:
    """Return a number for each pair, the same for equal pairs, in the order of first appearance.

    So sums over routes do not depend on the numbering of labels.
    """
    key = a * (np.int64(b.max(initial=0)) + 1) + b
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    number = np.empty(first.size, np.int64)
    number[np.argsort(first)] = np.arange(first.size)
    return number[which]
