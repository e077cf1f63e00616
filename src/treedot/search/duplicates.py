"""Groups of near-duplicates among many trees, those that matter most first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treedot.array_types import FloatArray, IntArray
from treedot.jit import njit
from treedot.parameters import checked_integer, checked_positive, checked_share
from treedot.readers import read_trees
from treedot.search.linkage import Linked, complete_linkage
from treedot.search.places import Places
from treedot.search.similarity import (
    Multisets,
    SimilarPairs,
    multiset_similarity,
    production_multisets,
    similar_pairs,
    similarities,
)
from treedot.trees import Forest

THRESHOLD = 0.7
MIN_NODES = 40
MARGIN = 0.1  # above the threshold: there the similarity alone is enough
ENOUGH_BITS = 50.0  # that trees share by which a similarity below that is no chance
NEAR = 0.8
OTHER_NAMES = 0.5  # agreement of names below which the shape alone is shared
BACKGROUND = 100  # trees without a production that are taken as seen: a few trees do not tell what is common
FINENESS = 2**20  # of a bit: whole numbers have the same sum in any order

OnLimit = Callable[[int], object]


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


def find_duplicates(
    trees: Any,
    *,
    threshold: float = THRESHOLD,
    min_nodes: int = MIN_NODES,
    n_jobs: int | None = None,
    on_limit: OnLimit | None = None,
) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates among trees, those that matter most first.

    Two trees are near-duplicates if their similarity, the share of productions (a node's label with its
    children's labels) of either that occur in both, is at least ``threshold + 0.1``; or at least
    ``threshold`` where what they share is rare enough to rule out chance, 50 bits (see ``DuplicateGroup``).
    Groups come from complete linkage: every two members are near-duplicates. Trees of one file that overlap,
    as their columns ``file``, ``start`` and ``end`` say, are not duplicates of each other, and a group that
    lies inside another one is left out.

    All such pairs are found, exactly, up to two limits that keep the work proportional to the number of
    trees: a tree is compared with at most 10,000 others that are no larger, and found to be similar to at
    most 500, beginning with those that share what is rarest; equal trees count once. The limits are met where
    thousands of trees are alike but not equal, as in generated code.

    Parameters
    ----------
    trees : Forest, or anything that ``read_trees`` reads
    threshold : float
        Above 0, at most 1.
    min_nodes : int
        Smaller trees are left out.
    n_jobs : int, optional
        Threads; -1 for one per core. The groups do not depend on it.
    on_limit : callable, optional
        Called with the number of trees that met a limit, where any did: of these, not all near-duplicates may
        be found.

    Examples
    --------
    >>> trees = ["(f (a x y) (b z) (c z))", "(g (d u) (e v))", "(f (a x y) (b z))"]
    >>> for group in find_duplicates(trees, min_nodes=5, threshold=0.3):
    ...     print(group.members, group.similarity, group.band)
    (0, 2) 0.4 similar
    """
    threshold = checked_share("threshold", checked_positive("threshold", threshold))
    min_nodes = checked_integer("min_nodes", min_nodes, at_least=2)
    forest = read_trees(trees)
    places = Places(forest)
    large_enough = np.flatnonzero(forest.sizes >= min_nodes)
    groups = [
        DuplicateGroup(
            tuple(found.members),
            found.similarity,
            _agreement(forest, found.members),
            found.bits,
            int(forest.sizes[found.members].max()),
            _band(forest, found),
        )
        for found in _found(forest, places, threshold, large_enough, n_jobs, on_limit)
    ]
    groups.sort(key=lambda group: (group.is_shape_only, -group.score, group.members))
    return [groups[k] for k in places.not_inside_others([group.members for group in groups])]


class _Found(NamedTuple):
    """A group of which more is to be said."""

    members: list[int]
    equal: bool  # the trees
    similarity: float
    bits: float


def _found(
    forest: Forest,
    places: Places,
    threshold: float,
    numbers: IntArray,
    n_jobs: int | None,
    on_limit: OnLimit | None,
) -> Iterator[_Found]:
    """Yield the groups among the trees of some numbers."""
    if not len(numbers):
        return
    _, first, kind = np.unique(forest[numbers].root_subtree, return_index=True, return_inverse=True)
    ends = np.cumsum(np.bincount(kind))[:-1]
    copies = [part.tolist() for part in np.split(numbers[np.argsort(kind, kind="stable")], ends)]
    distinct = forest[numbers[first]]
    information = _Information(distinct)
    multisets = production_multisets(distinct)
    pairs = similar_pairs(multisets, threshold, n_jobs)
    if pairs.n_limited and on_limit is not None:
        on_limit(pairs.n_limited)
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


class _Information:
    """How many bits the productions of different trees tell: log₂((trees + 100) / trees that have it)."""

    def __init__(self, forest: Forest) -> None:
        inner = forest.production >= 0
        pairs = np.unique(
            forest.tree_of_node[inner] * np.int64(forest.n_productions) + forest.production[inner]
        )
        tree, self.productions = np.divmod(pairs, max(1, forest.n_productions))
        self.bounds = np.searchsorted(tree, np.arange(len(forest) + 1))
        frequency = np.bincount(self.productions, minlength=forest.n_productions)
        bits = np.log2((len(forest) + BACKGROUND) / np.maximum(frequency, 1))
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


def _band(forest: Forest, found: _Found) -> str:
    if not found.equal:
        return "near" if found.similarity >= NEAR else "similar"
    texts = _blurred(forest, found.members)
    is_identical = texts is None or all(np.array_equal(texts[0], other) for other in texts[1:])
    return "identical" if is_identical else "renamed"


def _agreement(forest: Forest, members: Sequence[int]) -> float | None:
    """Return how much of the names and literals of each member is that of the first, on average."""
    texts = _blurred(forest, members)
    return None if texts is None else float(np.mean([multiset_similarity(texts[0], x) for x in texts[1:]]))


def _blurred(forest: Forest, members: Sequence[int]) -> list[IntArray] | None:
    """Return the names and literals of some trees, where all keep them apart."""
    if "blurred" not in forest.columns:
        return None
    texts = [forest.columns["blurred"][i] for i in members]
    return None if any(text is None for text in texts) else texts
