"""Real Fourier transforms of a power-of-two length, in compiled code that needs no library.

Own code rather than a call, so that a thread can run whole trees without returning to Python and so
that a row's result never depends on what is transformed beside it. Stockham's self-sorting scheme
with radix 4, on separate real and imaginary rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.jit import njit

IntArray = npt.NDArray[np.signedinteger[Any]]
Row = npt.NDArray[np.floating[Any]]


class Plan(NamedTuple):
    """Roots of unity ``exp(-2πi k / size)`` for ``k = 0 … size - 1``, and working rows of half the size."""

    cos: Row
    sin: Row
    rows: Row


def plan(size: int, dtype: str) -> Plan:
    """Return what transforms of real rows of ``size`` elements need; one per thread."""
    angle = -2.0 * np.pi * np.arange(size) / size
    return Plan(np.cos(angle).astype(dtype), np.sin(angle).astype(dtype), np.empty((4, size // 2), dtype))


@njit
def _complex_transform(work: Plan, inverse: bool) -> int:
    """Transform ``rows[0] + i rows[1]`` to itself or to ``rows[2], rows[3]``; return which: 0 or 2."""
    n = work.rows.shape[1]
    flip = work.sin.dtype.type(-1 if inverse else 1)
    at, length, stride = 0, n, 1
    while length > 1:
        xr, xi = work.rows[at], work.rows[at + 1]
        yr, yi = work.rows[2 - at], work.rows[3 - at]
        step = work.cos.size // length  # from one root of order `length` to the next
        if length % 4 == 0:
            quarter = length // 4
            for p in range(quarter):
                w1r, w1i = work.cos[p * step], work.sin[p * step] * flip
                w2r, w2i = work.cos[2 * p * step], work.sin[2 * p * step] * flip
                w3r, w3i = work.cos[3 * p * step], work.sin[3 * p * step] * flip
                a, far = stride * p, stride * quarter
                b, c, d, e = a + far, a + 2 * far, a + 3 * far, 4 * a
                for q in range(stride):
                    ar, ai, br, bi = xr[a + q], xi[a + q], xr[b + q], xi[b + q]
                    cr, ci, dr, di = xr[c + q], xi[c + q], xr[d + q], xi[d + q]
                    sr, si, tr, ti = ar + cr, ai + ci, ar - cr, ai - ci
                    ur, ui = br + dr, bi + di
                    vr, vi = (bi - di) * flip, (dr - br) * flip  # (b - d) times -i, or i for the inverse
                    yr[e + q], yi[e + q] = sr + ur, si + ui
                    zr, zi = tr + vr, ti + vi
                    yr[e + stride + q], yi[e + stride + q] = zr * w1r - zi * w1i, zr * w1i + zi * w1r
                    zr, zi = sr - ur, si - ui
                    yr[e + 2 * stride + q], yi[e + 2 * stride + q] = zr * w2r - zi * w2i, zr * w2i + zi * w2r
                    zr, zi = tr - vr, ti - vi
                    yr[e + 3 * stride + q], yi[e + 3 * stride + q] = zr * w3r - zi * w3i, zr * w3i + zi * w3r
            length //= 4
            stride *= 4
        else:
            for q in range(stride):
                ar, ai, br, bi = xr[q], xi[q], xr[stride + q], xi[stride + q]
                yr[q], yi[q] = ar + br, ai + bi
                yr[stride + q], yi[stride + q] = ar - br, ai - bi
            length //= 2
            stride *= 2
        at = 2 - at
    return at


@njit
def forward(row: Row, order: IntArray, work: Plan, re: Row, im: Row) -> None:
    """Write the spectrum of ``row[order]``, ``size/2 + 1`` numbers, to ``re + i im``."""
    n = row.size // 2
    for k in range(n):
        work.rows[0, k] = row[order[2 * k]]
        work.rows[1, k] = row[order[2 * k + 1]]
    at = _complex_transform(work, False)
    zr, zi = work.rows[at], work.rows[at + 1]
    half = row.dtype.type(0.5)
    re[0], im[0] = zr[0] + zi[0], 0
    re[n], im[n] = zr[0] - zi[0], 0
    for k in range(1, n):
        # The even and the odd elements' spectra, unravelled from that of even + i odd.
        er, ei = half * (zr[k] + zr[n - k]), half * (zi[k] - zi[n - k])
        our, oi = half * (zi[k] + zi[n - k]), half * (zr[n - k] - zr[k])
        re[k] = er + our * work.cos[k] - oi * work.sin[k]
        im[k] = ei + our * work.sin[k] + oi * work.cos[k]


@njit
def backward(re: Row, im: Row, work: Plan, scale: Any, row: Row) -> None:
    """Write ``scale · size/2`` times the inverse transform of a spectrum to ``row``."""
    n = row.size // 2
    for k in range(n):
        er, ei = re[k] + re[n - k], im[k] - im[n - k]
        tr, ti = re[k] - re[n - k], im[k] + im[n - k]
        our, oi = tr * work.cos[k] + ti * work.sin[k], ti * work.cos[k] - tr * work.sin[k]
        work.rows[0, k] = er - oi
        work.rows[1, k] = ei + our
    at = _complex_transform(work, True)
    zr, zi = work.rows[at], work.rows[at + 1]
    for k in range(n):
        row[2 * k] = zr[k] * scale
        row[2 * k + 1] = zi[k] * scale
