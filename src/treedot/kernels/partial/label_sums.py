"""The contribution of labels to partial tree kernels: Δ of pairs of nodes without their children."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.kernels.features import feature_gram
from treedot.kernels.label_similarity import LabelSimilarities
from treedot.kernels.partial.gram import Families
from treedot.kernels.partial.subsequences import Weights
from treedot.trees import Forest


def label_gram(
    nodes: Families, n_rows: int, symmetric: bool, weights: Weights, threads: Threads = ONE_THREAD
) -> FloatArray:
    """Return Σ σ Δ₀ over the nodes of every pair of trees; Δ₀ is Δ of nodes with equal labels, without T.

    Rows are the first ``n_rows`` trees. Columns are the same trees (only the lower half is used), or the
    rest.
    """
    forest = nodes.forest
    n_columns = n_rows if symmetric else len(forest) - n_rows

    def equal(which: IntArray) -> FloatArray:
        tree, label, one = forest.tree_of_node[which], forest.label[which], np.ones(which.size)
        return feature_gram(tree, label, one, len(forest), n_rows, symmetric, threads)

    def similar(which: IntArray) -> FloatArray:
        counts, out = _count_labels(nodes, which), np.zeros((n_rows, n_columns))
        columns = np.arange(n_columns) + (0 if symmetric else n_rows)

        def run(first: int, last: int) -> None:
            for i in range(first, last):
                width = i + 1 if symmetric else n_columns
                _sum_similar(counts, nodes.labels, np.full(width, i), columns[:width], out[i, :width])

        threads.run(run, threads.row_spans(n_rows, symmetric))
        return out

    return _weighed(forest, weights, similar if nodes.labels.value.size > 1 else equal)


def label_pairs(
    nodes: Families, rows: IntArray, columns: IntArray, weights: Weights, threads: Threads = ONE_THREAD
) -> FloatArray:
    """Return Σ σ Δ₀ over the nodes of chosen pairs of trees."""

    def pairs(which: IntArray) -> FloatArray:
        counts, out = _count_labels(nodes, which), np.empty(rows.size)

        def run(first: int, last: int) -> None:
            part = slice(first, last)
            _sum_similar(counts, nodes.labels, rows[part], columns[part], out[part])

        threads.run(run, threads.spans(rows.size))
        return out

    return _weighed(nodes.forest, weights, pairs)


def _weighed(forest: Forest, weights: Weights, pairs: Callable[[IntArray], FloatArray]) -> FloatArray:
    """Sum up the pairs of labels with their weights; ``pairs`` sums the similarities of chosen nodes."""
    every = pairs(np.arange(forest.n_nodes))
    if weights.leaf == weights.inner:
        return weights.inner * every
    inner = pairs(np.flatnonzero(forest.arity))
    return weights.leaf * (every - inner) + weights.inner * inner


class LabelCounts(NamedTuple):
    """The number of occurrences of each label in each tree; labels of one kind are neighbours.

    Tree ``i`` has ``copies[k]`` of ``label[k]`` for ``k`` from ``start[i]`` to ``start[i + 1] - 1``.
    """

    start: IntArray
    label: IntArray
    copies: FloatArray


def _count_labels(nodes: Families, which: IntArray) -> LabelCounts:
    """Count the labels of the chosen nodes in every tree."""
    forest = nodes.forest
    by_kind = np.argsort(nodes.labels.kind, kind="stable")
    place = np.empty(by_kind.size, np.int64)
    place[by_kind] = np.arange(by_kind.size)
    n_labels = max(by_kind.size, 1)
    key, copies = np.unique(
        forest.tree_of_node[which] * np.int64(n_labels) + place[forest.label[which]], return_counts=True
    )
    start = np.searchsorted(key, np.arange(len(forest) + 1) * n_labels)
    return LabelCounts(start, by_kind[key % n_labels], copies.astype(np.float64))


@njit_borrowing
def _sum_similar(
    counts: LabelCounts, labels: LabelSimilarities, rows: IntArray, columns: IntArray, out: FloatArray
) -> None:
    """Sum σ over the pairs of labels of tree ``rows[k]`` and tree ``columns[k]``, for every k."""
    start, label, copies = counts
    kind, line, rank, value = labels
    for k in range(rows.size):
        total = 0.0
        first, end = start[columns[k]], start[columns[k] + 1]
        for a in range(start[rows[k]], start[rows[k] + 1]):
            x = label[a]
            while first < end and kind[label[first]] < kind[x]:
                first += 1
            b = first
            while b < end and kind[label[b]] == kind[x]:
                total += copies[a] * copies[b] * value[line[x] + rank[label[b]]]
                b += 1
        out[k] = total
