"""The similarity of labels: 1 if they are equal, otherwise from word vectors or a function of two labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot.errors import LimitError, ParameterError
from treedot.kernels.label_vectors import LabelVectors

Similarity = LabelVectors | Callable[[str, str], float]


class LabelSimilarities(NamedTuple):
    """σ of labels a and b: ``value[line[a] + rank[b]]`` if they are of one kind, 0 otherwise."""

    kind: IntArray
    line: IntArray
    rank: IntArray
    value: FloatArray

    def chosen(self, labels: list[int]) -> LabelSimilarities:
        """Return the similarities of chosen labels, renumbered."""
        return LabelSimilarities(self.kind[labels], self.line[labels], self.rank[labels], self.value)


def equal_labels(count: int) -> LabelSimilarities:
    """Return a similarity of 1 for equal labels and 0 for all others."""
    zero = np.zeros(count, np.int64)
    return LabelSimilarities(np.arange(count), zero, zero, np.ones(1))


def similar_labels(
    labels: Sequence[str], similarity: Similarity, threshold: float, max_pairs: int
) -> LabelSimilarities:
    """Return 1 for equal labels, ``similarity`` for others, and 0 where that is below ``threshold``.

    Labels are of one kind if they are similar, or connected by a chain of similar labels.
    """
    vectors = similarity if isinstance(similarity, LabelVectors) else None
    groups = [np.arange(len(labels))] if vectors is None else vectors.groups(labels)
    pairs = sum(group.size**2 for group in groups)
    if pairs > max_pairs:
        raise LimitError(
            f"{pairs} pairs of labels to compare, more than max_pairs={max_pairs}: raise "
            "max_pairs (8 bytes each), or compare fewer trees at a time"
        )
    kind, line, rank, _ = equal_labels(len(labels))
    line, rank = line.copy(), rank.copy()
    blocks, used = [np.ones(1)], 1
    for group in groups:
        texts = [labels[k] for k in group.tolist()]
        sigma = _called(texts, similarity) if vectors is None else vectors.cosines(texts)
        sigma[sigma < threshold] = 0.0
        np.fill_diagonal(sigma, 1.0)
        for part in _connected(sigma):
            members, block = group[part], sigma[np.ix_(part, part)]
            kind[members], rank[members] = members[0], np.arange(part.size)
            line[members] = used + part.size * rank[members]
            blocks.append(block.ravel())
            used += block.size
    return LabelSimilarities(kind, line, rank, np.concatenate(blocks))


def _connected(sigma: FloatArray) -> list[IntArray]:
    """Return the sets of at least two labels connected by non-zero similarities."""
    part, waiting = np.full((2, len(sigma)), -1, np.int64)
    _find_parts(sigma, part, waiting)
    order = np.argsort(part, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(part[order])) + 1)
    return [members for members in parts if members.size > 1]


@njit_borrowing
def _find_parts(sigma: FloatArray, part: IntArray, waiting: IntArray) -> None:
    """Set for every label the first label connected to it, which may be itself; it is -1 before."""
    n = len(sigma)
    for label in range(n):
        if part[label] >= 0:
            continue
        part[label], waiting[0], count = label, label, 1
        while count > 0:
            count -= 1
            row = sigma[waiting[count]]
            for other in range(n):
                if row[other] != 0.0 and part[other] < 0:
                    part[other], waiting[count] = label, other
                    count += 1


def _called(texts: list[str], similarity: Callable[[str, str], float]) -> FloatArray:
    """Return the similarities of different labels by a function, called once per pair, in order."""
    sigma = np.zeros((len(texts), len(texts)))
    order = sorted(range(len(texts)), key=texts.__getitem__)
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            value = similarity(texts[i], texts[j])
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = math.nan
            if not math.isfinite(number):
                labels = f"{texts[i]!r} and {texts[j]!r}"
                raise ParameterError(f"similarity must return a number, but returned {value!r} for {labels}")
            sigma[i, j] = sigma[j, i] = number
    return sigma
