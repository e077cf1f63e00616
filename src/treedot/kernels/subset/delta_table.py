"""Compute Δ of all pairs of distinct subtrees with equal productions, by compiled dynamic programming.

Δ(u, v) is zero unless the subtrees u and v have the same production at their roots, so it is kept as one
dense table per production: its row subtrees against its column subtrees. Children are numbered lower than
their parents, so one pass in the order of the numbers finds every Δ that it needs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.atomics import next_number, reaches
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot._runtime.ragged import ends_of, places_of
from treedot._runtime.sorted_arrays import order_of
from treedot._runtime.threads import NEXT, Steps
from treedot.trees.distinct import Counts, Subtrees

UNBOUNDED = -1  # the budget of kernels that count all fragments
ROWS = 4  # of a Gram matrix that are summed at a time
COPIED = 32  # lines of Δ computed before they are copied into the other half


class Layout(NamedTuple):
    """The place of Δ(u, v) in the table, ``line[u] + rank[v]``, and an order in which to compute it.

    ``members[first[p] : first[p + 1]]`` are the column subtrees of production ``p`` by rank. ``order`` holds
    the row subtrees that are not leaves, by height and then by production. If rows and columns are the same
    subtrees, ranks follow that order.
    """

    line: IntArray
    rank: IntArray
    first: IntArray
    members: IntArray
    order: IntArray
    height: IntArray  # the height of every row subtree


def layout(
    rows: Subtrees, columns: Subtrees, n_productions: int, kinds: tuple[IntArray, IntArray] | None = None
) -> tuple[Layout, int]:
    """Return the layout of Δ and its number of entries, the number of matching pairs of subtrees.

    ``kinds`` gives the kinds of the row and the column subtrees; within a production, subtrees of one kind
    are placed side by side.
    """
    height = np.empty(rows.production.size, np.int32)
    _measure(rows.start, rows.child, height)
    inner = np.flatnonzero(rows.production >= 0)
    members = np.flatnonzero(columns.production >= 0)
    if kinds is not None:
        inner, members = _sorted(inner, kinds[0]), _sorted(members, kinds[1])
    by_production = _sorted(inner, rows.production)
    order = _sorted(by_production, height)
    same = rows is columns
    members = _sorted(order if same else members, columns.production)
    width, column_rank, first = _ranks(columns.production, members, n_productions)
    if same:
        count, row_rank = width, column_rank
    else:
        count, row_rank, _ = _ranks(rows.production, by_production, n_productions)
    base = np.concatenate([[0], np.cumsum(count * width)])
    line = np.full(rows.production.size, -1, np.int64)
    line[inner] = base[rows.production[inner]] + row_rank[inner] * width[rows.production[inner]]
    return Layout(line, column_rank, first, members, order, height), int(base[-1])


def _sorted(items: IntArray, key: IntArray) -> IntArray:
    """Sort items by ``key[item]``; the sort is stable."""
    return items[order_of(key[items])]


def _ranks(
    production: IntArray, members: IntArray, n_productions: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return each production's number of members, each member's rank, and where each production begins."""
    count = np.bincount(production[members], minlength=n_productions)
    first = np.concatenate([[0], np.cumsum(count)])
    rank = np.full(production.size, -1, np.int64)
    rank[members] = np.arange(members.size) - np.repeat(first[:-1], count)
    return count, rank, first


@njit_borrowing
def _measure(start: IntArray, child: IntArray, height: IntArray) -> None:
    """Write the height of every subtree: the nodes on the way from its root to its lowest leaf."""
    for u in range(height.size):
        height[u] = 1
        for k in range(start[u], start[u + 1]):
            if height[child[k]] >= height[u]:
                height[u] = height[child[k]] + 1


def coefficients(budget: int) -> int:
    """Return the number of entries of one Δ: one for every cost from 0 to the budget, or 1 if unbounded."""
    return 1 if budget == UNBOUNDED else budget + 1


class Lines(NamedTuple):
    """Lines of Δ in the order in which they are computed, and the children whose Δ goes into each.

    Line ``k`` is ``delta[start[k] : start[k] + width[k]]``, for the column subtrees that begin at
    ``members[place[k]]``. ``rank[k]`` is its rank among the lines of its production; the lines of a ``group``
    share production and height. Its children that are not leaves are ``edge[k]`` to ``edge[k + 1] - 1``:
    ``position`` is a child's position among all children, ``below`` the start of its own line.
    """

    start: IntArray
    width: IntArray
    place: IntArray
    rank: IntArray
    group: IntArray
    edge: IntArray
    position: IntArray
    production: IntArray
    below: IntArray


class Partners(NamedTuple):
    """The start of the children of each of ``members``, and the production and the rank of each child."""

    start: IntArray
    production: IntArray
    rank: IntArray


def lines(rows: Subtrees, columns: Subtrees, at: Layout) -> tuple[Lines, Partners]:
    """Return the lines that ``fill`` computes, and the children of the column subtrees."""
    production, height = rows.production[at.order], at.height[at.order]
    rank = at.rank[at.order] if rows is columns else np.zeros(at.order.size, np.int64)
    group = np.cumsum((np.diff(production, prepend=-1) != 0) | (np.diff(height, prepend=0) != 0))
    arity = rows.start[at.order + 1] - rows.start[at.order]
    edges, ends = places_of(rows.start[at.order], arity)
    position = np.arange(edges.size) - np.repeat(ends[:-1], arity)
    child = rows.child[edges]
    inner = rows.production[child] >= 0
    position, child = position[inner], child[inner]
    own = Lines(
        at.line[at.order], np.diff(at.first)[production], at.first[production], rank, group,
        ends_of(inner)[ends], position, rows.production[child], at.line[child],
    )  # fmt: skip
    return own, Partners(columns.start[at.members], columns.production[columns.child], at.rank[columns.child])


@njit_borrowing
def fill(
    lines: Lines, partners: Partners, decay: float, symmetric: bool,
    delta: FloatArray, steps: Steps, span: int,
) -> int:  # fmt: skip
    """Compute Δ = ∏ (1 + λ Δ(children)) in spans of lines, as ``Threads.share_steps`` asks for.

    Δ of lower subtrees is in an earlier step, or in the same span. With ``symmetric``, rows and columns are
    the same subtrees, and half of Δ is copied from the other half, several lines of a group at a time, so
    that they fill whole cache lines.
    """
    if span == NEXT:
        span = next_number(steps.taken)
    while span < steps.before.size:
        if not reaches(steps.done, steps.before[span]):
            return span
        first, last = steps.limits[span], steps.limits[span + 1]
        while first < last:
            end, width, place = first, lines.width[first], lines.place[first]
            rank = lines.rank[first]
            while end < last and end < first + COPIED and lines.group[end] == lines.group[first]:
                size = rank + end - first + 1 if symmetric else width
                line = delta[lines.start[end] : lines.start[end] + size]
                line[:] = 1.0
                for edge in range(lines.edge[end], lines.edge[end + 1]):
                    for k in range(size):
                        child = partners.start[place + k] + lines.position[edge]
                        if partners.production[child] == lines.production[edge]:
                            line[k] *= 1.0 + decay * delta[lines.below[edge] + partners.rank[child]]
                end += 1
            if symmetric:
                begin, size = lines.start[first] - rank * width, rank + end - first
                for j in range(size):
                    for k in range(rank if j < rank else j + 1, size):
                        delta[begin + j * width + k] = delta[begin + k * width + j]
            first = end
        next_number(steps.done)
        span = next_number(steps.taken)
    return span


@njit_inside
def times_expanded(product: FloatArray, below: FloatArray, decay: float, step: int) -> None:
    """Multiply the polynomial ``product`` by ``1 + λ x^step below`` in place; drop powers beyond its last."""
    for power in range(product.size - 1, step - 1, -1):
        value = 0.0
        for k in range(power - step + 1):
            value += product[power - step - k] * below[k]
        product[power] += decay * value


@njit_borrowing
def fill_bounded(
    rows: Subtrees, columns: Subtrees, at: Layout, decay: float, symmetric: bool,
    delta: FloatArray, out: FloatArray, steps: Steps, span: int,
) -> int:  # fmt: skip
    """Compute Δ like ``fill``, as polynomials in the cost of fragments, and write the sum of each to ``out``.

    Row ``k`` of ``delta`` has one coefficient for every cost from 0 to the budget, ``out[k]`` their sum.
    With ``symmetric``, only ``out`` is filled beyond the lower half.
    """
    if span == NEXT:
        span = next_number(steps.taken)
    while span < steps.before.size:
        if not reaches(steps.done, steps.before[span]):
            return span
        for place in range(steps.limits[span], steps.limits[span + 1]):
            u = at.order[place]
            p = rows.production[u]
            begin, arity = rows.start[u], rows.start[u + 1] - rows.start[u]
            for rank in range(at.rank[u] + 1 if symmetric else at.first[p + 1] - at.first[p]):
                partner = at.members[at.first[p] + rank]
                product = delta[at.line[u] + rank]
                product[:] = 0.0
                product[0] = 1.0
                other = columns.start[partner]
                for k in range(arity if arity < product.size else 0):
                    a, b = rows.child[begin + k], columns.child[other + k]
                    q = rows.production[a]
                    if q >= 0 and q == columns.production[b]:
                        if symmetric and at.rank[a] < at.rank[b]:
                            a, b = b, a
                        times_expanded(product, delta[at.line[a] + at.rank[b]], decay, arity)
                value = 0.0
                for k in range(product.size):
                    value += product[k]
                out[at.line[u] + rank] = value
                if symmetric:
                    out[at.line[partner] + at.rank[u]] = value
        next_number(steps.done)
        span = next_number(steps.taken)
    return span


@njit_borrowing
def fill_scaled(
    rows: Subtrees, columns: Subtrees, at: Layout, decay: float,
    row_weight: FloatArray, column_weight: FloatArray, mantissa: FloatArray, exponent: IntArray,
) -> tuple[float, int]:  # fmt: skip
    """Compute Δ as ``mantissa · 2^exponent``, which cannot overflow; return its weighted sum in that form.

    The weight of a pair of subtrees is ``row_weight[u] * column_weight[v]``; weights are small numbers.
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


@njit_borrowing
def gram(
    rows: Counts, line: IntArray, place: IntArray, width: IntArray, columns: Counts, delta: FloatArray,
    symmetric: bool, limits: IntArray, taken: IntArray, weight: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Sum Δ over the subtrees of every pair of trees, K = C Δ Cᵀ, in spans of rows not yet taken.

    The Δ of entry ``k`` of ``rows`` begins at ``line[k]``, for ``width[k]`` column subtrees that begin at
    ``members[place[k]]``; ``columns`` counts column subtrees by their place in ``members``. With
    ``symmetric``, only the lower half of K is complete. Four rows are summed at a time, since that reads
    ``columns`` once. ``weight`` is scratch space for them, zero at first: ΣΔ of every column subtree with all
    subtrees of one tree.
    """
    span = next_number(taken)
    while span < limits.size - 1:
        first = limits[span]
        while first < limits[span + 1]:
            last = min(first + ROWS, limits[span + 1])
            for i in range(first, last):
                for k in range(rows.start[i], rows.start[i + 1]):
                    for at in range(width[k]):
                        weight[place[k] + at, i - first] += rows.copies[k] * delta[line[k] + at]
            for j in range(last if symmetric else out.shape[1]):
                a, b, c, d = 0.0, 0.0, 0.0, 0.0
                for k in range(columns.start[j], columns.start[j + 1]):
                    copies, at = columns.copies[k], columns.subtree[k]
                    a += copies * weight[at, 0]
                    b += copies * weight[at, 1]
                    c += copies * weight[at, 2]
                    d += copies * weight[at, 3]
                out[first, j] = a
                if first + 1 < last:
                    out[first + 1, j] = b
                if first + 2 < last:
                    out[first + 2, j] = c
                if first + 3 < last:
                    out[first + 3, j] = d
            for i in range(first, last):
                for k in range(rows.start[i], rows.start[i + 1]):
                    weight[place[k] : place[k] + width[k], i - first] = 0.0
            first = last
        span = next_number(taken)
