"""Real Fourier transforms of a power-of-two length, in compiled code without a library.

With code of our own, a thread can encode whole trees without returning to Python, and the result for a
row never depends on other rows.

A real row of d elements is a complex one of N = d/2, and N = L · 16: element n = 16 m + lane. First
sixteen transforms of length L run side by side, one per lane (Stockham's self-sorting scheme, radix
4), then transforms of length 16 across the lanes, sixteen of those side by side. So everything works
on blocks of sixteen. An inverse transform is a forward one with real and imaginary parts exchanged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray, Row
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot._runtime.simd import LANES, backwards, load, splat, store, zipped

SHORTEST = 2 * LANES * LANES  # the shortest row that consists of whole squares of blocks


class Plan(NamedTuple):
    """Roots of unity and working rows for transforms of real rows of one size; one per thread."""

    long_re: Row  # exp(-2πi k / L), for k = 0 … L - 1
    long_im: Row
    twist_re: Row  # exp(-2πi k lane / N), a block for every k = 0 … L - 1
    twist_im: Row
    real_re: Row  # exp(-2πi k / d), for k = 0 … N - 1
    real_im: Row
    short_re: Row  # exp(-2πi b c / 16) at 4 b + c
    short_im: Row
    rows: Row  # two complex rows, each with one extra element
    square: Row  # two complex squares of 16 by 16


def plan(size: int, dtype: str) -> Plan:
    """Return the plan for transforms of real rows of ``size`` elements."""
    half = size // 2
    length = half // LANES
    angles = (
        np.arange(length) / length,
        np.outer(np.arange(length), np.arange(LANES)).ravel() / half,
        np.arange(half) / size,
        np.outer(np.arange(4), np.arange(4)).ravel() / 16,
    )
    roots: list[Row] = []
    for angle in angles:
        root = np.exp(-2j * np.pi * angle)
        roots += [root.real.astype(dtype), root.imag.astype(dtype)]
    roots += [np.zeros((4, half + 1), dtype), np.zeros((4, LANES * LANES), dtype)]
    return Plan(*roots)


@njit_inside
def _four(
    ar: Any, ai: Any, br: Any, bi: Any, cr: Any, ci: Any, dr: Any, di: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return the Fourier transform of four complex numbers."""
    sr, si, tr, ti = ar + cr, ai + ci, ar - cr, ai - ci
    ur, ui, vr, vi = br + dr, bi + di, br - dr, bi - di
    return sr + ur, si + ui, tr + vi, ti - vr, sr - ur, si - ui, tr - vi, ti + vr


@njit_inside
def _four_blocks(re: Row, im: Row, at: int, far: int) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return the Fourier transform of four blocks at distance ``far`` from each other."""
    b, c, d = at + far, at + 2 * far, at + 3 * far
    return _four(
        load(re, at), load(im, at), load(re, b), load(im, b),
        load(re, c), load(im, c), load(re, d), load(im, d),
    )  # fmt: skip


@njit_inside
def _put(re: Row, im: Row, at: int, xr: Any, xi: Any, wr: Any, wi: Any) -> None:
    """Store a complex block times a root of unity."""
    store(re, at, xr * splat(wr) - xi * splat(wi))
    store(im, at, xr * splat(wi) + xi * splat(wr))


@njit_inside
def _lanes(work: Plan, at: int) -> int:
    """Transform every lane of the complex row ``at`` (0 or 2); return the row of the result."""
    length, stride = work.long_re.size, 1
    while length > 1:
        xr, xi, yr, yi = work.rows[at], work.rows[at + 1], work.rows[2 - at], work.rows[3 - at]
        step = work.long_re.size // length  # from one root of this length to the next
        if length % 4 == 0:
            quarter = length // 4
            far, out = LANES * stride * quarter, LANES * stride
            for p in range(quarter):
                k = p * step
                w1r, w1i = work.long_re[k], work.long_im[k]
                w2r, w2i = work.long_re[2 * k], work.long_im[2 * k]
                w3r, w3i = work.long_re[3 * k], work.long_im[3 * k]
                for q in range(stride):
                    a = LANES * (stride * p + q)
                    e = LANES * (4 * stride * p + q)
                    r0, i0, r1, i1, r2, i2, r3, i3 = _four_blocks(xr, xi, a, far)
                    store(yr, e, r0)
                    store(yi, e, i0)
                    _put(yr, yi, e + out, r1, i1, w1r, w1i)
                    _put(yr, yi, e + 2 * out, r2, i2, w2r, w2i)
                    _put(yr, yi, e + 3 * out, r3, i3, w3r, w3i)
            length //= 4
            stride *= 4
        else:
            for q in range(0, LANES * stride, LANES):
                b = q + LANES * stride
                ar, ai, br, bi = load(xr, q), load(xi, q), load(xr, b), load(xi, b)
                store(yr, q, ar + br)
                store(yi, q, ai + bi)
                store(yr, b, ar - br)
                store(yi, b, ai - bi)
            length //= 2
            stride *= 2
        at = 2 - at
    return at


@njit_inside
def _transpose(square: Row, other: Row) -> None:
    """Transpose a square of 16 × 16 elements, by four rounds of a perfect shuffle."""
    for _ in range(2):
        for k in range(0, 8 * LANES, LANES):
            a, b = zipped(load(square, k), load(square, k + 8 * LANES))
            store(other, 2 * k, a)
            store(other, 2 * k + LANES, b)
        for k in range(0, 8 * LANES, LANES):
            a, b = zipped(load(other, k), load(other, k + 8 * LANES))
            store(square, 2 * k, a)
            store(square, 2 * k + LANES, b)


@njit_inside
def _across(work: Plan, at: int) -> int:
    """Transform across the lanes of the complex row ``at``; return the row of the result, in order."""
    length = work.long_re.size
    xr, xi, yr, yi = work.rows[at], work.rows[at + 1], work.rows[2 - at], work.rows[3 - at]
    ar, ai, br, bi = work.square[0], work.square[1], work.square[2], work.square[3]
    for base in range(0, length, LANES):
        for k in range(0, LANES * LANES, LANES):
            at_k = LANES * base + k
            vr, vi = load(xr, at_k), load(xi, at_k)
            wr, wi = load(work.twist_re, at_k), load(work.twist_im, at_k)
            store(ar, k, vr * wr - vi * wi)
            store(ai, k, vr * wi + vi * wr)
        _transpose(ar, br)
        _transpose(ai, bi)
        for b in range(4):
            r0, m0, r1, m1, r2, m2, r3, m3 = _four_blocks(ar, ai, LANES * b, 4 * LANES)
            w = 4 * b
            store(br, LANES * w, r0)
            store(bi, LANES * w, m0)
            _put(br, bi, LANES * (w + 1), r1, m1, work.short_re[w + 1], work.short_im[w + 1])
            _put(br, bi, LANES * (w + 2), r2, m2, work.short_re[w + 2], work.short_im[w + 2])
            _put(br, bi, LANES * (w + 3), r3, m3, work.short_re[w + 3], work.short_im[w + 3])
        for c in range(4):
            r0, m0, r1, m1, r2, m2, r3, m3 = _four_blocks(br, bi, LANES * c, 4 * LANES)
            at_c, step = base + length * c, 4 * length
            store(yr, at_c, r0)
            store(yi, at_c, m0)
            store(yr, at_c + step, r1)
            store(yi, at_c + step, m1)
            store(yr, at_c + 2 * step, r2)
            store(yi, at_c + 2 * step, m2)
            store(yr, at_c + 3 * step, r3)
            store(yi, at_c + 3 * step, m3)
    return 2 - at


def planar(order: IntArray) -> IntArray:
    """Return a shuffle for rows whose even elements come first and their odd elements last.

    All real rows are stored like that, since even and odd elements are the real and imaginary parts of
    the complex row that is transformed.
    """
    target = order // 2 + (order % 2) * (order.size // 2)
    kind = np.uint16 if order.size <= 2**16 else np.int32
    return np.concatenate([target[0::2], target[1::2]]).astype(kind)


@njit_inside
def _root(work: Plan, k: int) -> tuple[Any, Any]:
    """Return exp(-2πi k / d) for any k."""
    n = work.real_re.size
    k %= 2 * n
    return (work.real_re[k], work.real_im[k]) if k < n else (-work.real_re[k - n], -work.real_im[k - n])


@njit_inside
def _forward_by_definition(row: Row, order: IntArray, work: Plan, re: Row, im: Row) -> None:
    n = row.size // 2
    for k in range(n + 1):
        re[k] = im[k] = 0
        for j in range(row.size):
            wr, wi = _root(work, j * k)
            value = row[order[j // 2 + (j % 2) * n]]
            re[k] += value * wr
            im[k] += value * wi


@njit_inside
def _backward_by_definition(re: Row, im: Row, work: Plan, scale: Any, row: Row) -> None:
    n = row.size // 2
    for j in range(row.size):
        value = re[0] + (re[n] if j % 2 == 0 else -re[n])
        for k in range(1, n):
            wr, wi = _root(work, j * k)
            value += 2 * (re[k] * wr + im[k] * wi)
        row[j // 2 + (j % 2) * n] = value * scale


@njit_borrowing
def forward(row: Row, order: IntArray, work: Plan, re: Row, im: Row) -> None:
    """Write the spectrum of ``row[order]``, ``size/2 + 1`` numbers, to ``re + i im``."""
    if row.size < SHORTEST:
        _forward_by_definition(row, order, work, re, im)
        return
    n = row.size // 2
    zr, zi = work.rows[0], work.rows[1]
    for k in range(n):
        zr[k] = row[order[k]]
    for k in range(n):
        zi[k] = row[order[n + k]]
    at = _across(work, _lanes(work, 0))
    zr, zi = work.rows[at], work.rows[at + 1]
    zr[n], zi[n] = zr[0], zi[0]
    half = splat(row.dtype.type(0.5))
    for k in range(0, n, LANES):
        # Separate the spectra of the even and of the odd elements from the spectrum of even + i odd.
        ar, ai = load(zr, k), load(zi, k)
        br, bi = backwards(load(zr, n - k - LANES + 1)), backwards(load(zi, n - k - LANES + 1))
        er, ei, odd_r, odd_i = half * (ar + br), half * (ai - bi), half * (ai + bi), half * (br - ar)
        wr, wi = load(work.real_re, k), load(work.real_im, k)
        store(re, k, er + odd_r * wr - odd_i * wi)
        store(im, k, ei + odd_r * wi + odd_i * wr)
    re[n], im[n] = zr[0] - zi[0], 0


@njit_borrowing
def backward(re: Row, im: Row, work: Plan, scale: Any, row: Row) -> None:
    """Write ``scale · size`` times the inverse transform of a spectrum to ``row``."""
    if row.size < SHORTEST:
        _backward_by_definition(re, im, work, scale, row)
        return
    n = row.size // 2
    zr, zi = work.rows[1], work.rows[0]  # exchanged, for the inverse
    for k in range(0, n, LANES):
        ar, ai = load(re, k), load(im, k)
        br, bi = backwards(load(re, n - k - LANES + 1)), backwards(load(im, n - k - LANES + 1))
        wr, wi = load(work.real_re, k), load(work.real_im, k)
        tr, ti = ar - br, ai + bi
        odd_r, odd_i = tr * wr + ti * wi, ti * wr - tr * wi
        store(zr, k, ar + br - odd_i)
        store(zi, k, ai - bi + odd_r)
    at = _across(work, _lanes(work, 0))
    factor = splat(scale)
    for k in range(0, n, LANES):
        store(row, k, load(work.rows[at + 1], k) * factor)
        store(row, n + k, load(work.rows[at], k) * factor)
