"""Join similar pairs into groups in which every two members are similar: complete linkage."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot.clones.similarity import SimilarPairs


class Linked(NamedTuple):
    """A group, and the similarity of its least similar pair."""

    members: list[int]  # ascending
    similarity: float


def complete_linkage(pairs: SimilarPairs) -> list[Linked]:
    """Join the two most similar groups repeatedly, as long as every two members are a similar pair.

    Among equally similar groups, those with the smallest first members are joined first, so the order of the
    pairs does not matter. Trees that are in no pair are in no group.

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
    group, other, near = group[order], other[order], np.concatenate([pairs.similarity] * 2)[order]
    bounds = np.searchsorted(group, np.arange(len(numbers) + 1))
    mirror = np.lexsort((group, other))
    leader, weakest, chain = np.arange(len(numbers)), np.ones(len(numbers)), np.empty(len(numbers), np.int64)
    _join(bounds, other, mirror, near, leader, weakest, chain)
    groups: dict[int, list[int]] = {}
    for number, first in zip(numbers.tolist(), leader.tolist(), strict=True):
        groups.setdefault(first, []).append(number)
    return [Linked(members, float(weakest[k])) for k, members in groups.items() if len(members) > 1]


@njit_borrowing
def _join(
    bounds: IntArray, others: IntArray, mirror: IntArray, near: FloatArray, leader: IntArray,
    weakest: FloatArray, chain: IntArray,
) -> None:  # fmt: skip
    """Set ``leader`` to the first member of each tree's group, and ``weakest`` to each group's similarity.

    A chain leads from a group to its nearest group, and so on, until two groups are nearest to each other;
    these are joined (Murtagh 1983). The result equals that of always joining the nearest two of all groups,
    since joining never brings groups nearer to others. ``near`` holds the similarity of each group to its
    ``others``, which ascend, and 0 for pairs that are no longer joinable; ``mirror`` is the position of the
    same pair in the other direction. The joined group has the smaller number of the two and, to any other
    group, the lower of their two similarities.
    """
    for first in range(leader.size):
        chain[0], length = first, 1
        while leader[first] == first:
            x, nearest, similarity = chain[length - 1], -1, 0.0
            for place in range(bounds[x], bounds[x + 1]):
                if near[place] > similarity:  # the first of equally similar ones
                    nearest, similarity = place, near[place]
            if nearest < 0:
                break
            y = others[nearest]
            if length == 1 or y != chain[length - 2]:
                chain[length] = y
                length += 1
                continue
            if length > 2:
                length -= 2
            else:  # the first group of the chain has the smaller number, and may be joined again
                length = 1
            if y < x:
                x, y = y, x
            leader[y], weakest[x] = x, similarity
            j = bounds[y]
            for i in range(bounds[x], bounds[x + 1]):
                while j < bounds[y + 1] and others[j] < others[i]:
                    j += 1
                if j == bounds[y + 1] or others[j] != others[i]:
                    near[i] = 0.0
                elif near[j] < near[i]:
                    near[i] = near[j]
                near[mirror[i]] = near[i]
            for j in range(bounds[y], bounds[y + 1]):
                near[j] = near[mirror[j]] = 0.0
    for x in range(leader.size):  # leaders have smaller numbers, so theirs are final
        leader[x] = leader[leader[x]]
