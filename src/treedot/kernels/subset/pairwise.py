"""Compiled algorithms for one pair of trees at a time: Collins & Duffy's (2001) and Moschitti's (2006)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import inlined, njit_borrowing
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.kernels.subset.delta_table import UNBOUNDED, times_expanded
from treedot.kernels.tree_kernel import ALL_FRAGMENTS, check_pairs
from treedot.trees import Forest
from treedot.trees.nodes import Nodes

SMALL = 256  # entries of Δ that are allocated at first


class Trees(NamedTuple):
    """The nodes of a forest, and the inner nodes of every tree sorted by production.

    ``order[first[t] : first[t + 1]]`` are the inner nodes of tree ``t``, and ``sorted`` are their
    productions. ``rank`` counts the earlier nodes of the same tree with the same production.
    """

    offsets: IntArray
    production: IntArray
    start: IntArray
    child: IntArray
    first: IntArray
    order: IntArray
    sorted: IntArray
    rank: IntArray

    def sizes(self, which: IntArray) -> IntArray:
        """Return the number of nodes of each of the given trees."""
        return self.offsets[which + 1] - self.offsets[which]


def trees_by_production(forest: Forest) -> Trees:
    """Sort the nodes of every tree by production; ``forest.derived`` keeps the result for all pairs."""
    return trees_of(Nodes(forest))


def trees_of(nodes: Nodes) -> Trees:
    """Sort the nodes of every tree by production, or by the numbers that ``nodes`` has in its place."""
    forest = nodes.forest
    inner = np.flatnonzero(nodes.production >= 0)
    tree = forest.tree_of_node[inner]
    by = np.lexsort((nodes.production[inner], tree))
    order, tree = inner[by].astype(np.int32), tree[by]
    production = nodes.production[order]
    index = np.arange(order.size)
    new = np.ones(order.size, bool)
    new[1:] = (production[1:] != production[:-1]) | (tree[1:] != tree[:-1])
    rank = np.zeros(nodes.production.size, np.int32)
    rank[order] = index - np.maximum.accumulate(np.where(new, index, 0))
    first = np.searchsorted(tree, np.arange(len(forest) + 1))
    return Trees(forest.offsets, nodes.production, nodes.start, nodes.child, first, order, production, rank)


class Scratch(NamedTuple):
    """Scratch space for every node of the first tree while it is compared with the second.

    ``line`` is where its line of Δ begins, ``partners`` where the nodes that match it begin in ``order``,
    ``width`` how many nodes match it.
    """

    line: IntArray
    partners: IntArray
    width: IntArray


class PairSums(NamedTuple):
    """ΣΔ of pairs of trees, and the number of entries of Δ for each; pairs with too many entries are nan."""

    values: FloatArray
    entries: IntArray


@inlined
def match(rows: Trees, i: int, columns: Trees, j: int, scratch: Scratch) -> int:
    """Find the nodes that match each node by merging two sorted lists; return the number of pairs."""
    origin = rows.offsets[i]
    for node in range(rows.offsets[i + 1] - origin):
        scratch.width[node] = 0
    a, end = rows.first[i], rows.first[i + 1]
    b, stop = columns.first[j], columns.first[j + 1]
    pairs = 0
    while a < end and b < stop:
        p, q = rows.sorted[a], columns.sorted[b]
        if p < q:
            a += 1
        elif q < p:
            b += 1
        else:
            past = b + 1
            while past < stop and columns.sorted[past] == p:
                past += 1
            while a < end and rows.sorted[a] == p:
                node = rows.order[a] - origin
                scratch.line[node] = pairs
                scratch.partners[node] = b
                scratch.width[node] = past - b
                pairs += past - b
                a += 1
            b = past
    return pairs


@inlined
def fill(rows: Trees, i: int, columns: Trees, decay: float, scratch: Scratch, delta: FloatArray) -> float:
    """Compute Δ of the pairs that ``match`` found, children before parents, and return ΣΔ."""
    origin = rows.offsets[i]
    value = 0.0
    for u in range(origin, rows.offsets[i + 1]):
        width = scratch.width[u - origin]
        if width == 0:
            continue
        line, partners = scratch.line[u - origin], scratch.partners[u - origin]
        begin, arity = rows.start[u], rows.start[u + 1] - rows.start[u]
        total = 0.0
        for k in range(width):
            other = columns.start[columns.order[partners + k]]
            product = 1.0
            for c in range(arity):
                a, b = rows.child[begin + c], columns.child[other + c]
                p = rows.production[a]
                if p >= 0 and p == columns.production[b]:
                    product *= 1.0 + decay * delta[scratch.line[a - origin] + columns.rank[b]]
            delta[line + k] = product
            total += product
        value += total
    return value


@inlined
def fill_bounded(
    rows: Trees, i: int, columns: Trees, decay: float, budget: int, scratch: Scratch, delta: FloatArray
) -> float:
    """Compute Δ like ``fill`` for fragments within a budget, with one coefficient for every cost."""
    origin, size = rows.offsets[i], budget + 1
    value = 0.0
    for u in range(origin, rows.offsets[i + 1]):
        line, partners = scratch.line[u - origin], scratch.partners[u - origin]
        begin, arity = rows.start[u], rows.start[u + 1] - rows.start[u]
        for k in range(scratch.width[u - origin]):
            other = columns.start[columns.order[partners + k]]
            product = delta[(line + k) * size : (line + k + 1) * size]
            product[:] = 0.0
            product[0] = 1.0
            for c in range(arity if arity <= budget else 0):
                a, b = rows.child[begin + c], columns.child[other + c]
                p = rows.production[a]
                if p >= 0 and p == columns.production[b]:
                    entry = scratch.line[a - origin] + columns.rank[b]
                    times_expanded(product, delta[entry * size : (entry + 1) * size], decay, arity)
            total = 0.0
            for power in range(size):
                total += product[power]
            value += total
    return value


@njit_borrowing
def fast(
    trees: Trees, decay: float, rows: IntArray, columns: IntArray, first: int, scratch: Scratch,
    delta: FloatArray, out: PairSums,
) -> int:  # fmt: skip
    """Compute Moschitti's (2006) fast tree kernel of trees ``rows[k]`` and ``columns[k]``, from k = first.

    Return the first k for which ``delta`` is too small, or the number of pairs if there is none.
    """
    for k in range(first, rows.size):
        out.entries[k] = match(trees, rows[k], trees, columns[k], scratch)
        if out.entries[k] > delta.size:
            return k
        out.values[k] = fill(trees, rows[k], trees, decay, scratch, delta)
    return rows.size


@njit_borrowing
def fast_bounded(
    trees: Trees, decay: float, budget: int, rows: IntArray, columns: IntArray, first: int, scratch: Scratch,
    delta: FloatArray, out: PairSums,
) -> int:  # fmt: skip
    """Compute the kernels like ``fast``, for fragments within a budget."""
    for k in range(first, rows.size):
        out.entries[k] = match(trees, rows[k], trees, columns[k], scratch) * (budget + 1)
        if out.entries[k] > delta.size:
            return k
        out.values[k] = fill_bounded(trees, rows[k], trees, decay, budget, scratch, delta)
    return rows.size


@njit_borrowing
def table(
    trees: Trees, rows: IntArray, columns: IntArray, decay: float, delta: FloatArray, out: FloatArray
) -> None:
    """Compute Collins & Duffy's (2001) tree kernel with a table of Δ over all pairs of nodes of two trees."""
    for k in range(rows.size):
        i, j = rows[k], columns[k]
        row, column = trees.offsets[i], trees.offsets[j]
        width = trees.offsets[j + 1] - column
        value = 0.0
        for u in range(row, trees.offsets[i + 1]):
            p = trees.production[u]
            begin, arity = trees.start[u], trees.start[u + 1] - trees.start[u]
            for v in range(column, trees.offsets[j + 1]):
                product = 0.0
                if p >= 0 and p == trees.production[v]:
                    product = 1.0
                    other = trees.start[v]
                    for c in range(arity):
                        a, b = trees.child[begin + c] - row, trees.child[other + c] - column
                        product *= 1.0 + decay * delta[a * width + b]
                delta[(u - row) * width + v - column] = product
                value += product
        out[k] = value


def table_pairs(
    trees: Trees, rows: IntArray, columns: IntArray, decay: float, max_pairs: int,
    threads: Threads = ONE_THREAD,
) -> FloatArray:  # fmt: skip
    """Return ΣΔ of pairs of trees, by ``table``."""
    sizes = trees.sizes(rows) * trees.sizes(columns)
    check_pairs(int(sizes.max(initial=0)), max_pairs, ALL_FRAGMENTS._replace(entries="pairs of nodes"))
    out = np.empty(rows.size)

    def run(first: int, last: int) -> None:
        part = slice(first, last)
        table(trees, rows[part], columns[part], decay, np.empty(sizes[part].max()), out[part])

    threads.run(run, threads.even_spans(np.concatenate([[0], np.cumsum(sizes)])))
    return out


def fast_pairs(
    trees: Trees, rows: IntArray, columns: IntArray, decay: float, max_pairs: int, budget: int = UNBOUNDED,
    threads: Threads = ONE_THREAD,
) -> PairSums:  # fmt: skip
    """Return ΣΔ of pairs of trees, by ``fast``; nan if Δ needs more than ``max_pairs`` entries."""
    bounded = partial(fast_bounded, trees, decay, budget)
    add_up = partial(fast, trees, decay) if budget == UNBOUNDED else bounded
    return sums_of_pairs(trees, rows, columns, max_pairs, add_up, threads)


def sums_of_pairs(
    trees: Trees, rows: IntArray, columns: IntArray, max_pairs: int, add_up: Callable[..., int],
    threads: Threads,
) -> PairSums:  # fmt: skip
    """Return the sums that the compiled function ``add_up`` computes for pairs of trees.

    ``add_up`` gets pairs of trees, the first one to compute, and memory. It returns the first pair that needs
    more memory, and is called again with more, up to ``max_pairs`` entries.
    """
    out = PairSums(np.full(rows.size, np.nan), np.empty(rows.size, np.int64))

    def run(first: int, last: int) -> None:
        part = slice(first, last)
        own = PairSums(out.values[part], out.entries[part])
        scratch, room, k = new_scratch(trees, rows[part]), min(SMALL, max_pairs), 0
        while k < last - first:
            k = add_up(rows[part], columns[part], k, scratch, np.empty(room), own)
            if k < last - first:
                if own.entries[k] > max_pairs:
                    k += 1
                else:
                    room = max(int(own.entries[k]), min(2 * room, max_pairs))

    threads.run(run, threads.even_spans(np.concatenate([[0], np.cumsum(trees.sizes(rows))])))
    return out


def new_scratch(trees: Trees, rows: IntArray) -> Scratch:
    """Return scratch space for the largest of the given trees."""
    return Scratch(*np.empty((3, int(trees.sizes(rows).max(initial=1))), np.int64))
