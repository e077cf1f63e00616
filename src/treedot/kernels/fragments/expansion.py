"""Fragments of one size from those one production smaller, level by level, each exactly once.

A fragment has many derivations, but only one that expands its nodes in pre-order: it begins with the
production at its root, and each extension gives children to one open node to the right of the last one
expanded (the rightmost extension of frequent subtree mining, with whole productions instead of single
nodes). So a fragment is a path in a trie of extensions, no fragment is met twice, and a fragment occurs
only where the one before it in its derivation does. Writing out a whole space, mining its heaviest members
and finding known ones in new trees differ only in which extensions they follow.

For example, ``(S (NP (DT a) NN) VP)`` is the production S → NP VP, extended at position 0 (NP) by
NP → DT NN, then at position 0 (DT) by DT → a. Positions count the nodes that may still be expanded, from
left to right, those to the left of the last expansion left out. An occurrence is named by the distinct
subtree that it is rooted at, so that equal subtrees are worked on once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, IntArray
from treedot.trees.distinct import Subtrees


class Expandable(NamedTuple):
    """What can be expanded: the production and arity of every subtree, and its children that are no leaves.

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

    Occurrence ``i`` is one of ``fragment[i]`` in the subtree ``root[i]``; its open positions that can be
    expanded are ``position[start[i]:start[i + 1]]``, where the subtrees ``node[...]`` stand.
    """

    fragment: IntArray
    root: IntArray
    start: IntArray
    position: IntArray
    node: IntArray


class Extensions(NamedTuple):
    """Distinct extensions in order: which smaller fragment is expanded, where, and with which production."""

    parent: IntArray
    position: IntArray
    production: IntArray


def expandable(subtrees: Subtrees, production: IntArray) -> Expandable:
    """Return what can be expanded in some subtrees: those whose ``production`` is not negative."""
    arity = np.diff(subtrees.start)
    inner = production[subtrees.child] >= 0
    before = np.concatenate([[0], np.cumsum(inner)])
    position = np.arange(subtrees.child.size) - np.repeat(subtrees.start[:-1], arity)
    child = subtrees.child[inner].astype(np.int64)
    return Expandable(production, arity, before[subtrees.start], child, position[inner])


def first_level(trees: Expandable) -> Level:
    """Return the level before all productions: one open position at every subtree that is no leaf."""
    root = np.flatnonzero(trees.production >= 0)
    none = np.zeros(root.size, np.int64)
    return Level(none, root, np.arange(root.size + 1), none, root)


def occurrences(level: Level) -> IntArray:
    """Return the occurrence that each open position belongs to."""
    return np.repeat(np.arange(level.root.size), np.diff(level.start))


def extensions(trees: Expandable, level: Level) -> tuple[Extensions, IntArray]:
    """Return all distinct extensions of a level, and which of them each of its open positions takes."""
    where, at = ranks(level.fragment[occurrences(level)], level.position)
    pair, taken = ranks(at, trees.production[level.node])
    return Extensions(where[0][pair[0]], where[1][pair[0]], pair[1]), taken


def extensible(trees: Expandable, level: Level) -> BoolArray:
    """Return whether anything is left to expand once each open position has been expanded."""
    after = np.repeat(level.start[1:], np.diff(level.start)) - np.arange(level.node.size) > 1
    return after | (trees.start[level.node + 1] > trees.start[level.node])


def extend(trees: Expandable, level: Level, taken: IntArray) -> Level:
    """Return the next level: one occurrence for each open position whose extension is not negative.

    An occurrence's open positions are the children of the node just expanded, and what was open to the
    right of it.
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
