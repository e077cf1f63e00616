"""A tree packed into one array, for a single call of a partial tree kernel, as in ``subset.one_pair``.

Here the kind of a label is a 63-bit hash of its text, unless labels can be similar; every kind is a family.
"""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import inlined, njit_borrowing, njit_of_steps
from treedot.kernels.label_similarity import LabelSimilarities
from treedot.kernels.partial.subsequences import Side, Sums, Table, Weights, sum_many
from treedot.kernels.subset.one_pair import label_key, unpack, write_order
from treedot.kernels.subset.pairwise import SMALL, Scratch, match
from treedot.trees import Forest
from treedot.trees.derived import link


def kernel_of_pair(x: Forest, y: Forest, weights: Weights, widest: int, max_pairs: int) -> float | None:
    """Return ΣΔ of two one-tree forests, or None if T needs more than ``max_pairs`` entries.

    ``widest`` is the largest number of children in the second tree.
    """
    return _kernel(x.derived(_pack_equal), y.derived(_pack_equal), weights, widest, max_pairs)


def kernel_of_similar(
    x: Forest, y: Forest, of_x: LabelSimilarities, of_y: LabelSimilarities, weights: Weights, widest: int,
    max_pairs: int,
) -> float | None:  # fmt: skip
    """Return ΣΔ of two one-tree forests whose labels may be similar; None as in ``kernel_of_pair``."""
    return _kernel(_pack(x, *of_x[:3]), _pack(y, *of_y[:3]), weights, widest, max_pairs)


def _kernel(a: IntArray, b: IntArray, weights: Weights, widest: int, max_pairs: int) -> float | None:
    lengths = max(1, min(weights.longest, widest))
    sums = Sums(np.empty((lengths, max(1, widest))), np.empty(lengths))
    scratch, room = np.empty((3, a.shape[1]), np.int64), min(SMALL, max_pairs)
    total, entries = _sum(a, b, weights, scratch, sums, np.empty(room))
    if entries > max_pairs:
        return None
    if entries > room:
        total, _ = _sum(a, b, weights, scratch, sums, np.empty(entries))
    if weights.similarity.size > 1:
        return float(total + _similar(a, b, weights))
    return float(total + weights.inner * entries + weights.leaf * (_equal(a, b) - entries))


def _pack_equal(forest: Forest) -> IntArray:
    """Pack a tree whose labels are similar to no others; ``forest.derived`` caches it."""
    key = np.array([label_key(text) >> 1 for text in forest.labels], np.int64)
    zero = np.zeros(key.size, np.int64)
    return _pack(forest, key, zero, zero)


def _pack(forest: Forest, kind: IntArray, line: IntArray, rank: IntArray) -> IntArray:
    """Return a tree as one array: eight rows as in ``subset.one_pair``, and five more for ``_side``.

    The last two are the kinds of all nodes, sorted, and the nodes in that order.
    """
    packed = np.zeros((13, forest.n_nodes + 1), np.int64)
    _, family, start, child, _, _, _, before, child_kind = packed[:9]
    packed[0, 1] = forest.n_nodes
    forest.arity.cumsum(out=start[1:])
    link(start, child, before[:-1])
    kinds = kind[forest.label]
    by_kind = kinds.argsort(kind="stable")
    family[:-1] = np.where(forest.arity, kinds, -1)
    child_kind[:] = kinds[child]
    packed[9, :-1], packed[10, :-1] = line[forest.label], rank[forest.label]
    packed[11, :-1], packed[12, :-1] = kinds[by_kind], by_kind
    write_order(family[:-1].argsort(kind="stable"), packed)
    return packed


@inlined
def _side(packed: IntArray) -> Side:
    return Side(packed[1], packed[1], packed[2], packed[3], packed[8], packed[9], packed[10])


@njit_of_steps(lambda a, b, *_: 4 * a.shape[1] * b.shape[1], borrowing=True)
def _sum(
    a: IntArray, b: IntArray, weights: Weights, scratch: IntArray, sums: Sums, values: FloatArray
) -> tuple[float, int]:
    """Return ΣT and the number of its entries; ΣT is 0 if the memory is too small for them."""
    rows, columns, noted = unpack(a), unpack(b), Scratch(scratch[0], scratch[1], scratch[2])
    left, right = _side(a), _side(b)
    entries, total = match(rows, 0, columns, 0, noted), 0.0
    if entries <= values.size:
        table = Table(noted.line, 0, columns.rank, False, values)
        for u in range(rows.offsets[1]):
            if noted.width[u] > 0:
                partners = columns.order[noted.partners[u] : noted.partners[u] + noted.width[u]]
                sum_many(left, u, right, partners, table, weights, sums)
        for k in range(entries):
            total += values[k]
    return total, entries


@njit_borrowing
def _equal(a: IntArray, b: IntArray) -> int:
    """Return the number of pairs of nodes of one kind."""
    kinds, others = a[11], b[11]
    first, count = 0, 0
    for i in range(a[0, 1]):
        while first < b[0, 1] and others[first] < kinds[i]:
            first += 1
        k = first
        while k < b[0, 1] and others[k] == kinds[i]:
            k += 1
        count += k - first
    return count


@njit_borrowing
def _similar(a: IntArray, b: IntArray, weights: Weights) -> float:
    """Return the sum of Δ without children over all pairs of nodes."""
    left, right, kinds, others = _side(a), _side(b), a[11], b[11]
    first, total = 0, 0.0
    for i in range(a[0, 1]):
        while first < b[0, 1] and others[first] < kinds[i]:
            first += 1
        k = first
        while k < b[0, 1] and others[k] == kinds[i]:
            u, v = a[12, i], b[12, k]
            sigma = weights.similarity[left.line[u] + right.rank[v]]
            leaf = left.family[u] < 0 or right.family[v] < 0
            total += sigma * (weights.leaf if leaf else weights.inner)
            k += 1
    return total
