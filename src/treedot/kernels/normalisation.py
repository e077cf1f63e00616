"""What is done to a matrix of kernels once it is computed: division by norms, and the other half."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np

from treedot.array_types import FloatArray, IntArray
from treedot.threads import ONE_THREAD, Span, Threads

BLOCK_ROWS = 64  # of a matrix, at a time

T = TypeVar("T")


class Norms:
    """The norms √K(a, a) of some trees, numbered through.

    Parameters
    ----------
    own : array
        K(a, a) of every tree, inf or nan where it is too large for a float.
    log : callable
        The logarithm of the kernel of two trees, by their numbers.
    """

    def __init__(self, own: FloatArray, log: Callable[[int, int], float]) -> None:
        self._own, self._log = own, cache(log)
        self._norm = np.sqrt(np.where(own == 0, 1.0, own))  # K(a, b) is 0 as well where K(a, a) is
        self._fits = np.isfinite(own)

    def divide(self, kernels: FloatArray, a: IntArray, b: IntArray) -> None:
        """Normalise, in place, kernels of the trees ``a`` and ``b``, which broadcast to the same shape."""
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
        kernels[same] = self._own[i[same]] != 0  # exactly 1, whatever rounding does


def normalized(value: float, own_a: float, own_b: float, log: Callable[[T, T], float], a: T, b: T) -> float:
    """Return K(a, b) / √(K(a, a) K(b, b)), by logarithms where one of the three is too large for a float."""
    if value == 0 or own_a == 0 or own_b == 0:
        return 0.0  # a tree without fragments is like nothing, itself included
    if math.isfinite(value) and math.isfinite(own_a) and math.isfinite(own_b):
        return value / math.sqrt(own_a) / math.sqrt(own_b)
    log_value = math.log(value) if math.isfinite(value) else log(a, b)
    return math.exp(log_value - log_of_norms(log, a, b))


def log_of_norms(log: Callable[[T, T], float], a: T, b: T) -> float:
    """Return the logarithm of √(K(a, a) K(b, b))."""
    return 0.5 * (log(a, a) + log(b, b))


def over_norms(values: FloatArray, norms: FloatArray) -> FloatArray:
    """Divide what each tree counts for (a row of values) by its norm; a tree without fragments counts 0."""
    column = norms[:, None]
    return np.divide(values, column, out=np.zeros_like(values), where=column > 0)


def row_blocks(rows: int) -> list[Span]:
    """Cut the rows of a matrix into blocks that stay in the processor's cache."""
    return [(start, min(start + BLOCK_ROWS, rows)) for start in range(0, rows, BLOCK_ROWS)]


def mirror(matrix: FloatArray, threads: Threads = ONE_THREAD) -> None:
    """Copy the lower triangle of a square matrix into the upper one, in place.

    What is computed for (b, a) in another order than for (a, b) differs in the last bit.
    """

    def run(start: int, stop: int) -> None:
        matrix[:start, start:stop] = matrix[start:stop, :start].T
        corner = matrix[start:stop, start:stop]
        above = np.triu_indices(stop - start, 1)
        corner[above] = corner.T[above]

    threads.run(run, row_blocks(len(matrix)))
