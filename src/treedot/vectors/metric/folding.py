"""Hash the columns of sparse rows into fewer columns, and scale the rows to length 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, Matrix
from treedot._runtime.hashing import GOLDEN, mix_words
from treedot.errors import ParameterError
from treedot.vectors.inverted_index import real_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Folding(NamedTuple):
    """The columns of rows, and the columns into which a metric hashes them.

    Attributes
    ----------
    width : int
        The number of columns of the rows.
    n_columns : int
        The number of columns after hashing: a power of two, or ``width`` if the columns stay as they are.
    """

    width: int
    n_columns: int

    @classmethod
    def of(cls, width: int, wanted: int) -> Folding:
        """Return the folding of rows with ``width`` columns to at most ``wanted``, a power of two."""
        return cls(width, min(width, wanted))

    def places(self, columns: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the column and the sign of some columns of the rows."""
        if self.n_columns == self.width:
            return columns, np.ones(columns.size)
        with np.errstate(over="ignore"):  # products wrap around
            word = mix_words((columns.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN))
        column = (word >> np.uint64(65 - self.n_columns.bit_length())).astype(np.int32)
        return column, np.where(word & np.uint64(1), -1.0, 1.0)

    def sparse(self, rows: Any) -> csr_matrix:
        """Return hashed sparse rows in float64, scaled to length 1, with ascending columns."""
        return self.scaled(rows)[0]

    def scaled(self, rows: Any) -> tuple[csr_matrix, FloatArray]:
        """Return sparse rows of length 1, and the lengths by which they were divided."""
        from scipy.sparse import csr_matrix

        given = real_rows(rows)
        self._check(given.shape[1])
        columns, signs = self.places(given.indices)
        found = csr_matrix(
            (given.data * signs, columns, given.indptr), shape=(given.shape[0], self.n_columns), copy=True
        )
        found.sum_duplicates()
        row = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
        squares = np.bincount(row, found.data**2, found.shape[0]).astype(np.float64)
        lengths = _lengths(squares)
        found.data /= lengths[row]
        return found, lengths

    def dense(self, rows: Matrix) -> FloatArray:
        """Return dense rows in float64, scaled to length 1; rows of zeros stay zeros."""
        self._check(rows.shape[1])
        if self.n_columns != self.width:
            raise ParameterError(
                f"dense rows of {self.width} columns cannot be hashed into {self.n_columns}: "
                f"use n_columns={1 << (self.width - 1).bit_length()}"
            )
        found = np.asarray(rows, np.float64)
        squares = np.einsum("ij,ij->i", found, found)
        return found / _lengths(squares)[:, None]

    def _check(self, width: int) -> None:
        if width != self.width:
            raise ParameterError(f"these rows have {width} columns, but the metric has learned {self.width}")


def _lengths(squares: FloatArray) -> FloatArray:
    """Return the lengths of rows, and 1 for rows of zeros; raise unless all are finite."""
    if not np.isfinite(squares).all():
        raise ParameterError("a row is not finite, or too long: there is nan, inf or a huge number in it")
    return np.sqrt(np.where(squares > 0, squares, 1.0))
