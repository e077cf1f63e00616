"""Partial tree kernels of one pair of trees after another, compiled."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import njit
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.kernels.partial.gram import Families
from treedot.kernels.partial.subsequences import Side, Sums, Table, Weights, make_sums, sum_many
from treedot.kernels.subset.pairwise import PairSums, Scratch, Trees, match, new_scratch, trees_of
from treedot.trees import Forest


def trees_by_family(forest: Forest) -> tuple[Trees, Side]:
    """Sort the nodes of every tree by family, once for all pairs: ``forest.derived`` keeps it."""
    return sides_of(Families(forest))


def sides_of(nodes: Families) -> tuple[Trees, Side]:
    """Do the same for labels that may be similar."""
    label = nodes.forest.label
    kind, line, rank, _ = nodes.labels
    return trees_of(nodes), Side(
        nodes.forest.production, nodes.production, nodes.start, nodes.child, kind[label[nodes.child]],
        line[label], rank[label],
    )  # fmt: skip


def sums_of_pairs(
    trees: Trees, side: Side, rows: IntArray, columns: IntArray, weights: Weights, max_pairs: int,
    threads: Threads = ONE_THREAD,
) -> PairSums:  # fmt: skip
    """Return ΣT of pairs of trees, each on its own, where T takes at most ``max_pairs`` entries."""
    out = PairSums(np.empty(rows.size), np.empty(rows.size, np.int64))

    def run(first: int, last: int) -> None:
        part = slice(first, last)
        scratch, sums = new_scratch(trees, rows[part]), make_sums(weights, side)
        own = PairSums(out.values[part], out.entries[part])
        _sum_pairs(trees, side, rows[part], columns[part], weights, max_pairs, scratch, sums, own)

    threads.run(run, threads.even_spans(np.concatenate([[0], np.cumsum(trees.sizes(rows))])))
    return out


@njit
def _sum_pairs(
    trees: Trees, side: Side, rows: IntArray, columns: IntArray, weights: Weights, max_pairs: int,
    scratch: Scratch, sums: Sums, out: PairSums,
) -> None:  # fmt: skip
    values = np.empty(256)
    node = np.empty(1, np.int64)
    for k in range(rows.size):
        entries = match(trees, rows[k], trees, columns[k], scratch)
        out.entries[k] = entries
        if entries > max_pairs:
            out.values[k] = np.nan
            continue
        if entries > values.size:
            values = np.empty(max(entries, min(2 * values.size, max_pairs)))
        origin = trees.offsets[rows[k]]
        table = Table(scratch.line, origin, trees.rank, False, values)
        for u in range(origin, trees.offsets[rows[k] + 1]):
            width = scratch.width[u - origin]
            if width > 0:
                node[0] = u
                first = scratch.partners[u - origin]
                sum_many(side, node, side, trees.order[first : first + width], table, weights, sums)
        total = 0.0
        for e in range(entries):
            total += values[e]
        out.values[k] = total
