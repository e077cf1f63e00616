"""What partial tree kernels sum over subsequences of children, by dynamic programming, compiled.

Two inner nodes of equal labels have Δ = μ λ² + T with T = μ Σ λ^g ∏ Δ(child, child) over all pairs of equally
long subsequences of their children. Let E(i, j) be the sum over those that end with the children i and j,
which have equal labels. Every child that is left out between two that are not costs another λ, so that

    E(i, j) = κ Δ(i, j) (1 + Σ λ^(i - 1 - i' + j - 1 - j') E(i', j'))   over i' < i and j' < j,
    T = μ Σ E(i, j),

where κ is 1, or λ² where the children that are not left out cost λ too. So all lengths are summed at once;
where lengths are limited there is one E for each length.

There are two ways to compute it. Where few children have equal labels, every two pairs of them are compared.
Else a running sum goes over all pairs of children, row by row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot.array_types import FloatArray, IntArray
from treedot.jit import njit

FEW = 8  # pairs of children of equal labels
RUN = 256  # nodes at a time that have the same production


class Weights(NamedTuple):
    """What determines a partial tree kernel."""

    decay: float  # λ
    mu: float
    step: float  # κ
    inner: float  # Δ of two inner nodes, without T: μ λ²
    leaf: float  # Δ of two nodes of which one is a leaf
    longest: int  # subsequence; 0 where they may be of any length


class Side(NamedTuple):
    """The nodes, or distinct subtrees, of the rows or of the columns.

    Node ``u`` has the children ``child[start[u]:start[u + 1]]``. T of nodes of different families is 0;
    leaves have the family -1.
    """

    production: IntArray
    family: IntArray
    start: IntArray
    child: IntArray
    child_label: IntArray


class Table(NamedTuple):
    """T of nodes of one family: ``value[line[a - origin] + rank[b]]``.

    With ``half``, rows and columns are the same, and only that of ``rank[a] >= rank[b]`` is there.
    """

    line: IntArray
    origin: int
    rank: IntArray
    half: bool
    value: FloatArray


class Plan(NamedTuple):
    """Pairs of children of equal labels, and what is computed from them.

    ``factor[m, k]`` is what pair ``k`` may cost before pair ``m``: λ for every child between them, or 0.
    ``end`` is E. The others are for running sums: Σ λ^(i - i') E(i', j) for each child j of the column (and
    each length), and the sum of these, with their λ, over all children before.
    """

    row: IntArray
    column: IntArray
    factor: FloatArray
    end: FloatArray
    above: FloatArray
    before: FloatArray


def make_plan(weights: Weights, columns: Side) -> Plan:
    """Return room for any two nodes."""
    lengths, widest = max(weights.longest, 1), int(np.diff(columns.start).max(initial=1))
    return Plan(
        np.empty(FEW, np.int64), np.empty(FEW, np.int64), np.empty((FEW, FEW)), np.empty((FEW, RUN)),
        np.empty((lengths, widest)), np.empty(lengths),
    )  # fmt: skip


@njit
def match_children(rows: Side, u: int, columns: Side, v: int, weights: Weights, plan: Plan) -> int:
    """Find the children of equal labels; return the number of pairs, or ``FEW + 1`` where they are many.

    It depends on the productions of the two nodes alone.
    """
    count = 0
    begin, first = rows.start[u], columns.start[v]
    for i in range(rows.start[u + 1] - begin):
        label = rows.child_label[begin + i]
        for j in range(columns.start[v + 1] - first):
            if columns.child_label[first + j] != label:
                continue
            if count == FEW or 0 < weights.longest <= count:
                return FEW + 1
            for k in range(count):
                gap = i - plan.row[k] + j - plan.column[k] - 2
                comes_before = plan.row[k] < i and plan.column[k] < j
                plan.factor[count, k] = weights.decay**gap if comes_before else 0.0
            plan.row[count], plan.column[count] = i, j
            count += 1
    return count


@njit
def sum_few(
    rows: Side, us: IntArray, columns: Side, vs: IntArray, table: Table, weights: Weights, plan: Plan,
    count: int,
) -> None:  # fmt: skip
    """Write T of all inner nodes ``us`` and ``vs``, for all of which ``match_children`` returned ``count``.

    The nodes ``vs`` have neighbouring ranks. With a table that has only one half, T of the other half is left
    out.
    """
    for u in us:
        begin, own = rows.start[u], table.line[u - table.origin] + table.rank[vs[0]]
        width = min(vs.size, table.rank[u] - table.rank[vs[0]] + 1) if table.half else vs.size
        for c in range(width):
            table.value[own + c] = 0.0
        for m in range(count):
            a = rows.child[begin + plan.row[m]]
            f, line, rank = rows.family[a], table.line[a - table.origin], table.rank[a]
            for c in range(width):
                plan.end[m, c] = 1.0
            for k in range(m):
                if plan.factor[m, k] > 0.0:
                    for c in range(width):
                        plan.end[m, c] += plan.factor[m, k] * plan.end[k, c]
            for c in range(width):
                b = columns.child[columns.start[vs[c]] + plan.column[m]]
                g = columns.family[b]
                delta = weights.inner
                if f < 0 or g < 0:
                    delta = weights.leaf
                elif f == g:
                    if table.half and rank < table.rank[b]:
                        delta += table.value[table.line[b] + rank]
                    else:
                        delta += table.value[line + table.rank[b]]
                plan.end[m, c] *= weights.step * delta
                table.value[own + c] += weights.mu * plan.end[m, c]


@njit
def sum_many(
    rows: Side, us: IntArray, columns: Side, vs: IntArray, table: Table, weights: Weights, plan: Plan
) -> None:
    """Do the same for any nodes, by running sums.

    A call of compiled code counts the references to all arrays that it is given, which takes as long as to
    compare two nodes: hence the loops in here, and the lines that both functions have in common.
    """
    any_length = weights.longest == 0
    for u in us:
        line = table.line[u - table.origin]
        for v in vs:
            if table.half and table.rank[v] > table.rank[u]:
                break
            first, width = columns.start[v], columns.start[v + 1] - columns.start[v]
            total = 0.0
            for length in range(plan.before.size):
                for j in range(width):
                    plan.above[length, j] = 0.0
            for i in range(rows.start[u], rows.start[u + 1]):
                for length in range(plan.before.size):
                    plan.before[length] = 0.0
                for j in range(width):
                    delta = 0.0
                    if rows.child_label[i] == columns.child_label[first + j]:
                        a, b = rows.child[i], columns.child[first + j]
                        f, g = rows.family[a], columns.family[b]
                        delta = weights.leaf if f < 0 or g < 0 else weights.inner
                        if f == g and f >= 0:
                            if table.half and table.rank[a] < table.rank[b]:
                                a, b = b, a
                            delta += table.value[table.line[a - table.origin] + table.rank[b]]
                    shorter = 1.0 + plan.before[0] if any_length else 1.0
                    for length in range(plan.before.size):
                        end, above = weights.step * delta * shorter, plan.above[length, j]
                        total += end
                        shorter = plan.before[length]
                        plan.before[length] = weights.decay * shorter + above
                        plan.above[length, j] = weights.decay * above + end
            table.value[line + table.rank[v]] = weights.mu * total
