"""Sums over subsequences of children for partial tree kernels, by dynamic programming, compiled.

Two inner nodes have Δ = σ μ λ² + T with T = σ μ Σ λ^g ∏ Δ(child, child) over all pairs of equally long
subsequences of their children; σ is the similarity of their labels, 1 if they are equal. Let E(i, j) be the
sum over pairs of subsequences that end with the children i and j, whose labels are similar. Every child
skipped between two chosen ones costs another λ:

    E(i, j) = κ Δ(i, j) (1 + Σ λ^(i - 1 - i' + j - 1 - j') E(i', j'))   over i' < i and j' < j,
    T = σ μ Σ E(i, j),

κ is 1, or λ² if the chosen children cost λ, too. This sums all lengths at once; if the length is limited,
there is one E for each length.

There are two ways to compute it. If few children have similar labels, their pairs are compared one by one.
Otherwise a running sum covers all pairs of children, row by row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import inlined

FEW = 8  # most pairs of children with similar labels for the first way
NEAR = 64  # most children of a node for the first way
RUNS = 256  # most runs of nodes of one production at a time
CHUNK = 128  # nodes of a run at a time


class Weights(NamedTuple):
    """The parameters of a partial tree kernel."""

    decay: float  # λ
    mu: float
    step: float  # κ
    inner: float  # Δ of two inner nodes with equal labels, without T: μ λ²
    leaf: float  # Δ of two nodes with equal labels if one is a leaf
    longest: int  # the longest subsequence; 0 for any length
    similarity: FloatArray  # σ of labels, as in ``LabelSimilarities``


class Side(NamedTuple):
    """The nodes, or distinct subtrees, of the rows or of the columns.

    Node ``u`` has the children ``child[start[u]:start[u + 1]]``. T of nodes of different families is 0;
    leaves have the family -1. The similarity of the labels of u and v is ``similarity[line[u] + rank[v]]`` if
    they are of one kind, otherwise 0.
    """

    production: IntArray
    family: IntArray
    start: IntArray
    child: IntArray
    child_kind: IntArray
    line: IntArray
    rank: IntArray


class Table(NamedTuple):
    """T of nodes of one family: ``value[line[a - origin] + rank[b]]``.

    With ``half``, rows and columns are the same, and only entries with ``rank[a] >= rank[b]`` are stored.
    """

    line: IntArray
    origin: int
    rank: IntArray
    half: bool
    value: FloatArray


class Plan(NamedTuple):
    """The plan for comparing nodes of one production with runs of nodes, each run of one production.

    Run ``r`` consists of the nodes from ``start[r]`` to ``start[r + 1] - 1`` of a list; their labels have the
    similarity ``root[r]``. For every ``m`` below ``matches[r]``, child ``row[r, m]`` and child
    ``column[r, m]`` have labels of similarity ``similarity[r, m]``. ``factor[r, m, k]`` is a power of λ: one
    factor for every child skipped between pairs ``k`` and ``m``; 0 if ``k`` is not before ``m``.
    """

    start: IntArray
    root: FloatArray
    matches: IntArray
    row: IntArray
    column: IntArray
    similarity: FloatArray
    factor: FloatArray
    power: FloatArray  # powers of λ


def make_plan(weights: Weights) -> Plan:
    """Allocate a plan."""
    return Plan(
        np.empty(RUNS + 1, np.int64), np.empty(RUNS), np.empty(RUNS, np.int64),
        np.empty((RUNS, FEW), np.int64), np.empty((RUNS, FEW), np.int64), np.empty((RUNS, FEW)),
        np.empty((RUNS, FEW, FEW)), weights.decay ** np.arange(2.0 * NEAR),
    )  # fmt: skip


@inlined
def match_children(
    rows: Side, u: int, columns: Side, members: IntArray, first: int, weights: Weights, plan: Plan
) -> int:
    """Plan the comparison of nodes of the production of ``u`` with ``members[first:]``; return the runs.

    The last run ends at ``start[runs]``; more members may follow. If more than ``FEW`` pairs of children have
    similar labels, or subsequences could be too long or too far apart, ``matches`` is larger than ``FEW``.
    """
    runs = 0
    plan.start[0] = first
    begin, height = rows.start[u], rows.start[u + 1] - rows.start[u]
    while runs < RUNS and plan.start[runs] < members.size:
        v = members[plan.start[runs]]
        end = plan.start[runs] + 1
        while end < members.size and columns.production[members[end]] == columns.production[v]:
            end += 1
        other, width = columns.start[v], columns.start[v + 1] - columns.start[v]
        plan.root[runs] = weights.similarity[rows.line[u] + columns.rank[v]]
        count = 0 if max(height, width) <= NEAR or plan.root[runs] == 0.0 else FEW + 1
        for i in range(height if count == 0 and plan.root[runs] != 0.0 else 0):
            for j in range(width):
                if count > FEW or rows.child_kind[begin + i] != columns.child_kind[other + j]:
                    continue
                sigma = weights.similarity[
                    rows.line[rows.child[begin + i]] + columns.rank[columns.child[other + j]]
                ]
                if sigma == 0.0:
                    continue
                if count == FEW or 0 < weights.longest <= count:
                    count = FEW + 1
                    break
                for k in range(count):
                    down, right = i - plan.row[runs, k], j - plan.column[runs, k]
                    plan.factor[runs, count, k] = (
                        plan.power[down + right - 2] if down > 0 and right > 0 else 0.0
                    )
                plan.row[runs, count], plan.column[runs, count] = i, j
                plan.similarity[runs, count] = sigma
                count += 1
        plan.matches[runs] = count
        runs += 1
        plan.start[runs] = end
    return runs


class Below(NamedTuple):
    """The Δ and E of matching children for some nodes of a run; one row per match."""

    family: IntArray
    rank: IntArray
    line: IntArray
    end: FloatArray


def make_below() -> Below:
    """Allocate memory for the children of ``CHUNK`` nodes."""
    shape = FEW, CHUNK
    return Below(
        np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape)
    )


@inlined
def sum_few(
    rows: Side, us: IntArray, columns: Side, members: IntArray, table: Table, weights: Weights, plan: Plan,
    runs: int, below: Below,
) -> None:  # fmt: skip
    """Write T of the nodes ``us``, all of one production, with the runs that have few matches.

    The table holds 0 where nothing is written. The children of a run are looked up once for all nodes; then
    all nodes of the run are computed together.
    """
    for r in range(runs):
        count, first = plan.matches[r], plan.start[r]
        if not 0 < count <= FEW:
            continue
        while first < plan.start[r + 1]:
            size = min(plan.start[r + 1] - first, CHUNK)
            for m in range(count):
                for k in range(size):
                    b = columns.child[columns.start[members[first + k]] + plan.column[r, m]]
                    below.family[m, k] = columns.family[b]
                    below.rank[m, k] = table.rank[b]
                    below.line[m, k] = table.line[b] if table.half else 0
            for u in us:
                line, width = table.line[u] + first, size
                if table.half:
                    width = min(size, table.rank[u] + 1 - first)
                for m in range(count):
                    a = rows.child[rows.start[u] + plan.row[r, m]]
                    f, la, ra = rows.family[a], table.line[a], table.rank[a] if table.half else 0
                    leaf, inner = plan.similarity[r, m] * weights.leaf, plan.similarity[r, m] * weights.inner
                    for k in range(width):
                        g, rb = below.family[m, k], below.rank[m, k]
                        delta = leaf if f < 0 or g < 0 else inner
                        if f == g and f >= 0:
                            at = below.line[m, k] + ra if table.half and ra < rb else la + rb
                            delta += table.value[at]
                        before = 1.0
                        for c in range(m):
                            before += plan.factor[r, m, c] * below.end[c, k]
                        below.end[m, k] = weights.step * before * delta
                for k in range(width):
                    total = 0.0
                    for m in range(count):
                        total += below.end[m, k]
                    table.value[line + k] = weights.mu * plan.root[r] * total
            first += size


class Sums(NamedTuple):
    """Running sums: for each length (or for all), Σ λ^(i - i') E(i', j) of each child j of the columns.

    ``before`` is the sum of these, with λ^(j - 1 - j'), over all children j' before j.
    """

    above: FloatArray
    before: FloatArray


def make_sums(weights: Weights, columns: Side) -> Sums:
    """Allocate running sums for the children of any node."""
    lengths, widest = sums_shape(weights, columns)
    return Sums(np.empty((lengths, widest)), np.empty(lengths))


def sums_shape(weights: Weights, columns: Side) -> tuple[int, int]:
    """Return the shape of the running sums: lengths and children."""
    widest = int(np.diff(columns.start).max(initial=1))
    return max(1, min(weights.longest, widest)), widest


@inlined
def sum_many(
    rows: Side, u: int, columns: Side, vs: IntArray, table: Table, weights: Weights, sums: Sums
) -> None:
    """Compute T of node ``u`` with each of the nodes ``vs``, by running sums.

    It is inlined: a call would count references to all of its array arguments, which takes longer than
    comparing two nodes.
    """
    any_length = weights.longest == 0
    line = table.line[u - table.origin]
    for v in vs:
        if table.half and table.rank[v] > table.rank[u]:
            break
        first, width = columns.start[v], columns.start[v + 1] - columns.start[v]
        root, total = weights.similarity[rows.line[u] + columns.rank[v]], 0.0
        for length in range(sums.before.size):
            for j in range(width):
                sums.above[length, j] = 0.0
        for i in range(rows.start[u], rows.start[u + 1]):
            for length in range(sums.before.size):
                sums.before[length] = 0.0
            for j in range(width):
                delta = 0.0
                if rows.child_kind[i] == columns.child_kind[first + j]:
                    a, b = rows.child[i], columns.child[first + j]
                    f, g = rows.family[a], columns.family[b]
                    delta = weights.similarity[rows.line[a] + columns.rank[b]]
                    delta *= weights.leaf if f < 0 or g < 0 else weights.inner
                    if f == g and f >= 0:
                        if table.half and table.rank[a] < table.rank[b]:
                            a, b = b, a
                        delta += table.value[table.line[a - table.origin] + table.rank[b]]
                shorter = 1.0 + sums.before[0] if any_length else 1.0
                for length in range(sums.before.size):
                    end, above = weights.step * delta * shorter, sums.above[length, j]
                    total += end
                    shorter = sums.before[length]
                    sums.before[length] = weights.decay * shorter + above
                    sums.above[length, j] = weights.decay * above + end
        table.value[line + table.rank[v]] = weights.mu * root * total
