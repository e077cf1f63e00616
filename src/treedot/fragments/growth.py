"""Growing tree fragments, all of one size at a time.

Every fragment has one derivation that expands its nodes in pre-order: it begins with the production
at its root, and each further step gives children to one open position to the right of the last one.
So a fragment is a path in a trie of steps, no fragment is met twice, and a fragment occurs only
where the one before it in its derivation does. Writing out a whole space, mining its heaviest
members and finding known ones in new trees are this growth with different choices of what to keep.

Positions are numbered from left to right among those still open, and an occurrence is named by the
distinct subtree that it is rooted at, so that equal subtrees are worked on once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot.trees.distinct import Items
from treedot.types import BoolArray, IntArray


class Soil(NamedTuple):
    """What fragments grow in: of every subtree its production, arity and its children that can be expanded.

    Subtree ``i`` has the children ``child[start[i]:start[i + 1]]`` at the positions ``place[...]``.
    """

    production: IntArray
    arity: IntArray
    start: IntArray
    child: IntArray
    place: IntArray


class Level(NamedTuple):
    """The occurrences of all fragments of one size that are to be grown further.

    Occurrence ``i`` is one of ``fragment[i]`` in the subtree ``root[i]``; its open positions that can be
    expanded are ``place[start[i]:start[i + 1]]``, where the subtrees ``node[...]`` stand.
    """

    fragment: IntArray
    root: IntArray
    start: IntArray
    place: IntArray
    node: IntArray


class Steps(NamedTuple):
    """How fragments came out of smaller ones: by expanding a position with a production; sorted."""

    parent: IntArray
    place: IntArray
    production: IntArray


def soil(items: Items, production: IntArray) -> Soil:
    """Return the soil of some subtrees; where ``production`` is negative nothing grows."""
    arity = np.diff(items.start)
    fertile = production[items.child] >= 0
    before = np.concatenate([[0], np.cumsum(fertile)])
    place = np.arange(items.child.size) - np.repeat(items.start[:-1], arity)
    return Soil(production, arity, before[items.start], items.child[fertile].astype(np.int64), place[fertile])


def seeds(ground: Soil) -> Level:
    """Return the level before all productions: one open position at every subtree that is no leaf."""
    root = np.flatnonzero(ground.production >= 0)
    none = np.zeros(root.size, np.int64)
    return Level(none, root, np.arange(root.size + 1), none, root)


def occurrences(level: Level) -> IntArray:
    """Return the occurrence that each open position belongs to."""
    return np.repeat(np.arange(level.root.size), np.diff(level.start))


def steps(ground: Soil, level: Level) -> tuple[Steps, IntArray]:
    """Return all distinct steps from a level, and for each of its open positions the step taken there."""
    where, at = _ranks(level.fragment[occurrences(level)], level.place)
    pair, step = _ranks(at, ground.production[level.node])
    return Steps(where[0][pair[0]], where[1][pair[0]], pair[1]), step


def known_steps(ground: Soil, level: Level, known: Steps) -> IntArray:
    """Return for each open position the number of the known step taken there, or -1."""
    where, at = _ranks(known.parent, known.place)
    pair, _ = _ranks(at, known.production)  # known steps are sorted and distinct: ranks are their numbers
    return _find(
        pair, _find(where, level.fragment[occurrences(level)], level.place), ground.production[level.node]
    )


def leads_on(ground: Soil, level: Level) -> BoolArray:
    """Return whether anything is left to expand after the step at each open position."""
    after = np.repeat(level.start[1:], np.diff(level.start)) - np.arange(level.node.size) > 1
    return after | (ground.start[level.node + 1] > ground.start[level.node])


def grow(ground: Soil, level: Level, step: IntArray) -> Level:
    """Return the next level: one occurrence for each open position whose step is not negative."""
    chosen = np.flatnonzero((step >= 0) & leads_on(ground, level))
    chosen = chosen[np.argsort(step[chosen], kind="stable")]
    occurrence = occurrences(level)[chosen]
    node = level.node[chosen]
    fresh = ground.start[node + 1] - ground.start[node]
    size = fresh + level.start[occurrence + 1] - chosen - 1
    start = np.concatenate([[0], np.cumsum(size)])
    mother = np.repeat(np.arange(chosen.size), size)
    rank = np.arange(start[-1]) - start[mother]
    is_fresh = rank < fresh[mother]
    of_fresh, of_rest = mother[is_fresh], mother[~is_fresh]
    below = ground.start[node[of_fresh]] + rank[is_fresh]
    right = chosen[of_rest] + 1 + rank[~is_fresh] - fresh[of_rest]
    new_node, new_place = np.empty((2, start[-1]), np.int64)
    new_node[is_fresh], new_place[is_fresh] = ground.child[below], ground.place[below]
    moved = ground.arity[node] - level.place[chosen] - 1
    new_node[~is_fresh], new_place[~is_fresh] = level.node[right], level.place[right] + moved[of_rest]
    return Level(step[chosen], level.root[occurrence], start, new_place, new_node)


def _ranks(a: IntArray, b: IntArray) -> tuple[tuple[IntArray, IntArray], IntArray]:
    """Return the distinct pairs in order, and the rank of each pair among them."""
    width = int(b.max()) + 1 if b.size else 1
    codes, rank = np.unique(a.astype(np.int64) * width + b, return_inverse=True)
    return (codes // width, codes % width), rank


def _find(pairs: tuple[IntArray, IntArray], a: IntArray, b: IntArray) -> IntArray:
    """Return the rank of each pair among sorted ones, or -1."""
    width = max(int(part.max()) + 1 if part.size else 1 for part in (pairs[1], b))
    codes = np.append(pairs[0] * width + pairs[1], -1)
    wanted = np.where((a >= 0) & (b >= 0), a * width + b, -1)
    rank = np.searchsorted(codes[:-1], wanted)
    return np.where((codes[rank] == wanted) & (wanted >= 0), rank, -1)
