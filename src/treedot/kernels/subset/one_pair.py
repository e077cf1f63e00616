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

from treedot._runtime.array_types import FloatArray, IntArray, WordArray
from treedot._runtime.hashing import mix64
from treedot._runtime.jit import inlined, njit_borrowing, njit_of_steps
from treedot.kernels.subset.delta_table import UNBOUNDED
from treedot.kernels.subset.pairwise import SMALL, Scratch, Trees, fill, fill_bounded, match
from treedot.trees import Forest


def sum_of_pair(x: Forest, y: Forest, decay: float, max_pairs: int, budget: int = UNBOUNDED) -> float | None:
    """Return ΣΔ of two one-tree forests, or None where Δ would take more than ``max_pairs`` entries."""
    a, b = x.derived(pack_tree), y.derived(pack_tree)
    scratch, room = np.empty((3, a.shape[1]), np.int64), SMALL if max_pairs > SMALL else max_pairs
    while True:
        if budget == UNBOUNDED:
            value = _sum(a, b, decay, scratch, np.empty(room))
        else:
            value = _sum_bounded(a, b, decay, budget, scratch, np.empty(room))
        if not value < 0.0:
            return value
        room = -int(value)
        if room > max_pairs:
            return None


def pack_tree(forest: Forest) -> IntArray:
    """Return the one tree of a forest as one array, which ``unpack`` takes apart again."""
    packed = np.zeros((8, forest.n_nodes + 1), np.int64)
    with np.errstate(over="ignore"):  # hashes wrap around
        _write_nodes(forest.label, forest.arity, label_keys(forest), packed)
    write_order(np.argsort(packed[1, :-1], kind="stable"), packed)
    return packed


def label_keys(forest: Forest) -> WordArray:
    """Return a 64-bit hash of each of a forest's labels."""
    return np.array([label_key(text) for text in forest.labels], np.uint64)


@lru_cache(maxsize=2**16)  # most labels come again and again
def label_key(text: str) -> int:
    """Return a 64-bit hash of a label."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@njit_borrowing
def _write_nodes(label: IntArray, arity: IntArray, key: WordArray, packed: IntArray) -> None:
    """Write the productions, hashes of 63 bits and -1 for leaves, and the children of all nodes."""
    offsets, production, start, child, before = packed[0], packed[1], packed[2], packed[3], packed[7]
    offsets[1] = label.size
    for node in range(label.size):
        start[node + 1] = start[node] + arity[node]
        last = node - 1
        for place in range(start[node + 1] - 1, start[node] - 1, -1):  # as ``trees.derived`` finds children
            child[place] = last
            last = before[last]
        before[node] = last
        code = mix64(key[label[node]])
        for place in range(start[node], start[node + 1]):
            code = mix64(code + key[label[child[place]]])
        production[node] = np.int64(code >> np.uint64(1)) if arity[node] > 0 else -1


@njit_borrowing
def write_order(by: IntArray, packed: IntArray) -> None:
    """Write the nodes in the order of their productions, leaves first, and their ranks."""
    production, first, order, ordered, rank = packed[1], packed[4], packed[5], packed[6], packed[7]
    first[1] = by.size
    for k in range(by.size):
        order[k], ordered[k], rank[by[k]] = by[k], production[by[k]], 0
        if ordered[k] < 0:
            first[0] = k + 1
        elif k > 0 and ordered[k] == ordered[k - 1]:
            rank[by[k]] = rank[by[k - 1]] + 1


@inlined
def unpack(packed: IntArray) -> Trees:
    """Return the rows of an array, whose ends are not used."""
    return Trees(packed[0], packed[1], packed[2], packed[3], packed[4], packed[5], packed[6], packed[7])


@njit_of_steps(lambda a, b, *_: a.shape[1] * b.shape[1], borrowing=True)
def _sum(a: IntArray, b: IntArray, decay: float, scratch: IntArray, delta: FloatArray) -> float:
    """Return ΣΔ, or the number of entries that Δ takes, as a negative number, where there is no room."""
    rows, columns, noted = unpack(a), unpack(b), Scratch(scratch[0], scratch[1], scratch[2])
    pairs = match(rows, 0, columns, 0, noted)
    if pairs > delta.size:
        return -1.0 * pairs
    return fill(rows, 0, columns, decay, noted, delta)


@njit_of_steps(lambda a, b, *_: a.shape[1] * b.shape[1], borrowing=True)
def _sum_bounded(
    a: IntArray, b: IntArray, decay: float, budget: int, scratch: IntArray, delta: FloatArray
) -> float:
    """Do the same for the fragments within a budget, with one coefficient of Δ for every cost."""
    rows, columns, noted = unpack(a), unpack(b), Scratch(scratch[0], scratch[1], scratch[2])
    pairs = match(rows, 0, columns, 0, noted)
    if pairs * (budget + 1) > delta.size:
        return -1.0 * pairs * (budget + 1)
    return fill_bounded(rows, 0, columns, decay, budget, noted, delta)
