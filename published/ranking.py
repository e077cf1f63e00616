"""Rank rows by their cosines, and score each ranking by the members of the row's own group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from treedot._runtime.array_types import FloatArray, IntArray, Matrix

TILE = 256  # rows at a time


def cosines_of(rows: Any, mean: FloatArray | None = None) -> Matrix:
    """Return the cosines of rows, sparse or dense and of length 1, after the mean is subtracted."""
    along, square = np.zeros(rows.shape[0]), 0.0
    if mean is not None:
        along, square = np.asarray(rows @ mean).ravel(), float(mean @ mean)
    length = np.sqrt(1 - 2 * along + square)
    rows, turned = _with_transpose(rows)
    cosines = np.empty((rows.shape[0], rows.shape[0]), np.float32)
    for part in _tiles(rows.shape[0]):
        products = rows[part] @ turned
        products = products.toarray() if hasattr(products, "toarray") else products
        cosines[part] = (products - along[part, None] - along + square) / (length[part, None] * length)
    return cosines


def _with_transpose(rows: Any) -> tuple[Any, Any]:
    """Return rows and their transpose; sparse ones only with the columns that occur."""
    if not hasattr(rows, "tocsr"):
        return rows, rows.T
    used, columns = np.unique(rows.indices, return_inverse=True)
    rows = csr_matrix((rows.data, columns, rows.indptr), (rows.shape[0], used.size))
    return rows, rows.T.tocsr()


def expanded(cosines: Matrix, k: int) -> Matrix:
    """Return the products of each row's sum with its own k nearest rows, and all rows."""
    most = min(k, len(cosines) - 1)
    found = cosines.copy()
    for i, line in enumerate(cosines):
        others = np.where(np.arange(line.size) == i, -np.inf, line)
        near = np.argpartition(-others, most - 1)[:most]
        found[i] += cosines[near].sum(axis=0)
    return found


def average_precisions(cosines: Matrix, groups: IntArray) -> FloatArray:
    """Return for each row its average precision at R.

    R is the number of the other members of a row's group. Equal cosines are ordered by row number.
    """
    size = np.bincount(groups)[groups] - 1
    found = np.zeros(groups.size)
    for i, row in enumerate(cosines):
        line = row.copy()
        line[i] = -np.inf
        most = max(1, size[i])
        best = np.flatnonzero(line >= np.partition(line, -most)[-most])
        best = best[np.argsort(-line[best], kind="stable")[: size[i]]]
        hit = groups[best] == groups[i]
        found[i] = (hit * np.cumsum(hit) / np.arange(1, size[i] + 1)).sum() / most
    return found


def _tiles(count: int) -> Iterator[slice]:
    return (slice(first, first + TILE) for first in range(0, count, TILE))
