"""Compiled functions that compute parents, children, sizes, depths and equal subtrees of the nodes."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import njit


@njit
def parents(arity: IntArray) -> IntArray:
    """Return the index of every node's parent, -1 for roots: reverse Polish notation with a stack."""
    parent = np.full(arity.size, -1, np.int32)
    stack = np.empty(arity.size, np.int32)
    height = 0
    for node in range(arity.size):
        for k in range(height - arity[node], height):
            parent[stack[k]] = node
        height -= arity[node]
        stack[height] = node
        height += 1
    return parent


@njit
def child_lists(arity: IntArray, parent: IntArray) -> tuple[IntArray, IntArray]:
    """Return ``(start, child)``: node ``i`` has the children ``child[start[i]:start[i + 1]]``."""
    start = np.empty(arity.size + 1, np.int64)
    start[0] = 0
    for node in range(arity.size):
        start[node + 1] = start[node] + arity[node]
    child = np.empty(start[-1], np.int32)
    seen = np.zeros(arity.size, np.int32)
    for node in range(arity.size):
        above = parent[node]
        if above >= 0:
            child[start[above] + seen[above]] = node
            seen[above] += 1
    return start, child


@njit
def subtree_sizes(parent: IntArray) -> IntArray:
    """Return the number of nodes in every node's subtree."""
    size = np.ones(parent.size, np.int32)
    for node in range(parent.size):
        if parent[node] >= 0:
            size[parent[node]] += size[node]
    return size


@njit
def depths(parent: IntArray) -> IntArray:
    """Return the number of ancestors of every node, itself included (a root has 1)."""
    depth = np.ones(parent.size, np.int32)
    for node in range(parent.size - 1, -1, -1):
        if parent[node] >= 0:
            depth[node] = depth[parent[node]] + 1
    return depth


@njit
def intern_nodes(label: IntArray, start: IntArray, child: IntArray, whole: bool) -> tuple[IntArray, IntArray]:
    """Give equal nodes equal numbers; return them and the first node of each.

    With ``whole``, nodes are equal when their subtrees are (hash-consing: children first, so each
    child is already one number). Otherwise when their productions are, the label and the children's
    labels; leaves have no production and get -1. Numbers follow first appearance.
    """
    n = label.size
    capacity = 16
    while capacity < 2 * n:
        capacity *= 2
    table = np.full(capacity, -1, np.int32)
    number = np.full(n, -1, np.int32)
    first = np.empty(n, np.int32)
    count = 0
    for node in range(n):
        begin, end = start[node], start[node + 1]
        if begin == end and not whole:
            continue
        code = int(label[node]) + 1
        for k in range(begin, end):
            part = int(number[child[k]] if whole else label[child[k]])
            # 62-bit arithmetic keeps the sum of a product and a number inside a signed word.
            code = (((code ^ (code >> 29)) & 0x3FFFFFFF) * 0x5851F42D + part + 1) & 0x3FFFFFFFFFFFFFFF
        code = ((code ^ (code >> 31)) & 0x7FFFFFFF) * 0x4C957F2D
        bucket = (code ^ (code >> 32)) & (capacity - 1)
        while True:
            known = table[bucket]
            if known < 0:
                table[bucket] = count
                first[count] = node
                number[node] = count
                count += 1
                break
            other = first[known]
            same = label[other] == label[node] and start[other + 1] - start[other] == end - begin
            k = 0
            while same and k < end - begin:
                a, b = child[start[other] + k], child[begin + k]
                same = number[a] == number[b] if whole else label[a] == label[b]
                k += 1
            if same:
                number[node] = known
                break
            bucket = (bucket + 1) & (capacity - 1)
    return number, first[:count].copy()
