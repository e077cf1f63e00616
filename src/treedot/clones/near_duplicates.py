"""``NearDuplicates``: all pairs of near-duplicates, the input of groups and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot.clones.information import Information
from treedot.clones.places import Places
from treedot.clones.similarity import Multisets, SimilarPairs

MARGIN = 0.1  # pairs this far above the threshold need not share rare productions
ENOUGH_BITS = 50.0  # other pairs must share this much information, so that chance is ruled out


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

    Parameters
    ----------
    trees : Compared
    pairs : SimilarPairs
        All pairs of distinct trees whose similarity is at least the threshold.
    threshold : float

    Attributes
    ----------
    near : SimilarPairs
        The pairs of distinct trees that are near-duplicates, without pairs whose copies all overlap.
    too_common : SimilarPairs
        The pairs that are similar, but share too few rare productions.
    kind : array of int
        The number of each tree's distinct tree; -1 if it was not compared.
    """

    def __init__(self, trees: Compared, pairs: SimilarPairs, threshold: float) -> None:
        self.trees, self.places = trees, Places(trees.columns, len(trees.nodes))
        is_near = pairs.similarity >= min(1.0, threshold + MARGIN)
        bits = trees.information.shared_by_two(pairs.a[~is_near], pairs.b[~is_near])
        is_near[~is_near] = bits >= ENOUGH_BITS
        self.near = _not_overlapping(pairs.where(is_near), self.places, trees.copies)
        self.too_common = pairs.where(~is_near)
        self.kind = np.full(len(trees.nodes), -1, np.int64)
        for number, copies in enumerate(trees.copies):
            self.kind[copies] = number

    def in_content_order(self, members: Sequence[int]) -> list[int]:
        """Sort trees by their content; equal trees keep their order."""
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
