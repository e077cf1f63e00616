"""The productions that a vector may contain, chosen by their dot products with it."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import BoolArray, IntArray, Matrix, Row
from treedot.trees import Forest
from treedot.vectors.decoding.productions import Productions
from treedot.vectors.dense.encoder import DenseEncoder

WITHIN = 4.5  # standard errors by which the count of a production that occurs may be below 1
MOST = 3000  # candidates
MOST_COUNTED = 50.0  # the largest count of a production, where nothing else gives the scale


class Candidates(NamedTuple):
    """Some productions with their vectors; those with the same parent are neighbours."""

    parents: list[str]
    children: list[tuple[str, ...]]
    vectors: Matrix
    number: IntArray  # the places in the list of all known productions
    at_root: BoolArray
    span: dict[str, slice]  # by the parent's label

    @classmethod
    def make(cls, productions: Productions, number: IntArray, encoder: DenseEncoder) -> Self:
        """Return the candidates with some numbers."""
        forest = productions.forest[number]
        label = forest.label[forest.roots]
        order = np.argsort(label, kind="stable")
        forest, number = forest[order], number[order]
        parents, children = labels_of(forest)
        return cls(
            parents, children, encoder.encode(forest), number, productions.at_root[number], _spans(parents)
        )

    def taken(self, keep: IntArray) -> Self:
        """Return some of the candidates, in order."""
        parents = [self.parents[i] for i in keep]
        children = [self.children[i] for i in keep]
        return type(self)(
            parents, children, self.vectors[keep], self.number[keep], self.at_root[keep], _spans(parents)
        )


def guessed_scale(products: Row, at_root: BoolArray) -> tuple[float, int]:
    """Return the factor of a normalised vector from its dot products with productions, and the support.

    Most productions occur once, so the factor is the mean of the dot products near that of the likeliest
    root; the support is how many these are.
    """
    guess = float(max(products[at_root].max(initial=0.0), products.max(initial=0.0) / MOST_COUNTED))
    support = 1
    for _ in range(3 if guess else 0):
        near = products[np.abs(products - guess) < 0.4 * guess]
        if near.size:
            guess, support = float(near.mean()), int(near.size)
    return guess or 1.0, support


def labels_of(forest: Forest) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the labels of productions: of each parent, and of its children."""
    texts = [forest.labels[k] for k in forest.label.tolist()]
    ends = forest.offsets.tolist()
    spans = list(pairwise(ends))
    return [texts[end - 1] for _, end in spans], [tuple(texts[start : end - 1]) for start, end in spans]


def _spans(parents: list[str]) -> dict[str, slice]:
    """Return the range of each label in a list where equal ones are neighbours."""
    spans: dict[str, slice] = {}
    for i, label in enumerate(parents):
        spans[label] = slice(spans[label].start if label in spans else i, i + 1)
    return spans
