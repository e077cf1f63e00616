"""The largest dot products of many vectors with many, without ever holding all of them."""

from __future__ import annotations

import numpy as np

from treedot.errors import ParameterError
from treedot.parameters import checked_integer

# A tile of dot products is large enough for matrix multiplication at full speed, and small beside
# the vectors themselves.
TILE = 2048


def nearest(X: np.ndarray, Y: np.ndarray | None = None, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Return for every row of X the ``k`` rows of Y with the largest dot products, best first.

    Parameters
    ----------
    X, Y : arrays of shape (rows, dimensions)
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
    X = np.asanyarray(X)
    others = X if Y is None else np.asanyarray(Y)
    if X.ndim != 2 or others.ndim != 2 or X.shape[1] != others.shape[1]:
        raise ParameterError(f"cannot compare rows of shapes {X.shape} and {others.shape}")
    k = min(k, len(others) - (Y is None))
    if k < 1:
        raise ParameterError("there is nothing to compare with")
    rows = np.full((len(X), k), -1, np.int64)
    kind = np.result_type(X, others, np.float32)
    values = np.full((len(X), k), -np.inf, kind)
    for start in range(0, len(X), TILE):
        part = np.asarray(X[start : start + TILE], kind)
        here = slice(start, start + len(part))
        for first in range(start if Y is None else 0, len(others), TILE):
            products = part @ np.asarray(others[first : first + TILE], kind).T
            if not np.isfinite(products).all():
                raise ParameterError("a dot product is not finite: there is nan or inf among the vectors")
            if Y is None and first == start:
                np.fill_diagonal(products, -np.inf)
            _keep_best(rows[here], values[here], products, first)
            if Y is None and first > start:  # the same products serve the other rows
                there = slice(first, first + products.shape[1])
                _keep_best(rows[there], values[there], np.ascontiguousarray(products.T), start)
    return rows, values


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
