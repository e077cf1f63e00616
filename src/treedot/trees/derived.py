"""Compute the parents, children, subtree sizes, depths and equal subtrees of nodes from their arities."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.ragged import ends_of


def links(arity: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return ``(start, child, before)``: node ``i`` has the children ``child[start[i]:start[i + 1]]``.

    ``before[i]`` is the node before the first node of the subtree of node ``i``; -1 if there is none.
    """
    start = ends_of(arity)
    child, before = np.empty(start[-1], np.int32), np.empty(arity.size, np.int32)
    link(start, child, before)
    return start, child, before


@njit_borrowing
def link(start: IntArray, child: IntArray, before: IntArray) -> None:
    """Write ``child`` and ``before`` of ``links``, given ``start``.

    Children are found from right to left: the node before the subtree of a child is the next child.
    """
    for node in range(before.size):
        last = node - 1
        for place in range(start[node + 1] - 1, start[node] - 1, -1):
            child[place] = last
            last = before[last]
        before[node] = last


def parents(arity: IntArray) -> IntArray:
    """Return the index of every node's parent, -1 for roots."""
    return parents_in(arity, links(arity)[1])


def parents_in(arity: IntArray, child: IntArray) -> IntArray:
    """Return the index of every node's parent, given the children of all nodes."""
    parent = np.full(arity.size, -1, np.int32)
    parent[child] = np.repeat(np.arange(arity.size, dtype=np.int32), arity)
    return parent


def subtree_sizes(arity: IntArray) -> IntArray:
    """Return the number of nodes in every node's subtree."""
    return np.arange(arity.size, dtype=np.int32) - links(arity)[2]


def depths(arity: IntArray) -> IntArray:
    """Return the number of nodes on the path from the root to every node, both included."""
    first = links(arity)[2] + 1  # the first node of every subtree; the last one is its root
    begun = np.cumsum(np.bincount(first, minlength=arity.size))
    return (begun - np.arange(arity.size)).astype(np.int32)


def intern_nodes(label: IntArray, start: IntArray, child: IntArray, whole: bool) -> tuple[IntArray, IntArray]:
    """Give equal nodes the same number; return the numbers and the first node with each number.

    With ``whole``, nodes are equal if their subtrees are equal (hash-consing: children come first, so each
    child is already one number). Otherwise they are equal if their productions, the labels of the node and
    its children, are equal; leaves have no production and get -1. Numbers follow first appearance.
    """
    number, first = np.full(label.size, -1, np.int32), np.empty(label.size, np.int32)
    table = np.full(1 << max(4, (2 * label.size - 1).bit_length()), -1, np.int32)
    part = (number if whole else label).view()
    part.setflags(write=False)  # so that Numba compiles one version for both
    count = _intern(label, start, child, part, whole, table, number, first)
    return number, first[:count].copy()


@njit_borrowing
def _intern(
    label: IntArray, start: IntArray, child: IntArray, part: IntArray, leaves: bool, table: IntArray,
    number: IntArray, first: IntArray,
) -> int:  # fmt: skip
    """Write every node's number, by its label and its children's ``part``; return how many there are."""
    count = 0
    for node in range(label.size):
        begin, end = start[node], start[node + 1]
        if begin == end and not leaves:
            continue
        code = int(label[node]) + 1
        for k in range(begin, end):
            # 62-bit arithmetic keeps the sum of a product and a number inside a signed word.
            code = ((code ^ (code >> 29)) & 0x3FFFFFFF) * 0x5851F42D + int(part[child[k]]) + 1
            code &= 0x3FFFFFFFFFFFFFFF
        code = ((code ^ (code >> 31)) & 0x7FFFFFFF) * 0x4C957F2D
        bucket = (code ^ (code >> 32)) & (table.size - 1)
        while True:
            known = table[bucket]
            if known < 0:
                known = table[bucket] = count
                first[count] = node
                count += 1
                break
            a, b = start[first[known]], begin
            if label[first[known]] == label[node] and start[first[known] + 1] - a == end - b:
                while b < end and part[child[a]] == part[child[b]]:
                    a += 1
                    b += 1
                if b == end:
                    break
            bucket = (bucket + 1) & (table.size - 1)
        number[node] = known
    return count
