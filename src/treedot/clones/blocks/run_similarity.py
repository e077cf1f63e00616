"""The similarity of two runs of statements, and the information that they share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.ragged import ends_of
from treedot._runtime.sorted_arrays import runs
from treedot.clones.information import BACKGROUND, FINENESS, languages_of
from treedot.clones.similarity import ROUNDING
from treedot.trees import Forest

STRETCH = 100  # nodes; the rarity of a production is the share of such stretches of code that have it


class Productions(NamedTuple):
    """The productions of all nodes of some files."""

    of_node: IntArray  # -1 for leaves
    bits: IntArray  # the information of each production, in units of 1 / FINENESS
    frequency: IntArray  # the number of stretches of code that have it
    n_stretches: IntArray  # for each production, the number of stretches in the languages that have it
    before: IntArray  # for each node, how many inner nodes precede it; and their number

    def sizes_fit(self, spans: IntArray, threshold: float) -> BoolArray:
        """Return whether two runs can be similar, given their numbers of productions."""
        counts = self.before[spans[:, 1::2]] - self.before[spans[:, ::2]]
        return counts.min(axis=1) >= threshold * counts.max(axis=1) - ROUNDING

    def similarities(self, spans: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the similarity of two runs, and the bits of the productions in both.

        A row of ``spans`` holds, for each run, its first node and the one after its last.
        """
        similarity, shared = np.zeros(len(spans)), np.zeros(len(spans), np.int64)
        counts = np.zeros((2, len(self.bits)), np.int64)
        _similarities(self.of_node, self.bits, spans, counts, similarity, shared)
        return similarity, shared / FINENESS


def productions_of(files: Forest) -> Productions:
    """Return the productions of files, and how rare they are."""
    inner = np.flatnonzero(files.production >= 0)
    production, tree = files.production[inner].astype(np.int64), files.tree_of_node[inner]
    stretches = (files.sizes + STRETCH - 1) // STRETCH
    ends = ends_of(stretches)
    stretch = (inner - files.offsets[tree]) // STRETCH + ends[tree]
    distinct, _ = runs(np.sort(production * max(1, ends[-1]) + stretch))
    frequency = np.bincount(distinct // max(1, ends[-1]), minlength=files.n_productions)
    names, language = np.unique(languages_of(files.columns, len(files)), return_inverse=True)
    occurs = np.zeros((len(names), files.n_productions), bool)
    occurs[language[tree], production] = True
    n_stretches = np.bincount(language, stretches, len(names)).astype(np.int64) @ occurs
    bits = np.log2((n_stretches + BACKGROUND) / np.maximum(frequency, 1))
    return Productions(
        files.production,
        np.rint(bits * FINENESS).astype(np.int64),
        frequency,
        n_stretches,
        ends_of(files.production >= 0),
    )


@njit_borrowing
def _similarities(
    production: IntArray,
    bits: IntArray,
    spans: IntArray,
    counts: IntArray,
    similarity: FloatArray,
    shared: IntArray,
) -> None:
    """Write the similarities and shared bits of pairs of spans; ``counts`` is working memory of zeros."""
    only, either = counts
    for k in range(len(spans)):
        n_both = n_either = 0
        for node in range(spans[k, 0], spans[k, 1]):
            p = production[node]
            if p >= 0:
                only[p] += 1
                either[p] = k + 1
                n_either += 1
        for node in range(spans[k, 2], spans[k, 3]):
            p = production[node]
            if p >= 0:
                if only[p] > 0:
                    only[p] -= 1
                    n_both += 1
                else:
                    n_either += 1
                if either[p] == k + 1:
                    either[p] = 0
                    shared[k] += bits[p]
        for node in range(spans[k, 0], spans[k, 1]):
            p = production[node]
            if p >= 0:
                only[p] = 0
        if n_either > 0:
            similarity[k] = n_both / n_either
