"""Rows with an exponent of their own, so that no tree is too large to be encoded.

The fragments of a tree outgrow any floating-point type: a thousand nodes may have 2^1000 of them. So a row
that gets too large (or too small) is multiplied by a power of two, which loses no bits, and the exponent of
that power is kept beside it. Rows of ordinary trees are never touched.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treedot._runtime.array_types import Row
from treedot._runtime.jit import njit
from treedot._runtime.simd import LANES, larger, load, splat, store
from treedot.vectors.chunks import ALL_DONE, NOT_FINITE, TOO_LARGE

# A row whose elements may have passed this is measured and brought back to about 1. The product of
# two such rows, times what a mixer can add, is still far inside float32.
LARGE = 2.0**58
NO_VALUE = -(2**40)  # the exponent of a sum that nothing was added to
LARGEST_POWER = 120  # of two, that every type holds


@njit
def largest(row: Row) -> float:
    """Return the largest magnitude in a row, NaN if it holds one."""
    whole = row.size // LANES * LANES
    top = row.dtype.type(0)
    if whole > 0:
        block = splat(row.dtype.type(0))
        for j in range(0, whole, LANES):
            block = larger(block, load(row, j))
        tops = np.empty(LANES, row.dtype)
        store(tops, 0, block)
        for lane in range(LANES):
            top = larger_of(top, tops[lane])
    for j in range(whole, row.size):
        top = larger_of(top, abs(row[j]))
    return float(top)


@njit
def larger_of(top: Any, magnitude: Any) -> Any:
    """Return the larger of two magnitudes, NaN if one of them is: ``max`` would depend on their order."""
    return top if top >= magnitude or math.isnan(top) else magnitude


@njit
def power_of_two(exponent: int) -> float:
    """Return 2^exponent, 0 where that is too small for a number."""
    return math.ldexp(1.0, int(max(exponent, -2000)))


@njit
def scale(row: Row, exponent: int) -> None:
    """Multiply a row by 2^exponent, which leaves its largest magnitude near 1.

    The power may be too large for the row's type where the row is denormal. Then it is two factors.
    """
    if exponent > LARGEST_POWER:
        _multiply(row, power_of_two(LARGEST_POWER))
        exponent -= LARGEST_POWER
    _multiply(row, power_of_two(exponent))


@njit
def _multiply(row: Row, number: float) -> None:
    factor = row.dtype.type(number)
    for j in range(row.size):
        row[j] *= factor


@njit
def rescale(row: Row, exponent: int) -> tuple[float, int]:
    """Bring ``row · 2^exponent`` to a magnitude of about 1; return the row's largest magnitude and exponent.

    A row that is not finite stays as it is, so that ``write`` finds it.
    """
    top = largest(row)
    if top == 0.0:
        return 0.0, NO_VALUE  # nothing, whatever its exponent was
    if not math.isfinite(top):
        return top, exponent
    fraction, grown = math.frexp(top)
    if -20 < grown <= 20:
        return top, exponent
    scale(row, -grown)
    return fraction, exponent + grown


@njit
def child_scales(exponent: int, root_decay: float) -> tuple[float, float, int]:
    """Return ``(a, b, e)``, a and b at most 1, such that ``c + √λ s 2^exponent = (a c + b s) 2^e``."""
    if exponent >= 0:
        return power_of_two(-exponent), root_decay, exponent
    return 1.0, root_decay * power_of_two(exponent), 0


@njit
def true_exponent(row: Row, exponent: int, other: int) -> int:
    """Return a row's exponent; where it would outgrow another one although the row is zero, none."""
    return NO_VALUE if exponent > max(other, 0) and largest(row) == 0.0 else exponent


@njit
def meet(total: Row, exponent: int, row_exponent: int) -> tuple[int, float]:
    """Prepare ``total · 2^exponent`` for adding ``row · 2^row_exponent``.

    Returns the exponent of the sum, and the factor that the row has to be added with.
    """
    if row_exponent <= exponent:
        return exponent, power_of_two(row_exponent - exponent)
    if exponent != NO_VALUE:
        _multiply(total, power_of_two(exponent - row_exponent))
    return row_exponent, 1.0


@njit
def add(total: Row, exponent: int, row: Row, row_exponent: int) -> int:
    """Add ``row · 2^row_exponent`` to ``total · 2^exponent``; return the sum's exponent."""
    exponent, factor = meet(total, exponent, true_exponent(row, row_exponent, exponent))
    share = row.dtype.type(factor)
    for j in range(row.size):
        total[j] += share * row[j]
    return exponent


@njit
def to_nonnegative_exponent(total: Row, exponent: int) -> int:
    """Bring a sum with a negative exponent, or with none yet, to exponent 0; return the exponent."""
    if exponent >= 0:
        return exponent
    _multiply(total, power_of_two(exponent))
    return 0


@njit
def write(total: Row, exponent: int, normalize: bool, out: Row) -> int:
    """Write a finished sum where it belongs; return ALL_DONE, or why it cannot be written.

    Inside the encoders a unit vector has norm √d, which is divided out here. The sum of squares, or the
    largest magnitude, is needed anyway, and is finite only if all elements are.
    """
    if normalize:
        square = 0.0
        for j in range(total.size):
            square += np.float64(total[j]) * np.float64(total[j])  # float() would stay float32 when compiled
        if not math.isfinite(square):
            return NOT_FINITE
        first, second = 1.0 / math.sqrt(square) if square > 0.0 else 0.0, 1.0
    else:
        top = largest(total)
        if not math.isfinite(top):
            return NOT_FINITE
        if top == 0.0:
            exponent = 0  # whatever it was: 0 times a power that is too large would not be 0
        elif math.log2(top) + exponent - 0.5 * math.log2(total.size) > math.log2(np.finfo(out.dtype).max) - 1:
            return TOO_LARGE
        # Two factors, since the power alone may be out of range where the product is not.
        first = power_of_two(exponent // 2)
        second = power_of_two(exponent - exponent // 2) / math.sqrt(total.size)
    if exponent == NO_VALUE:
        out[:] = 0
        return ALL_DONE
    for j in range(total.size):
        out[j] = np.float64(total[j]) * first * second
    return ALL_DONE
