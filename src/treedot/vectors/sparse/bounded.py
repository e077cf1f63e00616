"""Find all fragments within a budget, node by node, and sort them by their keys.

The *cost* of a fragment is a sum over its productions other than the root's: expanding one of m children
costs m. A *bounded* fragment is one whose cost is at most the budget. The bounded fragments of a node are its
production, and every bounded fragment of it (the *base*) with one more child expanded by a bounded fragment
of that child (the *part*).

The nodes of a tree are visited in postorder, so the fragments of children are known before those of their
parent. In ``(S (A a) (B (C c)))`` with a budget of 2, ``find_fragments`` finds seven, in this order:

    =====  ===============  ====  ====  ====  ========
    number fragment         cost  base  part  position
    =====  ===============  ====  ====  ====  ========
    0      (A a)            0                 -1
    1      (C c)            0                 -1
    2      (B C)            0                 -1
    3      (B (C c))        1     2     1     0
    4      (S A B)          0                 -1
    5      (S (A a) B)      2     4     0     0
    6      (S A (B C))      2     4     2     1
    =====  ===============  ====  ====  ====  ========

Positions of children count from 0, here as everywhere; a single production has -1. Beyond the budget are
(S A (B (C c))), which would be 4 with 3 at position 1 and costs 1 + 2; (S (A a) (B C)), which would be 5 with
2 at position 1 and costs 2 + 2; and the whole tree, which costs 5.

``fragment_key`` defines the 64-bit key of a fragment; the compiled code computes the same. It hashes a sum
over the root's production and the expanded children, so that the sum of a fragment is the sum of its base
plus one hash of the part and the position.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import IntArray, WordArray
from treedot._runtime.hashing import GOLDEN, WORD, keys, mix, mix64
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot.trees import Tree

SALT = 0xD6E8FEB86659FD93  # keeps productions of different lengths apart

# All np.uint64: if signed integers were mixed in, Numba would convert to floating point.
GOLD, SALTED = np.uint64(GOLDEN), np.uint64(SALT)
ONE = np.uint64(1)
FREE = np.uint64(0)  # the key of a free bucket; no fragment has it


def label_keys(seed: int, texts: Any) -> WordArray:
    """Return the 64-bit key of every label; all other keys are computed from these."""
    return np.ascontiguousarray(keys(seed, texts, "fragment")[:, 0])


def fragment_key(fragment: Tree, seed: int) -> int:
    """Return the key of a fragment, a hash of its root's production and of its expanded children."""
    done: list[tuple[int, int]] = []  # label key and fragment sum, of nodes that wait for their parents
    for node in fragment.postorder():
        first = len(done) - len(node.children)
        (label,) = label_keys(seed, [node.label]).tolist()
        total = production_hash([label, *(key for key, _ in done[first:])])
        for position, (child, (_, below)) in enumerate(zip(node.children, done[first:], strict=True)):
            if child.children:
                total += mix(below + (position + 1) * GOLDEN)
        done[first:] = [(label, total & WORD)]
    return mix(done[0][1]) or 1


def production_hash(label_keys: list[int]) -> int:
    """Return the 64-bit hash of a production, from the keys of the node's label and its children's labels."""
    found = mix(label_keys[0] + len(label_keys) * SALT)
    for key in label_keys[1:]:
        found = mix(found + key)
    return found


class FoundFragments(NamedTuple):
    """Working memory: the bounded fragments of the nodes of one tree.

    Those of a node have the numbers ``first`` to ``last - 1``. The key of a fragment is ``key_of(sum)``. A
    fragment is the fragment ``base`` with the child at ``position`` expanded by the fragment ``part``; if the
    position is -1, it is a single production.
    """

    stack: IntArray  # nodes that wait for their parents
    hash: WordArray  # the hash of every node's production
    first: IntArray
    last: IntArray
    sum: WordArray
    cost: IntArray
    productions: IntArray
    base: IntArray
    part: IntArray
    position: IntArray

    @classmethod
    def make(cls, nodes: int, fragments: int) -> Self:
        """Return memory for trees of at most ``nodes`` nodes and ``fragments`` bounded fragments."""
        of_nodes = [np.empty(nodes, kind) for kind in (np.int32, np.uint64, np.int32, np.int32)]
        kinds = (np.uint64, np.int32, np.int32, np.int32, np.int32, np.int32)
        return cls._make([*of_nodes, *(np.empty(fragments, kind) for kind in kinds)])

    @property
    def fragments(self) -> int:
        """The most fragments that a tree may have."""
        return self.sum.size


class SearchResult(NamedTuple):
    """The number of fragments found, and whether these are all or the memory was too small."""

    complete: bool
    n_fragments: int


class SortedKeys(NamedTuple):
    """Working memory: keys in ascending order, each with the number given when it was inserted.

    This is a hash table that hashes a key to its first bits and keeps colliding keys in order, so its buckets
    are sorted from the first to the last. The key 0 marks a free bucket.
    """

    key: WordArray
    number: IntArray

    @classmethod
    def make(cls, keys: int) -> Self:
        """Return memory for ``keys`` keys: at most four times as many buckets, and space for the overflow."""
        return cls(np.empty(5 * keys + 16, np.uint64), np.empty(5 * keys + 16, np.int32))


@njit_borrowing
def hash_productions(
    arity: IntArray, label: IntArray, label_key: WordArray, stack: IntArray, hash: WordArray
) -> None:
    """Compute the hash of every production of a tree; ``stack`` holds nodes that wait for their parents."""
    height = 0
    for node in range(arity.size):
        m = arity[node]
        height -= m
        if m > 0:
            own = mix64(label_key[label[node]] + np.uint64(m + 1) * SALTED)
            for i in range(height, height + m):
                own = mix64(own + label_key[label[stack[i]]])
            hash[node] = own
        stack[height] = node
        height += 1


@njit_borrowing
def find_fragments(arity: IntArray, budget: int, found: FoundFragments) -> SearchResult:
    """Find the bounded fragments of a tree; the hashes of its productions must be in ``found``."""
    stack, first, last = found.stack, found.first, found.last
    sum, cost, productions = found.sum, found.cost, found.productions
    height, count, limit = 0, 0, sum.size
    for node in range(arity.size):
        m = arity[node]
        height -= m
        if m > 0:
            if count == limit:
                return SearchResult(False, count)
            start = count
            sum[count], cost[count], productions[count] = found.hash[node], 0, 1
            found.position[count] = -1
            count += 1
            for i in range(m if m <= budget else 0):
                child = stack[height + i]
                if arity[child] == 0:
                    continue
                stop = count  # the bases end here: fragments found before this child is expanded
                for part in range(first[child], last[child]):
                    spent = cost[part] + m
                    if spent > budget:
                        continue
                    if count + stop - start > limit:
                        return SearchResult(False, count)
                    below = mix64(sum[part] + np.uint64(i + 1) * GOLD)
                    for base in range(start, stop):
                        if cost[base] + spent <= budget:
                            sum[count], cost[count] = sum[base] + below, cost[base] + spent
                            productions[count] = productions[base] + productions[part]
                            found.base[count], found.part[count], found.position[count] = base, part, i
                            count += 1
            first[node], last[node] = start, count
        stack[height] = node
        height += 1
    return SearchResult(True, count)


@njit_inside
def key_of(sum: np.uint64) -> np.uint64:
    """Return the key of a fragment from its sum; it is never 0."""
    key = mix64(sum)
    return key if key != FREE else ONE


@njit_inside
def clear_keys(table: SortedKeys, keys: int) -> tuple[np.uint64, int]:
    """Clear a table for ``keys`` keys; return the shift from key to bucket, and the number of buckets."""
    bits = 3
    while 1 << bits < 2 * keys:
        bits += 1
    size = (1 << bits) + keys + 1
    table.key[:size] = 0
    return np.uint64(64 - bits), size


@njit_inside
def insert_key(key: np.uint64, fresh: int, shift: np.uint64, table: SortedKeys) -> int:
    """Return the number of a key; if it is new, insert it with the number ``fresh``."""
    bucket = np.int64(key >> shift)
    while table.key[bucket] != FREE and table.key[bucket] < key:
        bucket += 1
    if table.key[bucket] == key:
        known: int = np.int64(table.number[bucket])  # type: ignore[assignment] # int() would be compiled too
        return known
    number = fresh
    while table.key[bucket] != FREE:  # move the larger ones up
        larger, its_number = table.key[bucket], table.number[bucket]
        table.key[bucket], table.number[bucket] = key, number
        key, number = larger, its_number
        bucket += 1
    table.key[bucket], table.number[bucket] = key, number
    return fresh
