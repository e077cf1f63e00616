"""One tree in one array, ready for a single call of a partial tree kernel, as ``subset.one_pair`` has it.

The kind of a label is a 63-bit hash of its text here, unless labels are similar, and every kind a family.
"""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import njit, njit_of_steps
from treedot.kernels.label_similarity import LabelSimilarities
from treedot.kernels.partial.subsequences import Side, Sums, Table, Weights, sum_many
from treedot.kernels.subset.one_pair import label_key
from treedot.kernels.subset.pairwise import Trees, make_scratch, match
from treedot.trees import Forest
from treedot.trees.derived import child_lists, parents

HEAD = 4  # Trees.offsets and Trees.first of one tree


def kernel_of_pair(x: Forest, y: Forest, weights: Weights, max_pairs: int) -> float | None:
    """Return ΣΔ of two one-tree forests, or None where T would take more than ``max_pairs`` entries."""
    return _kernel(x.derived(_pack_equal), y.derived(_pack_equal), weights, max_pairs)


def kernel_of_similar(
    x: Forest, y: Forest, of_x: LabelSimilarities, of_y: LabelSimilarities, weights: Weights, max_pairs: int
) -> float | None:
    """Return ΣΔ of two one-tree forests whose labels may be similar, or None as above."""
    a, b = (_pack(forest.label, forest.arity, *labels[:3]) for forest, labels in ((x, of_x), (y, of_y)))
    return _kernel(a, b, weights, max_pairs)


def _pack_equal(forest: Forest) -> IntArray:
    """Pack a tree whose labels are similar to nothing, for ``forest.derived`` to keep."""
    key = np.array([label_key(text) >> 1 for text in forest.labels], np.int64)
    zero = np.zeros(key.size, np.int64)
    return _pack(forest.label, forest.arity, key, zero, zero)


@njit
def _pack(label: IntArray, arity: IntArray, kind: IntArray, line: IntArray, rank: IntArray) -> IntArray:
    """Return a tree as one array, which ``_trees`` and ``_side`` take apart again."""
    start, child = child_lists(arity, parents(arity))
    nodes, inner = arity.size, int((arity > 0).sum())
    packed = np.zeros(HEAD + 9 * nodes - 1 + 2 * inner, np.int64)
    packed[1], packed[3] = nodes, inner
    trees, side, kinds, by_kind = _trees(packed), _side(packed), _kinds(packed), _by_kind(packed)
    side.start[:] = start
    side.child[:] = child
    found = 0
    for node in range(nodes):
        kinds[node] = kind[label[node]]
        side.line[node], side.rank[node] = line[label[node]], rank[label[node]]
        side.family[node] = kinds[node] if arity[node] > 0 else -1
        if arity[node] > 0:
            trees.order[found], trees.sorted[found] = node, kinds[node]
            found += 1
    for k in range(nodes - 1):
        side.child_kind[k] = kinds[child[k]]
    by = np.argsort(trees.sorted, kind="mergesort")
    trees.order[:] = trees.order[by]
    trees.sorted[:] = trees.sorted[by]
    for k in range(1, inner):
        if trees.sorted[k] == trees.sorted[k - 1]:
            trees.rank[trees.order[k]] = trees.rank[trees.order[k - 1]] + 1
    by_kind[:] = np.argsort(kinds, kind="mergesort")
    kinds[:] = kinds[by_kind]
    return packed


@njit
def _trees(packed: IntArray) -> Trees:
    nodes, inner = packed[1], packed[3]
    side = _side(packed)
    rank = HEAD + 6 * nodes - 1
    order = packed.size - 2 * inner
    return Trees(
        packed[0:2], side.family, side.start, side.child, packed[2:4], packed[order : order + inner],
        packed[order + inner :], packed[rank : rank + nodes],
    )  # fmt: skip


@njit
def _side(packed: IntArray) -> Side:
    nodes = packed[1]
    start = HEAD + nodes
    child = start + nodes + 1
    kind = child + nodes - 1
    line = kind + nodes - 1
    family = packed[HEAD:start]
    return Side(
        family, family, packed[start:child], packed[child:kind], packed[kind:line],
        packed[line : line + nodes], packed[line + nodes : line + 2 * nodes],
    )  # fmt: skip


@njit
def _kinds(packed: IntArray) -> IntArray:
    """Return the kinds of all nodes, which are sorted."""
    nodes = packed[1]
    first = HEAD + 7 * nodes - 1
    return packed[first : first + nodes]


@njit
def _by_kind(packed: IntArray) -> IntArray:
    """Return all nodes by kind."""
    nodes = packed[1]
    first = HEAD + 8 * nodes - 1
    return packed[first : first + nodes]


@njit_of_steps(lambda a, b, *_: 4 * a[1] * b[1])
def _kernel(a: IntArray, b: IntArray, weights: Weights, max_pairs: int) -> float | None:
    rows, columns, left, right = _trees(a), _trees(b), _side(a), _side(b)
    scratch = make_scratch(a[1])
    entries = match(rows, 0, columns, 0, scratch)
    if entries > max_pairs:
        return None
    table = Table(scratch.line, 0, columns.rank, False, np.empty(entries))
    widest = 1
    for v in range(b[1]):
        widest = max(widest, right.start[v + 1] - right.start[v])
    lengths = max(1, min(weights.longest, widest))
    sums = Sums(np.empty((lengths, widest)), np.empty(lengths))
    node = np.empty(1, np.int64)
    for u in range(a[1]):
        if scratch.width[u] > 0:
            node[0] = u
            partners = columns.order[scratch.partners[u] : scratch.partners[u] + scratch.width[u]]
            sum_many(left, node, right, partners, table, weights, sums)
    total = 0.0
    for value in table.value:
        total += value
    if weights.similarity.size == 1:
        leaves = _equal(_kinds(a), _kinds(b)) - entries
        return float(total + weights.inner * entries + weights.leaf * leaves)
    return float(total + _similar(a, b, weights))


@njit
def _equal(a: IntArray, b: IntArray) -> int:
    """Return the number of pairs of equal numbers in two sorted lists."""
    first, count = 0, 0
    for value in a:
        while first < b.size and b[first] < value:
            first += 1
        k = first
        while k < b.size and b[k] == value:
            k += 1
        count += k - first
    return count


@njit
def _similar(a: IntArray, b: IntArray, weights: Weights) -> float:
    """Return what all pairs of nodes count for their labels alone."""
    left, right, kinds, others = _side(a), _side(b), _kinds(a), _kinds(b)
    rows, columns = _by_kind(a), _by_kind(b)
    first, total = 0, 0.0
    for i in range(kinds.size):
        while first < others.size and others[first] < kinds[i]:
            first += 1
        k = first
        while k < others.size and others[k] == kinds[i]:
            u, v = rows[i], columns[k]
            sigma = weights.similarity[left.line[u] + right.rank[v]]
            total += sigma * (weights.leaf if min(left.family[u], right.family[v]) < 0 else weights.inner)
            k += 1
    return total
