"""One tree in one array, ready for a single call of a partial tree kernel, as ``single_pair`` has it.

A label is a 63-bit hash of its text here, and every label a family.
"""

from __future__ import annotations

import numpy as np

from treedot.array_types import IntArray, WordArray
from treedot.jit import njit
from treedot.kernels.pairwise import Scratch, Trees, match
from treedot.kernels.single_pair import label_key
from treedot.kernels.subsequences import Side, Sums, Table, Weights, sum_many
from treedot.trees import Forest
from treedot.trees.derived import child_lists, parents

HEAD = 4  # Trees.offsets and Trees.first of one tree


def kernel_of_pair(x: Forest, y: Forest, weights: Weights, max_pairs: int) -> float | None:
    """Return ΣΔ of two one-tree forests, or None where T would take more than ``max_pairs`` entries."""
    return _kernel(x.derived(pack_labels), y.derived(pack_labels), weights, max_pairs)


def pack_labels(forest: Forest) -> IntArray:
    """Return the one tree of a forest as one array, which ``_trees`` and ``_side`` take apart again."""
    key = np.array([label_key(text) >> 1 for text in forest.labels], np.uint64)
    return _pack(forest.label, forest.arity, key)


@njit
def _pack(label: IntArray, arity: IntArray, key: WordArray) -> IntArray:
    start, child = child_lists(arity, parents(arity))
    nodes, inner = arity.size, int((arity > 0).sum())
    packed = np.zeros(HEAD + 7 * nodes - 1 + 2 * inner, np.int64)
    packed[1], packed[3] = nodes, inner
    trees, side, labels = _trees(packed), _side(packed), _labels(packed)
    side.start[:] = start
    side.child[:] = child
    found = 0
    for node in range(nodes):
        labels[node] = np.int64(key[label[node]])
        side.family[node] = labels[node] if arity[node] > 0 else -1
        if arity[node] > 0:
            trees.order[found], trees.sorted[found] = node, labels[node]
            found += 1
    for k in range(nodes - 1):
        side.child_kind[k] = labels[child[k]]
    by = np.argsort(trees.sorted, kind="mergesort")
    trees.order[:] = trees.order[by]
    trees.sorted[:] = trees.sorted[by]
    for k in range(1, inner):
        if trees.sorted[k] == trees.sorted[k - 1]:
            trees.rank[trees.order[k]] = trees.rank[trees.order[k - 1]] + 1
    labels.sort()
    return packed


@njit
def _trees(packed: IntArray) -> Trees:
    nodes, inner = packed[1], packed[3]
    side = _side(packed)
    rank = HEAD + 4 * nodes - 1
    order = rank + 2 * nodes
    return Trees(
        packed[0:2], side.family, side.start, side.child, packed[2:4], packed[order : order + inner],
        packed[order + inner : order + 2 * inner], packed[rank : rank + nodes],
    )  # fmt: skip


@njit
def _side(packed: IntArray) -> Side:
    nodes = packed[1]
    start = HEAD + nodes
    child = start + nodes + 1
    family = packed[HEAD:start]
    zero = packed[packed.size - nodes :]
    return Side(
        family, family, packed[start:child], packed[child : child + nodes - 1],
        packed[child + nodes - 1 : child + 2 * nodes - 2], zero, zero,
    )  # fmt: skip


@njit
def _labels(packed: IntArray) -> IntArray:
    """Return the labels of all nodes, which are sorted."""
    nodes = packed[1]
    first = HEAD + 5 * nodes - 1
    return packed[first : first + nodes]


@njit
def _kernel(a: IntArray, b: IntArray, weights: Weights, max_pairs: int) -> float | None:
    rows, columns, left, right = _trees(a), _trees(b), _side(a), _side(b)
    size = a[1]
    scratch = Scratch(
        np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(0)
    )
    entries = match(rows, 0, columns, 0, scratch)
    if entries > max_pairs:
        return None
    table = Table(scratch.line, 0, columns.rank, False, np.empty(entries))
    lengths = max(weights.longest, 1)
    sums = Sums(np.empty((lengths, b[1])), np.empty(lengths))
    node = np.empty(1, np.int64)
    for u in range(size):
        if scratch.width[u] > 0:
            node[0] = u
            partners = columns.order[scratch.partners[u] : scratch.partners[u] + scratch.width[u]]
            sum_many(left, node, right, partners, table, weights, sums)
    leaves = _equal(_labels(a), _labels(b)) - entries
    return float(table.value.sum() + weights.inner * entries + weights.leaf * leaves)


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
