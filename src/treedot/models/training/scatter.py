"""The scatter of rows around the means of their groups, and the factor of its regularised inverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, Matrix, Row
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.threads import open_threads
from treedot.errors import RangeError
from treedot.vectors.metric.triangle import tiles_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BATCH = 8192  # rows at a time
NOT_DEFINITE = "the covariance is singular in float64: use a larger shrinkage"
DENSE = 8  # rows with more than one non-zero in this many columns are multiplied by BLAS


class Factor(Protocol):
    """A triangular matrix M such that ``M Mᵀ`` is the inverse of a regularised covariance."""

    def mapped(self, rows: Matrix) -> Matrix:
        """Return the products of dense rows and M."""

    def tiles(self) -> Row:
        """Return M in tiles; the factor cannot be used afterwards."""


class Scatter(Protocol):
    """A sum of the outer products of rows around the means of their groups."""

    def add(self, rows: Any, groups: IntArray) -> None:
        """Add all rows of some groups; ``groups`` numbers the group of each row from 0."""

    def factor(self, shrinkage: float, *, keep: bool = True) -> Factor:
        """Return the factor of the inverse of ``S + shrinkage * t * I``, t the mean diagonal of S.

        S is the scatter up to a factor, which changes no cosine. Without ``keep``, S is overwritten.
        """


class ScatterInMemory:
    """The scatter of rows in float64: exact sums, of which only the upper triangle is used.

    Parameters
    ----------
    n_columns : int
        The number of columns of the rows.
    n_jobs : int or None
        The number of threads for sparse rows. The sums do not depend on it.
    """

    def __init__(self, n_columns: int, n_jobs: int | None = None) -> None:
        self._total = np.zeros((n_columns, n_columns))
        self._n_jobs = n_jobs

    def add(self, rows: Any, groups: IntArray) -> None:
        """Add all rows of some groups; ``groups`` numbers the group of each row from 0."""
        for first in range(0, rows.shape[0], BATCH):
            self._add_outer(rows[first : first + BATCH], 1.0)
        self._add_outer(scaled_sums(rows, groups), -1.0)

    def _add_outer(self, rows: Any, sign: float) -> None:
        """Add the sum of the outer products of rows, times a sign, to the upper triangle."""
        if hasattr(rows, "toarray") and rows.nnz * DENSE > rows.shape[0] * rows.shape[1]:
            for first in range(0, rows.shape[0], 1024):
                self._add_outer(rows[first : first + 1024].toarray(), sign)
        elif hasattr(rows, "toarray"):
            self._add_sparse(rows, sign)
        else:
            self._total += sign * (rows.T @ rows)

    def _add_sparse(self, rows: csr_matrix, sign: float) -> None:
        order = np.argsort(rows.indices, kind="stable")
        counts = np.bincount(rows.indices, minlength=rows.shape[1])
        start = np.concatenate([[0], np.cumsum(counts)])
        end = np.repeat(rows.indptr[1:], np.diff(rows.indptr))[order].astype(np.int64)

        def work(first: int, last: int) -> None:
            _add_columns(first, last, start, order, end, rows.indices, rows.data, sign, self._total)

        with open_threads(self._n_jobs) as threads:
            threads.run(work, threads.even_spans(start, 1 << 16))

    def factor(self, shrinkage: float, *, keep: bool = True) -> FactorInMemory:
        """Return the factor of the inverse of ``S + shrinkage * t * I``, t the mean diagonal of S."""
        from scipy.linalg import lapack

        matrix = self._total.copy() if keep else self._total
        diagonal = np.einsum("ii->i", matrix)
        diagonal += shrinkage * mean_diagonal(float(diagonal.sum()), diagonal.size)
        lower, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise RangeError(NOT_DEFINITE)
        return FactorInMemory(lower)


class FactorInMemory(NamedTuple):
    """The Cholesky factor L of a regularised covariance, in column-major order; M is the inverse of Lᵀ."""

    lower: FloatArray

    def mapped(self, rows: Matrix) -> Matrix:
        """Return the products of dense rows and M."""
        from scipy.linalg import lapack

        found, _ = lapack.dtrtrs(self.lower, rows.T, lower=1)
        vectors: Matrix = found.T
        return vectors

    def tiles(self) -> Row:
        """Return M in tiles; the factor cannot be used afterwards."""
        from scipy.linalg import lapack

        inverse, _ = lapack.dtrtri(self.lower, lower=1, overwrite_c=1)
        return tiles_of(inverse.T)


def mean_diagonal(trace: float, size: int) -> float:
    """Return the mean diagonal of a covariance; 1 if it is zero, as if all members of a group are equal."""
    mean = trace / size
    return mean if mean > 0 else 1.0


def scaled_sums(rows: Any, groups: IntArray) -> Any:
    """Return the sum of the rows of each group, divided by the square root of their number."""
    from scipy.sparse import csr_matrix

    counts = np.bincount(groups)
    weights = 1 / np.sqrt(counts[groups])
    members = csr_matrix((weights, groups, np.arange(groups.size + 1)), shape=(groups.size, counts.size))
    sums = members.T.tocsr() @ rows
    if hasattr(sums, "sort_indices"):
        sums.sort_indices()
    return sums


@njit_borrowing
def _add_columns(
    first: int, last: int, start: IntArray, order: IntArray, end: IntArray,
    indices: IntArray, values: Row, sign: float, total: FloatArray,
) -> None:  # fmt: skip
    """Add the products of some columns with themselves and with those that follow them.

    ``order`` holds the places of all non-zeros, column by column, and ``end`` the ends of their rows.
    """
    for column in range(first, last):
        line = total[column]
        for k in range(start[column], start[column + 1]):
            x = sign * values[order[k]]
            for place in range(order[k], end[k]):
                line[indices[place]] += x * values[place]
