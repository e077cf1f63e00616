"""Rows with an exponent of their own, so that no tree is too large to be encoded.

Values may exceed any floating-point type: a tree of a thousand nodes may have 2^1000 fragments. So a row
that gets too large or too small is multiplied by a power of two, which is exact, and the exponent of that
power is kept. Rows of ordinary trees are never rescaled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treedot._runtime.array_types import Row
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot._runtime.simd import LANES, larger, load, splat, top
from treedot.vectors.chunks import ALL_DONE, NOT_FINITE, TOO_LARGE

# A row whose elements may be larger than this is rescaled to about 1. The product of two such rows, times
# the bound of a mixer, is still far below the largest float32.
LARGE = 2.0**58
NO_VALUE = -(2**40)  # the exponent of an empty sum
UNSCALED = 0  # the exponent of an unscaled row; Numba would give a literal 0 a type of its own
LARGEST_POWER = 120  # a power of two that every type can represent
LARGEST_FLOAT32, LARGEST_FLOAT64 = 128, 1024  # all numbers of these types are below these powers of two


@njit_borrowing
def largest(row: Row) -> float:
    """Return the largest magnitude in a row, NaN if it holds one."""
    whole = row.size // LANES * LANES
    block = splat(row.dtype.type(0))
    for j in range(0, whole, LANES):
        block = larger(block, load(row, j))
    found = top(block)
    for j in range(whole, row.size):
        found = larger_of(found, abs(row[j]))
    return float(found)


@njit_inside
def larger_of(top: Any, magnitude: Any) -> Any:
    """Return the larger of two magnitudes, NaN if either is NaN; with ``max`` the order would matter."""
    return top if top >= magnitude or math.isnan(top) else magnitude


@njit_inside
def power_of_two(exponent: int) -> float:
    """Return 2^exponent, or 0 if it is too small."""
    return math.ldexp(1.0, int(exponent)) if exponent > -2000 else 0.0


@njit_inside
def scale(row: Row, exponent: int) -> None:
    """Multiply a row by 2^exponent, so that its largest magnitude is near 1.

    If the row is denormal, the power may be too large for its type; then it is applied as two factors.
    """
    if exponent > LARGEST_POWER:
        multiply(row, 2.0**LARGEST_POWER)
        exponent -= LARGEST_POWER
    multiply(row, power_of_two(exponent))


@njit_inside
def multiply(row: Row, number: float) -> None:
    """Multiply a row by a number."""
    factor = row.dtype.type(number)
    for j in range(row.size):
        row[j] *= factor


@njit_borrowing
def rescale(row: Row, exponent: int) -> tuple[float, int]:
    """Scale the row in ``row · 2^exponent`` to about 1; return its largest magnitude and new exponent.

    A row that is not finite stays unchanged, so that ``write`` detects it.
    """
    most = largest(row)
    if most == 0.0:
        return 0.0, NO_VALUE  # zero, for any exponent
    if not math.isfinite(most):
        return most, exponent
    fraction, grown = math.frexp(most)
    if -20 < grown <= 20:
        return most, exponent
    scale(row, -grown)
    return fraction, exponent + grown


@njit_inside
def child_scales(exponent: int, root_decay: float) -> tuple[float, float, int]:
    """Return ``(a, b, e)``, a and b at most 1, such that ``c + √λ s 2^exponent = (a c + b s) 2^e``."""
    if exponent >= 0:
        return power_of_two(-exponent), root_decay, exponent
    return 1.0, root_decay * power_of_two(exponent), 0


@njit_inside
def true_exponent(row: Row, exponent: int, other: int) -> int:
    """Return the exponent of a row, but NO_VALUE if it exceeds ``other`` although the row is zero."""
    return NO_VALUE if exponent > other and exponent > 0 and largest(row) == 0.0 else exponent


@njit_inside
def meet(total: Row, exponent: int, row_exponent: int) -> tuple[int, float]:
    """Rescale the total in ``total · 2^exponent`` so that ``row · 2^row_exponent`` can be added.

    Return the exponent of the sum, and the factor by which to multiply the row.
    """
    if row_exponent <= exponent:
        return exponent, power_of_two(row_exponent - exponent)
    if exponent != NO_VALUE:
        multiply(total, power_of_two(exponent - row_exponent))
    return row_exponent, 1.0


@njit_inside
def add(total: Row, exponent: int, row: Row, row_exponent: int) -> int:
    """Add ``row · 2^row_exponent`` to ``total · 2^exponent``; return the sum's exponent."""
    exponent, factor = meet(total, exponent, true_exponent(row, row_exponent, exponent))
    share = row.dtype.type(factor)
    for j in range(row.size):
        total[j] += share * row[j]
    return exponent


@njit_inside
def to_nonnegative_exponent(total: Row, exponent: int) -> int:
    """Rescale a sum to exponent 0 if its exponent is negative; return the new exponent."""
    if exponent >= 0:
        return exponent
    multiply(total, power_of_two(exponent))
    return 0


@njit_borrowing
def write(total: Row, exponent: int, normalize: bool, out: Row) -> int:
    """Write a finished sum to ``out``; return ALL_DONE, or the reason why it cannot be written.

    Inside the encoders a unit vector has norm √d; this function divides by it. The sum of squares, or the
    largest magnitude, is finite only if all elements are.
    """
    if normalize:
        square = 0.0
        for j in range(total.size):
            square += np.float64(total[j]) * np.float64(total[j])  # float() would stay float32 when compiled
        if not math.isfinite(square):
            return NOT_FINITE
        first, second = 1.0 / math.sqrt(square) if square > 0.0 else 0.0, 1.0
    else:
        most = largest(total)
        if not math.isfinite(most):
            return NOT_FINITE
        limit = LARGEST_FLOAT32 if out.itemsize == 4 else LARGEST_FLOAT64
        if most == 0.0:
            exponent = 0  # 0 times an infinite power would be NaN
        elif math.log2(most) + exponent - 0.5 * math.log2(total.size) > limit - 1:
            return TOO_LARGE
        # Two factors, since the power may be out of range although the product is not.
        first = power_of_two(exponent // 2)
        second = power_of_two(exponent - exponent // 2) / math.sqrt(total.size)
    if exponent == NO_VALUE:
        out[:] = 0
        return ALL_DONE
    for j in range(total.size):
        out[j] = np.float64(total[j]) * first * second
    return ALL_DONE
