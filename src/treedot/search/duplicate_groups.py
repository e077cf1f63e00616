"""Near-duplicates from similar pairs: which are near enough, the groups that they make, and their order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treedot.array_types import FloatArray, IntArray
from treedot.errors import ParameterError
from treedot.jit import njit
from treedot.search.linkage import Linked, complete_linkage
from treedot.search.places import Places
from treedot.search.similarity import Multisets, SimilarPairs, multiset_similarity, similarities

MARGIN = 0.1  # above the threshold: there the similarity alone is enough
ENOUGH_BITS = 50.0  # that trees share by which a similarity below that is no chance
NEAR = 0.8
OTHER_NAMES = 0.5  # agreement of names below which the shape alone is shared
BACKGROUND = 100  # trees without a production that are taken as seen: a few trees do not tell what is common
FINENESS = 2**20  # of a bit: whole numbers have the same sum in any order


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
        The same of names and literals, averaged over each member beside the first; None where the trees
        keep none apart.
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


class Compared(NamedTuple):
    """Trees that were compared, equal ones as one: what decides how they are grouped."""

    nodes: IntArray  # of every tree
    columns: Mapping[str, Sequence[Any]]  # of the trees: where they stand, names and literals
    copies: list[list[int]]  # of every distinct tree, the numbers of its like, ascending
    multisets: Multisets  # of the distinct trees
    information: Information


def groups_of(trees: Compared, pairs: SimilarPairs, threshold: float) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates, given all similar pairs of the distinct trees."""
    places = Places(trees.columns, len(trees.nodes))
    texts = trees.columns.get("blurred")
    groups = [
        DuplicateGroup(
            tuple(found.members),
            found.similarity,
            _agreement(texts, found.members),
            found.bits,
            int(trees.nodes[found.members].max()),
            _band(texts, found),
        )
        for found in _found(trees, places, pairs, threshold)
    ]
    groups.sort(key=lambda group: (group.is_shape_only, -group.score, group.members))
    return [groups[k] for k in places.not_inside_others([group.members for group in groups])]


class _Found(NamedTuple):
    """A group of which more is to be said."""

    members: list[int]
    equal: bool  # the trees
    similarity: float
    bits: float


def _found(trees: Compared, places: Places, pairs: SimilarPairs, threshold: float) -> Iterator[_Found]:
    copies, multisets, information = trees.copies, trees.multisets, trees.information
    is_near = pairs.similarity >= min(1.0, threshold + MARGIN)
    is_near[~is_near] = information.shared_by_two(pairs.a[~is_near], pairs.b[~is_near]) >= ENOUGH_BITS
    linked = complete_linkage(_not_overlapping(pairs.where(is_near), places, copies))
    in_groups = {k for kinds, _ in linked for k in kinds}
    linked += [Linked([k], 1.0) for k in range(len(copies)) if k not in in_groups]
    for kinds, similarity in linked:
        members = places.apart([i for k in kinds for i in copies[k]])
        if len(members) > 1:
            kept = set(members)
            left = [k for k in kinds if not kept.isdisjoint(copies[k])]
            if len(left) < len(kinds):
                similarity = _lowest(multisets, left)
            yield _Found(members, len(left) == 1, similarity, information.shared(left))


def _not_overlapping(pairs: SimilarPairs, places: Places, copies: Sequence[Sequence[int]]) -> SimilarPairs:
    """Leave out pairs of trees all of whose copies are parts of each other."""
    file = places.file[[numbers[0] for numbers in copies]]
    keep = file[pairs.a] != file[pairs.b]
    for k in np.flatnonzero(~keep).tolist():
        keep[k] = not places.all_overlap(copies[pairs.a[k]], copies[pairs.b[k]])
    return pairs.where(keep)


def _lowest(multisets: Multisets, trees: Sequence[int]) -> float:
    """Return the similarity of the two trees that are least similar."""
    a, b = np.triu_indices(len(trees), 1)
    return float(similarities(multisets, np.take(trees, a), np.take(trees, b)).min(initial=1.0))


class Information:
    """How many bits the productions of different trees tell: log₂((trees + 100) / trees that have it).

    Parameters
    ----------
    productions, bounds : integer array
        The different productions of every tree, ascending: of tree i, ``bounds[i]`` to ``bounds[i + 1]``.
    frequency : integer array
        Of every production, how many of all trees have it.
    n_trees : int
        How many trees there are in all.
    """

    def __init__(self, productions: IntArray, bounds: IntArray, frequency: IntArray, n_trees: int) -> None:
        self.productions, self.bounds = productions, bounds
        bits = np.log2((n_trees + BACKGROUND) / np.maximum(frequency, 1))
        self.bits = np.rint(bits * FINENESS).astype(np.int64)

    def shared(self, trees: Sequence[int]) -> float:
        """Return the bits of what is in all of the trees."""
        common, *others = (self.productions[self.bounds[i] : self.bounds[i + 1]] for i in trees)
        for other in others:
            common = np.intersect1d(common, other, assume_unique=True)
        return int(self.bits[common].sum()) / FINENESS

    def shared_by_two(self, a: IntArray, b: IntArray) -> FloatArray:
        """Return the bits of what is in both trees, for many pairs."""
        return _shared_bits(self.productions, self.bounds, self.bits, a, b) / FINENESS


@njit
def _shared_bits(
    productions: IntArray, bounds: IntArray, bits: IntArray, a: IntArray, b: IntArray
) -> IntArray:
    total = np.zeros(len(a), np.int64)
    for k in range(len(a)):
        i, j = bounds[a[k]], bounds[b[k]]
        while i < bounds[a[k] + 1] and j < bounds[b[k] + 1]:
            x, y = productions[i], productions[j]
            if x == y:
                total[k] += bits[x]
            i += x <= y
            j += y <= x
    return total


def _band(texts: Sequence[Any] | None, found: _Found) -> str:
    if not found.equal:
        return "near" if found.similarity >= NEAR else "similar"
    known = _blurred(texts, found.members)
    is_identical = known is None or all(np.array_equal(known[0], other) for other in known[1:])
    return "identical" if is_identical else "renamed"


def _agreement(texts: Sequence[Any] | None, members: Sequence[int]) -> float | None:
    """Return how much of the names and literals of each member is that of the first, on average."""
    known = _blurred(texts, members)
    return None if known is None else float(np.mean([multiset_similarity(known[0], x) for x in known[1:]]))


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
