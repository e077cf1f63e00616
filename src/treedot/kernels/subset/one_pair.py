"""The kernel of a single pair of trees, each packed into one array.

Two forests do not number their productions alike, and packing two trees into one forest takes far longer
than comparing them. So a production is a 63-bit hash of its labels' texts here (BLAKE2b, then SplitMix64);
two different productions collide with a probability of 10⁻¹⁹. A tree is a single array because passing an
array to compiled code takes as long as comparing a few nodes.
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
    """Return ΣΔ of two one-tree forests, or None if Δ needs more than ``max_pairs`` entries."""
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
    """Pack the only tree of a forest into one array, for ``unpack``."""
    packed = np.zeros((8, forest.n_nodes + 1), np.int64)
    with np.errstate(over="ignore"):  # hashes wrap around
        _write_nodes(forest.label, forest.arity, label_keys(forest), packed)
    write_order(np.argsort(packed[1, :-1], kind="stable"), packed)
    return packed


def label_keys(forest: Forest) -> WordArray:
    """Return a 64-bit hash of every label of a forest."""
    return np.array([label_key(text) for text in forest.labels], np.uint64)


@lru_cache(maxsize=2**16)  # most labels occur often
def label_key(text: str) -> int:
    """Return a 64-bit hash of a label."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@njit_borrowing
def _write_nodes(label: IntArray, arity: IntArray, key: WordArray, packed: IntArray) -> None:
    """Write the production of every node, a 63-bit hash or -1 for a leaf, and its children."""
    offsets, production, start, child, before = packed[0], packed[1], packed[2], packed[3], packed[7]
    offsets[1] = label.size
    for node in range(label.size):
        start[node + 1] = start[node] + arity[node]
        last = node - 1
        for place in range(start[node + 1] - 1, start[node] - 1, -1):  # finds children like ``trees.derived``
            child[place] = last
            last = before[last]
        before[node] = last
        code = mix64(key[label[node]])
        for place in range(start[node], start[node + 1]):
            code = mix64(code + key[label[child[place]]])
        production[node] = np.int64(code >> np.uint64(1)) if arity[node] > 0 else -1


@njit_borrowing
def write_order(by: IntArray, packed: IntArray) -> None:
    """Write the nodes sorted by production, leaves first, and the rank of each within its production."""
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
    """Return the rows of a packed tree by name; some of them do not use their last entry."""
    return Trees(packed[0], packed[1], packed[2], packed[3], packed[4], packed[5], packed[6], packed[7])


@njit_of_steps(lambda a, b, *_: a.shape[1] * b.shape[1], borrowing=True)
def _sum(a: IntArray, b: IntArray, decay: float, scratch: IntArray, delta: FloatArray) -> float:
    """Return ΣΔ, or minus the number of entries that Δ needs if ``delta`` is too small."""
    rows, columns, noted = unpack(a), unpack(b), Scratch(scratch[0], scratch[1], scratch[2])
    pairs = match(rows, 0, columns, 0, noted)
    if pairs > delta.size:
        return -1.0 * pairs
    return fill(rows, 0, columns, decay, noted, delta)


@njit_of_steps(lambda a, b, *_: a.shape[1] * b.shape[1], borrowing=True)
def _sum_bounded(
    a: IntArray, b: IntArray, decay: float, budget: int, scratch: IntArray, delta: FloatArray
) -> float:
    """Sum Δ like ``_sum``, for fragments within a budget; Δ has one coefficient for every cost."""
    rows, columns, noted = unpack(a), unpack(b), Scratch(scratch[0], scratch[1], scratch[2])
    pairs = match(rows, 0, columns, 0, noted)
    if pairs * (budget + 1) > delta.size:
        return -1.0 * pairs * (budget + 1)
    return fill_bounded(rows, 0, columns, decay, budget, noted, delta)
