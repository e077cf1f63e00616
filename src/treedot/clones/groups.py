"""``DuplicateGroup``: the members, the similarity and the score of a group of near-duplicates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot.clones.linkage import Linked, complete_linkage
from treedot.clones.names import agreement, names_of
from treedot.clones.near_duplicates import NearDuplicates
from treedot.clones.similarity import Multisets, similarities

NEAR = 0.8
OTHER_NAMES = 0.5  # agreement of names below which a group may share only a shape
COMMON_BITS = 50.0  # bits below which what a group shares is common
NEAR_COMMON_BITS = 30.0  # the same for a group with a similarity of at least NEAR
SEVERAL_FILES = 1.25  # times the score of a group in one file


class Partner(NamedTuple):
    """A near-duplicate of a member of a group, which is in no group with it."""

    member: int
    tree: int
    similarity: float


@dataclass(frozen=True)
class DuplicateGroup:
    """A group of trees in which every two are near-duplicates.

    Attributes
    ----------
    members : tuple of int
        The numbers of the trees in ascending order.
    similarity : float
        The share of the productions of either tree that occur in both, for the two least similar members. It
        is 1 if trees are equal, or differ only in the order of their parts.
    mean_similarity : float
        The same, averaged over all pairs of members.
    agreement : float or None
        The similarity of names and literals, averaged over the pairs of the first member by content with all
        others; None if the trees do not store them separately.
    bits : float
        How much the members share: Σ log₂((trees + 100) / trees that have it) over the distinct productions
        that all members have, where trees are those of the languages in which the production occurs.
        Productions that occur everywhere add nothing.
    nodes : int
        The size of the largest member.
    band : str
        ``"identical"``; ``"renamed"``, equal except for names and literals; ``"near"``, with a similarity of
        at least 0.8; or ``"similar"``.
    new : tuple of int, default=()
        Of ``members``, those that are new or changed, as ``treedot dups --changed-since`` and ``--baseline``
        find them.
    files : int, default=1
        The number of files that contain a member.
    is_in_tests : bool, default=False
        Whether all members are in files of tests.
    also : tuple of Partner, default=()
        Near-duplicates of members that are in no group with them.
    """

    members: tuple[int, ...]
    similarity: float
    mean_similarity: float
    agreement: float | None
    bits: float
    nodes: int
    band: str
    new: tuple[int, ...] = ()
    files: int = 1
    is_in_tests: bool = False
    also: tuple[Partner, ...] = ()

    @property
    def score(self) -> float:
        """The importance of the group, compared with the time to read it.

        It is √(bits × nodes) × mean similarity^1.5 / √(copies - 1), and a quarter more if the members are in
        several files: long, rare and nearly equal code comes first, and a large group does not precede ten
        pairs.
        """
        size = math.sqrt(self.bits * self.nodes) * (SEVERAL_FILES if self.files > 1 else 1)
        return size * self.mean_similarity**1.5 / math.sqrt(len(self.members) - 1)

    @property
    def is_shape_only(self) -> bool:
        """Whether members share little but a common shape, like constructors that store their arguments."""
        enough = NEAR_COMMON_BITS if self.similarity >= NEAR else COMMON_BITS
        return self.bits < enough and self.agreement is not None and self.agreement < OTHER_NAMES


def all_groups(found: NearDuplicates) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates by complete linkage, including groups inside others.

    Pairs below the threshold, which are nearest to each other or share names, are not joined.
    """
    linked = complete_linkage(found.near.where(found.near.similarity >= found.threshold))
    in_groups = {k for kinds, _ in linked for k in kinds}
    linked += [
        Linked([k], 1.0)
        for k, copies in enumerate(found.trees.copies)
        if len(copies) > 1 and k not in in_groups
    ]
    return [group for kinds, similarity in linked for group in _apart(found, kinds, similarity)]


def outermost(found: NearDuplicates, groups: Iterable[DuplicateGroup]) -> list[DuplicateGroup]:
    """Return groups, the most important first, without those that repeat an earlier one."""

    def order(group: DuplicateGroup) -> tuple[Any, ...]:
        kinds = sorted(found.kind[list(group.members)].tolist())
        return group.is_in_tests, group.is_shape_only, -group.score, kinds, group.members

    ordered = sorted(groups, key=order)
    return [ordered[k] for k in found.places.not_repeated([group.members for group in ordered])]


def group_of_two(found: NearDuplicates, a: int, b: int, similarity: float) -> DuplicateGroup:
    """Return two near-duplicates as a group."""
    kinds = sorted({int(found.kind[a]), int(found.kind[b])})
    return _group(found, [min(a, b), max(a, b)], kinds, similarity)


def _apart(found: NearDuplicates, kinds: Sequence[int], similarity: float) -> Iterator[DuplicateGroup]:
    """Yield the group of these distinct trees without members inside others, if two are left."""
    copies = found.trees.copies
    members = found.places.apart(found.in_content_order([i for k in kinds for i in copies[k]]))
    if len(members) > 1:
        left = sorted(set(found.kind[members].tolist()))
        if len(left) < len(kinds):
            similarity = _lowest(found.trees.multisets, left)
        yield _group(found, members, left, similarity)


def _group(
    found: NearDuplicates, members: Sequence[int], kinds: Sequence[int], similarity: float
) -> DuplicateGroup:
    texts = names_of(found.trees.columns, found.in_content_order(members))
    return DuplicateGroup(
        tuple(members),
        similarity,
        _mean_similarity(found, members, kinds) if len(members) > 2 else similarity,
        agreement(texts),
        found.trees.information.shared(kinds),
        int(found.trees.nodes[list(members)].max()),
        _band(texts, len(kinds) == 1, similarity),
        files=len(set(found.places.file[list(members)].tolist())),
        is_in_tests=all(found.is_test[i] for i in members),
    )


def _lowest(multisets: Multisets, trees: Sequence[int]) -> float:
    """Return the similarity of the two trees that are least similar."""
    return float(_all_pairs(multisets, trees)[2].min(initial=1.0))


def _mean_similarity(found: NearDuplicates, members: Sequence[int], kinds: Sequence[int]) -> float:
    """Return the mean similarity of all pairs of members, which are copies of these distinct trees."""
    numbers = Counter(found.kind[list(members)].tolist())
    copies = np.array([numbers[kind] for kind in kinds])
    a, b, near = _all_pairs(found.trees.multisets, kinds)
    apart = math.fsum((copies[a] * copies[b] * (1 - near)).tolist())  # in any order, to the last digit
    return 1 - apart / math.comb(len(members), 2)


def _all_pairs(multisets: Multisets, trees: Sequence[int]) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the positions of every two of the trees, and their similarities."""
    a, b = np.triu_indices(len(trees), 1)
    return a, b, similarities(multisets, np.take(trees, a), np.take(trees, b))


def _band(texts: Sequence[Any] | None, are_equal: bool, similarity: float) -> str:
    if not are_equal:
        return "near" if similarity >= NEAR else "similar"
    is_identical = texts is None or all(np.array_equal(texts[0], other) for other in texts[1:])
    return "identical" if is_identical else "renamed"
