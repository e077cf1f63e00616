"""The stack machine for the paper's shuffled circular convolution, folded from the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.algebra import ShuffledConvolution
from treedot.encode import fourier, scaled
from treedot.encode.product import label_vectors
from treedot.encode.schedule import Schedule
from treedot.jit import njit

IntArray = npt.NDArray[np.signedinteger[Any]]
Row = npt.NDArray[np.floating[Any]]
Matrix = npt.NDArray[np.floating[Any]]


class Labels(NamedTuple):
    """The spectra of every label, real and imaginary rows, as left operand p1(n) and right operand p2(n)."""

    left: Row
    right: Row


class ConvolutionMachine:
    """Encodes forests with the shuffled circular convolution."""

    folds_left = False

    def __init__(self, algebra: ShuffledConvolution, dtype: str) -> None:
        self.algebra, self.dtype = algebra, dtype
        self.p1, self.p2 = algebra.p1.astype(np.int32), algebra.p2.astype(np.int32)

    def label_table(self, texts: Sequence[str]) -> Labels:
        """Return the spectra of the label vectors (of norm √d), shape ``(n, 2, d/2 + 1)``."""
        left = np.empty((len(texts), 2, self.algebra.size // 2 + 1), self.dtype)
        right = np.empty_like(left)
        for row, vector in label_vectors(self.algebra, texts):
            for side, order in ((left, self.p1), (right, self.p2)):
                spectrum = np.fft.rfft(vector[:, order])
                side[row] = np.stack([spectrum.real, spectrum.imag], axis=1)
        return Labels(left, right)

    def encode(
        self, program: Schedule, labels: Labels, first: int, last: int,
        root_decay: float, normalize: bool, out: Matrix,
    ) -> int:  # fmt: skip
        """Encode the trees ``first … last - 1`` into ``out``; return the first too large one, or -1."""
        work = fourier.plan(self.algebra.size, self.dtype)
        return _encode(program, labels, first, last, self.p1, self.p2, work, root_decay, normalize, out)


@njit
def _convolve(spectrum: Row, label: Row, a: Any, b: Any, other: Row, work: fourier.Plan, out: Row) -> None:
    """Write the convolution of ``a · label + b · spectrum`` and ``other`` (all spectra) to a row."""
    for k in range(spectrum.shape[1]):
        xr, xi = a * label[0, k] + b * spectrum[0, k], a * label[1, k] + b * spectrum[1, k]
        yr, yi = other[0, k], other[1, k]
        spectrum[0, k] = xr * yr - xi * yi
        spectrum[1, k] = xr * yi + xi * yr
    size = out.size
    fourier.backward(spectrum[0], spectrum[1], work, out.dtype.type(1.0 / (size * np.sqrt(size))), out)


@njit
def _encode(
    program: Schedule, labels: Labels, first: int, last: int, p1: IntArray, p2: IntArray, work: fourier.Plan,
    root_decay: float, normalize: bool, out: Matrix,
) -> int:  # fmt: skip
    """Run the machine; the row of an open node holds the spectrum of p2 of its children's composition."""
    number = out.dtype.type
    size = out.shape[1]
    rows = 1
    for tree in range(first, last):
        rows = max(rows, program.rows[tree])
    acc = np.empty((rows, 2, size // 2 + 1), out.dtype)
    exponent = np.zeros(rows, np.int64)
    total, row = np.empty(size, out.dtype), np.empty(size, out.dtype)
    spectrum = np.zeros((2, size // 2 + 1), out.dtype)
    for tree in range(first, last):
        total[:] = 0
        total_exponent = scaled.NO_VALUE
        for step in range(program.offsets[tree], program.offsets[tree + 1]):
            node = program.order[step]
            leaf = program.arity[node] == 0
            a, b, grown = 1.0, 0.0, 0
            above = program.parent[node]
            opens = program.opens[node]
            if not leaf:
                own = program.slot[node]
                spectrum[:] = 0
                left = labels.left[program.label[node]]
                _convolve(spectrum, left, number(1), number(0), acc[own], work, row)
                _, shift = scaled.rescale(row)
                total_exponent = scaled.add(total, total_exponent, row, exponent[own] + shift)
                a, b, grown = scaled.child_scales(exponent[own] + shift, root_decay)
                if above >= 0:
                    fourier.forward(row, p2 if opens else p1, work, spectrum[0], spectrum[1])
            if above < 0:
                continue
            slot = program.slot[above]
            if leaf:
                spectrum[:] = 0
            if opens:
                label = labels.right[program.label[node]]
                for part in range(2):
                    for k in range(label.shape[1]):
                        acc[slot, part, k] = number(a) * label[part, k] + number(b) * spectrum[part, k]
                exponent[slot] = grown
            else:
                label = labels.left[program.label[node]]
                _convolve(spectrum, label, number(a), number(b), acc[slot], work, row)
                _, shift = scaled.rescale(row)
                exponent[slot] += grown + shift
                fourier.forward(row, p2, work, acc[slot, 0], acc[slot, 1])
        if not scaled.write(total, total_exponent, normalize, out[tree]):
            return tree
    return -1
