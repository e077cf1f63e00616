"""Dense vectors with the default algebra, compiled: a ⋄ b = √d · M1(a) ⊗ M2(b), left fold.

Inside, every vector is √d times as long as outside. Then labels are rows of signs and

    s(n) = M1(… M1(M1(n) ⊗ M2(x1)) ⊗ M2(x2) …) ⊗ M2(xm),     x = c + √λ s(c) for each child c.

Signs. Let M° be a mixer without its signs σ: M(x) = σ ⊗ M°(x). M1's signs are never applied to rows. Instead
three factors that are computed once contain them: a label as left operand, ``head = σ1 ⊗ M1(n)``, a label as
right operand, ``child = σ1 ⊗ M2(c)``, and the signs of M2 here, σ1 ⊗ σ2. There are four ways to compose a
child (t is what its parent has composed so far):

    a leaf, the first child    M1(n) ⊗ M2(c)  =  head ⊗ child
    a leaf, a later child      M1(t) ⊗ M2(c)  =  M1°(t) ⊗ child
    any other, the first       M1(n) ⊗ M2(x)  =  head ⊗ (child + √λ σ1 ⊗ σ2 ⊗ M2°(s(c)))
    any other, a later one     M1(t) ⊗ M2(x)  =  M1°(t) ⊗ (child + √λ σ1 ⊗ σ2 ⊗ M2°(s(c)))

Factors. Butterflies are 4 M°, not M° (see ``mixing``), so each number that multiplies a mixed row contains
the factor ¼, ``UNMIX``. The last line has two mixers, so its right operand, in brackets, is computed as a
quarter of its value, to compensate for M1°.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import FloatArray, HalfWordArray, IntArray, Matrix, Row, SignWords
from treedot._runtime.jit import compiles, njit_borrowing, njit_inside, njit_of_steps
from treedot._runtime.simd import LANES, load, multiply, store
from treedot.vectors.chunks import ALL_DONE, Ended
from treedot.vectors.dense import rescaling
from treedot.vectors.dense.compositions import MixedProduct, bent_signs
from treedot.vectors.dense.mixing import (
    EDGE,
    MIXER_BOUND,
    UNMIX,
    Shuffle,
    Sum,
    add_label,
    empty_rows,
    lay_edge,
    mix_plus,
    mix_signs_plus,
    row_butterflies,
    row_of,
    sign_words,
    store_label,
    targets,
)
from treedot.vectors.dense.schedule import Schedule, stack_height
from treedot.vectors.spec import DenseSpec


class Labels(NamedTuple):
    """The signs of every label as left operand (a parent) and as right operand (a child).

    Both contain M1's signs: σ1 ⊗ M1(n) and σ1 ⊗ M2(c).
    """

    head: SignWords
    child: SignWords


class MixedEncoder:
    """Encodes trees with the mixed product."""

    folds_left = True

    def __init__(self, algebra: MixedProduct) -> None:
        self.algebra = algebra
        self.images = sign_words(bent_signs()[1])[:, 0]
        self.signs = sign_words(algebra.m1.negative[None])[0]
        signs = sign_words(algebra.m2.negative[None])[0] ^ self.signs
        self.m1 = Shuffle(targets(algebra.m1), np.zeros_like(self.signs), algebra.m1.rotation)
        self.m2 = Shuffle(targets(algebra.m2), signs, algebra.m2.rotation)

    def label_table(self, texts: Sequence[str]) -> Labels:
        """Return the signs of labels after mixing."""
        head = np.empty((len(texts), self.algebra.size // LANES), np.uint16)
        child = np.empty_like(head)
        rows = max(1, 2**18 // self.algebra.size)  # few enough for the processor's cache
        for start in range(0, len(texts), rows):
            part = slice(start, start + rows)
            if compiles(head[part].size):
                choices = self.algebra.label_choices(texts[part])
                segments = np.empty((16, self.algebra.size // LANES // 16 + 1), np.uint32)
                _mix_labels(choices, self.images, self.m1, segments, head[part])
                _mix_labels(choices, self.images, self.m2, segments, child[part])
            else:
                head[part] = sign_words(self.algebra.mixed_labels(texts[part], self.algebra.m1)) ^ self.signs
                child[part] = sign_words(self.algebra.mixed_labels(texts[part], self.algebra.m2)) ^ self.signs
        return Labels(head, child)

    def encode(self, schedule: Schedule, labels: Any, spec: DenseSpec, out: Matrix) -> Ended:
        """Encode trees into ``out``; return the first tree that is not done, and why."""
        memory = Memory.make(stack_height(schedule), out)
        return _encode(schedule, labels, self.m1, self.m2, math.sqrt(spec.decay), spec.normalize, memory, out)


class Memory(NamedTuple):
    """Working memory: rows for each height of the stack, with the numbers ``number_of``, and three more."""

    rows: Matrix
    number_of: IntArray
    exponent: IntArray  # by height
    bound: FloatArray
    edge: Row
    signs: SignWords  # three rows

    @classmethod
    def make(cls, height: int, out: Matrix) -> Self:
        """Return memory for a stack of rows like those of ``out``."""
        return cls(
            empty_rows(height + 3, out),
            np.arange(height),
            np.zeros(height, np.int64),
            np.zeros(height),
            np.empty(EDGE, out.dtype),
            np.empty((3, out.shape[1] // LANES), np.uint16),
        )


@njit_borrowing
def _mix_labels(
    choices: IntArray, images: SignWords, shuffle: Shuffle, segments: HalfWordArray, out: SignWords
) -> None:
    """Write the mixed signs of labels to rows of words.

    ``choices`` holds for each label the numbers of its bent sign vectors, and ``images`` their transforms.
    """
    count = out.shape[1] // 16
    for label in range(out.shape[0]):
        for block in range(count):
            for segment in range(16):
                segments[segment, block] = 0
            for lane in range(LANES):  # a column of sixteen signs is one bit of each of sixteen words
                column = np.uint32(images[choices[label, LANES * block + lane]])
                for segment in range(16):
                    bit = (column >> np.uint32(segment)) & np.uint32(1)
                    segments[segment, block] |= bit << np.uint32(lane)
        for segment in range(16):
            segments[segment, count] = segments[segment, 0]  # where the rotation wraps around
            for block in range(count):
                pair = segments[segment, block] | (segments[segment, block + 1] << np.uint32(16))
                target = shuffle.target[segment * count + block] // LANES
                out[label, target] = np.uint16(pair >> np.uint32(shuffle.rotation)) ^ shuffle.signs[target]


@njit_inside
def _times(four: Any, first: int, gap: int, target: IntArray, y: Row, out: Row) -> None:
    """Store four blocks of butterflies, times y, at their targets."""
    for_0, for_1, for_2, for_3 = four
    at = target[first]
    store(out, at, for_0 * load(y, at))
    at = target[first + gap]
    store(out, at, for_1 * load(y, at))
    at = target[first + 2 * gap]
    store(out, at, for_2 * load(y, at))
    at = target[first + 3 * gap]
    store(out, at, for_3 * load(y, at))


@njit_inside
def _mix_times(x: Row, shuffle: Shuffle, y: Row, edge: Row, out: Row) -> None:
    """Write 4 M°(x) ⊗ y to out."""
    lay_edge(x, edge)
    count = x.size // 16 // LANES
    for block in range(count):
        b0, b1, b2, b3 = row_butterflies(x, edge, block, shuffle.rotation)
        _times(b0, block, 4 * count, shuffle.target, y, out)
        _times(b1, count + block, 4 * count, shuffle.target, y, out)
        _times(b2, 2 * count + block, 4 * count, shuffle.target, y, out)
        _times(b3, 3 * count + block, 4 * count, shuffle.target, y, out)


@njit_of_steps(lambda schedule, *others: schedule.order.size * others[-1].shape[1], borrowing=True)
def _encode(
    schedule: Schedule, labels: Labels, m1: Shuffle, m2: Shuffle,
    root_decay: float, normalize: bool, memory: Memory, out: Matrix,
) -> Ended:  # fmt: skip
    """Visit the nodes of each tree, children first, and compose each finished one into its parent.

    The stack row of a node holds the composition of its children so far, in the end s(n), over
    ``2^exponent``; no magnitude is above ``bound``. It contains all signs and factors. A pre-terminal (a node
    over one leaf) has no row, since its s(n) consists of signs only.
    """
    number = out.dtype.type
    rows, number_of, exponent, bound, edge, words = memory
    spare = number_of.size  # the row for the next result
    total, right = row_of(rows, spare + 1), row_of(rows, spare + 2)
    preterminal, signs, label = words[0], words[1], words[2]  # the first is s(n) of the last pre-terminal
    for tree in range(len(out)):
        total[:] = 0
        total_exponent = rescaling.NO_VALUE
        for node in range(schedule.offsets[tree], schedule.offsets[tree + 1]):
            own, parent = schedule.stack_row[node], schedule.parent[node]
            is_leaf = schedule.arity[node] == 0
            is_preterminal = schedule.arity[node] == 1 and schedule.arity[node - 1] == 0
            if is_preterminal:
                total_exponent = rescaling.to_nonnegative_exponent(total, total_exponent)
                add_label(total, preterminal, number(rescaling.power_of_two(-total_exponent)))
                exponent[own], bound[own] = 0, 1.0
            elif not is_leaf:
                finished = row_of(rows, number_of[own])
                total_exponent = rescaling.add(total, total_exponent, finished, exponent[own])
            if parent < 0:
                continue
            above = schedule.stack_row[parent]
            is_first = schedule.is_first[node]
            head, child = labels.head[schedule.label[parent]], labels.child[schedule.label[node]]
            if is_leaf and is_first:
                multiply(head, child, preterminal)
                if schedule.arity[parent] > 1:  # not a pre-terminal after all
                    store_label(preterminal, number(1), row_of(rows, number_of[above]))
                    exponent[above], bound[above] = 0, 1.0
                continue
            composed = row_of(rows, spare)
            if is_leaf:
                plus = Sum(number(0), child, number(UNMIX), child)
                mix_plus(row_of(rows, number_of[above]), m1, plus, edge, composed)
                bound[above] *= MIXER_BOUND
            else:
                # c + √λ s(c) = (a c + b s(c)) · 2^grown
                a, b, grown = rescaling.child_scales(exponent[own], root_decay)
                largest = a + MIXER_BOUND * b * bound[own]
                if is_first:
                    multiply(head, child, label)
                    multiply(head, m2.signs, signs)
                    plus = Sum(number(a), label, number(b * UNMIX), signs)
                    mixed = composed
                else:
                    plus = Sum(number(a * UNMIX), child, number(b * UNMIX * UNMIX), m2.signs)
                    mixed = right
                if is_preterminal:
                    mix_signs_plus(preterminal, m2, plus, mixed)
                else:
                    mix_plus(row_of(rows, number_of[own]), m2, plus, edge, mixed)
                if is_first:
                    exponent[above], bound[above] = grown, largest
                else:
                    _mix_times(row_of(rows, number_of[above]), m1, right, edge, composed)
                    exponent[above] += grown
                    bound[above] *= MIXER_BOUND * largest
            number_of[above], spare = spare, number_of[above]
            if bound[above] > rescaling.LARGE or exponent[above] != 0:  # a scaled row may also get too small
                bound[above], exponent[above] = rescaling.rescale(
                    row_of(rows, number_of[above]), exponent[above]
                )
        why = rescaling.write(total, total_exponent, normalize, out[tree])
        if why != ALL_DONE:
            return tree, why
    return len(out), ALL_DONE
