"""Groups of which every two members are similar: complete linkage over a list of similar pairs."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NamedTuple


class Linked(NamedTuple):
    """A group, and the similarity of its least similar pair."""

    members: list[int]  # ascending
    similarity: float


def complete_linkage(pairs: Iterable[tuple[int, int, float]]) -> list[Linked]:
    """Join the two most similar groups again and again, as long as all their members are similar pairs.

    Of equally similar groups, those that began with the smallest numbers come first, so that the order of the
    pairs does not matter. What is in no pair is in no group.

    Examples
    --------
    >>> complete_linkage([(0, 1, 0.9), (1, 2, 0.8), (0, 2, 0.7), (2, 3, 0.95)])
    [Linked(members=[0, 1], similarity=0.9), Linked(members=[2, 3], similarity=0.95)]
    """
    groups = []
    for component in _components(pairs):
        numbers = sorted({x for a, b, _ in component for x in (a, b)})
        if len(component) == len(numbers) * (len(numbers) - 1) // 2:  # nothing keeps any two apart
            groups.append(Linked(numbers, min(similarity for *_, similarity in component)))
        else:
            groups += _joined(component)
    return sorted(groups)


def _components(pairs: Iterable[tuple[int, int, float]]) -> Iterable[list[tuple[int, int, float]]]:
    """Return the pairs of each set of members that similar pairs connect."""
    leader: dict[int, int] = {}

    def leader_of(x: int) -> int:
        while leader.setdefault(x, x) != x:
            leader[x] = leader[leader[x]]
            x = leader[x]
        return x

    pairs = list(pairs)
    for a, b, _ in pairs:
        leader[leader_of(a)] = leader_of(b)
    components: dict[int, list[tuple[int, int, float]]] = {}
    for pair in pairs:
        components.setdefault(leader_of(pair[0]), []).append(pair)
    return components.values()


def _joined(pairs: Iterable[tuple[int, int, float]]) -> list[Linked]:
    members: dict[int, list[int]] = {}
    weakest: dict[int, float] = {}
    near: dict[int, dict[int, float]] = {}  # of every group those with which all pairs are similar
    queue = []
    for a, b, similarity in pairs:
        for x, y in ((a, b), (b, a)):
            members.setdefault(x, [x])
            weakest.setdefault(x, 1.0)
            near.setdefault(x, {})[y] = similarity
        queue.append((-similarity, min(a, b), max(a, b)))
    heapq.heapify(queue)
    while queue:
        negative, a, b = heapq.heappop(queue)
        if near.get(a, {}).get(b) != -negative:  # one of them has been joined with another since
            continue
        gone = near.pop(b)
        members[a] += members.pop(b)
        weakest[a] = -negative
        kept = {x: min(s, gone[x]) for x, s in near[a].items() if x in gone}
        for x in (near[a].keys() | gone.keys()) - {a, b}:
            near[x].pop(b, None)
            near[x].pop(a, None)
            if x in kept:
                near[x][a] = kept[x]
                heapq.heappush(queue, (-kept[x], min(a, x), max(a, x)))
        near[a] = kept
    return [Linked(sorted(members[x]), weakest[x]) for x in sorted(members) if len(members[x]) > 1]
