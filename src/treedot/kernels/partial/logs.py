"""Partial tree kernels too large for a float: compiled arithmetic on mantissa · 2^exponent."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot.kernels.partial.gram import PartialDelta
from treedot.kernels.partial.subsequences import Side, Weights, sums_shape
from treedot.kernels.subset.delta_table import Layout

FAR = -2000  # an exponent too large for any float


class Scaled(NamedTuple):
    """Numbers as mantissas (0, or from 1/2 to 1) and exponents."""

    mantissa: FloatArray
    exponent: IntArray


def log_sum(tile: PartialDelta, weights: Weights, labels: float) -> float:
    """Return the logarithm of the kernel: ΣT over all rows and columns plus the sum of labels; -inf for 0."""
    room = sums_shape(weights, tile.sides[1])
    mantissa, exponent = _fill(
        *tile.sides, tile.layout, weights, tile.rows.totals, tile.columns.totals, labels,
        _zeros(tile.size), _zeros(room), _zeros(room[0]),
    )  # fmt: skip
    return math.log(mantissa) + exponent * math.log(2.0) if mantissa > 0 else -math.inf


def _zeros(shape: int | tuple[int, int]) -> Scaled:
    return Scaled(np.zeros(shape), np.zeros(shape, np.int64))


@njit_inside
def _plus(m: float, e: int, n: float, f: int) -> tuple[float, int]:
    if m == 0.0 or (n != 0.0 and e < f):
        m, e, n, f = n, f, m, e
    if n != 0.0:
        m += math.ldexp(n, int(max(f - e, FAR)))
    m, shift = math.frexp(m)
    return m, e + shift


@njit_inside
def _times(m: float, e: int, n: float, f: int) -> tuple[float, int]:
    m, shift = math.frexp(m * n)
    return m, e + f + shift


@njit_borrowing
def _fill(
    rows: Side, columns: Side, at: Layout, weights: Weights, row_totals: FloatArray,
    column_totals: FloatArray, labels: float, table: Scaled, above: Scaled, before: Scaled,
) -> tuple[float, int]:  # fmt: skip
    """Compute T of all row and column subtrees, lower ones first; return its weighted sum."""
    total, power = math.frexp(labels)
    for u in at.order:
        family = rows.family[u]
        for rank in range(at.first[family + 1] - at.first[family]):
            v = at.members[at.first[family] + rank]
            m, e = _sum(rows, u, columns, v, at, weights, table, above, before)
            table.mantissa[at.line[u] + rank], table.exponent[at.line[u] + rank] = m, e
            m, e = _times(row_totals[u] * column_totals[v], 0, m, e)
            total, power = _plus(total, power, m, e)
    return total, power


@njit_inside
def _sum(
    rows: Side, u: int, columns: Side, v: int, at: Layout, weights: Weights, table: Scaled, above: Scaled,
    before: Scaled,
) -> tuple[float, int]:  # fmt: skip
    """Return T of two inner nodes by running sums, as in ``subsequences.sum_many``."""
    lengths, first = before.mantissa.size, columns.start[v]
    total, power = 0.0, 0
    above.mantissa[:] = 0.0
    for i in range(rows.start[u], rows.start[u + 1]):
        before.mantissa[:] = 0.0
        for j in range(columns.start[v + 1] - first):
            delta, scale = 0.0, 0
            if rows.child_kind[i] == columns.child_kind[first + j]:
                delta, scale = _delta(
                    rows, rows.child[i], columns, columns.child[first + j], at, weights, table
                )
                delta, scale = _times(delta, scale, weights.step, 0)
            m, e = 1.0, 0
            if weights.longest == 0:
                m, e = _plus(m, e, before.mantissa[0], before.exponent[0])
            for length in range(lengths):
                m, e = _times(delta, scale, m, e)
                total, power = _plus(total, power, m, e)
                up, high = above.mantissa[length, j], above.exponent[length, j]
                left, wide = before.mantissa[length], before.exponent[length]
                n, f = _times(up, high, weights.decay, 0)
                above.mantissa[length, j], above.exponent[length, j] = _plus(n, f, m, e)
                n, f = _times(left, wide, weights.decay, 0)
                before.mantissa[length], before.exponent[length] = _plus(n, f, up, high)
                m, e = left, wide
    return _times(total, power, weights.mu * weights.similarity[rows.line[u] + columns.rank[v]], 0)


@njit_inside
def _delta(
    rows: Side, a: int, columns: Side, b: int, at: Layout, weights: Weights, table: Scaled
) -> tuple[float, int]:
    """Return Δ of two nodes whose labels are of one kind."""
    sigma = weights.similarity[rows.line[a] + columns.rank[b]]
    if rows.family[a] < 0 or columns.family[b] < 0:
        return sigma * weights.leaf, 0
    if rows.family[a] != columns.family[b]:
        return sigma * weights.inner, 0
    place = at.line[a] + at.rank[b]
    return _plus(sigma * weights.inner, 0, table.mantissa[place], table.exponent[place])
