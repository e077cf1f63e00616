"""The subtree kernels of KeLP and SVM-LIGHT-TK, which also count some unequal subtrees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import inlined, njit_borrowing
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.kernels.subset.one_pair import pack_tree
from treedot.kernels.tree_kernel import MATCHING, check_pairs
from treedot.trees import Forest


class Rule(NamedTuple):
    """The factors of children with different subtrees in the product of their parents.

    In the subtree kernel both are 0: a subtree that differs anywhere does not count.
    """

    unequal: float  # both have children, but their productions differ
    mixed: float  # only one of them has children


RULES = {"kelp": Rule(unequal=1.0, mixed=0.0), "svm-light-tk": Rule(unequal=0.0, mixed=1.0)}
ALL_PAIRS = MATCHING._replace(entries="pairs of nodes")


class _Nodes(NamedTuple):
    """The nodes of trees; every further array would slow down the comparison of small trees."""

    offsets: IntArray
    production: IntArray
    start: IntArray
    child: IntArray


def pairs(
    forest: Forest, rows: IntArray, columns: IntArray, decay: float, rule: Rule, max_pairs: int,
    threads: Threads = ONE_THREAD,
) -> FloatArray:  # fmt: skip
    """Return ΣΔ over the pairs of inner nodes, for chosen pairs of trees.

    ``Δ = λ ∏ f(child, child)`` for equal productions. f is Δ for children with equal productions, 1 for two
    leaves, and otherwise the factor of the rule.
    """
    entries = forest.sizes[rows] * forest.sizes[columns]
    check_pairs(int(entries.max(initial=0)), max_pairs, ALL_PAIRS)
    nodes = _Nodes(forest.offsets, forest.production, *forest.children)
    out = np.empty(rows.size)

    def run(first: int, last: int) -> None:
        part = slice(first, last)
        table = np.empty(entries[part].max(initial=0))
        _sum_pairs(nodes, rows[part], columns[part], decay, rule, table, out[part])

    threads.run(run, threads.even_spans(np.concatenate([[0], np.cumsum(entries)])))
    return out


def pair(x: Forest, y: Forest, decay: float, rule: Rule, max_pairs: int) -> float:
    """Return ΣΔ of two one-tree forests, summed in the order of ``pairs``."""
    check_pairs(x.n_nodes * y.n_nodes, max_pairs, ALL_PAIRS)
    table = np.empty(x.n_nodes * y.n_nodes)
    return _pair(x.derived(pack_tree), y.derived(pack_tree), decay, rule, table)


@njit_borrowing
def _pair(a: IntArray, b: IntArray, decay: float, rule: Rule, table: FloatArray) -> float:
    left, right = _Nodes(a[0], a[1], a[2], a[3]), _Nodes(b[0], b[1], b[2], b[3])
    return _sum_pair(left, 0, right, 0, decay, rule, table)


@njit_borrowing
def _sum_pairs(
    nodes: _Nodes, rows: IntArray, columns: IntArray, decay: float, rule: Rule, table: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    for k in range(rows.size):
        out[k] = _sum_pair(nodes, rows[k], nodes, columns[k], decay, rule, table)


@inlined
def _sum_pair(
    left: _Nodes, row: int, right: _Nodes, column: int, decay: float, rule: Rule, table: FloatArray
) -> float:  # fmt: skip
    """Return ΣΔ of one tree on the left and one on the right; ``table`` has an entry per pair of nodes."""
    a, a_end = left.offsets[row], left.offsets[row + 1]
    b, b_end = right.offsets[column], right.offsets[column + 1]
    width = b_end - b
    total = 0.0
    for i in range(a, a_end):
        if left.production[i] < 0:  # a leaf
            continue
        for j in range(b, b_end):
            if left.production[i] != right.production[j]:
                continue
            value = decay
            for c in range(left.start[i + 1] - left.start[i]):
                x, y = left.child[left.start[i] + c], right.child[right.start[j] + c]
                inner_x, inner_y = left.production[x] >= 0, right.production[y] >= 0
                if inner_x and left.production[x] == right.production[y]:
                    value *= table[(x - a) * width + y - b]
                elif inner_x and inner_y:
                    value *= rule.unequal
                elif inner_x or inner_y:
                    value *= rule.mixed
            table[(i - a) * width + j - b] = value
            total += value
    return total
