"""A triangular matrix in tiles, and its product with rows.

The matrix has as many rows as columns, and its entry (input, output) is zero if the input comes after the
output. Tile t holds the ``SIDE`` outputs from ``t * SIDE`` on, of all inputs before ``(t + 1) * SIDE``, one
input after the other; so a tile stays in a processor's cache while many sparse rows are multiplied with it.
The outputs of the last tile may go beyond the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, Matrix, Row
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.simd import LANES, load, splat, store
from treedot._runtime.threads import open_threads

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SIDE = 64
ROWS = 512  # rows multiplied at a time


def tiles_of(upper: FloatArray) -> Row:
    """Return the upper triangle of a matrix in tiles, in float32."""
    size = upper.shape[0]
    tiles = np.zeros(n_elements(size), np.float32)
    for number in range(-(-size // SIDE)):
        first, last = number * SIDE, min((number + 1) * SIDE, size)
        tile = _tile(tiles, number)
        tile[:last, : last - first] = np.asarray(upper[:last, first:last])
        tile[first:last, : last - first] = np.triu(tile[first:last, : last - first])
    return tiles


def n_elements(size: int) -> int:
    """Return the number of elements in the tiles of a matrix."""
    count = -(-size // SIDE)
    return SIDE * SIDE * count * (count + 1) // 2


def square(tiles: Row, size: int) -> Matrix:
    """Return the matrix that tiles hold."""
    found = np.zeros((size, size), tiles.dtype)
    for number in range(-(-size // SIDE)):
        first, last = number * SIDE, min((number + 1) * SIDE, size)
        found[:last, first:last] = _tile(tiles, number)[:last, : last - first]
    return found


def _tile(tiles: Row, number: int) -> Row:
    """Return one tile, of shape (inputs, outputs)."""
    start, count = SIDE * SIDE * number * (number + 1) // 2, number + 1
    return tiles[start : start + SIDE * SIDE * count].reshape(SIDE * count, SIDE)


def sparse_product(rows: csr_matrix, tiles: Row, n_jobs: int | None = None) -> Row:
    """Return the product of rows, with ascending columns, and the matrix in tiles; in float32."""
    count, size = rows.shape
    out = np.empty((count, -(-size // SIDE) * SIDE), np.float32)
    values = rows.data.astype(np.float32)
    tiles = tiles.view()
    tiles.setflags(write=False)  # like mapped files: one compiled version serves both
    spans = [(first, min(first + ROWS, count)) for first in range(0, count, ROWS)]

    def work(first: int, last: int) -> None:
        _multiply(rows.indptr[first : last + 1], rows.indices, values, tiles, out[first:last].reshape(-1))

    with open_threads(n_jobs, len(spans)) as threads:
        threads.run(work, spans)
    return out[:, :size]


def dense_product(rows: Matrix, tiles: Row, dtype: type[np.floating[Any]] = np.float32) -> Row:
    """Return the product of dense rows and the matrix in tiles, by BLAS."""
    count, size = rows.shape
    values, out = rows.astype(dtype), np.empty((count, size), dtype)
    for number in range(-(-size // SIDE)):
        first, last = number * SIDE, min((number + 1) * SIDE, size)
        out[:, first:last] = values[:, :last] @ _tile(tiles, number)[:last, : last - first]
    return out


def transposed_product(vectors: Matrix, tiles: Row) -> FloatArray:
    """Return the product of dense rows and the transposed matrix, in float64."""
    count, size = vectors.shape
    values, out = vectors.astype(np.float64), np.zeros((count, size))
    for number in range(-(-size // SIDE)):
        first, last = number * SIDE, min((number + 1) * SIDE, size)
        out[:, :last] += values[:, first:last] @ _tile(tiles, number)[:last, : last - first].T
    return out


@njit_borrowing
def _multiply(indptr: IntArray, indices: IntArray, values: Row, tiles: Row, out: Row) -> None:
    """Write the products of rows to ``out``, tile by tile."""
    count = indptr.size - 1
    width = out.size // max(1, count)
    start = 0
    for first in range(0, width, SIDE):
        for row in range(count):
            zero = splat(np.float32(0))
            a, b, c, d = zero, zero, zero, zero
            for k in range(indptr[row], indptr[row + 1]):
                column = np.int64(indices[k])
                if column >= first + SIDE:
                    break
                x, at = splat(values[k]), int(start + column * SIDE)
                a = a + x * load(tiles, at)
                b = b + x * load(tiles, at + LANES)
                c = c + x * load(tiles, at + 2 * LANES)
                d = d + x * load(tiles, at + 3 * LANES)
            to = row * width + first
            store(out, to, a)
            store(out, to + LANES, b)
            store(out, to + 2 * LANES, c)
            store(out, to + 3 * LANES, d)
        start += (first + SIDE) * SIDE
