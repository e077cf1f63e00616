"""Random numbers from a seed and the text of a label, with the same bits on every machine.

A label's UTF-8 bytes are hashed (BLAKE2b) into a 128-bit key, and the key drives a counter-based
generator: 64-bit word ``i`` is a fixed function of key and ``i``. This module uses only integer
arithmetic, basic IEEE operations on single elements, and its own polynomials. It depends on no random
generator of a library and on no libm function, so stored vectors can always be reproduced.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treedot._runtime.array_types import BoolArray, FloatArray, HalfWordArray, IntArray, WordArray
from treedot._runtime.hashing import keys, words


def uniform_integers(key: WordArray, count: int) -> HalfWordArray:
    """Return ``count`` random 32-bit integers for every key, shape ``(n, count)``."""
    pairs = words(key, (count + 1) // 2)
    halves = np.stack([pairs & np.uint64(0xFFFFFFFF), pairs >> np.uint64(32)], axis=-1)
    return halves.reshape(len(key), 2 * pairs.shape[1])[:, :count].astype(np.uint32)


def bits(key: WordArray, count: int) -> BoolArray:
    """Return ``count`` random bits for every key, shape ``(n, count)``."""
    source = words(key, (count + 63) // 64).astype("<u8")
    return np.unpackbits(source.view(np.uint8), axis=1, bitorder="little")[:, :count].astype(bool)


def permutation(seed: int, name: str, size: int) -> IntArray:
    """Return the random permutation of ``0 … size - 1`` for a seed and a name."""
    order = words(keys(seed, [name], "shuffle"), size)[0]
    return np.argsort(order, kind="stable")


def gaussian_units(seed: int, texts: Sequence[str], size: int) -> FloatArray:
    """Return a unit vector with Gaussian direction for every text (section 3.1.1), shape ``(n, size)``."""
    key = keys(seed, texts, "label")
    units = np.empty((len(key), size))
    rows = max(1, 2**14 // size)  # few enough for the processor's cache
    for start in range(0, len(key), rows):
        normal = _normal_quantile(uniform_integers(key[start : start + rows], size))
        units[start : start + rows] = normal / np.sqrt(_sum_in_halves(normal * normal))
    return units


def _sum_in_halves(values: FloatArray) -> FloatArray:
    """Sum rows by adding halves: the order does not depend on the machine's vector instructions."""
    width = 1 << (values.shape[1] - 1).bit_length()
    total = np.zeros((len(values), width))
    total[:, : values.shape[1]] = values
    while width > 1:
        width //= 2
        total = total[:, :width] + total[:, width:]
    return total


# Wichura (1988), Algorithm AS 241, PPND16: coefficients of the rational approximations of the normal
# quantile, numerator and denominator, highest power first. With u from -1/2 to 1/2 the centre is a function
# of CENTRE_SHIFT - u², the tails are one of sqrt(-log(1/2 - |u|)) - TAIL_SHIFT. The third approximation is
# for quantiles above 7, which 32-bit uniforms do not reach.
CENTRE_EDGE = 0.425  # the largest |u| of the centre
CENTRE_SHIFT = 0.180625
TAIL_SHIFT = 1.6
CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080),
    (5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
     5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0),
)  # fmt: skip
TAIL = (
    (7.74545014278341407640e-4, 0.0227238449892691845833, 0.241780725177450611770, 1.27045825245236838258,
     3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.148103976427480074590,
     0.689767334985100004550, 1.67638483018380384940, 2.05319162663775882187, 1.0),
)  # fmt: skip

# For the logarithm: the least mantissa, √½, and the series of artanh(s) / s in s².
ROOT_HALF = 0.70710678118654752440
LOG_2 = 0.69314718055994530942
LOG_SERIES = tuple(1.0 / odd for odd in range(21, 0, -2))


def _normal_quantile(integers: HalfWordArray) -> FloatArray:
    """Return the normal quantile of ``(k + 1/2) / 2^32`` for every integer ``k``."""
    from_half = (integers.astype(np.float64) + 0.5) / 2.0**32 - 0.5
    square = CENTRE_SHIFT - from_half * from_half
    value = from_half * (_polynomial(CENTRE[0], square) / _polynomial(CENTRE[1], square))
    in_tail = np.abs(from_half) > CENTRE_EDGE
    tail = from_half[in_tail]
    root = np.sqrt(-_log(0.5 - np.abs(tail))) - TAIL_SHIFT
    value[in_tail] = np.sign(tail) * (_polynomial(TAIL[0], root) / _polynomial(TAIL[1], root))
    return value


def _polynomial(coefficients: Sequence[float], x: FloatArray) -> FloatArray:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def _log(x: FloatArray) -> FloatArray:
    """Return the natural logarithm as ``2 artanh((m - 1) / (m + 1))`` with the mantissa m near 1."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < ROOT_HALF
    mantissa = np.where(low, 2.0 * mantissa, mantissa)
    exponent = exponent - low
    s = (mantissa - 1.0) / (mantissa + 1.0)
    series = _polynomial(LOG_SERIES, s * s)
    return exponent * LOG_2 + 2.0 * s * series
