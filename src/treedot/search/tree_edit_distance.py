"""The edit distance of two trees, and which nodes correspond: Zhang & Shasha's algorithm (1989).

Nodes are numbered in post-order, so the nodes of a subtree are contiguous; without its last nodes, a
contiguous forest remains. Dynamic programming computes the distance of two such forests from smaller ones: by
deleting the last node of the first, inserting the last node of the second, or matching their last subtrees.
Only subtrees of *key roots*, the root and nodes with a sibling before them, need a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import njit_borrowing, njit_inside, njit_of_steps
from treedot.errors import LimitError
from treedot.readers import read_tree
from treedot.trees import Forest

MAX_NODES = 1000  # per tree; two tables then take four megabytes each
MAX_CELLS = 3 * 10**8  # in all tables; about a second, which long chains of last children could exceed


class _Nodes(NamedTuple):
    """The nodes of one tree in post-order."""

    label: IntArray
    first: IntArray  # the first leaf of every node's subtree
    key_roots: IntArray


def edit_distance(a: Any, b: Any) -> int:
    """Return the smallest number of node insertions, deletions and relabellings that turn ``a`` into ``b``.

    The children of a deleted node take its place among its siblings; insertion is the inverse.

    Parameters
    ----------
    a, b : bracket text, Tree, nested lists, or a Forest of one tree
        The trees, of at most 1,000 nodes each.

    Returns
    -------
    int
        The number of edits.

    Raises
    ------
    LimitError
        If a tree has more than 1,000 nodes, or the comparison would take more than about a second.

    Examples
    --------
    >>> edit_distance("(f (a x) (b y))", "(f (g (a x) (b z)))")
    2
    """
    x, y = _both(a, b)
    return int(_distances(x, y)[-1, -1])


def align(a: Any, b: Any) -> IntArray:
    """Return which nodes of two trees correspond when the fewest edits turn one into the other.

    All other nodes are deleted or inserted. Corresponding nodes may differ in their labels. Ancestors
    correspond to ancestors, and the order from left to right is preserved.

    Parameters
    ----------
    a, b : bracket text, Tree, nested lists, or a Forest of one tree
        As ``edit_distance`` takes them.

    Returns
    -------
    array of shape (pairs, 2)
        The numbers of the nodes in post-order, ascending in both columns.

    Examples
    --------
    >>> align("(f (a x) (b y))", "(f (g (a x) (b z)))").tolist()
    [[0, 0], [1, 1], [2, 2], [3, 3], [4, 5]]
    """
    x, y = _both(a, b)
    partner = np.full(x.label.size, -1, np.int64)
    waiting = np.empty((x.label.size, 2), np.int64)
    _find_partners(x, y, _distances(x, y), _table(x, y), waiting, partner)
    matched = np.flatnonzero(partner >= 0)
    return np.column_stack((matched, partner[matched]))


def _both(a: Any, b: Any) -> tuple[_Nodes, _Nodes]:
    forest = Forest.concat([read_tree(a), read_tree(b)])
    largest = int(forest.sizes.max())
    if largest > MAX_NODES:
        raise LimitError(
            f"a tree of {largest:,} nodes is too large for the edit distance (at most {MAX_NODES:,}): "
            "compare parts of it, or use similarity"
        )
    x, y = (_nodes(forest, i) for i in (0, 1))
    cells = _cells(x) * _cells(y)
    if cells > MAX_CELLS:
        raise LimitError(
            f"the edit distance of these trees takes {cells:,} steps (at most {MAX_CELLS:,}), because of "
            "long chains of last children: compare parts of them, or use similarity"
        )
    return x, y


def _nodes(forest: Forest, i: int) -> _Nodes:
    start, end = forest.offsets[i : i + 2]
    first = np.arange(end - start) - forest.subtree_size[start:end] + 1
    _, last = np.unique(
        first[::-1], return_index=True
    )  # for every leaf, the highest node whose subtree starts with it
    return _Nodes(forest.label[start:end].astype(np.int64), first, np.sort(end - start - 1 - last))


def _cells(tree: _Nodes) -> int:
    """Return the rows of all tables that this tree needs.

    The work for two trees is the product of their numbers, the cells of all tables.
    """
    return int((tree.key_roots - tree.first[tree.key_roots] + 1).sum())


def _table(x: _Nodes, y: _Nodes) -> IntArray:
    return np.zeros((x.label.size + 1, y.label.size + 1), np.int32)


def _distances(x: _Nodes, y: _Nodes) -> IntArray:
    """Return the edit distances of all subtrees of x to all subtrees of y."""
    trees = np.zeros((x.label.size, y.label.size), np.int32)
    _fill_all(x, y, trees, _table(x, y))
    return trees


@njit_of_steps(lambda x, y, *_: 16 * x.label.size * y.label.size, borrowing=True)
def _fill_all(x: _Nodes, y: _Nodes, trees: IntArray, forests: IntArray) -> None:
    """Compute the distances of all subtrees from the tables of key roots."""
    for i in range(x.key_roots.size):
        for j in range(y.key_roots.size):
            _fill(x, y, x.key_roots[i], y.key_roots[j], trees, forests)


@njit_inside
def _fill(x: _Nodes, y: _Nodes, i: int, j: int, trees: IntArray, forests: IntArray) -> None:
    """Fill the table of subtrees i and j: cell (r, c) is the distance of their first r and c nodes."""
    top, left = x.first[i], y.first[j]
    for c in range(j - left + 2):
        forests[0, c] = c
    for r in range(1, i - top + 2):
        node = top + r - 1
        forests[r, 0] = r
        before = x.first[node] - top  # the number of nodes before its subtree
        for c in range(1, j - left + 2):
            other = left + c - 1
            best = min(forests[r - 1, c], forests[r, c - 1]) + 1
            if before == 0 and y.first[other] == left:  # both forests are trees
                best = min(best, forests[r - 1, c - 1] + (x.label[node] != y.label[other]))
                trees[node, other] = best
            else:
                best = min(best, forests[before, y.first[other] - left] + trees[node, other])
            forests[r, c] = best


@njit_borrowing
def _find_partners(
    x: _Nodes, y: _Nodes, trees: IntArray, forests: IntArray, waiting: IntArray, partner: IntArray
) -> None:
    """Trace the best choices back from the last nodes to the first."""
    waiting[0, 0], waiting[0, 1], count = x.label.size - 1, y.label.size - 1, 1  # subtrees that correspond
    while count > 0:
        count -= 1
        i, j = waiting[count, 0], waiting[count, 1]
        _fill(x, y, i, j, trees, forests)
        top, left = x.first[i], y.first[j]
        r, c = i - top + 1, j - left + 1
        while r > 0 and c > 0:
            node, other = top + r - 1, left + c - 1
            before, before_other = x.first[node] - top, y.first[other] - left
            if forests[r, c] == forests[r - 1, c] + 1:
                r -= 1
            elif forests[r, c] == forests[r, c - 1] + 1:
                c -= 1
            elif before == 0 and before_other == 0:
                partner[node] = other
                r, c = r - 1, c - 1
            else:
                waiting[count, 0], waiting[count, 1] = node, other
                count += 1
                r, c = before, before_other
