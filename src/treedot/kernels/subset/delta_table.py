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

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.atomics import next_number
from treedot._runtime.jit import njit
from treedot.trees.distinct import Counts, Subtrees

UNBOUNDED = -1  # the budget of kernels that count all fragments
COPIED = 32  # lines of Δ at a time


class Layout(NamedTuple):
    """Where Δ(u, v) is kept, ``line[u] + rank[v]``, and in which order it can be computed.

    ``members[first[p] : first[p + 1]]`` are the column subtrees of production ``p`` by rank. ``order`` holds
    the row subtrees that are not leaves: lower ones first, of equal height those of a production side by
    side. Where rows and columns are the same subtrees, ranks follow that order.
    """

    line: IntArray
    rank: IntArray
    first: IntArray
    members: IntArray
    order: IntArray
    height: IntArray  # of every row subtree


def layout(
    rows: Subtrees, columns: Subtrees, n_productions: int, kinds: tuple[IntArray, IntArray] | None = None
) -> tuple[Layout, int]:
    """Return the layout of Δ and its number of entries, the number of matching pairs of subtrees.

    Where the row and column subtrees of a production are of several ``kinds``, those of one kind stand side
    by side.
    """
    height = _heights(rows.start, rows.child)
    inner = np.flatnonzero(rows.production >= 0)
    members = np.flatnonzero(columns.production >= 0)
    if kinds is not None:
        inner = inner[np.argsort(kinds[0][inner], kind="stable")]
        members = members[np.argsort(kinds[1][members], kind="stable")]
    by_production = _sorted(inner, rows.production, n_productions)
    order = _sorted(by_production, height, int(height.max(initial=0)) + 1)
    same = rows is columns
    members = _sorted(order if same else members, columns.production, n_productions)
    width, column_rank, first = _ranks(columns.production, members, n_productions)
    if same:
        count, row_rank = width, column_rank
    else:
        count, row_rank, _ = _ranks(rows.production, by_production, n_productions)
    base = np.concatenate([[0], np.cumsum(count * width)])
    line = np.full(rows.production.size, -1, np.int64)
    line[inner] = base[rows.production[inner]] + row_rank[inner] * width[rows.production[inner]]
    return Layout(line, column_rank, first, members, order, height), int(base[-1])


def _ranks(
    production: IntArray, members: IntArray, n_productions: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return how many members every production has, the rank of each among them, and where they begin."""
    count = np.bincount(production[members], minlength=n_productions)
    first = np.concatenate([[0], np.cumsum(count)])
    rank = np.full(production.size, -1, np.int64)
    rank[members] = np.arange(members.size) - np.repeat(first[:-1], count)
    return count, rank, first


@njit
def _sorted(items: IntArray, key: IntArray, n_keys: int) -> IntArray:
    """Return items in the order of their keys, small integers; those of a key in the order they came in."""
    place = np.zeros(n_keys + 1, np.int64)
    for item in items:
        place[key[item] + 1] += 1
    for k in range(n_keys):
        place[k + 1] += place[k]
    found = np.empty_like(items)
    for item in items:
        found[place[key[item]]] = item
        place[key[item]] += 1
    return found


@njit
def _heights(start: IntArray, child: IntArray) -> IntArray:
    """Return how many nodes there are from each subtree's root down to its lowest leaf."""
    height = np.ones(start.size - 1, np.int32)
    for u in range(height.size):
        for k in range(start[u], start[u + 1]):
            height[u] = max(height[u], height[child[k]] + 1)
    return height


@njit
def coefficients(budget: int) -> int:
    """Return how many entries one Δ takes: one for every cost up to the budget, or one in all."""
    return 1 if budget == UNBOUNDED else budget + 1


@njit
def fill(
    rows: Subtrees, columns: Subtrees, at: Layout, decay: float, symmetric: bool,
    limits: IntArray, taken: IntArray, delta: FloatArray,
) -> None:  # fmt: skip
    """Compute Δ of the row subtrees in spans of ``order``, as long as there is one that nobody has taken.

    Span ``k`` goes from ``limits[k]`` to ``limits[k + 1]``. Δ of lower subtrees is there, or in that span.
    """
    span = next_number(taken)
    while span < limits.size - 1:
        _fill_span(rows, columns, at, decay, symmetric, limits[span], limits[span + 1], delta)
        span = next_number(taken)


@njit
def _fill_span(
    rows: Subtrees, columns: Subtrees, at: Layout, decay: float, symmetric: bool,
    first: int, last: int, delta: FloatArray,
) -> None:  # fmt: skip
    """Compute Δ of the row subtrees ``order[first:last]``.

    With ``symmetric``, rows and columns are the same subtrees, and half of Δ is copied from the other half:
    for some subtrees of a production at a time, so that they fill whole cache lines.
    """
    while first < last:
        u = at.order[first]
        p = rows.production[u]
        end = first
        while (
            end < min(first + COPIED, last)
            and rows.production[at.order[end]] == p
            and at.height[at.order[end]] == at.height[u]
        ):
            end += 1
        partners = at.members[at.first[p] : at.first[p + 1]]
        for k in range(first, end):
            u = at.order[k]
            count = at.rank[u] + 1 if symmetric else partners.size
            _fill_line(rows, columns, at, decay, u, partners[:count], delta)
        if symmetric:
            rank = at.rank[at.order[first]]
            for other in range(rank + end - first):
                line = at.line[partners[other]]
                for k in range(max(rank, other + 1), rank + end - first):
                    delta[line + k] = delta[at.line[partners[k]] + other]
        first = end


@njit
def _fill_line(
    rows: Subtrees, columns: Subtrees, at: Layout, decay: float, u: int, partners: IntArray, delta: FloatArray
) -> None:
    """Write ∏ (1 + λ Δ) over the children of u and each of its partners, which have the same production."""
    line = delta[at.line[u] : at.line[u] + partners.size]
    line[:] = 1.0
    for c in range(rows.start[u + 1] - rows.start[u]):
        a = rows.child[rows.start[u] + c]
        p = rows.production[a]
        if p < 0:
            continue
        below = at.line[a]
        for k in range(partners.size):
            b = columns.child[columns.start[partners[k]] + c]
            if columns.production[b] == p:
                line[k] *= 1.0 + decay * delta[below + at.rank[b]]


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
    limits: IntArray, taken: IntArray, delta: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Do the same for polynomials in the cost of fragments, and write the sum of each."""
    span = next_number(taken)
    while span < limits.size - 1:
        _fill_bounded_span(rows, columns, at, decay, symmetric, limits[span], limits[span + 1], delta, out)
        span = next_number(taken)


@njit
def _fill_bounded_span(
    rows: Subtrees, columns: Subtrees, at: Layout, decay: float, symmetric: bool,
    first: int, last: int, delta: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Compute the polynomials of the row subtrees ``order[first:last]``, and the sum of each.

    Row ``k`` of ``delta`` has one coefficient for every cost from 0 to the budget, ``out[k]`` their sum.
    With ``symmetric``, only ``out`` is filled beyond the lower half.
    """
    for u in at.order[first:last]:
        p = rows.production[u]
        begin, arity = rows.start[u], rows.start[u + 1] - rows.start[u]
        for rank in range(at.rank[u] + 1 if symmetric else at.first[p + 1] - at.first[p]):
            partner = at.members[at.first[p] + rank]
            product = delta[at.line[u] + rank]
            product[:] = 0.0
            product[0] = 1.0
            value = 1.0
            other = columns.start[partner]
            for k in range(arity if arity < product.size else 0):
                a, b = rows.child[begin + k], columns.child[other + k]
                q = rows.production[a]
                if q >= 0 and q == columns.production[b]:
                    if symmetric and at.rank[a] < at.rank[b]:
                        a, b = b, a
                    times_expanded(product, delta[at.line[a] + at.rank[b]], decay, arity)
                    value = product.sum()
            out[at.line[u] + rank] = value
            if symmetric:
                out[at.line[partner] + at.rank[u]] = value


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
        for rank in range(at.first[p + 1] - at.first[p]):
            v = at.members[at.first[p] + rank]
            value, power = 1.0, 0
            begin, other = rows.start[u], columns.start[v]
            for k in range(rows.start[u + 1] - begin):
                a, b = rows.child[begin + k], columns.child[other + k]
                q = rows.production[a]
                if q >= 0 and q == columns.production[b]:
                    below = at.line[a] + at.rank[b]
                    if exponent[below] > 100 and decay > 0.0:  # 1 is far below the last bit
                        value, shift = math.frexp(value * decay * mantissa[below])
                        power += shift + int(exponent[below])
                    else:
                        single = math.ldexp(mantissa[below], int(exponent[below]))
                        value, shift = math.frexp(value * (1.0 + decay * single))
                        power += shift
            mantissa[at.line[u] + rank], exponent[at.line[u] + rank] = value, power
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
    symmetric: bool, limits: IntArray, taken: IntArray, out: FloatArray,
) -> None:  # fmt: skip
    """Sum Δ over the subtrees of every pair of trees, K = C Δ Cᵀ, for spans of rows that nobody has taken.

    Column subtrees are counted by their places in ``members``. With ``symmetric``, only the lower half of K
    is written.
    """
    weight = np.zeros(at.members.size)  # of every column subtree: its Δ with all subtrees of tree i
    span = next_number(taken)
    while span < limits.size - 1:
        for i in range(limits[span], limits[span + 1]):
            for k in range(row_counts.start[i], row_counts.start[i + 1]):
                u, count = row_counts.subtree[k], row_counts.copies[k]
                p = rows.production[u]
                line = at.line[u] - at.first[p]
                for place in range(at.first[p], at.first[p + 1]):
                    weight[place] += count * delta[line + place]
            for j in range(i + 1 if symmetric else out.shape[1]):
                value = 0.0
                for k in range(column_counts.start[j], column_counts.start[j + 1]):
                    value += column_counts.copies[k] * weight[column_counts.subtree[k]]
                out[i, j] = value
            for k in range(row_counts.start[i], row_counts.start[i + 1]):
                p = rows.production[row_counts.subtree[k]]
                weight[at.first[p] : at.first[p + 1]] = 0.0
        span = next_number(taken)
