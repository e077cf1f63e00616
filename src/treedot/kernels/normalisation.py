"""The last steps for a matrix of kernels: divide by norms, and fill the other half."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.threads import ONE_THREAD, Span, Threads

BLOCK_ROWS = 64  # rows of a matrix at a time: with fewer, many threads wait for each other between steps

T = TypeVar("T")


class Norms:
    """The norms √K(a, a) of trees, numbered consecutively.

    Parameters
    ----------
    own : array
        K(a, a) of every tree; inf or nan if it is too large for a float.
    log : callable
        Returns the logarithm of the kernel of two trees, given their numbers.
    """

    def __init__(self, own: FloatArray, log: Callable[[int, int], float]) -> None:
        self._own, self._log = own, cache(log)
        self._norm = norms_of(own)
        self._fits = np.isfinite(own)

    def divide(self, kernels: FloatArray, a: IntArray, b: IntArray) -> None:
        """Normalise kernels of the trees ``a`` and ``b`` in place; the arrays must broadcast."""
        fits = np.isfinite(kernels)
        if not self._fits.all():
            fits &= self._fits[a] & self._fits[b]
        far = [] if fits.all() else list(zip(*np.nonzero(~fits), strict=True))
        values = [float(kernels[at]) for at in far]
        with np.errstate(invalid="ignore"):
            kernels /= self._norm[a]
            kernels /= self._norm[b]
        i, j = np.broadcast_arrays(a, b)
        for at, value in zip(far, values, strict=True):
            x, y = int(i[at]), int(j[at])
            kernels[at] = normalized(value, self._own[x], self._own[y], self._log, x, y)
        same = np.unravel_index(np.flatnonzero(a == b), kernels.shape)  # faster than nonzero
        kernels[same] = self._own[i[same]] != 0  # exactly 1, despite rounding


def norms_of(own: FloatArray) -> FloatArray:
    """Return √K(a, a), or 1 if that is 0: then K(a, b) is 0 as well."""
    norms: FloatArray = np.sqrt(np.where(own == 0, 1.0, own))
    return norms


def normalized(value: float, own_a: float, own_b: float, log: Callable[[T, T], float], a: T, b: T) -> float:
    """Return K(a, b) / √(K(a, a) K(b, b)), by logarithms if one of the three is too large for a float."""
    if value == 0 or own_a == 0 or own_b == 0:
        return 0.0  # a tree without fragments has the kernel 0 with every tree, even itself
    if math.isfinite(value) and math.isfinite(own_a) and math.isfinite(own_b):
        return value / math.sqrt(own_a) / math.sqrt(own_b)
    log_value = math.log(value) if math.isfinite(value) else log(a, b)
    return math.exp(log_value - log_of_norms(log, a, b))


def log_of_norms(log: Callable[[T, T], float], a: T, b: T) -> float:
    """Return the logarithm of √(K(a, a) K(b, b))."""
    return 0.5 * (log(a, a) + log(b, b))


def finish_triangle(
    matrix: FloatArray,
    norms: FloatArray | None,
    finish: Callable[[FloatArray, IntArray, IntArray], None],
    threads: Threads = ONE_THREAD,
) -> None:
    """Normalise the lower triangle of a matrix by the norms of its trees, and copy it to the upper one.

    Computing (b, a) and (a, b) separately could give different last bits. Rows with values or norms that are
    not finite are passed to ``finish`` first; without norms, only these rows are.
    """
    trees = np.arange(len(matrix))
    fit = norms is None or bool(np.isfinite(norms).all())
    above_diagonal = np.triu(np.ones((BLOCK_ROWS, BLOCK_ROWS), bool), 1)

    def run(first: int, last: int) -> None:
        rows, square = matrix[first:last, :last], matrix[first:last, first:last]
        above = above_diagonal[: last - first, : last - first]
        square[above] = 0.0
        if not (fit and np.isfinite(rows).all()):
            finish(rows, trees[:last], trees[first:last, None])
        elif norms is not None:
            own = square.diagonal().copy()
            rows /= norms[:last]
            rows /= norms[first:last, None]
            np.fill_diagonal(square, own != 0)  # exactly 1, despite rounding
        np.copyto(square, square.T.copy(), where=above)
        matrix[:first, first:last] = rows[:, :first].T

    threads.run(run, row_blocks(len(matrix)))


def row_blocks(rows: int) -> list[Span]:
    """Return blocks of rows of a matrix that fit in the processor's cache."""
    return [(start, min(start + BLOCK_ROWS, rows)) for start in range(0, rows, BLOCK_ROWS)]
