"""Dot products of sparse rows with sparse rows, by lists of the rows that hold each column."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from treedot.errors import ParameterError
from treedot.jit import njit
from treedot.parameters import n_threads

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.signedinteger[Any]]

TILE = 256  # rows of products at a time
DIGIT = 11  # bits by which columns are sorted at a time: three times for 2^30 columns


class Postings:
    """The rows of a sparse matrix by column: for each column in use, who holds it, and which value.

    Parameters
    ----------
    rows : sparse matrix
        Turned into CSR; a column that a row holds several times is added up.
    """

    def __init__(self, rows: Any) -> None:
        self.rows = _real_rows(rows)
        self._sort()
        again = (self.holder[1:] == self.holder[:-1]) & (self._columns[1:] == self._columns[:-1])
        if again.any():
            self.rows = self.rows.copy()
            self.rows.sum_duplicates()
            self._sort()

    def _sort(self) -> None:
        count = np.diff(self.rows.indptr)
        self.order = _order(self.rows.indices)
        self._columns = self.rows.indices[self.order]
        self.holder = np.repeat(np.arange(count.size, dtype=np.int32), count)[self.order]
        self.value = self.rows.data[self.order]
        changes = np.flatnonzero(self._columns[1:] != self._columns[:-1]) + 1
        limits = (
            np.concatenate([[0], changes, [self._columns.size]]) if self._columns.size else np.zeros(1, int)
        )
        self.column, self.start = self._columns[limits[:-1]], limits

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def products(self, rows: csr_matrix, n_jobs: int | None = None) -> Iterator[tuple[int, FloatArray]]:
        """Yield the products of some rows at a time with all rows here, and the number of the first.

        Sums run over the columns of a row in its own order, in float64, whatever the threads.
        """
        if rows.shape[1] != self.rows.shape[1]:
            raise ParameterError(
                f"cannot compare rows of {rows.shape[1]} and of {self.rows.shape[1]} columns"
            )
        place = np.searchsorted(self.column, rows.indices)
        known = np.append(self.column, -1)[place] == rows.indices
        limits = np.append(self.start, self.start[-1])
        first, last = limits[place], np.where(known, limits[place + 1], limits[place])
        return self._tiles(rows, first, last, n_jobs)

    def own_products(self, n_jobs: int | None = None) -> Iterator[tuple[int, FloatArray]]:
        """Yield the products of the rows with themselves and with those behind them; before, zeros."""
        first, last = np.empty((2, self.order.size), np.int64)
        first[self.order] = np.arange(self.order.size)  # lists are in the order of the rows
        last[self.order] = np.repeat(self.start[1:], np.diff(self.start))
        return self._tiles(self.rows, first, last, n_jobs)

    def _tiles(
        self, rows: csr_matrix, first: IntArray, last: IntArray, n_jobs: int | None
    ) -> Iterator[tuple[int, FloatArray]]:
        def tile(start: int) -> FloatArray:
            out = np.zeros((min(TILE, rows.shape[0] - start), len(self)))
            _multiply(rows.indptr[start:], rows.data, first, last, self.holder, self.value, out)
            return out

        threads = n_threads(n_jobs)
        with ThreadPoolExecutor(threads) as pool:
            for first_tile in range(0, rows.shape[0], TILE * threads):  # no more tiles than are being used
                starts = range(first_tile, min(first_tile + TILE * threads, rows.shape[0]), TILE)
                yield from zip(starts, pool.map(tile, starts), strict=True)


def sparse_gram(X: Any, Y: Any = None, n_jobs: int | None = None) -> FloatArray:
    """Return the dot products of all rows of X with all rows of Y, or of X itself, as a dense matrix.

    For the rows of ``StratifiedTreeVectorizer`` this is about 1.5 times as fast as ``(X @ Y.T).toarray()``,
    and takes no memory for the number of columns.

    Examples
    --------
    >>> from treedot import StratifiedTreeVectorizer, sparse_gram
    >>> print(sparse_gram(StratifiedTreeVectorizer(decay=0.25).transform(["(A b)", "(A c)", "(B (A b))"])))
    [[1.   0.   1.  ]
     [0.   1.   0.  ]
     [1.   0.   2.25]]
    """
    lists = Postings(X if Y is None else Y)
    rows = lists.rows if Y is None else _real_rows(X)
    out = np.empty((rows.shape[0], len(lists)))
    for start, values in lists.own_products(n_jobs) if Y is None else lists.products(rows, n_jobs):
        out[start : start + len(values)] = values
    if Y is None:
        _mirror(out)
    return out


def products(X: Any, Y: Any = None, n_jobs: int | None = None) -> npt.NDArray[np.floating[Any]]:
    """Return the dot products of rows, dense or sparse, with each other or with those of Y."""
    if not isinstance(X, np.ndarray):
        return sparse_gram(X, Y, n_jobs)
    dense: npt.NDArray[np.floating[Any]] = X @ (X if Y is None else Y).T
    return dense


def _real_rows(rows: Any) -> csr_matrix:
    from scipy.sparse import csr_matrix

    found = csr_matrix(rows)
    if found.dtype.kind not in "fiub":
        raise ParameterError(f"rows must hold real numbers, not {found.dtype}")
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)


@njit
def _order(columns: IntArray) -> IntArray:
    """Return the order of columns, equal ones as they stand: sorted by eleven bits after eleven bits."""
    order, column = np.arange(columns.size), columns
    largest = columns.max() if columns.size else 0
    for shift in range(0, 64, DIGIT):
        if largest >> shift == 0:
            break
        place = np.zeros((1 << DIGIT) + 1, np.int64)
        for x in column:
            place[((x >> shift) & ((1 << DIGIT) - 1)) + 1] += 1
        place = np.cumsum(place)
        sorted_order, sorted_column = np.empty_like(order), np.empty_like(column)
        for k in range(order.size):
            digit = (column[k] >> shift) & ((1 << DIGIT) - 1)
            sorted_order[place[digit]], sorted_column[place[digit]] = order[k], column[k]
            place[digit] += 1
        order, column = sorted_order, sorted_column
    return order


@njit
def _multiply(
    indptr: IntArray, data: npt.NDArray[Any], first: IntArray, last: IntArray,
    holder: IntArray, value: npt.NDArray[Any], out: FloatArray,
) -> None:  # fmt: skip
    for i in range(out.shape[0]):
        line = out[i]
        for k in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[k])
            for other in range(first[k], last[k]):
                line[holder[other]] += x * np.float64(value[other])


@njit
def _mirror(matrix: FloatArray) -> None:
    """Copy the upper half to the lower one, in small squares that stay in the cache."""
    n, side = matrix.shape[0], 32
    for top in range(0, n, side):
        for left in range(top, n, side):
            for i in range(top, min(top + side, n)):
                for j in range(max(left, i + 1), min(left + side, n)):
                    matrix[j, i] = matrix[i, j]
