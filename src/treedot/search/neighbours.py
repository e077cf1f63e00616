"""The largest dot products of many vectors with many, without ever holding all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from treedot.errors import ParameterError
from treedot.parameters import checked_integer

# A tile of dot products is large enough for matrix multiplication at full speed, and small beside
# the vectors themselves.
TILE = 2048


def nearest(X: Any, Y: Any = None, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Return for every row of X the ``k`` rows of Y with the largest dot products, best first.

    Parameters
    ----------
    X, Y : arrays or sparse matrices of shape (rows, dimensions)
        Vectors of trees; memory maps are read tile by tile. Without Y, the rows of X are compared
        with each other, and a row is not its own neighbour.
    k : int
        How many neighbours; fewer where there are not so many rows.

    Returns
    -------
    rows, values : arrays of shape (rows of X, k)
        The neighbours' row numbers and their dot products. Equal values are ordered by row number.

    Examples
    --------
    >>> from treedot import TreeVectorizer, nearest
    >>> trees = ["(S (A b) (C d))", "(T (X y) z)", "(S (A b) (C e))", "(T (X y) w)"]
    >>> nearest(TreeVectorizer(normalize=True).transform(trees), k=1)[0].ravel()
    array([2, 3, 0, 1])
    """
    k = checked_integer("k", k, at_least=1)
    if sparse := _is_sparse(X):
        others = X if Y is None else Y
    else:
        X = np.asanyarray(X)
        others = X if Y is None else np.asanyarray(Y)
    if _is_sparse(others) != sparse:
        raise ParameterError("cannot compare sparse rows with dense ones: give both alike")
    if len(X.shape) != 2 or len(others.shape) != 2 or X.shape[1] != others.shape[1]:
        raise ParameterError(f"cannot compare rows of shapes {X.shape} and {others.shape}")
    k = min(k, others.shape[0] - (Y is None))
    if k < 1:
        raise ParameterError("there is nothing to compare with")
    rows = np.full((X.shape[0], k), -1, np.int64)
    values = np.full(
        (X.shape[0], k), -np.inf, np.float64 if sparse else np.result_type(X, others, np.float32)
    )
    for start, first, products in _sparse_tiles(X, others) if sparse else _dense_tiles(X, others, Y is None):
        if not np.isfinite(products).all():
            raise ParameterError("a dot product is not finite: there is nan or inf among the vectors")
        here = slice(start, start + len(products))
        if Y is None and first <= start < first + products.shape[1]:
            products[np.arange(len(products)), np.arange(len(products)) + start - first] = -np.inf
        _keep_best(rows[here], values[here], products, first)
        if Y is None and first > start:  # the same products serve the other rows
            there = slice(first, first + products.shape[1])
            _keep_best(rows[there], values[there], np.ascontiguousarray(products.T), start)
    return rows, values


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr")


def _dense_tiles(X: np.ndarray, Y: np.ndarray, symmetric: bool) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield first row, first column and products of tile after tile; of the upper half where symmetric."""
    kind = np.result_type(X, Y, np.float32)
    for start in range(0, len(X), TILE):
        part = np.asarray(X[start : start + TILE], kind)
        for first in range(start if symmetric else 0, len(Y), TILE):
            yield start, first, part @ np.asarray(Y[first : first + TILE], kind).T


def _sparse_tiles(X: Any, Y: Any) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield first row, 0, and the products of some rows with all others."""
    from treedot.encode.postings import Postings

    for start, products in Postings(Y).products(X.tocsr(), n_jobs=-1):
        yield start, 0, products


def _keep_best(rows: np.ndarray, values: np.ndarray, products: np.ndarray, first: int) -> None:
    """Merge a tile of products, whose columns start at ``first``, into the best so far, in place.

    Tiles come in the order of their columns, so what only equals the worst of the best comes too late.
    """
    count, k = values.shape
    better = products > values[:, -1:]
    if np.count_nonzero(better) > 4 * count * k:  # at first all are: narrow them down row by row
        cut = products.shape[1] - k
        better &= products >= np.partition(products, cut, axis=1)[:, cut : cut + 1]
    row, column = np.divmod(np.flatnonzero(better), products.shape[1])
    if not row.size:
        return
    touched, group = np.unique(row, return_inverse=True)
    all_rows = np.concatenate([rows[touched].ravel(), column + first])
    all_values = np.concatenate([values[touched].ravel(), products[row, column]])
    groups = np.concatenate([np.repeat(np.arange(touched.size), k), group])
    order = np.lexsort((all_rows, -all_values, groups))
    starts = np.searchsorted(groups[order], np.arange(touched.size))
    best = order[starts[:, None] + np.arange(k)]
    rows[touched], values[touched] = all_rows[best], all_values[best]
