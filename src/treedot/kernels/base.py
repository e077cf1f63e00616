"""What every exact kernel offers: one pair, chosen pairs, Gram matrices, normalisation, and logarithms."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from treedot.array_types import FloatArray, IntArray
from treedot.errors import LimitError, ParameterError, RangeError
from treedot.parameters import checked_decay, checked_flag, checked_integer
from treedot.readers import read_tree, read_trees
from treedot.trees import Forest

MAX_PAIRS = 2**27
MIRRORED_ROWS = 256  # at a time
CONVENTIONS = ("paper", "collins-duffy")

T = TypeVar("T")


class TreeKernel(ABC):
    """A kernel between trees, given as ``Tree``, bracket text, nested lists or anything readable.

    Parameters
    ----------
    decay : float
        λ in [0, 1]; small values let large fragments count less.
    normalize : bool
        Divide K(a, b) by √(K(a, a) K(b, b)), so that every tree has kernel 1 with itself.
    max_pairs : int
        How many matching pairs of nodes (or of distinct subtrees) may be in memory at a time, 8 bytes
        each, 16 for logarithms. Gram matrices are cut into tiles that fit; a single pair of trees that
        does not is an error.

    Notes
    -----
    A kernel is equal to any other of its type with the same parameters, which can be read and set as
    attributes too. It has scikit-learn's
    ``get_params`` and ``set_params``, so that an estimator can be given one as a parameter, cloned, and
    searched over a grid of, say, ``kernel__decay``.
    """

    __hash__ = None  # type: ignore[assignment]  # parameters can be set

    def __init__(self, decay: float = 0.4, *, normalize: bool = False, max_pairs: int = MAX_PAIRS) -> None:
        self.decay = checked_decay(decay)
        self.normalize = checked_flag("normalize", normalize)
        self.max_pairs = checked_integer("max_pairs", max_pairs, at_least=1)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; no parameter has any of its own, so ``deep`` makes no difference."""
        return {name: getattr(self, name) for name in _defaults(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Set some parameters, checked as the constructor checks them, and return the kernel.

        >>> from treedot import SubsetTreeKernel
        >>> SubsetTreeKernel().set_params(decay=0.5, leaves=True)
        SubsetTreeKernel(decay=0.5, leaves=True)
        """
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ParameterError(
                    f"{type(self).__name__} has no parameter {name!r}: its parameters are {', '.join(known)}"
                )
        vars(self).update(vars(type(self)(**{**known, **params})))
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a parameter as ``set_params`` does; there is nothing else to set."""
        if name in vars(self) or name not in _defaults(type(self)):
            self.set_params(**{name: value})
        else:  # the constructor has checked it
            super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.get_params() == other.get_params()

    def __repr__(self) -> str:
        defaults = _defaults(type(self))
        shown = (
            f"{name}={sorted(value) if isinstance(value, frozenset) else value!r}"
            for name, value in self.get_params().items()
            if name == "decay" or value != defaults[name]
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __call__(self, a: Any, b: Any) -> float:
        """Return the kernel of two trees."""
        x, y = read_tree(a), read_tree(b)
        value = self._raw_pair(x, y)
        if not self.normalize:
            if math.isfinite(value):
                return value
            raise self._too_large(0, 0)
        return _normalized(value, self._raw_pair(x, x), self._raw_pair(y, y), self._log_pair, x, y)

    def log(self, a: Any, b: Any) -> float:
        """Return the natural logarithm of the kernel, also where the kernel itself is too large for a float.

        It is -inf where the trees share nothing.
        """
        x, y = read_tree(a), read_tree(b)
        value = self._log_pair(x, y)
        if self.normalize and value > -math.inf:
            return value - _log_of_norms(self._log_pair, x, y)
        return value

    def gram(self, X: Any, Y: Any = None) -> FloatArray:
        """Return the matrix of kernels between the trees of X and of Y (or of X itself).

        Without Y it equals its transpose to the last bit.
        """
        x, y = read_sides(X, Y)
        raw = self._raw_gram(x, y)
        rows, columns = np.arange(len(x))[:, None], np.arange(raw.shape[1])
        if not self.normalize:
            result = self._finite(raw, rows, columns)
            return mirrored(result) if y is None else result
        if y is None:
            return mirrored(self._normalized(raw, np.diagonal(raw), rows, columns, x))
        own = np.concatenate([self._raw_diagonal(x), self._raw_diagonal(y)])
        return self._normalized(raw, own, rows, len(x) + columns, x, y)

    def diagonal(self, X: Any) -> FloatArray:
        """Return the kernel of every tree with itself."""
        x = read_trees(X)
        raw, every = self._raw_diagonal(x), np.arange(len(x))
        return (raw > 0).astype(float) if self.normalize else self._finite(raw, every, every)

    def pairs(self, X: Any, rows: npt.ArrayLike, columns: npt.ArrayLike) -> FloatArray:
        """Return the kernel of tree ``rows[k]`` of X with its tree ``columns[k]``, for every k.

        The pairs are computed one after another; nothing is shared between them but what is prepared
        once for each tree. Negative numbers count from the end.
        """
        x = read_trees(X)
        i, j = _tree_numbers("rows", rows, len(x)), _tree_numbers("columns", columns, len(x))
        if i.size != j.size:
            raise ParameterError(f"rows has {i.size} trees and columns {j.size}: give as many of each")
        raw = self._raw_pairs(x, i, j)
        if not self.normalize:
            return self._finite(raw, i, j)
        used = np.unique(np.concatenate([i, j]))
        own = np.zeros(len(x))
        own[used] = self._raw_pairs(x, used, used)
        return self._normalized(raw, own, i, j, x)

    def log_norms(self, X: Any) -> FloatArray:
        """Return the logarithm of √K(a, a), the length of a tree's vector of fragments, for every tree.

        It is -inf where there are no fragments. ``normalize`` makes no difference.
        """
        x = read_trees(X)
        with np.errstate(divide="ignore"):
            own: FloatArray = 0.5 * np.log(self._raw_diagonal(x))
        for i in np.flatnonzero(~(own < math.inf)):
            own[i] = 0.5 * self._log_pair(x[[i]], x[[i]])
        return own

    def norms(self, X: Any) -> FloatArray:
        """Return √K(a, a) of every tree; inf only where even the root is too large for a float."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_norms(X))

    @abstractmethod
    def _raw_gram(self, x: Forest, y: Forest | None) -> FloatArray:
        """Return the unnormalised matrix; entries too large for a float may be inf or nan."""

    @abstractmethod
    def _log_pair(self, x: Forest, y: Forest) -> float:
        """Return the logarithm of the unnormalised kernel of two one-tree forests."""

    def _raw_pair(self, x: Forest, y: Forest) -> float:
        """Return the unnormalised kernel of two one-tree forests."""
        return float(self._raw_gram(x, y)[0, 0])

    def _raw_pairs(self, x: Forest, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the unnormalised kernels of some pairs of trees."""
        pairs = zip(rows, columns, strict=True)
        return np.array([self._raw_gram(x[[i]], None if i == j else x[[j]])[0, 0] for i, j in pairs], float)

    def _raw_diagonal(self, x: Forest) -> FloatArray:
        every = np.arange(len(x))
        return self._raw_pairs(x, every, every)

    def _finite(self, raw: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return kernels of trees ``rows`` and ``columns`` as they are, or raise where one is too large."""
        bad = np.argwhere(~np.isfinite(raw))
        if bad.size:
            at = tuple(bad[0])
            raise self._too_large(*(int(numbers[at]) for numbers in np.broadcast_arrays(rows, columns)))
        return raw

    def _too_large(self, i: int, j: int) -> RangeError:
        return RangeError(
            f"the kernel of trees {i + 1} and {j + 1} is too large for a float with decay={self.decay}: "
            "use normalize=True, a smaller decay, or log(a, b)"
        )

    def _normalized(
        self, raw: FloatArray, own: FloatArray, rows: IntArray, columns: IntArray, *forests: Forest
    ) -> FloatArray:
        """Normalise the kernels of trees ``rows`` and ``columns``, which broadcast to the shape of ``raw``.

        ``own`` holds K(a, a) of all trees, in the order of the forests, through which they are numbered.
        """
        norm = np.sqrt(np.where(own == 0, 1.0, own))  # K(a, b) is 0 as well where K(a, a) is
        i, j = np.broadcast_arrays(rows, columns)
        with np.errstate(invalid="ignore"):
            result: FloatArray = raw / norm[rows]
            result /= norm[columns]
        if not (np.isfinite(own).all() and np.isfinite(raw).all()):

            @cache
            def log(a: int, b: int) -> float:
                return self._log_pair(_tree(forests, a), _tree(forests, b))

            fits = np.isfinite(raw) & np.isfinite(own)[rows] & np.isfinite(own)[columns]
            for at in zip(*np.nonzero(~fits), strict=True):
                a, b = int(i[at]), int(j[at])
                result[at] = _normalized(float(raw[at]), own[a], own[b], log, a, b)
        same = np.unravel_index(np.flatnonzero(rows == columns), raw.shape)  # faster than nonzero
        result[same] = own[i[same]] != 0  # exactly 1, whatever rounding does
        return result


@cache
def _defaults(kernel: type[TreeKernel]) -> dict[str, Any]:
    """Return the parameters of a type of kernels, with their defaults."""
    return {name: parameter.default for name, parameter in inspect.signature(kernel).parameters.items()}


def over_norms(values: FloatArray, norms: FloatArray) -> FloatArray:
    """Divide what each tree counts for (a row of values) by its norm; a tree without fragments counts 0."""
    column = norms[:, None]
    return np.divide(values, column, out=np.zeros_like(values), where=column > 0)


def _normalized(value: float, own_a: float, own_b: float, log: Callable[[T, T], float], a: T, b: T) -> float:
    """Return K(a, b) / √(K(a, a) K(b, b)), by logarithms where one of the three is too large for a float."""
    if value == 0 or own_a == 0 or own_b == 0:
        return 0.0  # a tree without fragments is like nothing, itself included
    if math.isfinite(value) and math.isfinite(own_a) and math.isfinite(own_b):
        return value / math.sqrt(own_a) / math.sqrt(own_b)
    log_value = math.log(value) if math.isfinite(value) else log(a, b)
    return math.exp(log_value - _log_of_norms(log, a, b))


def _log_of_norms(log: Callable[[T, T], float], a: T, b: T) -> float:
    """Return the logarithm of √(K(a, a) K(b, b))."""
    return 0.5 * (log(a, a) + log(b, b))


def _tree(forests: Sequence[Forest], number: int) -> Forest:
    """Return one tree of several forests that are numbered through."""
    first, *others = forests
    return first[[number]] if number < len(first) else _tree(others, number - len(first))


def read_sides(X: Any, Y: Any) -> tuple[Forest, Forest | None]:
    """Read the trees of both sides of a Gram matrix; without Y, it is that of X with itself."""
    return read_trees(X), None if Y is None else read_trees(Y)


def mirrored(matrix: FloatArray) -> FloatArray:
    """Copy the upper triangle of a square matrix into the lower one, in place, and return the matrix.

    What is computed for (b, a) in another order than for (a, b) differs in the last bit.
    """
    for end in range(MIRRORED_ROWS, matrix.shape[0] + MIRRORED_ROWS, MIRRORED_ROWS):
        start = end - MIRRORED_ROWS
        matrix[start:end, :start] = matrix[:start, start:end].T
        corner = matrix[start:end, start:end]
        below = np.tril_indices(corner.shape[0], -1)
        corner[below] = corner.T[below]
    return matrix


def check_pairs(pairs: int, max_pairs: int, kind: str = "matching pairs of nodes") -> None:
    """Raise where the Δ of two trees would need more than ``max_pairs`` entries."""
    if pairs > max_pairs:
        raise LimitError(
            f"two trees have {pairs} {kind}, more than max_pairs={max_pairs}: "
            f"raise max_pairs (8 bytes each), or compare vectors (DistributedTreeVectorizer)"
        )


def unit(convention: str, decay: float) -> float:
    """Return what a fragment of one production counts: 1 in the paper's convention, λ in the other."""
    return decay if convention == "collins-duffy" else 1.0


def joined(x: Forest, y: Forest | None) -> tuple[Forest, int | None]:
    """Return the trees of both sides of a Gram matrix as one forest, and how many are columns alone."""
    return (x, None) if y is None else (x + y, len(y))


def _tree_numbers(name: str, values: npt.ArrayLike, n_trees: int) -> IntArray:
    numbers = np.atleast_1d(np.asarray(values))
    if numbers.size == 0:
        return np.zeros(0, np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ParameterError(f"{name} must be a list of tree numbers, not {values!r}")
    if numbers.min() < -n_trees or numbers.max() >= n_trees:
        raise ParameterError(f"{name} holds a tree number outside the {n_trees} trees")
    numbers = numbers.astype(np.int64)
    return np.where(numbers < 0, numbers + n_trees, numbers)
