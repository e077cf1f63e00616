"""Groups of near-duplicates among many trees, those that matter most first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treedot.array_types import IntArray
from treedot.parameters import checked_integer, checked_positive, checked_share
from treedot.readers import read_trees
from treedot.search.linkage import complete_linkage
from treedot.search.similarity import multiset_similarity, production_multisets, similar_pairs
from treedot.trees import Forest

THRESHOLD = 0.7
MIN_NODES = 40
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
        members that are least similar: 1 where the trees are equal.
    agreement : float or None
        The same of names and literals, averaged over each member beside the first; None where the trees
        keep none apart.
    bits : float
        How much the members share: Σ log₂((trees + 100) / trees that have it) over the different productions
        that are in all of them. Productions that are everywhere count for nothing.
    nodes : int
        The size of the largest member.
    """

    members: tuple[int, ...]
    similarity: float
    agreement: float | None
    bits: float
    nodes: int

    @property
    def band(self) -> str:
        """Identical; renamed, equal but for names and literals; near, from 0.8 on; or similar."""
        if self.similarity == 1:
            return "identical" if self.agreement in (1, None) else "renamed"
        return "near" if self.similarity >= NEAR else "similar"

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
) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates among trees, those that matter most first.

    Two trees are near-duplicates if their similarity, the share of productions (a node's label with its
    children's labels) of either that occur in both, is at least ``threshold + 0.1``; or at least
    ``threshold`` where what they share is rare enough to rule out chance, 50 bits (see ``DuplicateGroup``).
    All such pairs are found, exactly. Groups come from complete linkage: every two members are
    near-duplicates. Trees of one file that overlap, as their columns ``file``, ``start`` and ``end`` say, are
    not duplicates of each other, and a group that lies inside another one is left out.

    Parameters
    ----------
    trees : Forest, or anything that ``read_trees`` reads
    threshold : float
        Above 0, at most 1.
    min_nodes : int
        Smaller trees are left out.
    n_jobs : int, optional
        Threads; -1 for one per core. The groups do not depend on it.

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
    numbers = np.flatnonzero(forest.sizes >= min_nodes)
    places = _Places(forest)
    groups = []
    for members, similarity, bits in _linked(forest[numbers], threshold, n_jobs):
        apart = places.apart(numbers[members].tolist())
        if len(apart) > 1:
            nodes = int(forest.sizes[apart].max())
            groups.append(DuplicateGroup(tuple(apart), similarity, _agreement(forest, apart), bits, nodes))
    groups.sort(key=lambda group: (group.is_shape_only, -group.score, group.members))
    return list(places.not_inside_others(groups))


def _linked(forest: Forest, threshold: float, n_jobs: int | None) -> Iterator[tuple[IntArray, float, float]]:
    """Yield groups: their trees, the lowest similarity, and the bits that are shared."""
    _, first, kind = np.unique(forest.root_subtree, return_index=True, return_inverse=True)
    copies = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
    information = _Information(forest[first])
    found = similar_pairs(production_multisets(forest[first]), threshold, n_jobs)
    pairs = [
        pair
        for pair in zip(*(column.tolist() for column in found), strict=True)
        if pair[2] >= threshold + MARGIN or information.shared(pair[:2]) >= ENOUGH_BITS
    ]
    linked = complete_linkage(pairs)
    for kinds, similarity in linked:
        yield np.sort(np.concatenate([copies[k] for k in kinds])), similarity, information.shared(kinds)
    in_groups = {k for kinds, _ in linked for k in kinds}
    for k, members in enumerate(copies):
        if len(members) > 1 and k not in in_groups:
            yield members, 1.0, information.shared([k])


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


class _Places:
    """Where trees stand in files, as far as their columns tell."""

    def __init__(self, forest: Forest) -> None:
        known = all(name in forest.columns for name in ("file", "start", "end"))
        self.columns = [forest.columns[name] for name in ("file", "start", "end")] if known else None

    def inside(self, i: int, j: int) -> bool:
        """Tell whether tree i is part of tree j, by the lines of one file."""
        if self.columns is None:
            return False
        file, start, end = self.columns
        return bool(file[i] == file[j] and start[i] >= start[j] and end[i] <= end[j])

    def apart(self, members: Sequence[int]) -> list[int]:
        """Return the members of a group that are not part of another one."""
        return [i for i in members if not any(i != j and self.inside(i, j) for j in members)]

    def not_inside_others(self, groups: Sequence[DuplicateGroup]) -> Iterator[DuplicateGroup]:
        """Leave out groups whose every member is part of a member of one and the same group before."""
        by_file: dict[Any, list[tuple[int, int]]] = {}  # the trees in it, each with its group
        for number, group in enumerate(groups):
            around = (
                {n for n, j in by_file.get(self._file(i), ()) if self.inside(i, j)} for i in group.members
            )
            if not set.intersection(*around):
                yield group
                for i in group.members:
                    by_file.setdefault(self._file(i), []).append((number, i))

    def _file(self, i: int) -> Any:
        return None if self.columns is None else self.columns[0][i]


def _agreement(forest: Forest, members: Sequence[int]) -> float | None:
    """Return how much of the names and literals of each member is that of the first, on average."""
    if "blurred" not in forest.columns:
        return None
    texts = forest.columns["blurred"]
    return float(np.mean([multiset_similarity(texts[members[0]], texts[i]) for i in members[1:]]))
