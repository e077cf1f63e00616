"""``NearDuplicates``: all pairs of near-duplicates, the input of groups and baselines.

A pair of trees is decided by its similarity and, the lower that is, by more evidence: how rare the shared
productions are, whether the trees are nearest to each other, and whether they have the same names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, IntArray
from treedot.clones.information import Information
from treedot.clones.names import names_of
from treedot.clones.places import Places
from treedot.clones.similarity import Multisets, SimilarPairs
from treedot.clones.testing import are_tests

MARGIN = 0.1  # a similarity this far above the threshold is enough
NEAR_BITS = 20.0  # shared bits that are enough for a similarity of the threshold + MARGIN / 2
ENOUGH_BITS = 40.0  # shared bits that are enough for a similarity of the threshold
SAME_NAMES = 0.5  # agreement of names needed for a similarity below the threshold, if one tree is nearest
NAMED_MARGIN = 0.2  # how far above the threshold similarity + agreement of names / 2 must be to be enough
NAMED_BITS = 30.0  # shared bits below which names do not count
ROUNDING = 1e-9  # of limits that are computed from a threshold


def reach(threshold: float) -> float:
    """Return the lowest similarity of near-duplicates: 0.5 for the threshold of 0.7, and 1 for 1."""
    return threshold - min(threshold * 2 / 7, (1 - threshold) * 2 / 3) - ROUNDING


def worth_a_look(pairs: SimilarPairs, information: Information, threshold: float) -> SimilarPairs:
    """Return the pairs that may be near-duplicates, by their similarity and information."""
    bits = information.shared_by_two(pairs.a, pairs.b)
    return pairs.where((pairs.similarity >= threshold) | (bits >= NAMED_BITS))


class Compared(NamedTuple):
    """Trees that were compared, with equal trees counted as one distinct tree.

    Distinct trees are in the order of ``content_order``, so the order of the trees does not matter.
    """

    nodes: IntArray  # the size of every tree
    columns: Mapping[str, Sequence[Any]]  # the places, names and literals of the trees
    copies: list[list[int]]  # for every distinct tree, the numbers of its copies, ascending
    multisets: Multisets  # the productions of the distinct trees
    information: Information


class NearDuplicates:
    """The pairs of near-duplicates among trees.

    With a threshold of 0.7, these are the pairs with a similarity of

    - at least 0.8;
    - at least 0.75, if they share 20 bits;
    - at least 0.7, if they share 40 bits;
    - at least 0.6, if they share 40 bits and no tree is more similar to either of them;
    - at least 0.5, if they share 40 bits, no tree is more similar to one of them, and at least half of their
      names and literals are the same;
    - at least 0.5, if they share 30 bits, and the similarity and half of the agreement of their names and
      literals add up to 0.9.

    Trees with a similarity below 0.7 that share less than 40 bits do not count as more similar. Nothing is
    more similar to a tree than a copy of it.
    Other thresholds move these limits (``MARGIN``, ``NAMED_MARGIN`` and ``reach``).

    Parameters
    ----------
    trees : Compared
    pairs : SimilarPairs
        The pairs of distinct trees whose similarity is at least ``reach(threshold)``, and of those below the
        threshold at least the ones that are ``worth_a_look``.
    threshold : float

    Attributes
    ----------
    near : SimilarPairs
        The pairs of distinct trees that are near-duplicates, without pairs whose copies all overlap.
    too_common : SimilarPairs
        The other pairs, which are similar, but lack further evidence.
    is_test : list of bool
        Whether the file of each tree holds tests.
    kind : array of int
        The number of each tree's distinct tree; -1 if it was not compared.
    """

    def __init__(self, trees: Compared, pairs: SimilarPairs, threshold: float) -> None:
        self.trees, self.places = trees, Places(trees.columns, len(trees.nodes))
        self.is_test = are_tests(trees.columns.get("file", [None] * len(trees.nodes)))
        self.kind = np.full(len(trees.nodes), -1, np.int64)
        for number, copies in enumerate(trees.copies):
            self.kind[copies] = number
        self.threshold = threshold
        self._names: dict[int, Counter[Any] | None] = {}
        self._pairs = pairs = _not_overlapping(pairs, self.places, trees.copies)
        is_near = self._are_near(pairs, threshold)
        self.near, self.too_common = pairs.where(is_near), pairs.where(~is_near)

    def _are_near(self, pairs: SimilarPairs, threshold: float) -> BoolArray:
        """Return whether each pair of distinct trees, which do not overlap, is one of near-duplicates."""
        a, b, similarity, _ = pairs
        bits = self.trees.information.shared_by_two(a, b)
        best = np.array([1.0 if len(copies) > 1 else 0.0 for copies in self.trees.copies])
        is_rival = (similarity >= threshold) | (bits >= ENOUGH_BITS)
        for trees in (a, b):
            np.maximum.at(best, trees[is_rival], similarity[is_rival])
        is_best_of_a, is_best_of_b = similarity >= best[a], similarity >= best[b]
        between = (threshold + reach(threshold)) / 2
        is_near: BoolArray = (
            (similarity >= min(1.0, threshold + MARGIN) - ROUNDING)
            | ((similarity >= min(1.0, threshold + MARGIN / 2) - ROUNDING) & (bits >= NEAR_BITS))
            | ((similarity >= threshold) & (bits >= ENOUGH_BITS))
            | ((similarity >= between) & (bits >= ENOUGH_BITS) & is_best_of_a & is_best_of_b)
        )
        needed = 2 * (threshold + NAMED_MARGIN - similarity)  # agreement of names
        needed[(bits >= ENOUGH_BITS) & (is_best_of_a | is_best_of_b) & (needed > SAME_NAMES)] = SAME_NAMES
        for k in np.flatnonzero(~is_near & (bits >= NAMED_BITS) & (needed <= 1)):
            agreement = self._agreement(int(a[k]), int(b[k]))
            is_near[k] = agreement is not None and agreement >= needed[k] - ROUNDING
        return is_near

    def _agreement(self, a: int, b: int) -> float | None:
        """Return the agreement of the names of two distinct trees, each with those of its first copy.

        It is that of ``names.agreement``, in a third of the time, since each tree is in many pairs.
        """
        one, other = self._names_of(a), self._names_of(b)
        if one is None or other is None:
            return None
        either = (one | other).total()
        return (one & other).total() / either if either else 1.0

    def _names_of(self, tree: int) -> Counter[Any] | None:
        """Return the names and literals of the first copy of a distinct tree, which are counted once."""
        if tree not in self._names:
            texts = names_of(self.trees.columns, self.in_content_order(self.trees.copies[tree])[:1])
            self._names[tree] = None if texts is None else Counter(np.ravel(texts[0]).tolist())
        return self._names[tree]

    def not_below_threshold(self) -> NearDuplicates:
        """Return the same without the pairs below the threshold."""
        pairs = self._pairs.where(self._pairs.similarity >= self.threshold)
        return NearDuplicates(self.trees, pairs, self.threshold)

    def in_content_order(self, members: Sequence[int]) -> list[int]:
        """Sort trees by their content; equal trees keep their order."""
        if len(members) == 1:
            return list(members)
        texts = self.trees.columns.get("blurred")
        return sorted(members, key=lambda i: (self.kind[i], "" if texts is None else _text(texts[i])))

    def partners(self) -> Iterator[list[tuple[float, int]]]:
        """Yield for every distinct tree its near-duplicates, as (similarity, distinct tree), best first.

        A tree with copies is its own best partner.
        """
        found = [[(1.0, k)] if len(copies) > 1 else [] for k, copies in enumerate(self.trees.copies)]
        for a, b, similarity in zip(*(column.tolist() for column in self.near[:3]), strict=True):
            found[a].append((similarity, b))
            found[b].append((similarity, a))
        for some in found:
            yield sorted(some, key=lambda partner: (-partner[0], partner[1]))


def _not_overlapping(pairs: SimilarPairs, places: Places, copies: Sequence[Sequence[int]]) -> SimilarPairs:
    """Remove the pairs of which every copy of one tree overlaps every copy of the other."""
    file = places.file[[numbers[0] for numbers in copies]]
    keep = file[pairs.a] != file[pairs.b]
    for k in np.flatnonzero(~keep).tolist():
        keep[k] = not places.all_overlap(copies[pairs.a[k]], copies[pairs.b[k]])
    return pairs.where(keep)


def _text(blurred: Any) -> str:
    """Return names and literals as a text, which is the same for an array and a list."""
    try:
        return repr(np.asarray(blurred).tolist())
    except ValueError:  # nested lists of different lengths
        return repr(blurred)
