"""Kernels made of other kernels: sums, products, polynomials and Gaussians."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from treedot._runtime.array_types import FloatArray
from treedot.errors import ParameterError, RangeError, SourceError
from treedot.kernels.kernel import Kernel
from treedot.parameters import checked_integer, checked_not_negative, checked_positive

Values = Sequence[FloatArray]


class CombinedKernel(Kernel):
    """A kernel computed from the values of other kernels for (a, b), and maybe for (a, a) and (b, b)."""

    _of_norms = False  # whether the values for (a, a) and (b, b) are needed

    @property
    def _parts(self) -> list[Kernel]:
        """The kernels that this kernel combines."""
        return [value for value in self.get_params(deep=False).values() if isinstance(value, Kernel)]

    @abstractmethod
    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        """Return the kernels of (a, b) from all parts' kernels of (a, b), (a, a) and (b, b)."""

    def _finite(self, values: Values, left: Values, right: Values) -> FloatArray:
        if len({value.shape for value in values}) > 1:
            counts = " and ".join(str(value.shape[-1]) for value in values)
            raise SourceError(f"the kernels of {self!r} got {counts} examples: columns must be equally long")
        with np.errstate(over="ignore", invalid="ignore"):
            combined = self._combine(values, left, right)
        if not np.isfinite(combined).all():
            raise RangeError(f"values of {self!r} are too large for a float: normalise its kernels")
        return combined

    def read(self, X: Any) -> Any:
        for part in self._parts:
            X = part.read(X)
        return X

    def __call__(self, a: Any, b: Any) -> float:
        def values(x: Any, y: Any) -> Values:
            return [np.array(part(x, y)) for part in self._parts]

        own = (values(a, a), values(b, b)) if self._of_norms else ((), ())
        return float(self._finite(values(a, b), *own))

    def gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
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
        x = self.read(X)
        values = [part.pairs(x, rows, columns, n_jobs=n_jobs) for part in self._parts]
        left, right = (
            [part.pairs(x, side, side, n_jobs=n_jobs) for part in self._parts if self._of_norms]
            for side in (rows, columns)
        )
        return self._finite(values, left, right)

    def diagonal(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        x = self.read(X)
        own = [part.diagonal(x, n_jobs=n_jobs) for part in self._parts]
        return self._finite(own, own, own)


class KernelSum(CombinedKernel):
    """The sum of two kernels, ``k1 + k2``.

    Its feature vectors are those of both kernels, concatenated.

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
        self.k1, self.k2 = checked_kernel("k1", k1), checked_kernel("k2", k2)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        return values[0] + values[1]

    def __repr__(self) -> str:
        return f"{self.k1!r} + {_factor(self.k2)}"


class KernelProduct(CombinedKernel):
    """The product of two kernels, ``k1 * k2``.

    Its feature vectors have an entry for each pair of entries, one of each kernel.

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
        self.k1, self.k2 = checked_kernel("k1", k1), checked_kernel("k2", k2)

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
    factor : float, default=1.0
        The number, at least 0.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel
    >>> (0.5 * SubsetTreeKernel(0.5))("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))")
    1.25
    """

    def __init__(self, kernel: Kernel, factor: float = 1.0) -> None:
        self.kernel = checked_kernel("kernel", kernel)
        self.factor = checked_not_negative("the factor of a kernel", factor)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        return self.factor * values[0]

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_factor(self.kernel, KernelProduct, ScaledKernel)}"


class NormalizedKernel(CombinedKernel):
    """A kernel divided by √(K(a, a) K(b, b)); 0 if that is 0.

    Tree kernels have ``normalize=True`` for this, which also works if K(a, a) is too large for a float.

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
        self.kernel = checked_kernel("kernel", kernel)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        lengths = np.sqrt(left[0]) * np.sqrt(right[0])
        out: FloatArray = np.divide(values[0], lengths, out=np.zeros_like(values[0]), where=lengths > 0)
        same = (values[0] == left[0]) & (values[0] == right[0]) & (lengths > 0)
        return np.where(same, 1.0, out)  # exactly 1, despite rounding


class PolynomialKernel(CombinedKernel):
    """A polynomial of a kernel: ``(scale K + bias)^degree``.

    Its feature vectors have an entry for every combination of ``degree`` features of K; with a bias, of up to
    ``degree`` features. So features that occur together count.

    Parameters
    ----------
    kernel : Kernel
        The kernel K, usually a normalised one.
    degree : int, default=2
        The degree, at least 1.
    scale : float, default=1.0
        The factor of K, at least 0.
    bias : float, default=0.0
        The number added before taking the power, at least 0.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel
    >>> kernel = PolynomialKernel(SubsetTreeKernel(0.5), degree=2, bias=1)
    >>> kernel("(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))")  # (2.5 + 1)²
    12.25
    """

    def __init__(self, kernel: Kernel, *, degree: int = 2, scale: float = 1.0, bias: float = 0.0) -> None:
        self.kernel = checked_kernel("kernel", kernel)
        self.degree = checked_integer("degree", degree, at_least=1)
        self.scale = checked_not_negative("scale", scale)
        self.bias = checked_not_negative("bias", bias)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        out: FloatArray = (self.scale * values[0] + self.bias) ** self.degree
        return out


class RBFKernel(CombinedKernel):
    """A Gaussian (radial basis function) of the distance in a kernel's space: ``exp(-γ |a - b|²)``.

    The square of the distance is K(a, a) + K(b, b) - 2 K(a, b).

    Parameters
    ----------
    kernel : Kernel
        The kernel K, usually a normalised one.
    gamma : float, default=1.0
        The factor γ, greater than 0.

    Examples
    --------
    >>> from treedot import SubtreeKernel
    >>> kernel = RBFKernel(SubtreeKernel(), gamma=0.5)
    >>> round(kernel("(NP a)", "(NP b)"), 6)  # exp(-(1 + 1) / 2)
    0.367879
    """

    _of_norms = True

    def __init__(self, kernel: Kernel, *, gamma: float = 1.0) -> None:
        self.kernel = checked_kernel("kernel", kernel)
        self.gamma = checked_positive("gamma (γ)", gamma)

    def _combine(self, values: Values, left: Values, right: Values) -> FloatArray:
        distance = np.maximum(left[0] + right[0] - 2.0 * values[0], 0.0)  # rounding may make it negative
        out: FloatArray = np.exp(-self.gamma * distance)
        return out


def checked_kernel(name: str, kernel: Any) -> Kernel:
    """Return the kernel if it is one, else raise ParameterError."""
    if not isinstance(kernel, Kernel):
        raise ParameterError(f"{name} must be a kernel such as SubsetTreeKernel(), not {kernel!r}")
    return kernel


def _factor(kernel: Kernel, *others: type[Kernel]) -> str:
    """Return the repr of an operand, in parentheses if it is a sum or one of ``others``."""
    return f"({kernel!r})" if isinstance(kernel, (KernelSum, *others)) else repr(kernel)
