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
            negative = self.algebra.negative_labels(texts[part])
            head[part] = _words(self.algebra.m1.of_signs(negative))
            child[part] = _words(self.algebra.m2.of_signs(negative))
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
def _butterfly(x: Row, rotation: int, y: Row) -> None:
    """Write the butterflies of x, each quarter rotated, to y."""
    q = x.size // 4
    half = x.dtype.type(0.5)
    for part in range(2):
        begin, end, shift = (0, q - rotation, rotation) if part == 0 else (q - rotation, q, rotation - q)
        for p in range(begin, end):
            a, b, c, d = x[p + shift], x[p + shift + q], x[p + shift + 2 * q], x[p + shift + 3 * q]
            s, t, u, v = a + b, a - b, c + d, c - d
            y[p] = (s + u) * half
            y[p + q] = (t + v) * half
            y[p + 2 * q] = (s - u) * half
            y[p + 3 * q] = (t - v) * half


@njit
def _expand(
    s: Row, m2: Shuffle, child: SignWords, label_scale: Any, decay_scale: Any, y: Row, g: Row
) -> None:
    """Write M2(c + √λ s(c)) to g; the label is given by its mixed signs."""
    _butterfly(s, m2.rotation, y)
    for block in range(m2.source.size):
        source, word, label = m2.source[block], m2.signs[block], child[block]
        for lane in range(16):
            value = y[source + lane] * decay_scale
            value = -value if (word >> lane) & 1 else value
            g[16 * block + lane] = value + (-label_scale if (label >> lane) & 1 else label_scale)


@njit
def _compose(acc: Row, m1: Shuffle, g: Row, y: Row) -> None:
    """Replace acc by M1(acc) ⊗ g."""
    _butterfly(acc, m1.rotation, y)
    for block in range(m1.source.size):
        source, word = m1.source[block], m1.signs[block]
        for lane in range(16):
            value = y[source + lane] * g[16 * block + lane]
            acc[16 * block + lane] = -value if (word >> lane) & 1 else value


@njit
def _compose_label(acc: Row, m1: Shuffle, child: SignWords, y: Row) -> None:
    """Replace acc by M1(acc) ⊗ M2(c) for a leaf."""
    _butterfly(acc, m1.rotation, y)
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
                    bound[slot] *= 2.0
            else:
                label_scale, decay_scale, grown = scaled.child_scales(exponent[own], root_decay)
                _expand(acc[own], m2, child, number(label_scale), number(decay_scale), y, g)
                limit = label_scale + 2.0 * decay_scale * bound[own]
                if opens:
                    _start(acc[slot], head, g)
                    exponent[slot], bound[slot] = grown, limit
                else:
                    _compose(acc[slot], m1, g, y)
                    exponent[slot] += grown
                    bound[slot] *= 2.0 * limit
            if bound[slot] > scaled.LARGE:
                bound[slot], grown = scaled.rescale(acc[slot])
                exponent[slot] += grown
        if not scaled.write(total, total_exponent, normalize, out[tree]):
            return tree
    return -1
