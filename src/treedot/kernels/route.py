"""The route kernel of Aiolli, Da San Martino & Sperduti (2009): where labels stand in a tree."""

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

    A route leads from a node down to itself or to one below it: it is the sequence of positions that are
    taken (first child, second child, …), with the label of the node where it ends. Two equal routes of k
    steps count λ^k, so that

    ``K = Σ λ^k c_a(r) c_b(r)``

    where c counts how often a tree has the route r, of k steps.

    Parameters
    ----------
    decay : float, default=0.4
        The decay λ, in [0, 1]: small values let long routes count less.
    start : {"any", "root"}, default="any"
        Where routes start: at any node, or at the root alone, so that nodes are compared with those that
        stand in the same place of the other tree.
    normalize : bool, default=False
        Divide by √(K(a, a) K(b, b)).
    max_pairs : int, default=2**27
        The largest number of routes that all trees of a call may have together.

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
        """Return for every route its tree, a number that equal routes share, and √λ^k."""
        routes = forest.n_nodes if self.start == "root" else int(forest.depth.sum())
        if routes > self.max_pairs:
            raise LimitError(
                f"the trees have {routes} routes, more than max_pairs={self.max_pairs}: raise max_pairs "
                "(about 70 bytes each), or compare fewer trees at a time"
            )
        node, route, length = _from_root(forest) if self.start == "root" else _from_anywhere(forest)
        return forest.tree_of_node[node], route, np.power(math.sqrt(self.decay), length)


def _from_anywhere(forest: Forest) -> tuple[IntArray, IntArray, IntArray]:
    """Return where routes end, a number that equal ones share, and their lengths.

    Routes grow upwards from all nodes, by one step at a time.
    """
    above, position = _steps(forest)
    node = at = np.arange(forest.n_nodes)  # where routes end, and where they have come to
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
    """Return the same for the routes from roots, which grow downwards."""
    above, position = _steps(forest)
    length = forest.depth.astype(np.int64) - 1
    by_length = np.argsort(length, kind="stable")
    path, used = np.zeros(forest.n_nodes, np.int64), 1
    for nodes in np.split(by_length, np.flatnonzero(np.diff(length[by_length])) + 1)[1:]:
        path[nodes] = used + _numbered(path[above[nodes]], position[nodes])
        used = int(path[nodes].max()) + 1
    return np.arange(forest.n_nodes), _numbered(path, forest.label), length


def _steps(forest: Forest) -> tuple[IntArray, IntArray]:
    """Return the parent of every node, -1 of a root, and its position among its siblings."""
    start, child = forest.children
    position = np.zeros(forest.n_nodes, np.int64)
    position[child] = np.arange(child.size) - np.repeat(start[:-1], forest.arity)[: child.size]
    return forest.parent, position


def _numbered(a: IntArray, b: IntArray) -> IntArray:
    """Return a number for each pair of numbers, the same for equal ones, in the order of appearance.

    So sums over routes do not depend on how labels are numbered.
    """
    key = a * (np.int64(b.max(initial=0)) + 1) + b
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    number = np.empty(first.size, np.int64)
    number[np.argsort(first)] = np.arange(first.size)
    return number[which]
