"""Compare partial tree kernels with a plain implementation: ``python -m benchmarks.partial``.

The plain implementation is the fast algorithm of Moschitti (2006), compiled. For every pair of trees, it
finds the pairs of nodes with equal labels by merging two sorted lists. It computes the Δ of each by dynamic
programming over all subsequences of children, one length after another, and stores it in a table of all pairs
of nodes.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.trees import benchmark_forest
from treedot import Forest, PartialTreeKernel
from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit

ROUNDS = 7


class Nodes(NamedTuple):
    """The nodes of all trees: those of tree ``t`` are ``offsets[t]`` to ``offsets[t + 1] - 1``.

    ``by_label`` holds the same numbers; those of each tree are sorted by label.
    """

    offsets: IntArray
    label: IntArray
    start: IntArray
    child: IntArray
    by_label: IntArray


def plain_gram(forest: Forest, decay: float = 0.4, mu: float = 0.4) -> FloatArray:
    by_label = np.lexsort((np.arange(forest.n_nodes), forest.label, forest.tree_of_node))
    nodes = Nodes(forest.offsets, forest.label, *forest.children, by_label)
    return _plain_gram(nodes, decay, mu, int(forest.sizes.max()), int(forest.arity.max()))


@njit
def _plain_gram(nodes: Nodes, decay: float, mu: float, largest: int, widest: int) -> FloatArray:
    n = nodes.offsets.size - 1
    out = np.empty((n, n))
    delta, partners = np.empty((largest, largest)), np.empty((largest, 2), np.int64)
    ends, sums = np.empty((widest + 1, widest + 1)), np.empty((widest + 1, widest + 1))
    for i in range(n):
        for j in range(i + 1):
            _equal_labels(nodes, i, j, partners)
            out[i, j] = out[j, i] = _plain_kernel(nodes, i, j, decay, mu, partners, delta, ends, sums)
    return out


@njit
def _equal_labels(nodes: Nodes, i: int, j: int, partners: IntArray) -> None:
    """Find, for every node of tree i, the part of ``by_label`` with the nodes of tree j of the same label."""
    b, stop = nodes.offsets[j], nodes.offsets[j + 1]
    for a in range(nodes.offsets[i], nodes.offsets[i + 1]):
        u = nodes.by_label[a]
        while b < stop and nodes.label[nodes.by_label[b]] < nodes.label[u]:
            b += 1
        past = b
        while past < stop and nodes.label[nodes.by_label[past]] == nodes.label[u]:
            past += 1
        partners[u - nodes.offsets[i], 0], partners[u - nodes.offsets[i], 1] = b, past


@njit
def _plain_kernel(
    nodes: Nodes, i: int, j: int, decay: float, mu: float, partners: IntArray, delta: FloatArray,
    ends: FloatArray, sums: FloatArray,
) -> float:  # fmt: skip
    """Return ΣΔ, children before parents."""
    row, column = nodes.offsets[i], nodes.offsets[j]
    total = 0.0
    for u in range(row, nodes.offsets[i + 1]):
        n = nodes.start[u + 1] - nodes.start[u]
        for k in range(partners[u - row, 0], partners[u - row, 1]):
            v = nodes.by_label[k]
            m = nodes.start[v + 1] - nodes.start[v]
            value = decay * decay
            if n > 0 and m > 0:
                value += _plain_subsequences(nodes, u, n, row, v, m, column, decay, delta, ends, sums)
            delta[u - row, v - column] = mu * value
            total += mu * value
    return total


@njit
def _plain_subsequences(
    nodes: Nodes, u: int, n: int, row: int, v: int, m: int, column: int, decay: float, delta: FloatArray,
    ends: FloatArray, sums: FloatArray,
) -> float:  # fmt: skip
    """Sum over pairs of subsequences, one length after another; ``ends`` holds those that end at (i, j)."""
    total = 0.0
    for i in range(n):
        a = nodes.child[nodes.start[u] + i]
        for j in range(m):
            b = nodes.child[nodes.start[v] + j]
            ends[i, j] = delta[a - row, b - column] if nodes.label[a] == nodes.label[b] else 0.0
            total += ends[i, j]
    for length in range(1, min(n, m)):
        sums[: n + 1, : m + 1] = 0.0
        for i in range(length - 1, n):
            a = nodes.child[nodes.start[u] + i]
            for j in range(length - 1, m):
                b = nodes.child[nodes.start[v] + j]
                sums[i + 1, j + 1] = (
                    ends[i, j] + decay * (sums[i, j + 1] + sums[i + 1, j]) - decay * decay * sums[i, j]
                )
                if nodes.label[a] == nodes.label[b]:
                    ends[i, j] = delta[a - row, b - column] * sums[i, j]
                    total += ends[i, j]
    return total


def figures(forest: Forest) -> tuple[float, float]:
    """Return the processor time of the plain Gram matrix and of ours, the best of several rounds in turn."""
    kernel = PartialTreeKernel()
    plain, ours = [], []
    for _ in range(ROUNDS + 1):  # the first compiles
        copies = forest[:], forest[:]  # nothing is cached for them yet
        start = time.process_time()
        expected = plain_gram(copies[0])
        middle = time.process_time()
        found = kernel.gram(copies[1])
        plain.append(middle - start)
        ours.append(time.process_time() - middle)
    if not np.allclose(found, expected, rtol=1e-9, atol=0):
        raise AssertionError("the two implementations differ")
    return min(plain[1:]), min(ours[1:])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partial", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--trees", type=int, default=1000, help="number of trees (default: 1000)")
    options = parser.parse_args(arguments)
    forest, source = benchmark_forest(options.data, "questions")
    plain, ours = figures(forest[: options.trees])
    print(f"Gram matrix of partial tree kernels, {options.trees} {source}, one thread")
    print("processor time, the best of", ROUNDS)
    print(f"plain, one pair after another  {plain:.3f} s")
    print(f"PartialTreeKernel              {ours:.3f} s, {plain / ours:.1f} times as fast (bar: 5)")


if __name__ == "__main__":
    main()
