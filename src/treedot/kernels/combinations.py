"""Kernels made of kernels: sums, products, polynomials, and kernels of the columns of a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from treedot.array_types import FloatArray
from treedot.errors import ParameterError, RangeError, SourceError
from treedot.kernels.base import numbers_of_examples
from treedot.kernels.kernel import Kernel
from treedot.parameters import checked_integer, checked_not_negative, checked_positive
from treedot.trees import Forest

Values = Sequence[FloatArray]


class CombinedKernel(Kernel):
    """A kernel that is a function of other kernels' values: of (a, b), and maybe of (a, a) and (b, b)."""

    _of_norms = False  # whether the values of (a, a) and (b, b) count

    @property
    def _parts(self) -> list[Kernel]:
        """The kernels that this one is made of."""
        return [value for value in self.get_params(deep=False).values() if isinstance(value, Kernel)]

    @abstractmethod
    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        """Return the kernels of (a, b), given all parts' kernels of (a, b), of (a, a) and of (b, b)."""

    def _finite(self, values: Values, left: Values, right: Values) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            combined = self._combine(values, left, right)
        if not np.isfinite(combined).all():
            raise RangeError(f"values of {self!r} are too large for a float: normalise its kernels")
        return combined

    def read(self, X: Any) -> Any:
        """Return examples as all parts can read them."""
        for part in self._parts:
            X = part.read(X)
        return X

    def __call__(self, a: Any, b: Any) -> float:
        """Return the kernel of two examples."""

        def values(x: Any, y: Any) -> Values:
            return [np.array(part(x, y)) for part in self._parts]

        own = (values(a, a), values(b, b)) if self._of_norms else ((), ())
        return float(self._finite(values(a, b), *own))

    def gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        """Return the matrix of kernels between the examples of X and of Y (or of X itself)."""
        x, y = self.read(X), None if Y is None else self.read(Y)
        values = [part.gram(x, y, n_jobs=n_jobs) for part in self._parts]
        left: Values = ()
        right: Values = ()
        if self._of_norms and y is None:
            left = right = [np.diagonal(value) for value in values]
        elif self._of_norms:
            left, right = ([part.diagonal(side, n_jobs=n_jobs) for part in self._parts] for side in (x, y))
        return self._finite(values, [own[:, None] for own in left], right)

    def pairs(
        self, X: Any, rows: npt.ArrayLike, columns: npt.ArrayLike, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Return the kernel of example ``rows[k]`` of X with its example ``columns[k]``, for every k."""
        x = self.read(X)
        values = [part.pairs(x, rows, columns, n_jobs=n_jobs) for part in self._parts]
        left, right = (
            [part.pairs(x, side, side, n_jobs=n_jobs) for part in self._parts if self._of_norms]
            for side in (rows, columns)
        )
        return self._finite(values, left, right)

    def diagonal(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Return the kernel of every example with itself."""
        x = self.read(X)
        own = [part.diagonal(x, n_jobs=n_jobs) for part in self._parts]
        return self._finite(own, own, own)


class KernelSum(CombinedKernel):
    """The sum of two kernels, ``k1 + k2``.

    Its vectors are those of both, one behind the other.

    Parameters
    ----------
    k1, k2 : Kernel
        The kernels.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel, SubtreeKernel
    >>> kernel = SubsetTreeKernel(0.5) + 2 * SubtreeKernel(0.5)
    >>> kernel("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))")  # 2.5 and 1
    4.5
    >>> kernel
    SubsetTreeKernel(decay=0.5) + 2.0 * SubtreeKernel(decay=0.5)
    """

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1, self.k2 = _checked("k1", k1), _checked("k2", k2)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        return values[0] + values[1]

    def __repr__(self) -> str:
        return f"{self.k1!r} + {_factor(self.k2)}"


class KernelProduct(CombinedKernel):
    """The product of two kernels, ``k1 * k2``.

    Its vectors have an entry for each two entries of theirs.

    Parameters
    ----------
    k1, k2 : Kernel
        The kernels.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel, SubtreeKernel
    >>> kernel = SubsetTreeKernel(0.5) * SubtreeKernel(0.5, leaves=True)
    >>> kernel("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))")  # 2.5 and 2
    5.0
    """

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1, self.k2 = _checked("k1", k1), _checked("k2", k2)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        return values[0] * values[1]

    def __repr__(self) -> str:
        return f"{_factor(self.k1)} * {_factor(self.k2, KernelProduct, ScaledKernel)}"


class ScaledKernel(CombinedKernel):
    """A number times a kernel, ``2 * k``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    factor : float
        The number, at least 0.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel
    >>> (0.5 * SubsetTreeKernel(0.5))("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))")
    1.25
    """

    def __init__(self, kernel: Kernel, factor: float = 1.0) -> None:
        self.kernel = _checked("kernel", kernel)
        self.factor = checked_not_negative("the factor of a kernel", factor)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        return self.factor * values[0]

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_factor(self.kernel, KernelProduct, ScaledKernel)}"


class NormalizedKernel(CombinedKernel):
    """A kernel divided by √(K(a, a) K(b, b)), and 0 where that is 0.

    Tree kernels do so themselves with ``normalize=True``, also where K(a, a) is too large for a float.

    Parameters
    ----------
    kernel : Kernel
        The kernel, K.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel, SubtreeKernel
    >>> kernel = NormalizedKernel(SubsetTreeKernel() + SubtreeKernel())
    >>> kernel("(NP (DT a) (NN tree))", "(NP (DT a) (NN tree))")
    1.0
    """

    _of_norms = True

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = _checked("kernel", kernel)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        lengths = np.sqrt(left[0]) * np.sqrt(right[0])
        out: FloatArray = np.divide(values[0], lengths, out=np.zeros_like(values[0]), where=lengths > 0)
        same = (values[0] == left[0]) & (values[0] == right[0]) & (lengths > 0)
        return np.where(same, 1.0, out)  # exactly, whatever rounding does


class PolynomialKernel(CombinedKernel):
    """A polynomial of a kernel: ``(scale K + bias)^degree``.

    Its vectors have an entry for every ``degree`` entries of those of K, or up to so many with a bias: what
    occurs together counts.

    Parameters
    ----------
    kernel : Kernel
        The kernel, K; most often a normalised one.
    degree : int
        The degree, at least 1.
    scale, bias : float
        At least 0.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel
    >>> kernel = PolynomialKernel(SubsetTreeKernel(0.5), degree=2, bias=1)
    >>> kernel("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))")  # (2.5 + 1)²
    12.25
    """

    def __init__(self, kernel: Kernel, *, degree: int = 2, scale: float = 1.0, bias: float = 0.0) -> None:
        self.kernel = _checked("kernel", kernel)
        self.degree = checked_integer("degree", degree, at_least=1)
        self.scale = checked_not_negative("scale", scale)
        self.bias = checked_not_negative("bias", bias)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        out: FloatArray = (self.scale * values[0] + self.bias) ** self.degree
        return out


class RBFKernel(CombinedKernel):
    """A Gaussian (radial basis function) of the distance of a kernel's vectors: ``exp(-γ |a - b|²)``.

    The square of the distance is K(a, a) + K(b, b) - 2 K(a, b).

    Parameters
    ----------
    kernel : Kernel
        The kernel, K; most often a normalised one.
    gamma : float
        γ, above 0.

    Examples
    --------
    >>> from treedot import SubtreeKernel
    >>> kernel = RBFKernel(SubtreeKernel(), gamma=0.5)
    >>> round(kernel("(NP a)", "(NP b)"), 6)  # exp(-(1 + 1) / 2)
    0.367879
    """

    _of_norms = True

    def __init__(self, kernel: Kernel, *, gamma: float = 1.0) -> None:
        self.kernel = _checked("kernel", kernel)
        self.gamma = checked_positive("gamma (γ)", gamma)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        distance = np.maximum(left[0] + right[0] - 2.0 * values[0], 0.0)  # not below 0 by rounding
        out: FloatArray = np.exp(-self.gamma * distance)
        return out


class ColumnKernel(CombinedKernel):
    """A kernel of one column of a table, for examples that hold several trees, or trees and numbers.

    A table is a mapping of names to columns, a frame, an Arrow table, a ``Forest`` with columns, or a
    sequence of rows, of which each is a mapping or a sequence.

    Parameters
    ----------
    kernel : Kernel
        The kernel of what the column holds.
    column : str, int, or list of these
        The column's name, or its place in the rows; several, for a ``LinearKernel`` of several columns.

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
        self.kernel = _checked("kernel", kernel)
        names = column if isinstance(column, list) else [column]
        if not names or not all(isinstance(name, (str, int)) for name in names):
            raise ParameterError(f"column must be a name, a number, or a list of these, not {column!r}")
        self.column = column

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        return values[0]

    def read(self, X: Any) -> Any:
        """Return the table as it is: other kernels may read other columns."""
        return X

    def __call__(self, a: Any, b: Any) -> float:
        """Return the kernel of two rows."""
        if isinstance(self.column, list):
            return self.kernel(*([row[name] for name in self.column] for row in (a, b)))
        return self.kernel(a[self.column], b[self.column])

    def gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        """Return the matrix of kernels between the examples of X and of Y (or of X itself)."""
        return self.kernel.gram(self._of(X), None if Y is None else self._of(Y), n_jobs=n_jobs)

    def pairs(
        self, X: Any, rows: npt.ArrayLike, columns: npt.ArrayLike, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Return the kernel of example ``rows[k]`` of X with its example ``columns[k]``, for every k."""
        return self.kernel.pairs(self._of(X), rows, columns, n_jobs=n_jobs)

    def diagonal(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Return the kernel of every example with itself."""
        return self.kernel.diagonal(self._of(X), n_jobs=n_jobs)

    def _of(self, table: Any) -> Any:
        """Return what the kernel compares."""
        if isinstance(self.column, list):
            return np.column_stack([np.asarray(_column(table, name)) for name in self.column])
        return _column(table, self.column)


class LinearKernel(Kernel):
    """The dot product of numbers: of one number or of equally many for each example, dense or sparse.

    Examples
    --------
    >>> LinearKernel().gram([[1, 2], [3, 4]])
    array([[ 5., 11.],
           [11., 25.]])
    >>> LinearKernel()([1, 2], [3, 4])
    11.0
    """

    def read(self, X: Any) -> Any:
        """Return the numbers as the rows of a matrix."""
        if hasattr(X, "tocsr"):
            return X.tocsr().astype(np.float64)
        try:
            matrix = np.asarray(X, np.float64)
        except (TypeError, ValueError):
            matrix = np.full(1, np.nan)
        if matrix.ndim == 1:
            matrix = matrix[:, None]
        if matrix.ndim != 2 or not np.isfinite(matrix).all():
            raise SourceError("LinearKernel takes finite numbers, equally many for each example")
        return matrix

    def __call__(self, a: Any, b: Any) -> float:
        """Return the dot product of two examples."""
        return float(self.gram([np.ravel(a)], [np.ravel(b)])[0, 0])

    def gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        """Return the matrix of dot products between the examples of X and of Y (or of X itself)."""
        x = self.read(X)
        y = x if Y is None else self.read(Y)
        if x.shape[1] != y.shape[1]:
            raise SourceError(f"examples of {x.shape[1]} and of {y.shape[1]} numbers cannot be compared")
        if hasattr(x, "tocsr") or hasattr(y, "tocsr"):
            product = x @ y.T
            return np.asarray(product.toarray() if hasattr(product, "toarray") else product)
        out: FloatArray = np.einsum("ik,jk->ij", x, y)  # not by BLAS: the same bytes in any batch
        return out

    def pairs(
        self, X: Any, rows: npt.ArrayLike, columns: npt.ArrayLike, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Return the dot product of example ``rows[k]`` of X with its example ``columns[k]``, for every k."""
        x = self.read(X)
        i, j = numbers_of_examples(rows, columns, x.shape[0])
        products = x[i].multiply(x[j]) if hasattr(x, "tocsr") else x[i] * x[j]
        return np.asarray(products.sum(axis=1), float).ravel()

    def diagonal(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Return the dot product of every example with itself."""
        x = self.read(X)
        every = np.arange(x.shape[0])
        return self.pairs(x, every, every)


def _checked(name: str, kernel: Any) -> Kernel:
    if not isinstance(kernel, Kernel):
        raise ParameterError(f"{name} must be a kernel such as SubsetTreeKernel(), not {kernel!r}")
    return kernel


def _factor(kernel: Kernel, *others: type[Kernel]) -> str:
    """Show a kernel behind an operator, in parentheses where it is a sum or one of some ``others``."""
    return f"({kernel!r})" if isinstance(kernel, (KernelSum, *others)) else repr(kernel)


def _column(table: Any, name: str | int) -> Any:
    """Return one column of a table, or raise where there is none of that name."""
    columns: Any = table.columns if isinstance(table, Forest) else table
    try:
        if isinstance(columns, Mapping) or not isinstance(columns, Sequence | np.ndarray):
            return columns[name]
        return [row[name] for row in columns]
    except (KeyError, IndexError, TypeError):
        raise SourceError(f"there is no column {name!r} in this {type(table).__name__}") from None
