"""The stack machine for the paper's shuffled γ-product, folded from the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot.algebra import ShuffledProduct
from treedot.encode.dense import rescaling
from treedot.encode.dense.gaussians import label_vectors, shuffled
from treedot.encode.dense.schedule import Schedule, most_rows
from treedot.jit import njit
from treedot.types import IntArray, Matrix, Row

# No element of a label vector is larger, in units in which its norm is √d: the quantile of the
# extreme 32-bit uniform is 6.4, and a vector of fewer than 64 elements has none above √64.
LABEL_BOUND = 8.0


# Children are gathered by composite shuffles, kept for so many; in wider nodes groups of them nest.
GROUP = 32


class Labels(NamedTuple):
    """The vectors of every label with norm √d: as they are, as left operand p1(n), as right operand p2(n)."""

    plain: Row
    left: Row
    right: Row


class Shuffles(NamedTuple):
    """Where the elements of child ``i`` of a node come from.

    Written out, ``n ⊠ (g1 ⊠ (g2 ⊠ … gm))`` is ``p1(n) ⊗ p2 p1(g1) ⊗ p2² p1(g2) ⊗ … ⊗ p2^m(gm)``: one gather
    per child. Row ``i`` of ``inner`` is p2^i p1, row ``i`` of ``last`` is p2^i.
    """

    inner: IntArray
    last: IntArray


class ProductMachine:
    """Encodes forests with the shuffled γ-product."""

    folds_left = False

    def __init__(self, algebra: ShuffledProduct, dtype: str) -> None:
        self.algebra, self.dtype = algebra, dtype
        kind: Any = np.uint16 if algebra.size <= 2**16 else np.int32
        last = np.empty((GROUP + 1, algebra.size), kind)
        last[0] = np.arange(algebra.size)
        for i in range(1, GROUP + 1):
            last[i] = last[i - 1][algebra.p2]
        self.shuffles = Shuffles(algebra.p1.astype(kind)[last], last)

    def label_table(self, texts: Sequence[str]) -> Labels:
        """Return the label vectors, also shuffled."""
        table = Labels(*(np.empty((len(texts), self.algebra.size), self.dtype) for _ in range(3)))
        for row, vector in label_vectors(self.algebra, texts):
            table.plain[row] = vector
            shuffled(vector, self.algebra.p1, table.left[row])
            shuffled(vector, self.algebra.p2, table.right[row])
        return table

    def encode(
        self, program: Schedule, labels: Labels, first: int, last: int,
        root_decay: float, normalize: bool, out: Matrix,
    ) -> int:  # fmt: skip
        """Encode the trees ``first … last - 1`` into ``out``; return the first too large one, or -1."""
        return _encode(program, labels, first, last, self.shuffles, root_decay, normalize, out)


@njit
def _finish(acc: Row, left: Row, plain: Row, a: Any, b: Any, share: Any, total: Row, g: Row) -> None:
    """For s = p1(n) ⊗ acc write a n + b s to g, and add share · s to the total."""
    for j in range(g.size):
        s = acc[j] * left[j]
        g[j] = a * plain[j] + b * s
        total[j] += share * s


@njit
def _gather(g: Row, order: IntArray, row: Row) -> None:
    for j in range(row.size):
        row[j] = g[order[j]]


@njit
def _gather_times(g: Row, order: IntArray, row: Row) -> None:
    for j in range(row.size):
        row[j] *= g[order[j]]


@njit
def _encode(
    program: Schedule, labels: Labels, first: int, last: int, shuffles: Shuffles,
    root_decay: float, normalize: bool, out: Matrix,
) -> int:  # fmt: skip
    """Run the machine, children from right to left; a row holds what they have composed so far."""
    number = out.dtype.type
    size = out.shape[1]
    slots = most_rows(program, first, last)
    acc = np.empty((slots, size), out.dtype)
    exponent, bound = np.zeros(slots, np.int64), np.zeros(slots)
    child = np.zeros(slots, np.int64)  # the number of the next child, counted from the left
    total, g = np.empty(size, out.dtype), np.empty(size, out.dtype)
    for tree in range(first, last):
        total[:] = 0
        total_exponent = rescaling.NO_VALUE
        for step in range(program.offsets[tree], program.offsets[tree + 1]):
            node = program.order[step]
            label = program.label[node]
            own, above = program.slot[node], program.parent[node]
            limit, grown = LABEL_BOUND, 0
            leaf = program.arity[node] == 0
            if not leaf:
                if bound[own] * LABEL_BOUND > rescaling.LARGE:
                    bound[own], grown = rescaling.rescale(acc[own])
                    exponent[own] += grown
                exponent[own] = rescaling.true_exponent(acc[own], exponent[own], total_exponent)
                a, b, grown = rescaling.child_scales(exponent[own], root_decay)
                limit = a * LABEL_BOUND + b * LABEL_BOUND * bound[own]
                total_exponent, share = rescaling.meet(total, total_exponent, exponent[own])
                _finish(
                    acc[own],
                    labels.left[label],
                    labels.plain[label],
                    number(a),
                    number(b),
                    number(share),
                    total,
                    g,
                )
            if above < 0:
                continue
            slot = program.slot[above]
            row = acc[slot]
            if program.opens[node]:
                child[slot] = program.arity[above]
            i = child[slot]
            child[slot] -= 1
            place = (i - 1) % GROUP + 1
            if program.opens[node]:
                if leaf and place == 1:
                    row[:] = labels.right[label]
                else:
                    _gather(labels.plain[label] if leaf else g, shuffles.last[place], row)
                exponent[slot], bound[slot] = grown, limit
                continue
            if place == GROUP:  # the children to the right are a group of their own
                g_of_group = row.copy()
                _gather(g_of_group, shuffles.last[GROUP], row)
            _gather_times(labels.plain[label] if leaf else g, shuffles.inner[place], row)
            exponent[slot] += grown
            bound[slot] *= limit
            if bound[slot] > rescaling.LARGE or exponent[slot] != 0:  # giants may also fade
                bound[slot], grown = rescaling.rescale(row)
                exponent[slot] += grown
        if not rescaling.write(total, total_exponent, normalize, out[tree]):
            return tree
    return -1
