"""The base class of tree kernels: one pair, chosen pairs, Gram matrices, normalisation and logarithms."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.threads import ONE_THREAD, Threads, open_threads
from treedot.errors import LimitError, ParameterError, RangeError
from treedot.kernels.kernel import Kernel
from treedot.kernels.normalisation import (
    Norms,
    finish_triangle,
    log_of_norms,
    normalized,
    norms_of,
    row_blocks,
)
from treedot.parameters import checked_decay, checked_flag, checked_integer
from treedot.readers import read_tree, read_trees
from treedot.trees import Forest

MAX_PAIRS = 2**27


class TreeKernel(Kernel):
    """A kernel between trees.

    Trees are given as ``Tree``, bracket text, nested lists, or anything else that ``read_trees`` takes.

    Parameters
    ----------
    decay : float, default=0.4
        The decay λ, in [0, 1]; small values let large fragments count less.
    normalize : bool, default=False
        Divide K(a, b) by √(K(a, a) K(b, b)), so that every tree has kernel 1 with itself.
    max_pairs : int, default=2**27
        The largest number of matching pairs of nodes (or of distinct subtrees) in memory at a time, 8 bytes
        each, 16 for logarithms. Gram matrices are cut into tiles that fit; a single pair of trees that
        does not fit raises ``LimitError``.

    See Also
    --------
    SubsetTreeKernel : Counts shared fragments.
    SubtreeKernel : Counts shared complete subtrees.
    PartialTreeKernel : Counts shared partial trees.
    RouteKernel : Counts shared routes.
    """

    def __init__(self, decay: float = 0.4, *, normalize: bool = False, max_pairs: int = MAX_PAIRS) -> None:
        self.decay = checked_decay(decay)
        self.normalize = checked_flag("normalize", normalize)
        self.max_pairs = checked_integer("max_pairs", max_pairs, at_least=1)

    def read(self, X: Any) -> Forest:
        return read_trees(X)

    def __call__(self, a: Any, b: Any) -> float:
        x, y = read_tree(a), read_tree(b)
        value = self._raw_pair(x, y)
        if not self.normalize:
            if math.isfinite(value):
                return value
            raise self._too_large(0, 0)
        return normalized(value, self._raw_pair(x, x), self._raw_pair(y, y), self._log_pair, x, y)

    def log(self, a: Any, b: Any) -> float:
        """Return the natural logarithm of the kernel, even if the kernel itself is too large for a float.

        Parameters
        ----------
        a, b : tree
            Two trees, as ``read_tree`` takes them.

        Returns
        -------
        float
            The logarithm of K(a, b); -inf if the trees share nothing.
        """
        x, y = read_tree(a), read_tree(b)
        value = self._log_pair(x, y)
        if self.normalize and value > -math.inf:
            return value - log_of_norms(self._log_pair, x, y)
        return value

    def gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        x, y = read_sides(X, Y)
        with open_threads(n_jobs) as threads:
            matrix = self._raw_gram(x, y, threads)
            if y is None:
                diagonal = np.diagonal(matrix).copy()
                norms = norms_of(diagonal) if self.normalize else None
                finish_triangle(matrix, norms, self._finishing(diagonal, x), threads)
            else:
                rows, columns = np.arange(len(x))[:, None], np.arange(len(y))
                own = [self._raw_diagonal(side, threads) for side in (x, y) if self.normalize]
                finish = self._finishing(np.concatenate([np.zeros(0), *own]), x, y)
                threads.run(lambda a, b: finish(matrix[a:b], rows[a:b], len(x) + columns), row_blocks(len(x)))
        return matrix

    def diagonal(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        x = read_trees(X)
        with open_threads(n_jobs) as threads:
            raw, every = self._raw_diagonal(x, threads), np.arange(len(x))
        if self.normalize:
            return np.where(raw != 0, 1.0, 0.0)  # 1 even if K(a, a) is too large for a float
        self._check_finite(raw, every, every)
        return raw

    def pairs(
        self, X: Any, rows: npt.ArrayLike, columns: npt.ArrayLike, *, n_jobs: int | None = None
    ) -> FloatArray:
        x = read_trees(X)
        i, j = numbers_of_examples(rows, columns, len(x))
        with open_threads(n_jobs) as threads:
            kernels, own = self._raw_pairs(x, i, j, threads), np.zeros(len(x))
            if self.normalize:
                used = np.unique(np.concatenate([i, j]))
                own[used] = self._raw_pairs(x, used, used, threads)
            finish = self._finishing(own, x)
            threads.run(lambda a, b: finish(kernels[a:b], i[a:b], j[a:b]), threads.spans(i.size))
        return kernels

    def log_norms(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Return the logarithm of the norm of every tree in the kernel's space.

        ``normalize`` has no effect.

        Parameters
        ----------
        X : source of trees
            The trees, as ``read_trees`` takes them.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        array of shape (n_trees,)
            The logarithm of √K(a, a) of every tree; -inf for a tree without fragments.
        """
        x = read_trees(X)
        with open_threads(n_jobs) as threads:
            with np.errstate(divide="ignore"):
                own: FloatArray = 0.5 * np.log(self._raw_diagonal(x, threads))
            far = np.flatnonzero(~(own < math.inf))
            own[far] = [0.5 * log for log in threads.map(lambda i: self._log_pair(x[[i]], x[[i]]), far)]
        return own

    def norms(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Return the norm of every tree in the kernel's space.

        ``normalize`` has no effect.

        Parameters
        ----------
        X : source of trees
            The trees, as ``read_trees`` takes them.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        array of shape (n_trees,)
            √K(a, a) of every tree; inf only if the square root itself is too large for a float.
        """
        with np.errstate(over="ignore"):
            return np.exp(self.log_norms(X, n_jobs=n_jobs))

    @abstractmethod
    def _raw_gram(self, x: Forest, y: Forest | None, threads: Threads = ONE_THREAD) -> FloatArray:
        """Return the unnormalised matrix; entries too large for a float may be inf or nan.

        Without y, entries above the diagonal are ignored.
        """

    def _log_pair(self, x: Forest, y: Forest) -> float:
        """Return the logarithm of the unnormalised kernel of two one-tree forests."""
        value = self._raw_pair(x, y)
        return math.log(value) if value > 0 else -math.inf

    def _raw_pair(self, x: Forest, y: Forest) -> float:
        """Return the unnormalised kernel of two one-tree forests."""
        return float(self._raw_gram(x, y)[0, 0])

    def _raw_pairs(
        self, x: Forest, rows: IntArray, columns: IntArray, threads: Threads = ONE_THREAD
    ) -> FloatArray:
        """Return the unnormalised kernels of the pairs of trees (rows[k], columns[k])."""

        def kernel(i: int, j: int) -> float:
            return float(self._raw_gram(x[[i]], None if i == j else x[[j]])[0, 0])

        return np.array(list(threads.map(kernel, rows, columns)), float)

    def _raw_diagonal(self, x: Forest, threads: Threads = ONE_THREAD) -> FloatArray:
        """Return the unnormalised kernel of every tree with itself."""
        every = np.arange(len(x))
        return self._raw_pairs(x, every, every, threads)

    def _finishing(
        self, own: FloatArray, *forests: Forest
    ) -> Callable[[FloatArray, IntArray, IntArray], None]:
        """Return a function of kernels and their trees' numbers that normalises the kernels in place.

        Without normalisation, the function raises if a kernel is too large for a float. Trees are numbered
        across all forests; ``own`` holds K(a, a) of each.
        """
        if not self.normalize:
            return self._check_finite

        def log(a: int, b: int) -> float:
            return self._log_pair(_tree(forests, a), _tree(forests, b))

        return Norms(own, log).divide

    def _check_finite(self, kernels: FloatArray, a: IntArray, b: IntArray) -> None:
        """Raise RangeError if a kernel is not finite; ``a`` and ``b`` are the numbers of its trees."""
        finite = np.isfinite(kernels)
        if not finite.all():
            at = np.unravel_index(np.argmin(finite), kernels.shape)
            raise self._too_large(*(int(numbers[at]) for numbers in np.broadcast_arrays(a, b)))

    def _too_large(self, i: int, j: int) -> RangeError:
        return RangeError(
            f"the kernel of trees {i + 1} and {j + 1} is too large for a float with decay={self.decay}: "
            "use normalize=True, a smaller decay, or log(a, b)"
        )


def _tree(forests: Sequence[Forest], number: int) -> Forest:
    """Return one tree, as a forest, by its number across all forests."""
    first, *others = forests
    return first[[number]] if number < len(first) else _tree(others, number - len(first))


def read_sides(X: Any, Y: Any) -> tuple[Forest, Forest | None]:
    """Read the trees of the rows and the columns of a Gram matrix; None for columns equal to the rows."""
    return read_trees(X), None if Y is None else read_trees(Y)


class Limited(NamedTuple):
    """Words for the error about ``max_pairs``: the entries that it limits, and what to do instead."""

    entries: str = "matching pairs of nodes"
    instead: str = "compare smaller trees"


MATCHING = Limited()
ALL_FRAGMENTS = Limited(instead="compare the vectors of DistributedTreeVectorizer")


def check_pairs(pairs: int, max_pairs: int, what: Limited = MATCHING) -> None:
    """Raise LimitError if the Δ of two trees needs more than ``max_pairs`` entries."""
    if pairs > max_pairs:
        raise LimitError(
            f"two trees have {pairs} {what.entries}, more than max_pairs={max_pairs}: "
            f"raise max_pairs (8 bytes each), or {what.instead}"
        )


def unit(convention: str, decay: float) -> float:
    """Return the weight of a fragment of one production: 1 in the paper's convention, λ in the other."""
    return decay if convention == "collins-duffy" else 1.0


def joined(x: Forest, y: Forest | None) -> Forest:
    """Return the trees of the rows and the columns of a Gram matrix as one forest."""
    return x if y is None else x + y


def gram_by_rows(
    x: Forest, y: Forest | None, row: Callable[[int, IntArray], FloatArray], threads: Threads
) -> FloatArray:
    """Return the Gram matrix of x and y, or the lower half of x with itself, one tree of x after another.

    ``row(i, others)`` returns the kernels of tree i with other trees, numbered across x and y.
    """
    out = np.zeros((len(x), len(x if y is None else y)))

    def run(first: int, last: int) -> None:
        for i in range(first, last):
            if y is None:
                out[i:, i] = row(i, np.arange(i, len(x)))
            else:
                out[i] = row(i, np.arange(len(x), len(x) + len(y)))

    threads.run(run, threads.spans(len(x)))
    return out


def numbers_of_examples(
    rows: npt.ArrayLike, columns: npt.ArrayLike, n_examples: int
) -> tuple[IntArray, IntArray]:
    """Check the numbers of chosen pairs of examples, and make negative ones count from the beginning."""
    i, j = _tree_numbers("rows", rows, n_examples), _tree_numbers("columns", columns, n_examples)
    if i.size != j.size:
        raise ParameterError(f"rows and columns must have the same length, not {i.size} and {j.size}")
    return i, j


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


def checked_tree_kernel(name: str, kernel: Any) -> TreeKernel:
    """Return the kernel if it is a tree kernel, else raise ParameterError."""
    if isinstance(kernel, TreeKernel):
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, TreeKernel):
        made = f"{kernel.__name__}(normalize=True)"
        raise ParameterError(f"{name} must be an object, not the class {kernel.__name__}: pass {made}")
    raise ParameterError(
        f"{name} must be a tree kernel such as SubsetTreeKernel(decay=0.4, normalize=True), not {kernel!r}"
    )
