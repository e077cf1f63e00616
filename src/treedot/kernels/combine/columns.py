"""Kernels of table columns and of numbers, for examples that consist of more than one tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from treedot._runtime.array_types import FloatArray
from treedot.errors import ParameterError, SourceError
from treedot.kernels.combine.combinations import checked_kernel
from treedot.kernels.kernel import Kernel
from treedot.kernels.tree_kernel import numbers_of_examples
from treedot.trees import Forest


class ColumnKernel(Kernel):
    """A kernel of one column of a table, for examples with several trees, or with trees and numbers.

    A table is a mapping of names to columns, a data frame, an Arrow table, a ``Forest`` with columns, or a
    sequence of rows; each row is a mapping or a sequence.

    Parameters
    ----------
    kernel : Kernel
        The kernel of the column's values.
    column : str, int, or list of these
        The column's name, or its position in the rows; several for a ``LinearKernel`` of several columns.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel
    >>> pairs = {"text": ["(S (A a))", "(S (A b))"], "hypothesis": ["(S (A a))", "(S (B a))"]}
    >>> pairs["words"] = [1, 2]
    >>> tree = SubsetTreeKernel(0.5)
    >>> kernel = ColumnKernel(tree, "text") * ColumnKernel(tree, "hypothesis")
    >>> kernel.gram(pairs)
    array([[6.25, 0.  ],
           [0.  , 6.25]])
    >>> (kernel + ColumnKernel(LinearKernel(), "words")).gram(pairs)
    array([[ 7.25,  2.  ],
           [ 2.  , 10.25]])
    """

    def __init__(self, kernel: Kernel, column: str | int | list[str | int]) -> None:
        self.kernel = checked_kernel("kernel", kernel)
        names = column if isinstance(column, list) else [column]
        if not names or not all(isinstance(name, (str, int)) for name in names):
            raise ParameterError(f"column must be a name, a number, or a list of these, not {column!r}")
        self.column = column

    def read(self, X: Any) -> Any:
        return X  # the whole table: other kernels may read other columns

    def __call__(self, a: Any, b: Any) -> float:
        if isinstance(self.column, list):
            return self.kernel(*([cell_of(row, name) for name in self.column] for row in (a, b)))
        return self.kernel(cell_of(a, self.column), cell_of(b, self.column))

    def gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        return self.kernel.gram(self._of(X), None if Y is None else self._of(Y), n_jobs=n_jobs)

    def pairs(
        self, X: Any, rows: npt.ArrayLike, columns: npt.ArrayLike, *, n_jobs: int | None = None
    ) -> FloatArray:
        return self.kernel.pairs(self._of(X), rows, columns, n_jobs=n_jobs)

    def diagonal(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        return self.kernel.diagonal(self._of(X), n_jobs=n_jobs)

    def _of(self, table: Any) -> Any:
        """Return the values that the kernel compares."""
        if not isinstance(self.column, list):
            return column_of(table, self.column)
        try:
            return np.column_stack([np.asarray(column_of(table, name)) for name in self.column])
        except ValueError:
            raise SourceError(f"the columns {self.column} must contain numbers and be equally long") from None


class LinearKernel(Kernel):
    """The dot product of numbers: one number or equally long vectors of numbers, dense or sparse.

    Examples
    --------
    >>> LinearKernel().gram([[1, 2], [3, 4]])
    array([[ 5., 11.],
           [11., 25.]])
    >>> LinearKernel()([1, 2], [3, 4])
    11.0
    """

    def read(self, X: Any) -> Any:
        if hasattr(X, "tocsr"):
            sparse = X.tocsr().astype(np.float64)
            if np.isfinite(sparse.data).all():
                return sparse
        try:
            matrix = np.asarray(X, np.float64, order="C")  # fixes how sums are rounded
        except (TypeError, ValueError):
            matrix = np.full(1, np.nan)
        if matrix.ndim == 1:
            matrix = matrix[:, None]
        if matrix.ndim != 2 or not np.isfinite(matrix).all():
            raise SourceError("LinearKernel takes finite numbers, the same number of them for each example")
        return matrix

    def __call__(self, a: Any, b: Any) -> float:
        return float(self.gram([np.ravel(a)], [np.ravel(b)])[0, 0])

    def gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        x = self.read(X)
        y = x if Y is None else self.read(Y)
        if x.shape[1] != y.shape[1]:
            raise SourceError(f"cannot compare examples of {x.shape[1]} and of {y.shape[1]} numbers")
        if hasattr(x, "tocsr") or hasattr(y, "tocsr"):
            product = x @ y.T
            return np.asarray(product.toarray() if hasattr(product, "toarray") else product)
        out: FloatArray = np.einsum("ik,jk->ij", x, y)  # not by BLAS: the same bytes in any batch
        return out

    def pairs(
        self, X: Any, rows: npt.ArrayLike, columns: npt.ArrayLike, *, n_jobs: int | None = None
    ) -> FloatArray:
        x = self.read(X)
        i, j = numbers_of_examples(rows, columns, x.shape[0])
        if hasattr(x, "tocsr"):
            return np.asarray(x[i].multiply(x[j]).sum(axis=1), float).ravel()
        out: FloatArray = np.einsum("ik,ik->i", x[i], x[j])  # rounded as in gram
        return out

    def diagonal(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        x = self.read(X)
        every = np.arange(x.shape[0])
        return self.pairs(x, every, every)


def column_of(table: Any, name: str | int) -> Any:
    """Return one column of a table; raise if there is no such column."""
    columns: Any = table.columns if isinstance(table, Forest) else table
    try:
        if isinstance(columns, Mapping) or not isinstance(columns, Sequence | np.ndarray):
            return columns[name]
    except (KeyError, IndexError, TypeError, ValueError):
        raise SourceError(f"no column {name!r} in this {type(table).__name__}") from None
    return [cell_of(row, name) for row in columns]


def cell_of(row: Any, name: str | int) -> Any:
    """Return one value of a row; raise if there is no such column."""
    try:
        return row[name]
    except (KeyError, IndexError, TypeError, ValueError):
        raise SourceError(f"no column {name!r} in this {type(row).__name__}") from None
