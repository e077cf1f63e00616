"""Dense vectors with the paper's shuffled γ-product, compiled: a ⊠ b = γ p1(a) ⊗ p2(b), right fold.

Inside, every vector is √d times as long as outside, which makes γ = √d disappear: a ⊠ b = p1(a) ⊗ p2(b).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, Matrix, Row
from treedot._runtime.jit import njit_inside, njit_of_steps
from treedot.vectors.chunks import ALL_DONE, Ended
from treedot.vectors.dense import rescaling
from treedot.vectors.dense.compositions import ShuffledProduct
from treedot.vectors.dense.gaussians import label_vectors, shuffled
from treedot.vectors.dense.schedule import Schedule, stack_height
from treedot.vectors.spec import DenseSpec

# No element of a label vector of norm √d is larger: the quantile of the extreme 32-bit uniform is 6.4,
# and a vector of fewer than 64 elements has none above √64.
LABEL_BOUND = 8.0

# Children are gathered by composite shuffles, which exist for 32 children; wider nodes nest groups of 32.
GROUP = 32


class Labels(NamedTuple):
    """The vectors of every label with norm √d: n itself, the left operand p1(n), the right operand p2(n)."""

    plain: Row
    left: Row
    right: Row


class Shuffles(NamedTuple):
    """The shuffle of child ``i`` of a node.

    Expanded, ``n ⊠ (x1 ⊠ (x2 ⊠ … xm))`` is ``p1(n) ⊗ p2 p1(x1) ⊗ p2² p1(x2) ⊗ … ⊗ p2^m(xm)``: one gather
    per child. Row ``i`` of ``inner`` is p2^i p1, row ``i`` of ``last`` is p2^i.
    """

    inner: IntArray
    last: IntArray


class ProductEncoder:
    """Encodes trees with the shuffled γ-product."""

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
        """Return the label vectors and their two shuffles."""
        table = Labels(*(np.empty((len(texts), self.algebra.size), self.dtype) for _ in range(3)))
        for row, vector in label_vectors(self.algebra, texts):
            table.plain[row] = vector
            shuffled(vector, self.algebra.p1, table.left[row])
            shuffled(vector, self.algebra.p2, table.right[row])
        return table

    def encode(self, schedule: Schedule, labels: Any, spec: DenseSpec, out: Matrix) -> Ended:
        """Encode trees into ``out``; return the first tree that is not done, and why."""
        rows = np.empty((stack_height(schedule) + 3, out.shape[1]), out.dtype)
        scales = np.zeros((2, len(rows)), np.int64), np.zeros(len(rows))
        return _encode(
            schedule, labels, self.shuffles, math.sqrt(spec.decay), spec.normalize, rows, *scales, out
        )


@njit_inside
def _finish(row: Row, left: Row, plain: Row, a: Any, b: Any, share: Any, total: Row, expanded: Row) -> None:
    """For s = p1(n) ⊗ row, write a n + b s to ``expanded`` and add share · s to the total."""
    for j in range(row.size):
        s = row[j] * left[j]
        expanded[j] = a * plain[j] + b * s
        total[j] += share * s


@njit_inside
def _copy(x: Row, row: Row) -> None:
    """Row ← x."""
    for j in range(row.size):
        row[j] = x[j]


@njit_inside
def _gather(x: Row, order: IntArray, row: Row) -> None:
    """Row ← x[order]."""
    for j in range(row.size):
        row[j] = x[order[j]]


@njit_inside
def _gather_times(x: Row, order: IntArray, row: Row) -> None:
    """Row ← row ⊗ x[order]."""
    for j in range(row.size):
        row[j] *= x[order[j]]


@njit_of_steps(lambda schedule, *others: schedule.order.size * others[-1].shape[1], borrowing=True)
def _encode(
    schedule: Schedule, labels: Labels, shuffles: Shuffles,
    root_decay: float, normalize: bool, rows: Matrix, counts: IntArray, bound: FloatArray, out: Matrix,
) -> Ended:  # fmt: skip
    """Visit the nodes of each tree, children from right to left, and compose each into its parent.

    The stack row of a node holds the composition of its children so far, over ``2^exponent``; no magnitude
    is above ``bound``. The node's own label is composed last.
    """
    number = out.dtype.type
    total, expanded, group = rows[-1], rows[-2], rows[-3]
    exponent, remaining = counts[0], counts[1]  # children still to compose, from the last to the first
    for tree in range(len(out)):
        total[:] = 0
        total_exponent = rescaling.NO_VALUE
        for step in range(schedule.offsets[tree], schedule.offsets[tree + 1]):
            node = schedule.order[step]
            label = schedule.label[node]
            own, parent = schedule.stack_row[node], schedule.parent[node]
            largest, grown = LABEL_BOUND, 0
            is_leaf = schedule.arity[node] == 0
            if not is_leaf:
                if bound[own] * LABEL_BOUND > rescaling.LARGE:
                    bound[own], exponent[own] = rescaling.rescale(rows[own], exponent[own])
                exponent[own] = rescaling.true_exponent(rows[own], exponent[own], total_exponent)
                a, b, grown = rescaling.child_scales(exponent[own], root_decay)
                largest = a * LABEL_BOUND + b * LABEL_BOUND * bound[own]
                total_exponent, share = rescaling.meet(total, total_exponent, exponent[own])
                left, plain = labels.left[label], labels.plain[label]
                _finish(rows[own], left, plain, number(a), number(b), number(share), total, expanded)
            if parent < 0:
                continue
            above = schedule.stack_row[parent]
            row = rows[above]
            if schedule.is_first[node]:
                remaining[above] = schedule.arity[parent]
            in_group = (remaining[above] - 1) % GROUP + 1  # from 1, like the shuffles
            remaining[above] -= 1
            if schedule.is_first[node]:
                if is_leaf and in_group == 1:
                    _copy(labels.right[label], row)
                else:
                    _gather(labels.plain[label] if is_leaf else expanded, shuffles.last[in_group], row)
                exponent[above], bound[above] = grown, largest
                continue
            if in_group == GROUP:  # the children to the right are a group of their own
                _copy(row, group)
                _gather(group, shuffles.last[GROUP], row)
            _gather_times(labels.plain[label] if is_leaf else expanded, shuffles.inner[in_group], row)
            exponent[above] += grown
            bound[above] *= largest
            if bound[above] > rescaling.LARGE or exponent[above] != 0:  # a scaled row may also get too small
                bound[above], exponent[above] = rescaling.rescale(row, exponent[above])
        why = rescaling.write(total, total_exponent, normalize, out[tree])
        if why != ALL_DONE:
            return tree, why
    return len(out), ALL_DONE
