"""Δ of all pairs of distinct subtrees with equal productions, by dynamic programming, compiled.

Δ(u, v) is zero unless the subtrees u and v have the same production at their roots, so it is kept as one
dense table per production: the row subtrees of that production against the column subtrees of it.
Children are numbered lower than their parents, so one pass in the order of the numbers finds every Δ
that it needs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from treedot.array_types import FloatArray, IntArray
from treedot.jit import njit
from treedot.trees.distinct import Counts, Subtrees

UNBOUNDED = -1  # the budget of kernels that count all fragments


class Layout(NamedTuple):
    """Where Δ(u, v) is kept: ``base[production] + rank_u * width[production] + rank_v``.

    ``members[first[p] : first[p + 1]]`` are the column subtrees of production ``p`` by rank.
    """

    base: IntArray
    width: IntArray
    row_rank: IntArray
    column_rank: IntArray
    first: IntArray
    members: IntArray


def layout(rows: Subtrees, columns: Subtrees, n_productions: int) -> tuple[Layout, int]:
    """Return the layout of Δ and its number of entries, the number of matching pairs of subtrees."""
    height, row_rank, _, _ = _ranks(rows.production, n_productions)
    width, column_rank, first, members = _ranks(columns.production, n_productions)
    base = np.concatenate([[0], np.cumsum(height * width)])
    return Layout(base[:-1], width, row_rank, column_rank, first, members), int(base[-1])


def _ranks(production: IntArray, n_productions: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    inner = np.flatnonzero(production >= 0)
    members = inner[np.argsort(production[inner], kind="stable")]
    count = np.bincount(production[inner], minlength=n_productions)
    first = np.concatenate([[0], np.cumsum(count)])
    rank = np.full(production.size, -1, np.int64)
    rank[members] = np.arange(members.size) - np.repeat(first[:-1], count)
    return count, rank, first, members


@njit
def coefficients(budget: int) -> int:
    """Return how many entries one Δ takes: one for every cost up to the budget, or one in all."""
    return 1 if budget == UNBOUNDED else budget + 1


@njit
def _factor(
    at: Layout, delta: FloatArray, decay: float, rows: Subtrees, columns: Subtrees, u: int, v: int
) -> float:
    """Return ∏ (1 + λ Δ) over the children of u and v, which have the same production."""
    value = 1.0
    begin, other = rows.start[u], columns.start[v]
    for k in range(rows.start[u + 1] - begin):
        a, b = rows.child[begin + k], columns.child[other + k]
        p = rows.production[a]
        if p >= 0 and p == columns.production[b]:
            value *= 1.0 + decay * delta[at.base[p] + at.row_rank[a] * at.width[p] + at.column_rank[b]]
    return value


@njit
def fill(
    rows: Subtrees, columns: Subtrees, at: Layout, decay: float, symmetric: bool, delta: FloatArray
) -> None:
    """Compute Δ of all matching pairs; with ``symmetric`` rows and columns are the same subtrees."""
    for u in range(rows.production.size):
        p = rows.production[u]
        if p < 0:
            continue
        line = at.base[p] + at.row_rank[u] * at.width[p]
        for rank in range(at.width[p]):
            if symmetric and rank > at.row_rank[u]:
                break
            value = _factor(at, delta, decay, rows, columns, u, at.members[at.first[p] + rank])
            delta[line + rank] = value
            if symmetric:
                delta[at.base[p] + rank * at.width[p] + at.row_rank[u]] = value


@njit
def times_expanded(product: FloatArray, below: FloatArray, decay: float, step: int) -> None:
    """Multiply a polynomial by ``1 + λ x^step below``, in place, and leave out powers beyond its last."""
    for power in range(product.size - 1, step - 1, -1):
        value = 0.0
        for k in range(power - step + 1):
            value += product[power - step - k] * below[k]
        product[power] += decay * value


@njit
def fill_bounded(
    rows: Subtrees, columns: Subtrees, at: Layout, decay: float, symmetric: bool,
    delta: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Compute Δ of all matching pairs as polynomials in the cost of fragments, and the sums of each.

    Row ``k`` of ``delta`` has one coefficient for every cost from 0 to the budget, ``out[k]`` their sum.
    With ``symmetric``, only ``out`` is filled beyond the lower half.
    """
    for u in range(rows.production.size):
        p = rows.production[u]
        if p < 0:
            continue
        begin, own = rows.start[u], at.row_rank[u]
        arity = rows.start[u + 1] - begin
        for rank in range(own + 1 if symmetric else at.width[p]):
            entry = at.base[p] + own * at.width[p] + rank
            product = delta[entry]
            product[:] = 0.0
            product[0] = 1.0
            value = 1.0
            other = columns.start[at.members[at.first[p] + rank]]
            for k in range(arity if arity < product.size else 0):
                a, b = rows.child[begin + k], columns.child[other + k]
                q = rows.production[a]
                if q >= 0 and q == columns.production[b]:
                    high, low = at.row_rank[a], at.column_rank[b]
                    if symmetric and high < low:
                        high, low = low, high
                    times_expanded(product, delta[at.base[q] + high * at.width[q] + low], decay, arity)
                    value = product.sum()
            out[entry] = value
            if symmetric:
                out[at.base[p] + rank * at.width[p] + own] = value


@njit
def fill_scaled(
    rows: Subtrees, columns: Subtrees, at: Layout, decay: float,
    row_weight: FloatArray, column_weight: FloatArray, mantissa: FloatArray, exponent: IntArray,
) -> tuple[float, int]:  # fmt: skip
    """Compute Δ as ``mantissa · 2^exponent`` and return its weighted sum in the same form.

    No tree is too large. The weight of a pair of subtrees is the product of theirs, of which none is large.
    """
    total, total_exponent = 0.0, 0
    for u in range(rows.production.size):
        p = rows.production[u]
        if p < 0:
            continue
        line = at.base[p] + at.row_rank[u] * at.width[p]
        for rank in range(at.width[p]):
            v = at.members[at.first[p] + rank]
            value, power = 1.0, 0
            begin, other = rows.start[u], columns.start[v]
            for k in range(rows.start[u + 1] - begin):
                a, b = rows.child[begin + k], columns.child[other + k]
                q = rows.production[a]
                if q >= 0 and q == columns.production[b]:
                    below = at.base[q] + at.row_rank[a] * at.width[q] + at.column_rank[b]
                    if exponent[below] > 100 and decay > 0.0:  # 1 is far below the last bit
                        value, shift = math.frexp(value * decay * mantissa[below])
                        power += shift + int(exponent[below])
                    else:
                        single = math.ldexp(mantissa[below], int(exponent[below]))
                        value, shift = math.frexp(value * (1.0 + decay * single))
                        power += shift
            mantissa[line + rank], exponent[line + rank] = value, power
            if power > total_exponent:
                total = math.ldexp(total, max(total_exponent - power, -2000))
                total_exponent = power
            weight = row_weight[u] * column_weight[v]
            total += weight * math.ldexp(value, max(power - total_exponent, -2000))
            total, shift = math.frexp(total)
            total_exponent += shift
    return total, total_exponent


@njit
def gram(
    rows: Subtrees, at: Layout, delta: FloatArray, row_counts: Counts, column_counts: Counts,
    symmetric: bool, out: FloatArray,
) -> None:  # fmt: skip
    """Sum Δ over the subtrees of every pair of trees: K = C Δ Cᵀ, one row of K at a time."""
    row_start, row_subtree, row_count = row_counts
    column_start, column_subtree, column_count = column_counts
    weight = np.zeros(at.column_rank.size)  # of every column subtree: its Δ with all subtrees of tree i
    for i in range(out.shape[0]):
        weight[:] = 0.0
        for k in range(row_start[i], row_start[i + 1]):
            u, count = row_subtree[k], row_count[k]
            p = rows.production[u]
            line = at.base[p] + at.row_rank[u] * at.width[p]
            for rank in range(at.width[p]):
                weight[at.members[at.first[p] + rank]] += count * delta[line + rank]
        for j in range(i + 1 if symmetric else out.shape[1]):
            value = 0.0
            for k in range(column_start[j], column_start[j + 1]):
                value += column_count[k] * weight[column_subtree[k]]
            out[i, j] = value
            if symmetric:
                out[j, i] = value


@njit
def production_sums(
    rows: Subtrees, at: Layout, delta: FloatArray, left: FloatArray, right: FloatArray, out: FloatArray
) -> None:
    """Add ⟨left[u], right[v]⟩ Δ(u, v) over all matching pairs of subtrees to ``out[production of u]``."""
    for u in range(rows.production.size):
        p = rows.production[u]
        if p < 0:
            continue
        line = at.base[p] + at.row_rank[u] * at.width[p]
        value = 0.0
        for rank in range(at.width[p]):
            v = at.members[at.first[p] + rank]
            product = 0.0
            for k in range(left.shape[1]):
                product += left[u, k] * right[v, k]
            value += product * delta[line + rank]
        out[p] += value
