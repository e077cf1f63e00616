"""``DuplicateGroup``: the members, the similarity and the score of a group of near-duplicates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot.clones.linkage import Linked, complete_linkage
from treedot.clones.near_duplicates import ENOUGH_BITS, NearDuplicates
from treedot.clones.similarity import Multisets, multiset_similarity, similarities
from treedot.errors import ParameterError

NEAR = 0.8
OTHER_NAMES = 0.5  # agreement of names below which only the shape is shared


@dataclass(frozen=True)
class DuplicateGroup:
    """Trees of which every two are near-duplicates.

    Attributes
    ----------
    members : tuple of int
        The numbers of the trees, ascending.
    similarity : float
        Of all productions that occur in either of two trees, the share that occurs in both, for the two
        members that are least similar: 1 where the trees are equal, or differ in the order of their parts.
    agreement : float or None
        The same of names and literals, averaged over the pairs of one member, the first by content, with each
        other one; None where the trees keep none apart.
    bits : float
        How much the members share: Σ log₂((trees + 100) / trees that have it) over the different productions
        that are in all of them. Productions that are everywhere count for nothing.
    nodes : int
        The size of the largest member.
    band : str
        ``"identical"``; ``"renamed"``, equal but for names and literals; ``"near"``, from a similarity of 0.8
        on; or ``"similar"``.
    """

    members: tuple[int, ...]
    similarity: float
    agreement: float | None
    bits: float
    nodes: int
    band: str

    @property
    def score(self) -> float:
        """How much speaks for looking at the group: bits × similarity × √(copies - 1)."""
        return self.bits * self.similarity * math.sqrt(len(self.members) - 1)

    @property
    def is_shape_only(self) -> bool:
        """Whether little but a common shape is shared, as of constructors that store their arguments."""
        return self.bits < ENOUGH_BITS and self.agreement is not None and self.agreement < OTHER_NAMES


def groups_of(found: NearDuplicates) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates that lie in no other group, those that matter most first."""
    return outermost(found, all_groups(found))


def all_groups(found: NearDuplicates) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates by complete linkage, also those that lie inside of others."""
    linked = complete_linkage(found.near)
    in_groups = {k for kinds, _ in linked for k in kinds}
    linked += [
        Linked([k], 1.0)
        for k, copies in enumerate(found.trees.copies)
        if len(copies) > 1 and k not in in_groups
    ]
    return [group for kinds, similarity in linked for group in _apart(found, kinds, similarity)]


def outermost(found: NearDuplicates, groups: Iterable[DuplicateGroup]) -> list[DuplicateGroup]:
    """Return groups in their order, those that matter most first, without those inside of one before."""

    def order(group: DuplicateGroup) -> tuple[Any, ...]:
        kinds = sorted(found.kind[list(group.members)].tolist())
        return group.is_shape_only, -group.score, kinds, group.members

    ordered = sorted(groups, key=order)
    return [ordered[k] for k in found.places.not_inside_others([group.members for group in ordered])]


def group_of_two(found: NearDuplicates, a: int, b: int, similarity: float) -> DuplicateGroup:
    """Return two near-duplicates as a group."""
    kinds = sorted({int(found.kind[a]), int(found.kind[b])})
    return _group(found, [min(a, b), max(a, b)], kinds, similarity)


def _apart(found: NearDuplicates, kinds: Sequence[int], similarity: float) -> Iterator[DuplicateGroup]:
    """Yield the group of distinct trees, without copies that are part of others, where two are left."""
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
    texts = _blurred(found.trees.columns.get("blurred"), found.in_content_order(members))
    return DuplicateGroup(
        tuple(members),
        similarity,
        _agreement(texts),
        found.trees.information.shared(kinds),
        int(found.trees.nodes[list(members)].max()),
        _band(texts, len(kinds) == 1, similarity),
    )


def _lowest(multisets: Multisets, trees: Sequence[int]) -> float:
    """Return the similarity of the two trees that are least similar."""
    a, b = np.triu_indices(len(trees), 1)
    return float(similarities(multisets, np.take(trees, a), np.take(trees, b)).min(initial=1.0))


def _band(texts: Sequence[Any] | None, are_equal: bool, similarity: float) -> str:
    if not are_equal:
        return "near" if similarity >= NEAR else "similar"
    is_identical = texts is None or all(np.array_equal(texts[0], other) for other in texts[1:])
    return "identical" if is_identical else "renamed"


def _agreement(texts: Sequence[Any] | None) -> float | None:
    """Return how much of the names and literals of each member is that of the first, on average."""
    return None if texts is None else float(np.mean([multiset_similarity(texts[0], x) for x in texts[1:]]))


def _blurred(texts: Sequence[Any] | None, members: Sequence[int]) -> list[IntArray] | None:
    """Return the names and literals of some trees, where all keep them apart."""
    if texts is None:
        return None
    known = [texts[i] for i in members]
    if any(text is None for text in known):
        return None
    for text in known:
        if not (isinstance(text, str) or _is_list(text)):
            raise ParameterError(
                f"the column blurred holds lists of what was blurred in each tree, and {text!r} is none: "
                "rename it, if it means something else"
            )
    return known


def _is_list(value: Any) -> bool:
    try:
        return np.ndim(value) == 1
    except ValueError:  # lists in a list, of several lengths
        return False
