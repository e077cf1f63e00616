"""The base class of all kernels: objects with parameters that can be added and multiplied."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from treedot._runtime.array_types import FloatArray
from treedot.errors import ParameterError

if TYPE_CHECKING:
    from treedot.kernels.combine.combinations import KernelProduct, KernelSum, ScaledKernel


MAX_SHOWN = 400  # characters of a parameter in a repr


class Kernel(ABC):
    """A kernel between examples: trees, numbers, or rows of a table that hold both.

    Kernels can be combined: ``k1 + k2``, ``k1 * k2`` and ``2 * k`` are kernels too.

    See Also
    --------
    TreeKernel : The kernels between trees.
    ColumnKernel : A kernel of one column of a table.

    Notes
    -----
    Two kernels of one type are equal if their parameters are. Parameters can also be read and set as
    attributes. A kernel has scikit-learn's ``get_params`` and ``set_params``: an estimator that takes one as
    a parameter can be cloned, and a grid search can vary, say, ``kernel__decay``.
    """

    __hash__ = None  # type: ignore[assignment]  # parameters can be set
    __array_ufunc__ = None  # a NumPy number times a kernel is a kernel, not an array

    @abstractmethod
    def __call__(self, a: Any, b: Any) -> float:
        """Return the kernel of two examples.

        Parameters
        ----------
        a, b : object
            The examples: trees, or rows of a table.

        Returns
        -------
        float
            K(a, b).

        Raises
        ------
        RangeError
            If the kernel is too large for a float.
        LimitError
            If the computation needs more memory than ``max_pairs`` allows.
        """

    @abstractmethod
    def gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        """Return the matrix of kernels between the examples of X and those of Y (or of X itself).

        Without Y the matrix equals its transpose to the last bit. The number of threads does not change the
        result.

        Parameters
        ----------
        X : source of examples
            The examples of the rows: trees as ``read_trees`` takes them, or a table.
        Y : source of examples, default=None
            The examples of the columns; those of X by default.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        array of shape (n_X, n_Y)
            The kernels, in float64.

        Raises
        ------
        RangeError
            If a kernel is too large for a float.
        LimitError
            If one pair of examples needs more memory than ``max_pairs`` allows.
        """

    @abstractmethod
    def pairs(
        self, X: Any, rows: npt.ArrayLike, columns: npt.ArrayLike, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Return the kernels of chosen pairs of examples.

        Each pair is computed separately. The number of threads does not change the result.

        Parameters
        ----------
        X : source of examples
            The examples: trees as ``read_trees`` takes them, or a table.
        rows : array of int of shape (n_pairs,)
            The first example of each pair. Negative numbers count from the end.
        columns : array of int of shape (n_pairs,)
            The second example of each pair.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        array of shape (n_pairs,)
            ``K(X[rows[k]], X[columns[k]])`` for every k, in float64.
        """

    @abstractmethod
    def diagonal(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Return the kernel of every example with itself.

        Parameters
        ----------
        X : source of examples
            The examples: trees as ``read_trees`` takes them, or a table.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        array of shape (n_X,)
            K(a, a) of every example.
        """

    @abstractmethod
    def read(self, X: Any) -> Any:
        """Read examples once, for several calls.

        Parameters
        ----------
        X : source of examples
            The examples: trees as ``read_trees`` takes them, or a table.

        Returns
        -------
        object
            The examples in a form that the other methods take without reading it again: for trees, a
            ``Forest``.
        """

    def norms(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Return the norm of every example in the kernel's space.

        Parameters
        ----------
        X : source of examples
            The examples: trees as ``read_trees`` takes them, or a table.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        array of shape (n_X,)
            √K(a, a) of every example.
        """
        return np.sqrt(self.diagonal(X, n_jobs=n_jobs))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Include the parameters of nested kernels, under names such as ``k1__decay``.

        Returns
        -------
        dict of str to object
            The parameters.
        """
        own = {name: getattr(self, name) for name in _defaults(type(self))}
        nested = {
            f"{name}__{inner}": value
            for name, kernel in own.items()
            if deep and isinstance(kernel, Kernel)
            for inner, value in kernel.get_params().items()
        }
        return own | nested

    def set_params(self, **params: Any) -> Self:
        """Set parameters; they are checked as in the constructor.

        Parameters
        ----------
        **params : object
            New values by name. ``k1__decay=0.5`` sets a parameter of the parameter ``k1``.

        Returns
        -------
        Kernel
            The kernel itself.

        Raises
        ------
        ParameterError
            If the kernel has no parameter of that name, or a value is invalid.

        Examples
        --------
        >>> from treedot import SubsetTreeKernel
        >>> SubsetTreeKernel().set_params(decay=0.5, leaves=True)
        SubsetTreeKernel(decay=0.5, leaves=True)
        """
        chosen = self.get_params(deep=False)
        for name in params:
            if name.partition("__")[0] not in chosen:
                raise ParameterError(
                    f"{type(self).__name__} has no parameter {name!r}: its parameters are {', '.join(chosen)}"
                )
        chosen |= {name: value for name, value in params.items() if name in chosen}
        for name, value in params.items():
            outer, _, inner = name.partition("__")
            if inner:
                if not isinstance(chosen[outer], Kernel):
                    raise ParameterError(f"{type(self).__name__} has no parameter {name!r}")
                chosen[outer] = copy.copy(chosen[outer]).set_params(**{inner: value})
        vars(self).update(vars(type(self)(**chosen)))
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a parameter by ``set_params``; other attributes cannot be set."""
        if name in vars(self) or name not in _defaults(type(self)):
            self.set_params(**{name: value})
        else:  # called by the constructor, which has checked the value
            super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.get_params(deep=False) == other.get_params(deep=False)

    def __repr__(self) -> str:
        defaults = _defaults(type(self))
        shown = (
            f"{name}={_shown(value)}"
            for name, value in self.get_params(deep=False).items()
            if name == "decay" or value != defaults[name]
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __add__(self, other: Kernel) -> KernelSum:
        from treedot.kernels.combine.combinations import KernelSum

        return KernelSum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> KernelProduct | ScaledKernel:
        from treedot.kernels.combine.combinations import KernelProduct, ScaledKernel

        return KernelProduct(self, other) if isinstance(other, Kernel) else ScaledKernel(self, other)

    def __rmul__(self, factor: float) -> ScaledKernel:
        from treedot.kernels.combine.combinations import ScaledKernel

        return ScaledKernel(self, factor)


def _shown(value: Any) -> str:
    """Return the repr of a parameter, cut off after ``MAX_SHOWN`` characters."""
    text = repr(sorted(value) if isinstance(value, frozenset) else value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


@cache
def _defaults(kernel: type[Kernel]) -> dict[str, Any]:
    """Return the parameters of a kernel class with their defaults."""
    return {name: parameter.default for name, parameter in inspect.signature(kernel).parameters.items()}
