"""The stack machine for the default algebra: signs, butterflies and block moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.algebra import MixedProduct
from treedot.algebra.algebras import Mixer
from treedot.encode import scaled
from treedot.encode.schedule import Schedule
from treedot.jit import njit

IntArray = npt.NDArray[np.signedinteger[Any]]
SignWords = npt.NDArray[np.uint16]
Row = npt.NDArray[np.floating[Any]]
Matrix = npt.NDArray[np.floating[Any]]

LANES = Mixer.LANES
GROWTH = 4.0  # the most that a mixer can enlarge the largest element


class Shuffle(NamedTuple):
    """A mixer as arrays: where each block of 16 comes from, and one word of signs per block."""

    source: IntArray
    signs: SignWords
    rotation: int


class Labels(NamedTuple):
    """The signs of every label as left operand (a node over its children) and as right operand (a child)."""

    head: SignWords
    child: SignWords


class MixedMachine:
    """Encodes forests with the mixed product."""

    folds_left = True

    def __init__(self, algebra: MixedProduct) -> None:
        self.algebra = algebra
        self.m1, self.m2 = _shuffle(algebra.m1), _shuffle(algebra.m2)

    def label_table(self, texts: Sequence[str]) -> Labels:
        """Return the label signs, already mixed."""
        head = np.empty((len(texts), self.algebra.size // LANES), np.uint16)
        child = np.empty_like(head)
        rows = max(1, 2**16 // self.algebra.size)  # a few rows at a time stay in the processor's cache
        for start in range(0, len(texts), rows):
            part = slice(start, start + rows)
            head[part] = _words(self.algebra.mixed_labels(texts[part], self.algebra.m1))
            child[part] = _words(self.algebra.mixed_labels(texts[part], self.algebra.m2))
        return Labels(head, child)

    def encode(
        self, program: Schedule, labels: Labels, first: int, last: int,
        root_decay: float, normalize: bool, out: Matrix,
    ) -> int:  # fmt: skip
        """Encode the trees ``first … last - 1`` into ``out``; return the first too large one, or -1."""
        return _encode(program, labels, first, last, self.m1, self.m2, root_decay, normalize, out)


def _shuffle(mixer: Mixer) -> Shuffle:
    return Shuffle((mixer.source * LANES).astype(np.int32), _words(mixer.negative[None])[0], mixer.rotation)


def _words(negative: npt.NDArray[np.bool_]) -> SignWords:
    packed = np.packbits(negative, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u2").astype(np.uint16)


@njit
def _four(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """Return the 4-point Hadamard transform."""
    s, t, u, v = a + b, a - b, c + d, c - d
    return s + u, t + v, s - u, t - v


@njit
def _butterflies(x: Row, rotation: int, y: Row) -> None:
    """Write the 16-point butterflies of x, each segment rotated, to y; sixteen points are four by four."""
    q = x.size // 16
    scale = x.dtype.type(0.25)
    for part in range(2):
        begin, end, shift = (0, q - rotation, rotation) if part == 0 else (q - rotation, q, rotation - q)
        for p in range(begin, end):
            r = p + shift
            a0, a1, a2, a3 = _four(x[r], x[r + q], x[r + 2 * q], x[r + 3 * q])
            b0, b1, b2, b3 = _four(x[r + 4 * q], x[r + 5 * q], x[r + 6 * q], x[r + 7 * q])
            c0, c1, c2, c3 = _four(x[r + 8 * q], x[r + 9 * q], x[r + 10 * q], x[r + 11 * q])
            d0, d1, d2, d3 = _four(x[r + 12 * q], x[r + 13 * q], x[r + 14 * q], x[r + 15 * q])
            for j, (a, b, c, d) in enumerate(
                ((a0, b0, c0, d0), (a1, b1, c1, d1), (a2, b2, c2, d2), (a3, b3, c3, d3))
            ):
                e, f, g, h = _four(a, b, c, d)
                y[p + j * q] = e * scale
                y[p + (4 + j) * q] = f * scale
                y[p + (8 + j) * q] = g * scale
                y[p + (12 + j) * q] = h * scale


@njit
def _expand(
    s: Row, m2: Shuffle, child: SignWords, label_scale: Any, decay_scale: Any, y: Row, g: Row
) -> None:
    """Write M2(c + √λ s(c)) to g; the label is given by its mixed signs."""
    _butterflies(s, m2.rotation, y)
    for block in range(m2.source.size):
        source, word, label = m2.source[block], m2.signs[block], child[block]
        for lane in range(16):
            value = y[source + lane] * decay_scale
            value = -value if (word >> lane) & 1 else value
            g[16 * block + lane] = value + (-label_scale if (label >> lane) & 1 else label_scale)


@njit
def _compose(acc: Row, m1: Shuffle, g: Row, y: Row) -> None:
    """Replace acc by M1(acc) ⊗ g."""
    _butterflies(acc, m1.rotation, y)
    for block in range(m1.source.size):
        source, word = m1.source[block], m1.signs[block]
        for lane in range(16):
            value = y[source + lane] * g[16 * block + lane]
            acc[16 * block + lane] = -value if (word >> lane) & 1 else value


@njit
def _compose_label(acc: Row, m1: Shuffle, child: SignWords, y: Row) -> None:
    """Replace acc by M1(acc) ⊗ M2(c) for a leaf."""
    _butterflies(acc, m1.rotation, y)
    for block in range(m1.source.size):
        source, word = m1.source[block], m1.signs[block] ^ child[block]
        for lane in range(16):
            value = y[source + lane]
            acc[16 * block + lane] = -value if (word >> lane) & 1 else value


@njit
def _start(acc: Row, head: SignWords, g: Row) -> None:
    """Set acc to M1(n) ⊗ g, the node's label and its first child."""
    for block in range(head.size):
        word = head[block]
        for lane in range(16):
            value = g[16 * block + lane]
            acc[16 * block + lane] = -value if (word >> lane) & 1 else value


@njit
def _start_label(acc: Row, head: SignWords, child: SignWords) -> None:
    """Set acc to M1(n) ⊗ M2(c) where the first child is a leaf."""
    one = acc.dtype.type(1)
    for block in range(head.size):
        word = head[block] ^ child[block]
        for lane in range(16):
            acc[16 * block + lane] = -one if (word >> lane) & 1 else one


@njit
def _encode(
    program: Schedule, labels: Labels, first: int, last: int, m1: Shuffle, m2: Shuffle,
    root_decay: float, normalize: bool, out: Matrix,
) -> int:  # fmt: skip
    number = out.dtype.type
    size = out.shape[1]
    rows = 1
    for tree in range(first, last):
        rows = max(rows, program.rows[tree])
    acc = np.empty((rows, size), out.dtype)
    exponent = np.zeros(rows, np.int64)
    bound = np.zeros(rows)
    total, y, g = np.empty(size, out.dtype), np.empty(size, out.dtype), np.empty(size, out.dtype)
    for tree in range(first, last):
        total[:] = 0
        total_exponent = scaled.NO_VALUE
        for node in range(program.offsets[tree], program.offsets[tree + 1]):
            leaf = program.arity[node] == 0
            own = program.slot[node]
            if not leaf:
                total_exponent = scaled.add(total, total_exponent, acc[own], exponent[own])
            above = program.parent[node]
            if above < 0:
                continue
            slot = program.slot[above]
            child = labels.child[program.label[node]]
            head = labels.head[program.label[above]]
            opens = program.opens[node]
            if leaf:
                if opens:
                    _start_label(acc[slot], head, child)
                    exponent[slot], bound[slot] = 0, 1.0
                else:
                    _compose_label(acc[slot], m1, child, y)
                    bound[slot] *= GROWTH
            else:
                label_scale, decay_scale, grown = scaled.child_scales(exponent[own], root_decay)
                _expand(acc[own], m2, child, number(label_scale), number(decay_scale), y, g)
                limit = label_scale + GROWTH * decay_scale * bound[own]
                if opens:
                    _start(acc[slot], head, g)
                    exponent[slot], bound[slot] = grown, limit
                else:
                    _compose(acc[slot], m1, g, y)
                    exponent[slot] += grown
                    bound[slot] *= GROWTH * limit
            if bound[slot] > scaled.LARGE:
                bound[slot], grown = scaled.rescale(acc[slot])
                exponent[slot] += grown
        if not scaled.write(total, total_exponent, normalize, out[tree]):
            return tree
    return -1
