"""Kernels as dot products of sparse feature vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import Any

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.kernels.tree_kernel import TreeKernel, joined
from treedot.trees import Forest


class FeatureKernel(TreeKernel):
    """A kernel that is the dot product of explicit vectors."""

    @abstractmethod
    def _features(self, forest: Forest) -> tuple[IntArray, IntArray, FloatArray]:
        """Return a tree number, a feature number and a weight for every feature of the trees."""

    def _raw_gram(self, x: Forest, y: Forest | None, threads: Threads = ONE_THREAD) -> FloatArray:
        both = joined(x, y)
        return feature_gram(*self._features(both), len(both), len(x), y is None, threads)

    def _raw_pairs(
        self, x: Forest, rows: IntArray, columns: IntArray, threads: Threads = ONE_THREAD
    ) -> FloatArray:
        return feature_pairs(*self._features(x), len(x), rows, columns, threads)


def feature_gram(
    tree: IntArray, feature: IntArray, weight: FloatArray, n: int, n_rows: int, symmetric: bool,
    threads: Threads = ONE_THREAD,
) -> FloatArray:  # fmt: skip
    """Return the products of the vectors of ``n`` trees, given as (tree, feature, weight) triples.

    Rows are the first ``n_rows`` trees; columns are the same, or the rest.
    """
    return gram_of(_vectors(tree, feature, weight, n), n_rows, symmetric, threads)


def gram_of(vectors: Any, n_rows: int, symmetric: bool, threads: Threads = ONE_THREAD) -> FloatArray:
    """Return products of the first ``n_rows`` sparse rows with each other (lower half), or with the rest."""
    columns = (vectors[:n_rows] if symmetric else vectors[n_rows:]).tocsc()
    out = np.zeros((n_rows, columns.shape[0]))
    given = *_arrays(vectors), *_arrays(columns), symmetric
    spans = threads.row_spans(n_rows, symmetric)
    threads.run(lambda first, last: _add_products(*given, first, last, out), spans)
    return out


def _arrays(matrix: Any) -> tuple[IntArray, IntArray, FloatArray]:
    return matrix.indptr, matrix.indices, matrix.data


@njit_borrowing
def _add_products(
    start: IntArray, feature: IntArray, value: FloatArray, other_start: IntArray, row: IntArray,
    other_value: FloatArray, symmetric: bool, first: int, last: int, out: FloatArray,
) -> None:  # fmt: skip
    """Add the products with all other rows to the rows ``first … last - 1``, feature by feature."""
    for i in range(first, last):
        for k in range(start[i], start[i + 1]):
            for m in range(other_start[feature[k]], other_start[feature[k] + 1]):
                if symmetric and row[m] > i:
                    break
                out[i, row[m]] += value[k] * other_value[m]


def feature_pairs(
    tree: IntArray, feature: IntArray, weight: FloatArray, n: int, rows: IntArray, columns: IntArray,
    threads: Threads = ONE_THREAD,
) -> FloatArray:  # fmt: skip
    """Return the products of the vectors of trees ``rows[k]`` and ``columns[k]``, for every k."""
    vectors = _vectors(tree, feature, weight, n)
    out = np.empty(rows.size)

    def run(first: int, last: int) -> None:
        products = vectors[rows[first:last]].multiply(vectors[columns[first:last]])
        out[first:last] = np.asarray(products.sum(axis=1), float).ravel()

    threads.run(run, threads.spans(rows.size))
    return out


def leaf_gram(x: Forest, y: Forest | None, threads: Threads) -> FloatArray:
    """Return the number of pairs of equal leaves for every pair of trees."""
    both = joined(x, y)
    return feature_gram(*_leaves(both), len(both), len(x), y is None, threads)


def leaf_pairs(x: Forest, rows: IntArray, columns: IntArray, threads: Threads) -> FloatArray:
    """Return the number of pairs of equal leaves for chosen pairs of trees."""
    return feature_pairs(*_leaves(x), len(x), rows, columns, threads)


def _leaves(forest: Forest) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the tree, the label and the weight 1 of every leaf."""
    leaf = forest.arity == 0
    return forest.tree_of_node[leaf], forest.label[leaf], np.ones(np.count_nonzero(leaf))


def leaf_pair(x: Forest, y: Forest) -> int:
    """Return the number of pairs of equal leaves of two one-tree forests."""
    counts, others = x.derived(_leaf_counts), y.derived(_leaf_counts)
    return sum(count * others.get(text, 0) for text, count in counts.items())


def _leaf_counts(forest: Forest) -> Counter[str]:
    """Return the number of leaves with each label."""
    return Counter(forest.labels[k] for k in forest.label[forest.arity == 0].tolist())


def _vectors(tree: IntArray, feature: IntArray, weight: FloatArray, n: int) -> Any:
    from scipy.sparse import csr_matrix

    width = int(feature.max()) + 1 if feature.size else 1
    return csr_matrix((weight, (tree, feature)), shape=(n, width))
