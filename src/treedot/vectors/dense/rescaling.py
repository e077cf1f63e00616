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
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot._runtime.simd import LANES, larger, load, splat, top
from treedot.vectors.chunks import ALL_DONE, NOT_FINITE, TOO_LARGE

# A row whose elements may have passed this is measured and brought back to about 1. The product of
# two such rows, times what a mixer can add, is still far inside float32.
LARGE = 2.0**58
NO_VALUE = -(2**40)  # the exponent of a sum that nothing was added to
UNSCALED = 0  # the exponent of a row as it is; a literal 0 would be a type of its own in compiled code
LARGEST_POWER = 120  # of two, that every type holds
LARGEST_FLOAT32, LARGEST_FLOAT64 = 128, 1024  # powers of two just above the numbers of these types


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
    """Return the larger of two magnitudes, NaN if one of them is: ``max`` would depend on their order."""
    return top if top >= magnitude or math.isnan(top) else magnitude


@njit_inside
def power_of_two(exponent: int) -> float:
    """Return 2^exponent, 0 where that is too small for a number."""
    return math.ldexp(1.0, int(exponent)) if exponent > -2000 else 0.0


@njit_inside
def scale(row: Row, exponent: int) -> None:
    """Multiply a row by 2^exponent, which leaves its largest magnitude near 1.

    The power may be too large for the row's type where the row is denormal. Then it is two factors.
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
    """Bring ``row · 2^exponent`` to a magnitude of about 1; return the row's largest magnitude and exponent.

    A row that is not finite stays as it is, so that ``write`` finds it.
    """
    most = largest(row)
    if most == 0.0:
        return 0.0, NO_VALUE  # nothing, whatever its exponent was
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
    """Return a row's exponent; where it would outgrow another one although the row is zero, none."""
    return NO_VALUE if exponent > other and exponent > 0 and largest(row) == 0.0 else exponent


@njit_inside
def meet(total: Row, exponent: int, row_exponent: int) -> tuple[int, float]:
    """Prepare ``total · 2^exponent`` for adding ``row · 2^row_exponent``.

    Returns the exponent of the sum, and the factor that the row has to be added with.
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
    """Bring a sum with a negative exponent, or with none yet, to exponent 0; return the exponent."""
    if exponent >= 0:
        return exponent
    multiply(total, power_of_two(exponent))
    return 0


@njit_borrowing
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
        most = largest(total)
        if not math.isfinite(most):
            return NOT_FINITE
        limit = LARGEST_FLOAT32 if out.itemsize == 4 else LARGEST_FLOAT64
        if most == 0.0:
            exponent = 0  # whatever it was: 0 times a power that is too large would not be 0
        elif math.log2(most) + exponent - 0.5 * math.log2(total.size) > limit - 1:
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
