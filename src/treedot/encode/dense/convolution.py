"""The stack machine for the paper's shuffled circular convolution, folded from the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot.algebra import ShuffledConvolution
from treedot.encode.dense import fourier, rescaling
from treedot.encode.dense.gaussians import label_vectors
from treedot.encode.dense.schedule import Schedule, most_rows
from treedot.jit import njit
from treedot.simd import LANES, load, splat, store
from treedot.types import IntArray, Matrix, Row


class Labels(NamedTuple):
    """The spectra of every label, real and imaginary rows, as left operand p1(n) and right operand p2(n)."""

    left: Row
    right: Row


class ConvolutionMachine:
    """Encodes forests with the shuffled circular convolution."""

    folds_left = False

    def __init__(self, algebra: ShuffledConvolution, dtype: str) -> None:
        self.algebra, self.dtype = algebra, dtype
        self.p1, self.p2 = fourier.planar(algebra.p1), fourier.planar(algebra.p2)

    def label_table(self, texts: Sequence[str]) -> Labels:
        """Return the spectra of the label vectors (of norm √d), shape ``(n, 2, d/2 + 1)``."""
        left = np.empty((len(texts), 2, self.algebra.size // 2 + 1), self.dtype)
        right = np.empty_like(left)
        for row, vector in label_vectors(self.algebra, texts):
            for side, order in ((left, self.algebra.p1), (right, self.algebra.p2)):
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
def _sum(label: Row, a: Any, spectrum: Row, b: Any, out: Row) -> None:
    """Write a · label + b · spectrum to out."""
    n = out.shape[1] - 1
    x, y = splat(a), splat(b)
    for part in range(2):
        for k in range(0, n, LANES):
            store(out[part], k, x * load(label[part], k) + y * load(spectrum[part], k))
        out[part, n] = a * label[part, n] + b * spectrum[part, n]


@njit
def _convolve(x: Row, y: Row, product: Row, work: fourier.Plan, row: Row) -> None:
    """Write the convolution of two rows, given by their spectra, to a row."""
    n = x.shape[1] - 1
    for k in range(0, n, LANES):
        xr, xi, yr, yi = load(x[0], k), load(x[1], k), load(y[0], k), load(y[1], k)
        store(product[0], k, xr * yr - xi * yi)
        store(product[1], k, xr * yi + xi * yr)
    product[0, n], product[1, n] = x[0, n] * y[0, n], 0  # both are real
    scale = row.dtype.type(1.0 / (row.size * np.sqrt(row.size)))
    fourier.backward(product[0], product[1], work, scale, row)


@njit
def _encode(
    program: Schedule, labels: Labels, first: int, last: int, p1: IntArray, p2: IntArray, work: fourier.Plan,
    root_decay: float, normalize: bool, out: Matrix,
) -> int:  # fmt: skip
    """Run the machine; the row of an open node holds the spectrum of p2 of its children's composition."""
    number = out.dtype.type
    size = out.shape[1]
    slots = most_rows(program, first, last)
    acc = np.empty((slots, 2, size // 2 + 1), out.dtype)
    exponent = np.zeros(slots, np.int64)
    total, row = np.empty(size, out.dtype), np.empty(size, out.dtype)
    spectrum, product = np.empty_like(acc[0]), np.empty_like(acc[0])
    for tree in range(first, last):
        total[:] = 0
        total_exponent = rescaling.NO_VALUE
        for step in range(program.offsets[tree], program.offsets[tree + 1]):
            node = program.order[step]
            above, opens = program.parent[node], program.opens[node]
            leaf = program.arity[node] == 0
            left, right = labels.left[program.label[node]], labels.right[program.label[node]]
            grown = 0
            if not leaf:
                own = program.slot[node]
                _convolve(left, acc[own], product, work, row)
                _, shift = rescaling.rescale(row)
                total_exponent = rescaling.add(total, total_exponent, row, exponent[own] + shift)
                if above >= 0:
                    a, b, grown = rescaling.child_scales(exponent[own] + shift, root_decay)
                    fourier.forward(row, p2 if opens else p1, work, spectrum[0], spectrum[1])
                    _sum(right if opens else left, number(a), spectrum, number(b), spectrum)
            if above < 0:
                continue
            slot = program.slot[above]
            if opens:
                acc[slot] = right if leaf else spectrum
                exponent[slot] = grown
            else:
                _convolve(left if leaf else spectrum, acc[slot], product, work, row)
                _, shift = rescaling.rescale(row)
                exponent[slot] += grown + shift
                fourier.forward(row, p2, work, acc[slot, 0], acc[slot, 1])
        row[0::2], row[1::2] = total[: size // 2], total[size // 2 :]
        if not rescaling.write(row, total_exponent, normalize, out[tree]):
            return tree
    return -1
