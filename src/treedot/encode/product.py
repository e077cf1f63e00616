"""The stack machine for the paper's shuffled γ-product, folded from the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.algebra import Algebra, ShuffledProduct
from treedot.encode import scaled
from treedot.encode.schedule import Schedule
from treedot.jit import njit

IntArray = npt.NDArray[np.signedinteger[Any]]
Row = npt.NDArray[np.floating[Any]]
Matrix = npt.NDArray[np.floating[Any]]

# No element of a label vector is larger, in units in which its norm is √d: the quantile of the
# extreme 32-bit uniform is 6.4, and normalising can stretch short vectors up to √d.
LABEL_BOUND = 8.0


class Labels(NamedTuple):
    """The vectors of every label as left operand, p1(n), and as right operand, p2(n), with norm √d."""

    left: Row
    right: Row


class ProductMachine:
    """Encodes forests with the shuffled γ-product."""

    folds_left = False

    def __init__(self, algebra: ShuffledProduct, dtype: str) -> None:
        self.algebra, self.dtype = algebra, dtype
        self.p1, self.p2 = algebra.p1.astype(np.int32), algebra.p2.astype(np.int32)

    def label_table(self, texts: Sequence[str]) -> Labels:
        """Return the label vectors, already shuffled."""
        left = np.empty((len(texts), self.algebra.size), self.dtype)
        right = np.empty_like(left)
        for row, vector in label_vectors(self.algebra, texts):
            left[row], right[row] = vector[:, self.p1], vector[:, self.p2]
        return Labels(left, right)

    def encode(
        self, program: Schedule, labels: Labels, first: int, last: int,
        root_decay: float, normalize: bool, out: Matrix,
    ) -> int:  # fmt: skip
        """Encode the trees ``first … last - 1`` into ``out``; return the first too large one, or -1."""
        return _encode(program, labels, first, last, self.p1, self.p2, root_decay, normalize, out)


def label_vectors(algebra: Algebra, texts: Sequence[str]) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
    """Yield the label vectors with norm √d, a few rows at a time."""
    for start in range(0, len(texts), 64):
        part = slice(start, start + 64)
        yield part, algebra.label_vectors(texts[part]) * np.sqrt(algebra.size)


@njit
def _encode(
    program: Schedule, labels: Labels, first: int, last: int, p1: IntArray, p2: IntArray,
    root_decay: float, normalize: bool, out: Matrix,
) -> int:  # fmt: skip
    """Run the machine; the row of an open node holds p2 of what its children have composed so far."""
    number = out.dtype.type
    size = out.shape[1]
    label_bound = max(LABEL_BOUND, np.sqrt(size)) if size < 64 else LABEL_BOUND
    rows = 1
    for tree in range(first, last):
        rows = max(rows, program.rows[tree])
    acc = np.empty((rows, size), out.dtype)
    exponent = np.zeros(rows, np.int64)
    bound = np.zeros(rows)
    total, y = np.empty(size, out.dtype), np.empty(size, out.dtype)
    for tree in range(first, last):
        total[:] = 0
        total_exponent = scaled.NO_VALUE
        for step in range(program.offsets[tree], program.offsets[tree + 1]):
            node = program.order[step]
            leaf = program.arity[node] == 0
            own = program.slot[node]
            label_scale, decay_scale, grown = 1.0, 0.0, 0
            limit = label_bound
            if not leaf:
                finished = acc[own]
                left = labels.left[program.label[node]]
                for j in range(size):
                    finished[j] *= left[j]
                bound[own], shift = scaled.rescale(finished)
                exponent[own] += shift
                total_exponent = scaled.add(total, total_exponent, finished, exponent[own])
                label_scale, decay_scale, grown = scaled.child_scales(exponent[own], root_decay)
                limit = label_scale * label_bound + decay_scale * bound[own]
            above = program.parent[node]
            if above < 0:
                continue
            slot = program.slot[above]
            opens = program.opens[node]
            label = labels.right[program.label[node]] if opens else labels.left[program.label[node]]
            if leaf:
                y[:] = label
            else:
                finished = acc[own]
                shuffle = p2 if opens else p1
                a, b = number(label_scale), number(decay_scale)
                for j in range(size):
                    y[j] = a * label[j] + b * finished[shuffle[j]]
            if opens:
                acc[slot] = y
                exponent[slot], bound[slot] = grown, limit
                continue
            row = acc[slot]
            for j in range(size):
                y[j] *= row[j]
            for j in range(size):
                row[j] = y[p2[j]]
            exponent[slot] += grown
            bound[slot] *= limit
            if bound[slot] > scaled.LARGE:
                bound[slot], shift = scaled.rescale(row)
                exponent[slot] += shift
        if not scaled.write(total, total_exponent, normalize, out[tree]):
            return tree
    return -1
