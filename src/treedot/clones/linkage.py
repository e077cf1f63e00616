"""Join similar pairs to groups in which every two members are similar: complete linkage."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit
from treedot.clones.similarity import SimilarPairs


class Linked(NamedTuple):
    """A group, and the similarity of its least similar pair."""

    members: list[int]  # ascending
    similarity: float


def complete_linkage(pairs: SimilarPairs) -> list[Linked]:
    """Join the two most similar groups again and again, as long as all their members are similar pairs.

    Of equally similar groups, those that began with the smallest numbers come first, so that the order of the
    pairs does not matter. What is in no pair is in no group.

    Examples
    --------
    >>> a, b = np.array([0, 1, 0, 2]), np.array([1, 2, 2, 3])
    >>> complete_linkage(SimilarPairs(a, b, np.array([0.9, 0.8, 0.7, 0.95])))
    [Linked(members=[0, 1], similarity=0.9), Linked(members=[2, 3], similarity=0.95)]
    """
    numbers, ends = np.unique(np.concatenate([pairs.a, pairs.b]), return_inverse=True)
    a, b = ends[: len(pairs.a)], ends[len(pairs.a) :]
    group, other = np.concatenate([a, b]), np.concatenate([b, a])
    order = np.lexsort((other, group))
    bounds = np.searchsorted(group[order], np.arange(len(numbers) + 1))
    near = np.concatenate([pairs.similarity] * 2)[order]
    leader, weakest = _joined(bounds, other[order], near)
    groups: dict[int, list[int]] = {}
    for number, first in zip(numbers.tolist(), leader.tolist(), strict=True):
        groups.setdefault(first, []).append(number)
    return [Linked(members, float(weakest[k])) for k, members in groups.items() if len(members) > 1]


@njit
def _joined(bounds: IntArray, others: IntArray, near: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the first member of everyone's group, and the similarity at which each group was joined last.

    A chain leads from a group to the one nearest to it, and on, until two are nearest to each other: these
    are joined (Murtagh 1983). That gives the same groups as joining the nearest of all, since a group that is
    joined gets no nearer to any other. ``near`` holds how similar each group is to those in ``others``, in
    ascending order, and 0 where a pair is missing; it is changed.
    """
    n = len(bounds) - 1
    leader, weakest = np.arange(n), np.ones(n)
    chain = np.empty(n, np.int64)
    for first in range(n):
        chain[0], length = first, int(leader[first] == first)
        while length:
            x = chain[length - 1]
            y = _nearest(x, bounds, others, near)
            if y >= 0 and (length == 1 or y != chain[length - 2]):
                chain[length] = y
                length += 1
                continue
            length = max(length - 2, 0)
            if y >= 0:
                x, y = min(x, y), max(x, y)
                weakest[x] = _join(x, y, bounds, others, near)
                leader[y] = x
                if not length:  # x is the first of the chain, and may be joined again
                    length = 1
    for x in range(n):  # a leader has a smaller number
        leader[x] = leader[leader[x]]
    return leader, weakest


@njit
def _nearest(x: int, bounds: IntArray, others: IntArray, near: FloatArray) -> int:
    """Return the group that is most similar to x, of several the first; -1 where none is."""
    best, similarity = -1, 0.0
    for place in range(bounds[x], bounds[x + 1]):
        if near[place] > similarity:
            best, similarity = others[place], near[place]
    return best


@njit
def _join(a: int, b: int, bounds: IntArray, others: IntArray, near: FloatArray) -> float:
    """Let a stand for both: as near to others as the less near of the two. Return how near they were."""
    joined_at = near[_place(a, b, bounds, others)]
    i, j = bounds[a], bounds[b]
    while i < bounds[a + 1] or j < bounds[b + 1]:
        x = others[i] if i < bounds[a + 1] else len(bounds)
        y = others[j] if j < bounds[b + 1] else len(bounds)
        other = min(x, y)
        similarity = min(near[i], near[j]) if x == y else 0.0
        if x == other:
            near[i] = similarity
            near[_place(other, a, bounds, others)] = similarity
            i += 1
        if y == other:
            near[j] = 0.0
            near[_place(other, b, bounds, others)] = 0.0
            j += 1
    return joined_at


@njit
def _place(x: int, y: int, bounds: IntArray, others: IntArray) -> int:
    """Return where the similarity of x to y stands."""
    return bounds[x] + np.searchsorted(others[bounds[x] : bounds[x + 1]], y)
