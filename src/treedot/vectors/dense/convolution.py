"""Dense vectors with the paper's shuffled convolution, compiled: a ⊡ b = p1(a) ⊙ p2(b), right fold.

Inside, every vector is √d times as long as outside, and a convolution is a product of spectra.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray, Matrix, Row
from treedot._runtime.jit import njit_inside, njit_of_steps
from treedot._runtime.simd import LANES, load, splat, store
from treedot.vectors.chunks import ALL_DONE, Ended
from treedot.vectors.dense import fourier, rescaling
from treedot.vectors.dense.compositions import ShuffledConvolution
from treedot.vectors.dense.gaussians import label_vectors
from treedot.vectors.dense.schedule import Schedule, stack_height
from treedot.vectors.spec import DenseSpec


class Labels(NamedTuple):
    """The spectra of every label, real and imaginary rows, as left operand p1(n) and right operand p2(n)."""

    left: Row
    right: Row


class ConvolutionEncoder:
    """Encodes trees with the shuffled circular convolution."""

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

    def encode(self, schedule: Schedule, labels: Any, spec: DenseSpec, out: Matrix) -> Ended:
        """Encode trees into ``out``; return the first tree that is not done, and why."""
        work = fourier.plan(self.algebra.size, self.dtype)
        height, size = stack_height(schedule), out.shape[1]
        spectra = np.empty((height + 2, 2, size // 2 + 1), out.dtype)
        memory = Memory(spectra, np.zeros(height, np.int64), *np.empty((2, size), out.dtype))
        root = math.sqrt(spec.decay)
        return _encode(schedule, labels, self.p1, self.p2, work, root, spec.normalize, memory, out)


class Memory(NamedTuple):
    """Working memory: spectra of open nodes and two more, their exponents, and two rows."""

    spectra: Row
    exponent: IntArray
    total: Row
    composed: Row


@njit_inside
def _copy(spectrum: Row, out: Row) -> None:
    for part in range(2):
        for k in range(out.shape[1]):
            out[part, k] = spectrum[part, k]


@njit_inside
def _sum(label: Row, a: Any, spectrum: Row, b: Any, out: Row) -> None:
    """Write a · label + b · spectrum to out."""
    n = out.shape[1] - 1
    x, y = splat(a), splat(b)
    for part in range(2):
        for k in range(0, n, LANES):
            store(out[part], k, x * load(label[part], k) + y * load(spectrum[part], k))
        out[part, n] = a * label[part, n] + b * spectrum[part, n]


@njit_inside
def _convolve(x: Row, y: Row, product: Row, work: fourier.Plan, row: Row) -> None:
    """Write the convolution, over √d, of two rows to ``row``; x and y are their spectra."""
    n = x.shape[1] - 1
    for k in range(0, n, LANES):
        xr, xi, yr, yi = load(x[0], k), load(x[1], k), load(y[0], k), load(y[1], k)
        store(product[0], k, xr * yr - xi * yi)
        store(product[1], k, xr * yi + xi * yr)
    product[0, n], product[1, n] = x[0, n] * y[0, n], 0  # both are real
    scale = row.dtype.type(1.0 / (row.size * np.sqrt(row.size)))
    fourier.backward(product[0], product[1], work, scale, row)


@njit_of_steps(lambda *_: math.inf, borrowing=True)  # always compiled: NumPy rounds float32 differently
def _encode(
    schedule: Schedule, labels: Labels, p1: IntArray, p2: IntArray, work: fourier.Plan,
    root_decay: float, normalize: bool, memory: Memory, out: Matrix,
) -> Ended:  # fmt: skip
    """Visit the nodes of each tree, children from right to left, and compose each into its parent.

    The stack row of a node holds the spectrum of p2(t), over ``2^exponent``, where t is the composition of
    its children so far. It is the right operand of the next child, or of the node's own label.
    """
    number = out.dtype.type
    rows, exponent, total, composed = memory
    expanded, product = rows[-1], rows[-2]
    half = total.size // 2
    for tree in range(len(out)):
        total[:] = 0
        total_exponent = rescaling.NO_VALUE
        for step in range(schedule.offsets[tree], schedule.offsets[tree + 1]):
            node = schedule.order[step]
            parent, is_first = schedule.parent[node], schedule.is_first[node]
            is_leaf = schedule.arity[node] == 0
            left, right = labels.left[schedule.label[node]], labels.right[schedule.label[node]]
            grown = 0
            if not is_leaf:
                own = schedule.stack_row[node]
                _convolve(left, rows[own], product, work, composed)
                _, exponent[own] = rescaling.rescale(composed, exponent[own])
                total_exponent = rescaling.add(total, total_exponent, composed, exponent[own])
                if parent >= 0:
                    a, b, grown = rescaling.child_scales(exponent[own], root_decay)
                    fourier.forward(composed, p2 if is_first else p1, work, expanded[0], expanded[1])
                    _sum(right if is_first else left, number(a), expanded, number(b), expanded)
            if parent < 0:
                continue
            above = schedule.stack_row[parent]
            if is_first:
                _copy(right if is_leaf else expanded, rows[above])
                exponent[above] = grown
            else:
                _convolve(left if is_leaf else expanded, rows[above], product, work, composed)
                _, exponent[above] = rescaling.rescale(composed, exponent[above] + grown)
                fourier.forward(composed, p2, work, rows[above, 0], rows[above, 1])
        for k in range(half):  # see fourier.planar
            composed[2 * k], composed[2 * k + 1] = total[k], total[half + k]
        why = rescaling.write(composed, total_exponent, normalize, out[tree])
        if why != ALL_DONE:
            return tree, why
    return len(out), ALL_DONE
