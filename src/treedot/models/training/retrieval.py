"""Score vectors by how well each finds the other members of its group: the mean average precision at R."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import IntArray, Matrix

TILE = 512  # rows ranked at a time


def map_at_r(vectors: Matrix, groups: IntArray) -> float:
    """Return the mean average precision at R.

    Each row ranks all others by their dot products. With R other members in its group, its average precision
    is the sum, over those of them among its first R, of the share of members up to there, divided by R. Rows
    without another member are not counted; equal products are ordered by row number.

    Examples
    --------
    >>> map_at_r(np.array([[1.0, 0], [0.9, 0], [0, 1]]), np.array([0, 0, 1]))
    1.0
    """
    numbers = np.unique(groups, return_inverse=True)[1]
    others = np.bincount(numbers)[numbers] - 1
    rank = np.arange(1, numbers.size + 1)
    total = 0.0
    for first in range(0, numbers.size, TILE):
        part = slice(first, first + TILE)
        products = vectors[part] @ vectors.T
        own = np.arange(len(products))
        products[own, first + own] = -np.inf
        order = np.argsort(-products, axis=1, kind="stable")[:, : max(1, others.max())]
        found = (numbers[order] == numbers[part, None]) & (rank[: order.shape[1]] <= others[part, None])
        precision = np.where(found, np.cumsum(found, axis=1) / rank[: order.shape[1]], 0.0)
        total += float((precision.sum(axis=1) / np.maximum(others[part], 1)).sum())
    counted = np.count_nonzero(others)
    return total / int(counted) if counted else 0.0
