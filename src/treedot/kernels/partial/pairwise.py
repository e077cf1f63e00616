"""Partial tree kernels of one pair of trees after another, compiled."""

from __future__ import annotations

from typing import Any

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.kernels.partial.gram import Families
from treedot.kernels.partial.subsequences import Side, Sums, Table, Weights, make_sums, sum_many
from treedot.kernels.subset.pairwise import PairSums, Scratch, Trees, match, sums_of_pairs, trees_of
from treedot.trees import Forest


def trees_by_family(forest: Forest) -> tuple[Trees, Side]:
    """Sort the nodes of every tree by family, once for all pairs; ``forest.derived`` caches the result."""
    return sides_of(Families(forest))


def sides_of(nodes: Families) -> tuple[Trees, Side]:
    """Sort the nodes of every tree by family, for labels that may be similar."""
    label = nodes.forest.label
    kind, line, rank, _ = nodes.labels
    return trees_of(nodes), Side(
        nodes.forest.production, nodes.production, nodes.start, nodes.child, kind[label[nodes.child]],
        line[label], rank[label],
    )  # fmt: skip


def sums_by_family(
    trees: Trees, side: Side, rows: IntArray, columns: IntArray, weights: Weights, max_pairs: int,
    threads: Threads = ONE_THREAD,
) -> PairSums:  # fmt: skip
    """Return ΣT of chosen pairs of trees; pairs whose T needs more than ``max_pairs`` entries are skipped."""

    def add_up(*pairs: Any) -> int:
        return _add_up(trees, side, weights, make_sums(weights, side), *pairs)

    return sums_of_pairs(trees, rows, columns, max_pairs, add_up, threads)


@njit_borrowing
def _add_up(
    trees: Trees, side: Side, weights: Weights, sums: Sums, rows: IntArray, columns: IntArray, first: int,
    scratch: Scratch, values: FloatArray, out: PairSums,
) -> int:  # fmt: skip
    """Sum T of pairs of trees, from ``first`` on; return the first pair that does not fit into the memory."""
    for k in range(first, rows.size):
        out.entries[k] = match(trees, rows[k], trees, columns[k], scratch)
        if out.entries[k] > values.size:
            return k
        origin = trees.offsets[rows[k]]
        table = Table(scratch.line, origin, trees.rank, False, values)
        for u in range(origin, trees.offsets[rows[k] + 1]):
            at = scratch.partners[u - origin]
            if scratch.width[u - origin] > 0:
                partners = trees.order[at : at + scratch.width[u - origin]]
                sum_many(side, u, side, partners, table, weights, sums)
        out.values[k] = 0.0
        for e in range(out.entries[k]):
            out.values[k] += values[e]
    return rows.size
