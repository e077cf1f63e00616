"""Fragments of one size from those that are one production smaller, level by level, each exactly once.

A fragment has many derivations, but only one that expands its nodes in pre-order. It begins with the
production at the root, and each extension gives children to one open node to the right of the last expanded
one. (This is the rightmost extension of frequent subtree mining, with whole productions instead of single
nodes.) So a fragment is a path in a trie of extensions, no fragment is made twice, and a fragment occurs only
where its predecessor in the derivation does. Listing a whole space, mining its heaviest members and finding
known fragments in new trees differ only in the extensions that they follow.

For example, ``(S (NP (DT a) NN) VP)`` is the production S → NP VP, extended at position 0 (NP) by NP → DT NN,
then at position 0 (DT) by DT → a. Positions count the nodes that may still be expanded, from left to right;
nodes to the left of the last expansion do not count. An occurrence is identified by the distinct subtree at
its root, so equal subtrees are processed once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, IntArray
from treedot.trees.distinct import Subtrees


class Expandable(NamedTuple):
    """The expandable nodes: the production and arity of every subtree, and its children that are not leaves.

    Subtree ``i`` has the expandable children ``child[start[i]:start[i + 1]]``, at the positions
    ``position[...]`` among all its children.
    """

    production: IntArray
    arity: IntArray
    start: IntArray
    child: IntArray
    position: IntArray


class Level(NamedTuple):
    """The occurrences of all fragments of one size that are to be extended.

    Occurrence ``i`` is an occurrence of ``fragment[i]`` in the subtree ``root[i]``. Its open positions that
    can be expanded are ``position[start[i]:start[i + 1]]``, with the subtrees ``node[...]`` at them.
    """

    fragment: IntArray
    root: IntArray
    start: IntArray
    position: IntArray
    node: IntArray


class Extensions(NamedTuple):
    """Distinct extensions in order: the smaller fragment, the position, and the production."""

    parent: IntArray
    position: IntArray
    production: IntArray


def expandable(subtrees: Subtrees, production: IntArray) -> Expandable:
    """Return the expandable nodes of subtrees: those whose ``production`` is not negative."""
    arity = np.diff(subtrees.start)
    inner = production[subtrees.child] >= 0
    before = np.concatenate([[0], np.cumsum(inner)])
    position = np.arange(subtrees.child.size) - np.repeat(subtrees.start[:-1], arity)
    child = subtrees.child[inner].astype(np.int64)
    return Expandable(production, arity, before[subtrees.start], child, position[inner])


def first_level(trees: Expandable) -> Level:
    """Return the level before all productions: one open position at every subtree that is not a leaf."""
    root = np.flatnonzero(trees.production >= 0)
    none = np.zeros(root.size, np.int64)
    return Level(none, root, np.arange(root.size + 1), none, root)


def occurrences(level: Level) -> IntArray:
    """Return the occurrence that each open position belongs to."""
    return np.repeat(np.arange(level.root.size), np.diff(level.start))


def extensions(trees: Expandable, level: Level) -> tuple[Extensions, IntArray]:
    """Return all distinct extensions of a level, and the one that each of its open positions takes."""
    where, at = ranks(level.fragment[occurrences(level)], level.position)
    pair, taken = ranks(at, trees.production[level.node])
    return Extensions(where[0][pair[0]], where[1][pair[0]], pair[1]), taken


def extensible(trees: Expandable, level: Level) -> BoolArray:
    """Return for each open position whether anything is left to expand after expanding it."""
    after = np.repeat(level.start[1:], np.diff(level.start)) - np.arange(level.node.size) > 1
    return after | (trees.start[level.node + 1] > trees.start[level.node])


def extend(trees: Expandable, level: Level, taken: IntArray) -> Level:
    """Return the next level: one occurrence for each open position whose extension is not negative.

    The open positions of a new occurrence are the children of the node just expanded, and the positions that
    were open to the right of it.
    """
    chosen = np.flatnonzero((taken >= 0) & extensible(trees, level))
    chosen = chosen[np.argsort(taken[chosen], kind="stable")]
    before = occurrences(level)[chosen]
    node = level.node[chosen]
    n_children = trees.start[node + 1] - trees.start[node]
    size = n_children + level.start[before + 1] - chosen - 1
    start = np.concatenate([[0], np.cumsum(size)])
    after = np.repeat(np.arange(chosen.size), size)  # the new occurrence of each of its open positions
    rank = np.arange(start[-1]) - start[after]
    is_child = rank < n_children[after]
    of_child, of_rest = after[is_child], after[~is_child]
    below = trees.start[node[of_child]] + rank[is_child]
    right = chosen[of_rest] + 1 + rank[~is_child] - n_children[of_rest]
    new_node, new_position = np.empty((2, start[-1]), np.int64)
    new_node[is_child], new_position[is_child] = trees.child[below], trees.position[below]
    moved = trees.arity[node] - level.position[chosen] - 1
    new_node[~is_child] = level.node[right]
    new_position[~is_child] = level.position[right] + moved[of_rest]
    return Level(taken[chosen], level.root[before], start, new_position, new_node)


def ranks(a: IntArray, b: IntArray) -> tuple[tuple[IntArray, IntArray], IntArray]:
    """Return the distinct pairs in order, and the rank of each pair among them."""
    width = int(b.max()) + 1 if b.size else 1
    codes, rank = np.unique(a.astype(np.int64) * width + b, return_inverse=True)
    return (codes // width, codes % width), rank
