"""Dot products of vectors; of sparse rows by an inverted index: for each column, the rows that hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.array_types import FloatArray, IntArray, Matrix
from treedot.errors import ParameterError
from treedot.jit import njit
from treedot.threads import thread_map
from treedot.vectors.vectors import comparable

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


TILE = 256  # rows of products at a time
DENSE_RUN = 256  # columns that make it worth while to multiply them as a dense matrix
SAMPLED = 64  # rows that are looked at to find such
DIGIT = 11  # bits by which columns are sorted at a time: three times for 2^30 columns


class PostingLists(NamedTuple):
    """The postings of each column: rows ``row[start[c]:start[c + 1]]`` hold ``column[c]``, with these values.

    Columns are sorted, and so are the rows of each; ``table`` finds a column by its hash.
    """

    column: IntArray
    start: IntArray
    row: IntArray
    value: npt.NDArray[np.floating[Any]]
    table: IntArray


class InvertedIndex:
    """The rows of a sparse matrix by column: for each column in use, which rows hold it, and which values.

    Time and memory follow the non-zeros, whatever the number of columns.

    Parameters
    ----------
    rows : sparse matrix
        Turned into CSR; a column that a row holds several times is added up.
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
        """Return columns, sorted, and the row that each comes from."""
        count = np.diff(self.rows.indptr)
        self._order = order_of(self.rows.indices)
        row = np.repeat(np.arange(count.size, dtype=np.int32), count)[self._order]
        return self.rows.indices[self._order], row

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def products(self, rows: csr_matrix, n_jobs: int | None = None) -> FloatArray:
        """Return the products of some rows, of as many columns, with all rows here.

        Sums run over the columns of a row in its own order, in float64, whatever the threads.
        """

        def tile(part: slice, out: FloatArray) -> None:
            _multiply(rows.indptr[part.start :], rows.indices, rows.data, self.lists, out)

        return self._by_tiles(tile, rows.shape[0], n_jobs)

    def own_products(self, n_jobs: int | None = None) -> FloatArray:
        """Return the products of the rows with each other."""
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


def dot_products(X: Any, Y: Any = None, n_jobs: int | None = None) -> Matrix:
    """Return the dot products of all rows of X with all rows of Y, or of X itself, as a dense matrix.

    For sparse rows of fragments this is faster than ``(X @ Y.T).toarray()``, and takes no memory for the
    number of columns. Dense vectors, and the columns of a dense rest, go through BLAS in their own type.

    Parameters
    ----------
    X, Y : arrays, sparse matrices or ``Vectors``
        Vectors of trees. Two ``Vectors``, as ``load_vectors`` reads them, must have been made alike.
    n_jobs : int, optional
        Threads for sparse rows; -1 for all cores. The products are the same to the byte.

    Returns
    -------
    products : array of shape (rows of X, rows of Y)

    Examples
    --------
    >>> from treedot import FragmentVectorizer, dot_products
    >>> rows = FragmentVectorizer(decay=0.25, normalize=False).transform(["(A b)", "(A c)", "(B (A b))"])
    >>> print(dot_products(rows))
    [[1.   0.   1.  ]
     [0.   1.   0.  ]
     [1.   0.   2.25]]
    """
    X, Y = comparable(X, Y)
    if isinstance(X, np.ndarray) and (Y is None or isinstance(Y, np.ndarray)):
        dense_products: Matrix = X @ (X if Y is None else Y).T
        return dense_products
    x = real_rows(X)
    y = x if Y is None else real_rows(Y)
    if x.shape[1] != y.shape[1]:
        raise ParameterError(f"cannot compare rows of {x.shape[1]} and of {y.shape[1]} columns")
    if (dense := dense_columns(x if x.shape[0] > y.shape[0] else y)) is not None:
        (x, left), (y, right) = _split(x, dense), _split(y, dense)
        sparse = dot_products(x, None if Y is None else y, n_jobs)
        sparse += left @ right.T
        return sparse
    if Y is None:
        return InvertedIndex(x).own_products(n_jobs)
    if x.nnz < y.nnz:  # an index of the few, a pass over the many
        return InvertedIndex(x).products(y, n_jobs).T
    return InvertedIndex(y).products(x, n_jobs)


def dense_columns(rows: csr_matrix) -> range | None:
    """Return the last columns if they are those of a dense rest: held together by half of the rows.

    They are multiplied as a dense matrix, many times as fast. A sample of rows decides.
    """
    lengths = []
    for row in range(0, rows.shape[0], max(1, rows.shape[0] // SAMPLED)):
        indices = rows.indices[rows.indptr[row] : rows.indptr[row + 1]].astype(np.int64)
        behind = rows.shape[1] - indices - np.arange(indices.size, 0, -1)  # 0 where all columns follow
        lengths.append(int(np.argmax(behind[::-1] != 0)) if behind.any() else indices.size)
    width = max(lengths, default=0)
    if width < DENSE_RUN or 2 * lengths.count(width) < len(lengths):
        return None
    return range(rows.shape[1] - width, rows.shape[1])


def _split(rows: csr_matrix, dense: range) -> tuple[csr_matrix, npt.NDArray[np.floating[Any]]]:
    """Return rows without some columns, and those columns as a dense matrix."""
    from scipy.sparse import csr_matrix

    inside = (rows.indices >= dense.start) & (rows.indices < dense.stop)
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    block = np.zeros((rows.shape[0], len(dense)), rows.dtype)
    np.add.at(block, (row[inside], rows.indices[inside] - dense.start), rows.data[inside])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[~inside], minlength=rows.shape[0]))])
    return csr_matrix((rows.data[~inside], rows.indices[~inside], indptr), shape=rows.shape), block


def real_rows(rows: Any) -> csr_matrix:
    """Return rows as CSR of float32 or float64."""
    from scipy.sparse import csr_matrix

    found = csr_matrix(rows)
    if found.dtype.kind not in "fiub":
        raise ParameterError(f"rows must hold real numbers, not {found.dtype}")
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)


def runs(columns: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct values of a sorted array, and where each begins (with the end of all)."""
    changes = np.flatnonzero(columns[1:] != columns[:-1]) + 1
    start = np.concatenate([[0], changes, [columns.size]]) if columns.size else np.zeros(1, np.int64)
    return columns[start[:-1]], start


def order_of(columns: IntArray) -> IntArray:
    """Return the order of columns, equal ones as they stand."""
    return _sorted_order(
        columns, np.arange(columns.size, dtype=np.int32 if columns.size < 2**31 else np.int64)
    )


@njit
def _sorted_order(columns: IntArray, order: IntArray) -> IntArray:
    """Sort by eleven bits after eleven bits."""
    column = columns
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
def _hash_table(column: IntArray) -> IntArray:
    """Return open addresses, at most half of them in use: the number of the column there, or -1."""
    slots = 16
    while slots < 2 * column.size:
        slots *= 2
    table = np.full(slots, -1, np.int32)
    for number in range(column.size):
        slot = _slot(column[number], slots)
        while table[slot] >= 0:
            slot = (slot + 1) & (slots - 1)
        table[slot] = number
    return table


@njit
def _slot(column: int, slots: int) -> int:
    # 62-bit arithmetic keeps products inside a signed word.
    code = (np.int64(column) ^ (np.int64(column) >> 31)) & 0x7FFFFFFF
    code *= 0x4C957F2D
    return int((code ^ (code >> 32)) & (slots - 1))


@njit
def find(column: int, lists: PostingLists) -> int:
    """Return the number of a column's posting list, or -1."""
    slot = _slot(column, lists.table.size)
    while True:
        number = lists.table[slot]
        if number < 0 or lists.column[number] == column:
            return int(number)
        slot = (slot + 1) & (lists.table.size - 1)


@njit
def add_products(indices: IntArray, data: npt.NDArray[Any], lists: PostingLists, line: FloatArray) -> None:
    """Add the products of one row with all rows of an index to a line of sums, one for each."""
    for k in range(indices.size):
        number = find(indices[k], lists)
        if number < 0:
            continue
        x = np.float64(data[k])
        for other in range(lists.start[number], lists.start[number + 1]):
            line[lists.row[other]] += x * np.float64(lists.value[other])


@njit
def _multiply(
    indptr: IntArray, indices: IntArray, data: npt.NDArray[Any], lists: PostingLists, out: FloatArray
) -> None:
    for i in range(out.shape[0]):
        add_products(indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]], lists, out[i])


@njit
def _multiply_following(
    indptr: IntArray, data: npt.NDArray[Any], first: IntArray, last: IntArray,
    row: IntArray, value: npt.NDArray[Any], out: FloatArray,
) -> None:  # fmt: skip
    """Fill in the products of rows with themselves and with those behind them."""
    for i in range(out.shape[0]):
        line = out[i]
        for k in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[k])
            for other in range(first[k], last[k]):
                line[row[other]] += x * np.float64(value[other])


@njit
def _mirror(matrix: FloatArray) -> None:
    """Copy the upper half to the lower one, in small squares that stay in the cache."""
    n, side = matrix.shape[0], 32
    for top in range(0, n, side):
        for left in range(top, n, side):
            for i in range(top, min(top + side, n)):
                for j in range(max(left, i + 1), min(left + side, n)):
                    matrix[j, i] = matrix[i, j]
