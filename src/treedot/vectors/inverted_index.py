"""Inverted indexes of sparse rows: for each column in use, the rows that hold it and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray, Row
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot._runtime.sorted_arrays import order_of, runs
from treedot._runtime.threads import thread_map
from treedot.errors import ParameterError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


TILE = 256  # rows of products computed at a time


class PostingLists(NamedTuple):
    """The postings of each column: ``row[start[c]:start[c + 1]]`` and ``value``, likewise, of ``column[c]``.

    Columns are sorted, and so are the rows of each column; ``table`` is a hash table of the columns.
    """

    column: IntArray
    start: IntArray
    row: IntArray
    value: Row
    table: IntArray


class InvertedIndex:
    """The rows of a sparse matrix by column: for each column in use, the rows that hold it and their values.

    Time and memory depend on the number of non-zeros, not on the number of columns.

    Parameters
    ----------
    rows : sparse matrix
        Converted to CSR; duplicate entries are summed.
    """

    def __init__(self, rows: Any) -> None:
        self.rows = real_rows(rows)
        columns, row = self._sort()
        if ((row[1:] == row[:-1]) & (columns[1:] == columns[:-1])).any():
            self.rows = self.rows.copy()
            self.rows.sum_duplicates()
            columns, row = self._sort()
        column, start = runs(columns)
        self.lists = PostingLists(column, start, row, self.rows.data[self._order], _hash_table(column))

    def _sort(self) -> tuple[IntArray, IntArray]:
        """Return the columns of all non-zeros, sorted, and the row of each."""
        count = np.diff(self.rows.indptr)
        self._order = order_of(self.rows.indices)
        row = np.repeat(np.arange(count.size, dtype=np.int32), count)[self._order]
        return self.rows.indices[self._order], row

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def products(self, rows: csr_matrix, n_jobs: int | None = None) -> FloatArray:
        """Return the dot products of ``rows`` with all rows of the index.

        Sums run over the columns of a row in its own order, in float64, for any number of threads.
        """

        def tile(part: slice, out: FloatArray) -> None:
            _multiply(rows.indptr[part.start :], rows.indices, rows.data, self.lists, out)

        return self._by_tiles(tile, rows.shape[0], n_jobs)

    def own_products(self, n_jobs: int | None = None) -> FloatArray:
        """Return the dot products of all rows of the index with each other."""
        first, last = np.empty((2, self._order.size), np.int64)
        first[self._order] = np.arange(self._order.size)  # lists are in the order of the rows
        last[self._order] = np.repeat(self.lists.start[1:], np.diff(self.lists.start))

        def tile(part: slice, out: FloatArray) -> None:
            indptr = self.rows.indptr[part.start :]
            _multiply_following(indptr, self.rows.data, first, last, self.lists.row, self.lists.value, out)

        out = self._by_tiles(tile, len(self), n_jobs)
        _mirror(out)
        return out

    def _by_tiles(self, tile: Any, count: int, n_jobs: int | None) -> FloatArray:
        out = np.zeros((count, len(self)))
        parts = [slice(start, min(start + TILE, count)) for start in range(0, count, TILE)]
        with thread_map(n_jobs, len(parts)) as run_all:
            list(run_all(lambda part: tile(part, out[part]), parts))
        return out


def real_rows(rows: Any) -> csr_matrix:
    """Return rows as CSR of float32 or float64."""
    from scipy.sparse import csr_matrix

    found = csr_matrix(rows)
    if found.dtype.kind not in "fiub":
        raise ParameterError(f"rows must hold real numbers, not {found.dtype}")
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)


def _hash_table(column: IntArray) -> IntArray:
    """Return a hash table with open addressing, at most half full: numbers of columns, or -1."""
    table = np.full(max(16, 1 << (2 * column.size - 1).bit_length()), -1, np.int32)
    _fill_table(column, table)
    return table


@njit_borrowing
def _fill_table(column: IntArray, table: IntArray) -> None:
    for number in range(column.size):
        bucket = _bucket(column[number], table.size)
        while table[bucket] >= 0:
            bucket = (bucket + 1) & (table.size - 1)
        table[bucket] = number


@njit_inside
def _bucket(column: int, buckets: int) -> int:
    # 62-bit arithmetic keeps products inside a signed word.
    code = (np.int64(column) ^ (np.int64(column) >> 31)) & 0x7FFFFFFF
    code *= 0x4C957F2D
    return int((code ^ (code >> 32)) & (buckets - 1))


@njit_inside
def find(column: int, lists: PostingLists) -> int:
    """Return the number of a column's posting list, or -1 if it has none."""
    bucket = _bucket(column, lists.table.size)
    while True:
        number = lists.table[bucket]
        if number < 0 or lists.column[number] == column:
            return int(number)
        bucket = (bucket + 1) & (lists.table.size - 1)


@njit_inside
def add_products(indices: IntArray, data: Array, lists: PostingLists, line: FloatArray) -> None:
    """Add the products of one row with all rows of an index to ``line``, which has one sum per row."""
    for k in range(indices.size):
        number = find(indices[k], lists)
        if number < 0:
            continue
        x = np.float64(data[k])
        for other in range(lists.start[number], lists.start[number + 1]):
            line[lists.row[other]] += x * np.float64(lists.value[other])


@njit_borrowing
def _multiply(indptr: IntArray, indices: IntArray, data: Array, lists: PostingLists, out: FloatArray) -> None:
    for i in range(out.shape[0]):
        add_products(indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]], lists, out[i])


@njit_borrowing
def _multiply_following(
    indptr: IntArray, data: Array, first: IntArray, last: IntArray,
    row: IntArray, value: Array, out: FloatArray,
) -> None:  # fmt: skip
    """Fill in the products of each row with itself and with the following rows."""
    for i in range(out.shape[0]):
        line = out[i]
        for k in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[k])
            for other in range(first[k], last[k]):
                line[row[other]] += x * np.float64(value[other])


@njit_borrowing
def _mirror(matrix: FloatArray) -> None:
    """Copy the upper triangle to the lower one, in small squares that fit into the cache."""
    n, side = matrix.shape[0], 32
    for top in range(0, n, side):
        for left in range(top, n, side):
            for i in range(top, min(top + side, n)):
                for j in range(max(left, i + 1), min(left + side, n)):
                    matrix[j, i] = matrix[i, j]
