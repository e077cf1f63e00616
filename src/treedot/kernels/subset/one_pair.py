"""One tree in one array, ready to be compared with any other: what a single call of a kernel runs on.

Two trees of different forests have no numbers for productions in common, and to pack both into one
forest takes far longer than to compare them. So here a production is a 63-bit hash of its labels' texts
(BLAKE2b, then SplitMix64): two different ones are taken for equal with a probability of 10⁻¹⁹. All is
kept in one array because to hand over an array to compiled code takes as long as to compare a few nodes.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from treedot._runtime.array_types import IntArray, WordArray
from treedot._runtime.hashing import mix64
from treedot._runtime.jit import njit, njit_of_steps
from treedot.kernels.subset.delta_table import UNBOUNDED, coefficients
from treedot.kernels.subset.pairwise import Trees, fill, fill_bounded, make_scratch, match
from treedot.trees import Forest
from treedot.trees.derived import child_lists, parents

HEAD = 4  # Trees.offsets and Trees.first of one tree


def sum_of_pair(x: Forest, y: Forest, decay: float, max_pairs: int, budget: int = UNBOUNDED) -> float | None:
    """Return ΣΔ of two one-tree forests, or None where Δ would take more than ``max_pairs`` entries."""
    return _pair(x.derived(pack_tree), y.derived(pack_tree), decay, budget, max_pairs)


def pack_tree(forest: Forest) -> IntArray:
    """Return the one tree of a forest as one array, which ``unpack`` takes apart again."""
    key = label_keys(forest)
    with np.errstate(over="ignore"):  # hashes wrap around
        return _pack(forest.label, forest.arity, key)


def label_keys(forest: Forest) -> WordArray:
    """Return a 64-bit hash of each of a forest's labels."""
    return np.array([label_key(text) for text in forest.labels], np.uint64)


@lru_cache(maxsize=2**16)  # most labels come again and again
def label_key(text: str) -> int:
    """Return a 64-bit hash of a label."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@njit
def hash_production(node: int, label: IntArray, start: IntArray, child: IntArray, key: WordArray) -> np.int64:
    """Return a 63-bit hash of the production of a node; -1 for a leaf."""
    if start[node] == start[node + 1]:
        return np.int64(-1)
    code = mix64(key[label[node]])
    for k in range(start[node], start[node + 1]):
        code = mix64(code + key[label[child[k]]])
    return np.int64(code >> np.uint64(1))


@njit
def _pack(label: IntArray, arity: IntArray, key: WordArray) -> IntArray:
    """Put the columns of ``Trees`` one after another."""
    start, child = child_lists(arity, parents(arity))
    nodes, inner = arity.size, 0
    for node in range(nodes):
        inner += arity[node] > 0
    packed = np.empty(HEAD + 4 * nodes + 2 * inner, np.int64)
    packed[0], packed[1], packed[2], packed[3] = 0, nodes, 0, inner
    trees = unpack(packed)
    trees.start[:] = start
    trees.child[:] = child
    trees.rank[:] = 0
    found = 0
    for node in range(nodes):
        trees.production[node] = hash_production(node, label, start, child, key)
        if arity[node] > 0:
            trees.sorted[found] = trees.production[node]
            trees.order[found] = node
            found += 1
    by = np.argsort(trees.sorted, kind="mergesort")
    trees.sorted[:] = trees.sorted[by]
    trees.order[:] = trees.order[by]
    for k in range(1, inner):
        if trees.sorted[k] == trees.sorted[k - 1]:
            trees.rank[trees.order[k]] = trees.rank[trees.order[k - 1]] + 1
    return packed


@njit
def unpack(packed: IntArray) -> Trees:
    """Return the columns that an array consists of."""
    nodes, inner = packed[1], packed[3]
    production = HEAD
    start = production + nodes
    child = start + nodes + 1
    rank = child + nodes - 1
    order = rank + nodes
    by = order + inner
    return Trees(
        packed[0:2], packed[production:start], packed[start:child], packed[child:rank],
        packed[2:4], packed[order:by], packed[by : by + inner], packed[rank:order],
    )  # fmt: skip


@njit_of_steps(lambda a, b, *_: a[1] * b[1])
def _pair(a: IntArray, b: IntArray, decay: float, budget: int, max_pairs: int) -> float | None:
    rows, columns, scratch = unpack(a), unpack(b), make_scratch(a[1])
    entries = match(rows, 0, columns, 0, scratch) * coefficients(budget)
    if entries > max_pairs:
        return None
    if budget == UNBOUNDED:
        return fill(rows, 0, columns, decay, scratch, np.empty(entries))
    return fill_bounded(rows, 0, columns, decay, budget, scratch, np.empty(entries))
