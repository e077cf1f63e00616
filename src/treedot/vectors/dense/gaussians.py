"""Gaussian label vectors, compiled: bit for bit those of ``labels.gaussian_units``, but faster."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, WordArray
from treedot._runtime.hashing import GOLDEN, keys, mix64
from treedot._runtime.jit import compiles, njit_borrowing, njit_inside
from treedot.vectors.dense.compositions import Algebra
from treedot.vectors.dense.labels import (
    CENTRE,
    CENTRE_EDGE,
    CENTRE_SHIFT,
    LOG_2,
    LOG_SERIES,
    ROOT_HALF,
    TAIL,
    TAIL_SHIFT,
)

ROWS = 64  # label vectors made at a time


def label_vectors(algebra: Algebra, texts: Sequence[str]) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the label vectors of the paper's algebras with norm √d, a few rows at a time."""
    for start in range(0, len(texts), ROWS):
        part = slice(start, start + ROWS)
        if compiles(len(texts[part]) * algebra.size):
            vectors = np.empty((len(texts[part]), algebra.size))
            scratch = np.zeros(1 << (algebra.size - 1).bit_length())
            _fill(keys(algebra.seed, texts[part], "label"), _CONSTANTS, scratch, vectors)
        else:
            vectors = algebra.label_vectors(texts[part])
        yield part, vectors * np.sqrt(algebra.size)


@njit_borrowing
def shuffled(vectors: FloatArray, order: Array, out: Array) -> None:
    """Write ``vectors[:, order]`` to ``out``, converted to its type."""
    for i in range(vectors.shape[0]):
        row, target = vectors[i], out[i]
        for j in range(order.size):
            target[j] = row[order[j]]


class _Constants(NamedTuple):
    golden: np.uint64
    centre: FloatArray
    centre_below: FloatArray
    tail: FloatArray
    tail_below: FloatArray
    log_series: FloatArray


_CONSTANTS = _Constants(
    np.uint64(GOLDEN), *(np.array(coefficients) for coefficients in (*CENTRE, *TAIL, LOG_SERIES))
)


@njit_inside
def _polynomial(coefficients: FloatArray, x: float) -> float:
    value = float(coefficients[0])
    for k in range(1, coefficients.size):
        value = value * x + coefficients[k]
    return value


@njit_borrowing
def _fill(key: WordArray, use: _Constants, scratch: FloatArray, out: FloatArray) -> None:
    """Write the unit vector of every key: draw uniforms, take their normal quantiles, divide by the norm.

    ``scratch`` holds uniforms from -1/2 to 1/2, then squares. Its size is a power of two, and the elements
    beyond the size of a vector are 0.
    """
    size = out.shape[1]
    for i in range(out.shape[0]):
        row = out[i]
        for k in range((size + 1) // 2):
            word = mix64(mix64(key[i, 0] + np.uint64(k + 1) * use.golden) ^ key[i, 1])
            row[2 * k] = (float(word & np.uint64(0xFFFFFFFF)) + 0.5) / 2.0**32 - 0.5
            if 2 * k + 1 < size:
                row[2 * k + 1] = (float(word >> np.uint64(32)) + 0.5) / 2.0**32 - 0.5
        for j in range(size):  # a copy, since the next loop is faster from one array to another
            scratch[j] = row[j]
        for j in range(size):
            x = CENTRE_SHIFT - scratch[j] * scratch[j]
            row[j] = scratch[j] * (_polynomial(use.centre, x) / _polynomial(use.centre_below, x))
        for j in range(size):
            if abs(scratch[j]) > CENTRE_EDGE:
                mantissa, exponent = math.frexp(0.5 - abs(scratch[j]))
                if mantissa < ROOT_HALF:
                    mantissa, exponent = 2.0 * mantissa, exponent - 1
                s = (mantissa - 1.0) / (mantissa + 1.0)
                log = exponent * LOG_2 + 2.0 * s * _polynomial(use.log_series, s * s)
                x = math.sqrt(-log) - TAIL_SHIFT
                row[j] = math.copysign(_polynomial(use.tail, x) / _polynomial(use.tail_below, x), scratch[j])
        for j in range(size):
            scratch[j] = row[j] * row[j]
        half = scratch.size
        while half > 1:  # in a fixed order: see labels._sum_in_halves
            half //= 2
            for j in range(half):
                scratch[j] = scratch[j] + scratch[j + half]
        norm = math.sqrt(scratch[0])
        for j in range(size):
            row[j] /= norm
