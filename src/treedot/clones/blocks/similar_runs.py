"""Find pairs of similar runs of statements: from equal runs, over small gaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot.clones.blocks.equal_runs import EqualRuns
from treedot.clones.blocks.run_similarity import Productions
from treedot.clones.blocks.statements import Statements

MIN_LINES = 3
MAX_STEPS = 30  # equal runs after the first one at which a pair of runs may end


class SimilarRuns(NamedTuple):
    """Pairs of similar runs, a before b, by the numbers of their first and last statements."""

    first_a: IntArray
    last_a: IntArray
    first_b: IntArray
    last_b: IntArray
    similarity: FloatArray
    bits: FloatArray  # of the productions in both

    def where(self, keep: Array) -> SimilarRuns:
        """Return some of the pairs."""
        return SimilarRuns._make(column[keep] for column in self)

    def spans(self, statements: Statements) -> IntArray:
        """Return a row for each pair: the first node of a and the one after its last, and those of b."""
        return spans_of(statements, *self[:4])


def spans_of(
    statements: Statements, first_a: IntArray, last_a: IntArray, first_b: IntArray, last_b: IntArray
) -> IntArray:
    """Return the rows of ``SimilarRuns.spans``."""
    first, last = statements.first, statements.node + 1
    return np.column_stack((first[first_a], last[last_a], first[first_b], last[last_b]))


def similar_runs(
    statements: Statements, productions: Productions, equal: EqualRuns, threshold: float, min_nodes: int
) -> SimilarRuns:
    """Return the similar pairs of runs that begin and end with equal or alike statements.

    Both runs have at least ``min_nodes`` nodes and three lines.
    """
    matched = with_alike(statements, productions, equal, threshold)
    body_a, body_b = statements.body[matched.a], statements.body[matched.b]
    order = np.lexsort((matched.b, matched.a, body_b, body_a))
    a, b, length = (column[order] for column in matched[:3])
    group = np.cumsum(_changes(body_a[order]) | _changes(body_b[order]))
    nothing = np.zeros((0, 4), np.int64)
    found = [_similar(statements, productions, nothing, threshold, min_nodes)]
    for step in range(min(MAX_STEPS, len(a))):
        begin = np.flatnonzero(group[step:] == group[: len(group) - step])
        if not len(begin):
            break
        end = begin + step
        last_a, last_b = a[end] + length[end] - 1, b[end] + length[end] - 1
        fits = (b[end] >= b[begin]) & (last_b >= b[begin] + length[begin] - 1)
        fits &= last_a >= a[begin] + length[begin] - 1
        pairs = np.column_stack((a[begin], last_a, b[begin], last_b))[fits]
        found.append(_similar(statements, productions, pairs, threshold, min_nodes))
    return SimilarRuns._make(np.concatenate(column) for column in zip(*found, strict=True))


def _similar(
    statements: Statements, productions: Productions, pairs: IntArray, threshold: float, min_nodes: int
) -> SimilarRuns:
    """Return the pairs of runs that are similar and large enough, and do not overlap."""
    spans = spans_of(statements, *pairs.T)
    fits = (np.diff(spans, axis=1)[:, ::2] >= min_nodes).all(axis=1) & (spans[:, 1] <= spans[:, 2])
    start, end = statements.lines[pairs[:, ::2], 0], statements.lines[pairs[:, 1::2], 1]
    fits &= (end - start + 1 >= MIN_LINES).all(axis=1) & productions.sizes_fit(spans, threshold)
    similarity, bits = productions.similarities(spans[fits])
    return SimilarRuns._make((*pairs[fits].T, similarity, bits)).where(similarity >= threshold)


def with_alike(
    statements: Statements, productions: Productions, equal: EqualRuns, threshold: float
) -> EqualRuns:
    """Add pairs of similar statements whose bodies contain equal runs or other such pairs.

    So a long statement that was edited inside belongs to the runs around it.
    """
    found = [equal]
    seen = np.zeros(0, np.int64)
    n = max(1, len(statements.node))
    while len(found[-1].a):
        one, other = statements.around[found[-1].a], statements.around[found[-1].b]
        pairs = np.unique((one * n + other)[(one >= 0) & (other >= 0) & (one != other)])
        places = np.searchsorted(seen, pairs)
        is_new = np.append(seen, -1)[places] != pairs
        pairs, places = pairs[is_new], places[is_new]
        seen = np.insert(seen, places, pairs)  # stays sorted: sorting it in every round would take long
        one, other = np.divmod(pairs, n)
        spans = spans_of(statements, one, one, other, other)
        fits = productions.sizes_fit(spans, threshold) & (spans[:, 1] <= spans[:, 2])
        one, other = one[fits], other[fits]
        alike = productions.similarities(spans[fits])[0] >= threshold
        found.append(EqualRuns(one[alike], other[alike], np.ones(int(alike.sum()), np.int64)))
    a, b, length = (np.concatenate(column) for column in list(zip(*found, strict=True))[:3])
    return EqualRuns(a, b, length, equal.n_limited)


def _changes(values: IntArray) -> IntArray:
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def longest(statements: Statements, pairs: SimilarRuns) -> SimilarRuns:
    """Return the pairs that no other pair contains, in the order of the first run."""
    _, first = np.unique(np.column_stack(pairs[:4]), axis=0, return_index=True)
    pairs = pairs.where(first)
    spans = pairs.spans(statements)
    order = np.lexsort((-spans[:, 3], spans[:, 2], -spans[:, 1], spans[:, 0]))
    keep = np.zeros(len(order), bool)
    _outermost(spans[order], keep, np.empty(len(order), np.int64))
    return pairs.where(order[keep])


@njit_borrowing
def _outermost(spans: IntArray, keep: IntArray, open_: IntArray) -> None:
    """Mark the rows that no earlier row contains; ``open_`` is working memory."""
    n = 0
    for k in range(len(spans)):
        still = 0
        inside = False
        for place in range(n):
            row = open_[place]
            if spans[row, 1] > spans[k, 0]:
                open_[still] = row
                still += 1
                inside |= (
                    spans[row, 1] >= spans[k, 1]
                    and spans[row, 2] <= spans[k, 2]
                    and spans[row, 3] >= spans[k, 3]
                )
        n = still
        if not inside:
            keep[k] = True
            open_[n] = k
            n += 1
