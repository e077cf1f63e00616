"""Dot products of vectors: dense ones through BLAS, sparse rows by an inverted index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from treedot._runtime.array_types import Matrix
from treedot.errors import DeviceError, ParameterError
from treedot.vectors.inverted_index import InvertedIndex, real_rows
from treedot.vectors.vectors import comparable

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


DENSE_RUN = 256  # the fewest columns that pay for a dense matrix product
SAMPLED = 64  # rows examined to find such columns


def dot_products(X: Any, Y: Any = None, n_jobs: int | None = None, device: str = "cpu") -> Matrix:
    """Return the dot products of all rows of X with all rows of Y, or of X itself, as a dense matrix.

    For sparse rows of fragments this is faster than ``(X @ Y.T).toarray()``, and its memory does not depend
    on the number of columns. Dense vectors, and the columns of a dense rest, are multiplied by BLAS in their
    own type.

    Parameters
    ----------
    X : array, sparse matrix or Vectors, of shape (n_X, n_components)
        Vectors of trees.
    Y : array, sparse matrix or Vectors, of shape (n_Y, n_components), default=None
        More vectors; those of X by default. Two ``Vectors``, as ``load_vectors`` returns them, must have the
        same settings. Plain matrices are not checked.
    n_jobs : int, default=None
        Threads for sparse rows; -1 for all cores. The products are the same to the byte.
    device : str, default="cpu"
        "cpu", or "cuda" to multiply dense vectors on a GPU, in float32.

    Returns
    -------
    array of shape (n_X, n_Y)
        In float64 if X or Y is sparse, since sums run over many small values; otherwise in the type of the
        dense matrices, float32 by default.

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
        others = X if Y is None else Y
        if X.ndim != 2 or others.ndim != 2 or X.shape[1] != others.shape[1]:
            raise ParameterError(f"cannot compare rows of shapes {X.shape} and {others.shape}")
        if device != "cpu":
            from treedot.vectors.gpu.products import products_on_gpu

            return products_on_gpu(X, others, device)
        dense_products: Matrix = X @ others.T
        return dense_products
    if device != "cpu":
        raise DeviceError(f"sparse rows need device='cpu', not {device!r}")
    x = real_rows(X)
    y = x if Y is None else real_rows(Y)
    if x.shape[1] != y.shape[1]:
        raise ParameterError(f"cannot compare rows of {x.shape[1]} and {y.shape[1]} columns")
    if (dense := dense_columns(x if x.shape[0] > y.shape[0] else y)) is not None:
        (x, left), (y, right) = _split(x, dense), _split(y, dense)
        sparse = dot_products(x, None if Y is None else y, n_jobs)
        sparse += left @ right.T
        return sparse
    if Y is None:
        return InvertedIndex(x).own_products(n_jobs)
    if x.nnz < y.nnz:  # index the smaller matrix
        return InvertedIndex(x).products(y, n_jobs).T
    return InvertedIndex(y).products(x, n_jobs)


def dense_columns(rows: csr_matrix) -> range | None:
    """Return the last columns if half of the rows in a sample hold all of them, as they do a dense rest.

    Multiplied as a dense matrix, they are many times as fast.
    """
    lengths = []
    for row in range(0, rows.shape[0], max(1, rows.shape[0] // SAMPLED)):
        indices = rows.indices[rows.indptr[row] : rows.indptr[row + 1]].astype(np.int64)
        missing = rows.shape[1] - indices - np.arange(indices.size, 0, -1)  # columns after each that it lacks
        lengths.append(int(np.argmax(missing[::-1] != 0)) if missing.any() else indices.size)
    width = max(lengths, default=0)
    if width < DENSE_RUN or 2 * lengths.count(width) < len(lengths):
        return None
    return range(rows.shape[1] - width, rows.shape[1])


def _split(rows: csr_matrix, dense: range) -> tuple[csr_matrix, Matrix]:
    """Return the rows without the columns ``dense``, and these columns as a dense matrix."""
    from scipy.sparse import csr_matrix

    inside = (rows.indices >= dense.start) & (rows.indices < dense.stop)
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    block = np.zeros((rows.shape[0], len(dense)), rows.dtype)
    np.add.at(block, (row[inside], rows.indices[inside] - dense.start), rows.data[inside])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[~inside], minlength=rows.shape[0]))])
    return csr_matrix((rows.data[~inside], rows.indices[~inside], indptr), shape=rows.shape), block
