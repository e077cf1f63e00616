"""The preference kernel of Shen & Joshi (2003), between pairs of which the first is the better one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from treedot._runtime.array_types import FloatArray
from treedot.errors import ParameterError, RangeError, SourceError
from treedot.kernels.combine.columns import cell_of, column_of
from treedot.kernels.combine.combinations import checked_kernel
from treedot.kernels.kernel import Kernel
from treedot.kernels.tree_kernel import numbers_of_examples
from treedot.trees import Forest


class PreferenceKernel(Kernel):
    """A kernel between pairs of trees, for learning to rank.

    ``K((a, b), (c, d)) = K(a, c) + K(b, d) - K(a, d) - K(b, c)``

    It is the dot product of the differences of both trees' feature vectors. So a linear function that is
    positive for pairs whose first tree is better ranks single trees, too, and swapping the trees of a pair
    changes the sign.

    Parameters
    ----------
    kernel : Kernel
        The kernel K of two trees, or a combination of such kernels.
    columns : sequence of two str or int, default=(0, 1)
        The columns of a table that hold the first and the second tree: names, or positions in the rows. A
        table is what ``ColumnKernel`` takes.

    See Also
    --------
    ColumnKernel : A kernel of one column of a table.

    References
    ----------
    L. Shen and A. K. Joshi (2003), *An SVM based voting algorithm with application to parse reranking*,
    CoNLL. KeLP calls this kernel ``PreferenceKernel``.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel
    >>> kernel = PreferenceKernel(SubsetTreeKernel(0.5))
    >>> kernel(["(S (A a))", "(S (B b))"], ["(S (A a))", "(S (C c))"])  # 2.5, and nothing else is shared
    2.5
    >>> kernel.gram([["(S (A a))", "(S (B b))"], ["(S (B b))", "(S (A a))"]])
    array([[ 5., -5.],
           [-5.,  5.]])
    """

    def __init__(self, kernel: Kernel, columns: Any = (0, 1)) -> None:
        self.kernel = checked_kernel("kernel", kernel)
        names = list(columns) if isinstance(columns, (list, tuple)) else []
        if len(names) != 2 or not all(isinstance(name, (str, int)) for name in names):
            raise ParameterError(f"columns must be two names or two positions, not {columns!r}")
        self.columns = columns

    def read(self, X: Any) -> Any:
        return X  # the whole table, as for a ColumnKernel

    def __call__(self, a: Any, b: Any) -> float:
        (a1, a2), (b1, b2) = ([cell_of(row, name) for name in self.columns] for row in (a, b))
        pairs = (a1, b1), (a2, b2), (a1, b2), (a2, b1)
        return float(self._preference(*(np.array(self.kernel(x, y)) for x, y in pairs)))

    def gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        x, n = self._both(X)
        y, m = (None, n) if Y is None else self._both(Y)
        whole = self.kernel.gram(x, y, n_jobs=n_jobs)
        return self._preference(whole[:n, :m], whole[n:, m:], whole[:n, m:], whole[n:, :m])

    def pairs(
        self, X: Any, rows: npt.ArrayLike, columns: npt.ArrayLike, *, n_jobs: int | None = None
    ) -> FloatArray:
        x, n = self._both(X)
        i, j = numbers_of_examples(rows, columns, n)
        first, second = np.concatenate([i, i + n, i, i + n]), np.concatenate([j, j + n, j + n, j])
        return self._preference(*self.kernel.pairs(x, first, second, n_jobs=n_jobs).reshape(4, -1))

    def diagonal(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        every = np.arange(self._both(X)[1])
        own: FloatArray = np.maximum(self.pairs(X, every, every, n_jobs=n_jobs), 0.0)  # despite rounding
        return own

    def _both(self, table: Any) -> tuple[Forest, int]:
        """Return the first trees of all pairs, then the second ones; and the number of pairs."""
        sides = [self.kernel.read(column_of(table, name)) for name in self.columns]
        if not all(isinstance(side, Forest) for side in sides):
            raise ParameterError(f"PreferenceKernel needs a kernel of trees, not {self.kernel!r}")
        if len(sides[0]) != len(sides[1]):
            raise SourceError(
                f"{len(sides[0])} first trees and {len(sides[1])} second trees do not form pairs"
            )
        return Forest.concat(sides), len(sides[0])

    def _preference(self, ac: FloatArray, bd: FloatArray, ad: FloatArray, bc: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            found: FloatArray = (ac + bd) - (ad + bc)  # a Gram matrix is symmetric to the last bit
        if not np.isfinite(found).all():
            raise RangeError(f"values of {self!r} are too large for a float: normalise its kernel")
        return found
