"""``groups_of``: the list of groups, which shows every pair of near-duplicates.

Complete linkage puts each tree into one group. A tree may be like the members of several groups, or like
one member of a group and not like the others. So if a tree and its nearest one are in different groups, the
list also has a group of these two, and groups name the other near-duplicates of their members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from treedot.clones.groups import DuplicateGroup, Partner, all_groups, group_of_two, outermost
from treedot.clones.near_duplicates import NearDuplicates

Pair = tuple[int, int, float]  # two trees, and their similarity


def groups_of(found: NearDuplicates) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates that do not repeat others, the most important first."""
    pairs = list(_pairs(found))
    linked = all_groups(found)
    nearest = _nearest(found, _apart(found, pairs, linked))
    groups = outermost(found, [*linked, *_groups(found, nearest)])
    listed = set(found.kind[[i for group in groups for i in group.members]].tolist())
    unseen = _not_repeated(found, _apart(found, pairs, groups), groups)
    alone = [pair for pair in unseen if listed.isdisjoint(found.kind[list(pair[:2])].tolist())]
    groups = outermost(found, [*groups, *_groups(found, alone)])
    return _with_partners(found, groups, _not_repeated(found, _apart(found, pairs, groups), groups))


def in_sections(groups: Sequence[DuplicateGroup], tests: str) -> list[DuplicateGroup]:
    """Return groups with those in tests ``"first"`` or ``"last"``, or without them (``"skip"``)."""
    if tests == "skip":
        return [group for group in groups if not group.is_in_tests]
    return sorted(groups, key=lambda group: group.is_in_tests == (tests == "last"))


def _pairs(found: NearDuplicates) -> Iterator[Pair]:
    """Yield each pair of distinct trees that are near-duplicates, by two copies that do not overlap."""
    overlap, places = found.places.overlap, found.places.key
    copies = [
        found.in_content_order(sorted(some, key=places)) if len(some) > 1 else some
        for some in found.trees.copies
    ]
    for a, b, similarity in zip(*(column.tolist() for column in found.near[:3]), strict=True):
        yield next((i, j, similarity) for i in copies[a] for j in copies[b] if not overlap(i, j))


def _apart(found: NearDuplicates, pairs: Iterable[Pair], groups: Sequence[DuplicateGroup]) -> list[Pair]:
    """Return the pairs whose distinct trees are in no group together."""
    numbers: dict[int, set[int]] = {}
    for number, group in enumerate(groups):
        for kind in found.kind[list(group.members)].tolist():
            numbers.setdefault(kind, set()).add(number)
    none = set[int]()
    return [
        (i, j, similarity)
        for i, j, similarity in pairs
        if numbers.get(found.kind[i], none).isdisjoint(numbers.get(found.kind[j], none))
    ]


def _nearest(found: NearDuplicates, apart: Iterable[Pair]) -> Iterator[Pair]:
    """Yield the pairs in which one tree has no nearer tree than the other."""
    best = [1.0 if len(copies) > 1 else 0.0 for copies in found.trees.copies]
    for a, b, similarity in zip(*(column.tolist() for column in found.near[:3]), strict=True):
        best[a], best[b] = max(best[a], similarity), max(best[b], similarity)
    for i, j, similarity in apart:
        if similarity >= min(best[found.kind[i]], best[found.kind[j]]):
            yield i, j, similarity


def _groups(found: NearDuplicates, pairs: Iterable[Pair]) -> list[DuplicateGroup]:
    return [group_of_two(found, *pair) for pair in pairs]


def _not_repeated(
    found: NearDuplicates, pairs: Sequence[Pair], groups: Sequence[DuplicateGroup]
) -> list[Pair]:
    """Return the pairs of trees that do not repeat a group, or a pair before them."""
    members = [*(group.members for group in groups), *(pair[:2] for pair in pairs)]
    numbers = found.places.not_repeated(members)
    return [pairs[number - len(groups)] for number in numbers if number >= len(groups)]


def _with_partners(
    found: NearDuplicates, groups: Sequence[DuplicateGroup], unseen: Iterable[Pair]
) -> list[DuplicateGroup]:
    """Return groups with the pairs that no group shows; each is named in the first group of one tree."""
    first: dict[int, int] = {}
    for number, group in enumerate(groups):
        for kind in found.kind[list(group.members)].tolist():
            first.setdefault(kind, number)
    partners: dict[int, list[Partner]] = {}
    for i, j, similarity in unseen:
        numbers = [first.get(int(found.kind[tree]), len(groups)) for tree in (i, j)]
        member, other = (i, j) if numbers[0] <= numbers[1] else (j, i)
        partners.setdefault(min(numbers), []).append(Partner(member, other, similarity))
    return [
        replace(group, also=tuple(_in_order(found, group, partners[number]))) if number in partners else group
        for number, group in enumerate(groups)
    ]


def _in_order(found: NearDuplicates, group: DuplicateGroup, partners: Iterable[Partner]) -> Iterator[Partner]:
    """Yield the partners of members by descending similarity, each with the first copy that is a member."""
    kinds = dict(zip(found.kind[list(group.members)].tolist()[::-1], group.members[::-1], strict=True))
    for member, tree, similarity in sorted(
        partners, key=lambda p: (-p.similarity, found.kind[p.member], found.kind[p.tree])
    ):
        yield Partner(kinds[int(found.kind[member])], tree, similarity)
