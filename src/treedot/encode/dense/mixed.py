"""The stack machine for the default algebra: signs, butterflies and block moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.algebra import MixedProduct
from treedot.algebra.algebras import Mixer, bent_signs
from treedot.encode.dense import rescaling
from treedot.encode.dense.schedule import Schedule, most_rows
from treedot.jit import COMPILED, inlined, njit
from treedot.simd import LANES, flip, load, splat, store
from treedot.types import IntArray, Matrix, Row, SignWords

GROWTH = 4.0  # the most that a mixer can enlarge the largest element


class Shuffle(NamedTuple):
    """A mixer as arrays: which block of 16 each block goes to, and one word of signs per target block."""

    target: IntArray
    signs: SignWords
    rotation: int


class Labels(NamedTuple):
    """The signs of every label as left operand (a node over its children) and as right operand (a child).

    Both carry M1's signs too, and so do M2's: then composing with M1 needs no signs of its own.
    """

    head: SignWords
    child: SignWords


class MixedMachine:
    """Encodes forests with the mixed product."""

    folds_left = True

    def __init__(self, algebra: MixedProduct) -> None:
        self.algebra = algebra
        self.images = _words(bent_signs()[1])[:, 0]
        self.signs = _words(algebra.m1.negative[None])[0]
        self.m1 = Shuffle(targets(algebra.m1), np.zeros_like(self.signs), algebra.m1.rotation)
        self.m2 = Shuffle(
            targets(algebra.m2), _words(algebra.m2.negative[None])[0] ^ self.signs, algebra.m2.rotation
        )

    def label_table(self, texts: Sequence[str]) -> Labels:
        """Return the label signs, already mixed."""
        head = np.empty((len(texts), self.algebra.size // LANES), np.uint16)
        child = np.empty_like(head)
        rows = max(1, 2**18 // self.algebra.size)  # a few rows at a time stay in the processor's cache
        for start in range(0, len(texts), rows):
            part = slice(start, start + rows)
            if COMPILED:
                choices = self.algebra.label_choices(texts[part])
                _label_words(choices, self.images, self.m1, head[part])
                _label_words(choices, self.images, self.m2, child[part])
            else:
                head[part] = _words(self.algebra.mixed_labels(texts[part], self.algebra.m1)) ^ self.signs
                child[part] = _words(self.algebra.mixed_labels(texts[part], self.algebra.m2)) ^ self.signs
        return Labels(head, child)

    def encode(
        self, program: Schedule, labels: Labels, first: int, last: int,
        root_decay: float, normalize: bool, out: Matrix,
    ) -> int:  # fmt: skip
        """Encode the trees ``first … last - 1`` into ``out``; return the first too large one, or -1."""
        return _encode(program, labels, first, last, self.m1, self.m2, root_decay, normalize, out)


def targets(mixer: Mixer) -> IntArray:
    """Return where each block of 16 elements begins after the shuffle."""
    return (np.argsort(mixer.source) * LANES).astype(np.int32)


@njit
def _label_words(choices: IntArray, images: SignWords, shuffle: Shuffle, out: SignWords) -> None:
    """Write the mixed signs of labels, given by their choices of sign columns, to rows of words."""
    count = out.shape[1] // 16
    segments = np.empty((16, count + 1), np.uint32)
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


def _words(negative: npt.NDArray[np.bool_]) -> SignWords:
    packed = np.packbits(negative, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u2").astype(np.uint16)


@njit
def _four(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """Return the 4-point Hadamard transform."""
    s, t, u, v = a + b, a - b, c + d, c - d
    return s + u, t + v, s - u, t - v


@njit
def _sixteen(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """Return the 16-point Hadamard transform of four by four blocks: four by four again, transposed."""
    a, b, c, d = _four(*a), _four(*b), _four(*c), _four(*d)
    return (
        _four(a[0], b[0], c[0], d[0]),
        _four(a[1], b[1], c[1], d[1]),
        _four(a[2], b[2], c[2], d[2]),
        _four(a[3], b[3], c[3], d[3]),
    )


@njit
def _butterflies(x: Row, at: int, q: int) -> tuple[Any, Any, Any, Any]:
    """Return the 16-point butterflies (times 4) of the blocks at ``at, at + q, …, at + 15 q``."""
    return _sixteen(
        (load(x, at), load(x, at + q), load(x, at + 2 * q), load(x, at + 3 * q)),
        (load(x, at + 4 * q), load(x, at + 5 * q), load(x, at + 6 * q), load(x, at + 7 * q)),
        (load(x, at + 8 * q), load(x, at + 9 * q), load(x, at + 10 * q), load(x, at + 11 * q)),
        (load(x, at + 12 * q), load(x, at + 13 * q), load(x, at + 14 * q), load(x, at + 15 * q)),
    )


@njit
def _edge(x: Row, edge: Row) -> None:
    """Lay the last and the first block of each segment side by side, where a rotation wraps around."""
    q = x.size // 16
    for k in range(16):
        store(edge, 32 * k, load(x, k * q + q - LANES))
        store(edge, 32 * k + LANES, load(x, k * q))


@njit
def _rotated_butterflies(x: Row, edge: Row, block: int, rotation: int) -> tuple[Any, Any, Any, Any]:
    """Return the butterflies of a block of every rotated segment; the last one wraps around, by the edge."""
    q = x.size // 16
    inside = LANES * (block + 1) < q
    # One call with chosen arguments: two calls would double the code of the innermost loop.
    source, at = (x, LANES * block + rotation) if inside else (edge, rotation)
    return _butterflies(source, at, q if inside else 2 * LANES)


@njit
def _times(column: Any, j: int, block: int, count: int, target: IntArray, g: Row, out: Row) -> None:
    """Write one of the four columns of butterflies, times g, to where its blocks go."""
    for_0, for_1, for_2, for_3 = column
    at = target[j * count + block]
    store(out, at, for_0 * load(g, at))
    at = target[(4 + j) * count + block]
    store(out, at, for_1 * load(g, at))
    at = target[(8 + j) * count + block]
    store(out, at, for_2 * load(g, at))
    at = target[(12 + j) * count + block]
    store(out, at, for_3 * load(g, at))


@njit
def _compose(x: Row, m1: Shuffle, g: Row, edge: Row, out: Row) -> None:
    """Write M1(x) ⊗ g to out, but for M1's signs and the butterflies' factor of 4, which g carries."""
    count = x.size // 16 // LANES
    _edge(x, edge)
    for block in range(count):
        c0, c1, c2, c3 = _rotated_butterflies(x, edge, block, m1.rotation)
        _times(c0, 0, block, count, m1.target, g, out)
        _times(c1, 1, block, count, m1.target, g, out)
        _times(c2, 2, block, count, m1.target, g, out)
        _times(c3, 3, block, count, m1.target, g, out)


class Sum(NamedTuple):
    """How to write a mixed row x: as ``± b x ± a``, with two rows of signs."""

    signs: SignWords
    label: SignWords
    a: Any
    b: Any


@njit
def _plus_one(value: Any, at: int, rule: Sum, out: Row) -> None:
    mixed = flip(value * splat(rule.b), rule.signs[at // LANES])
    store(out, at, mixed + flip(splat(rule.a), rule.label[at // LANES]))


@njit
def _plus(column: Any, j: int, block: int, count: int, target: IntArray, rule: Sum, out: Row) -> None:
    for_0, for_1, for_2, for_3 = column
    _plus_one(for_0, target[j * count + block], rule, out)
    _plus_one(for_1, target[(4 + j) * count + block], rule, out)
    _plus_one(for_2, target[(8 + j) * count + block], rule, out)
    _plus_one(for_3, target[(12 + j) * count + block], rule, out)


@njit
def _mix(x: Row, shuffle: Shuffle, rule: Sum, edge: Row, out: Row) -> None:
    """Write a mixed row to out as a rule says."""
    count = x.size // 16 // LANES
    _edge(x, edge)
    for block in range(count):
        c0, c1, c2, c3 = _rotated_butterflies(x, edge, block, shuffle.rotation)
        _plus(c0, 0, block, count, shuffle.target, rule, out)
        _plus(c1, 1, block, count, shuffle.target, rule, out)
        _plus(c2, 2, block, count, shuffle.target, rule, out)
        _plus(c3, 3, block, count, shuffle.target, rule, out)


@njit
def _rotated(signs: SignWords, segment: int, block: int, count: int, rotation: int, one: Any) -> Any:
    """Return a block of a rotated segment of a row of signs, straight from its bits."""
    here = np.uint32(signs[segment * count + block])
    there = np.uint32(signs[segment * count + (block + 1 if block + 1 < count else 0)])
    return flip(one, np.uint16((here | (there << np.uint32(16))) >> np.uint32(rotation)))


@inlined
def _sign_butterflies(signs: SignWords, block: int, turn: int, one: Any) -> tuple[Any, Any, Any, Any]:
    """Return the butterflies of a block of every rotated segment of a row of signs."""
    count = signs.size // 16
    return _sixteen(
        (
            _rotated(signs, 0, block, count, turn, one),
            _rotated(signs, 1, block, count, turn, one),
            _rotated(signs, 2, block, count, turn, one),
            _rotated(signs, 3, block, count, turn, one),
        ),
        (
            _rotated(signs, 4, block, count, turn, one),
            _rotated(signs, 5, block, count, turn, one),
            _rotated(signs, 6, block, count, turn, one),
            _rotated(signs, 7, block, count, turn, one),
        ),
        (
            _rotated(signs, 8, block, count, turn, one),
            _rotated(signs, 9, block, count, turn, one),
            _rotated(signs, 10, block, count, turn, one),
            _rotated(signs, 11, block, count, turn, one),
        ),
        (
            _rotated(signs, 12, block, count, turn, one),
            _rotated(signs, 13, block, count, turn, one),
            _rotated(signs, 14, block, count, turn, one),
            _rotated(signs, 15, block, count, turn, one),
        ),
    )


@njit
def _mix_signs(signs: SignWords, shuffle: Shuffle, rule: Sum, out: Row) -> None:
    """Write a mixed row of signs to out as a rule says: ``_mix`` without the row."""
    count = signs.size // 16
    one = splat(out.dtype.type(1))
    for block in range(count):
        c0, c1, c2, c3 = _sign_butterflies(signs, block, shuffle.rotation, one)
        _plus(c0, 0, block, count, shuffle.target, rule, out)
        _plus(c1, 1, block, count, shuffle.target, rule, out)
        _plus(c2, 2, block, count, shuffle.target, rule, out)
        _plus(c3, 3, block, count, shuffle.target, rule, out)


@njit
def _place(column: Any, j: int, block: int, count: int, target: IntArray, out: Row) -> None:
    for_0, for_1, for_2, for_3 = column
    store(out, target[j * count + block], for_0)
    store(out, target[(4 + j) * count + block], for_1)
    store(out, target[(8 + j) * count + block], for_2)
    store(out, target[(12 + j) * count + block], for_3)


@njit
def _place_all(columns: Any, block: int, count: int, target: IntArray, out: Row) -> None:
    """Write the butterflies of one block of every segment to where they go."""
    c0, c1, c2, c3 = columns
    _place(c0, 0, block, count, target, out)
    _place(c1, 1, block, count, target, out)
    _place(c2, 2, block, count, target, out)
    _place(c3, 3, block, count, target, out)


@njit
def mix_row(x: Row, shuffle: Shuffle, edge: Row, out: Row) -> None:
    """Write a mixed row to out, times 4 and without the mixer's signs."""
    count = x.size // 16 // LANES
    _edge(x, edge)
    for block in range(count):
        _place_all(_rotated_butterflies(x, edge, block, shuffle.rotation), block, count, shuffle.target, out)


@njit
def mix_sign_words(signs: SignWords, shuffle: Shuffle, out: Row) -> None:
    """Write a mixed row of signs to out, times 4 and without the mixer's own signs."""
    count = signs.size // 16
    one = splat(out.dtype.type(1))
    for block in range(count):
        _place_all(_sign_butterflies(signs, block, shuffle.rotation, one), block, count, shuffle.target, out)


@njit
def _exclusive_or(a: SignWords, b: SignWords, out: SignWords) -> None:
    for k in range(out.size):
        out[k] = a[k] ^ b[k]


@njit
def add_signs(total: Row, signs: SignWords, scale: Any) -> None:
    """Add signs, times a number, to a row."""
    unit = splat(scale)
    for k in range(signs.size):
        store(total, LANES * k, load(total, LANES * k) + flip(unit, signs[k]))


@njit
def _write_signs(signs: SignWords, out: Row) -> None:
    one = splat(out.dtype.type(1))
    for k in range(signs.size):
        store(out, LANES * k, flip(one, signs[k]))


@njit
def _encode(
    program: Schedule, labels: Labels, first: int, last: int, m1: Shuffle, m2: Shuffle,
    root_decay: float, normalize: bool, out: Matrix,
) -> int:  # fmt: skip
    number = out.dtype.type
    size = out.shape[1]
    slots = most_rows(program, first, last)
    rows = np.empty((slots + 1, size), out.dtype)
    row_of = np.arange(slots)
    spare = slots
    exponent, bound = np.zeros(slots, np.int64), np.zeros(slots)
    total, g = np.empty(size, out.dtype), np.empty(size, out.dtype)
    edge = np.empty(16 * 2 * LANES, out.dtype)
    word = np.empty(size // LANES, np.uint16)  # the signs of a pre-terminal over its word
    signs, label = np.empty(size // LANES, np.uint16), np.empty(size // LANES, np.uint16)
    for tree in range(first, last):
        total[:] = 0
        total_exponent = rescaling.NO_VALUE
        for node in range(program.offsets[tree], program.offsets[tree + 1]):
            own, above = program.slot[node], program.parent[node]
            leaf = program.arity[node] == 0
            tag = program.arity[node] == 1 and program.arity[node - 1] == 0  # over one leaf: signs, no row
            if tag:
                total_exponent = rescaling.at_least_one(total, total_exponent)
                add_signs(total, word, number(rescaling.power_of_two(-total_exponent)))
                exponent[own], bound[own] = 0, 1.0
            elif not leaf:
                total_exponent = rescaling.add(total, total_exponent, rows[row_of[own]], exponent[own])
            if above < 0:
                continue
            slot = program.slot[above]
            child = labels.child[program.label[node]]
            head = labels.head[program.label[above]]
            opens = program.opens[node]
            if leaf and opens:
                _exclusive_or(head, child, word)
                if program.arity[above] > 1:
                    _write_signs(word, rows[row_of[slot]])
                    exponent[slot], bound[slot] = 0, 1.0
                continue
            if leaf:
                rule = Sum(child, child, number(0), number(0.25))
                _mix(rows[row_of[slot]], m1, rule, edge, rows[spare])
                bound[slot] *= GROWTH
            else:
                # A finished first child gives its slot to its parent: M1(n) ⊗ M2(c + √λ s(c)) replaces
                # s(c). A later one becomes g, with the factor that the butterflies of M1 will need.
                a, b, grown = rescaling.child_scales(exponent[own], root_decay)
                limit = a + GROWTH * b * bound[own]
                factor = 1.0 if opens else 0.25
                if opens:
                    _exclusive_or(m2.signs, head, signs)
                    _exclusive_or(child, head, label)
                rule = Sum(
                    signs if opens else m2.signs,
                    label if opens else child,
                    number(a * factor),
                    number(b * factor / 4),
                )
                mixed = rows[spare] if opens else g
                if tag:
                    _mix_signs(word, m2, rule, mixed)
                else:
                    _mix(rows[row_of[own]], m2, rule, edge, mixed)
                if opens:
                    exponent[slot], bound[slot] = grown, limit
                else:
                    _compose(rows[row_of[slot]], m1, g, edge, rows[spare])
                    exponent[slot] += grown
                    bound[slot] *= GROWTH * limit
            row_of[slot], spare = spare, row_of[slot]
            if bound[slot] > rescaling.LARGE or exponent[slot] != 0:  # giants may also fade
                bound[slot], grown = rescaling.rescale(rows[row_of[slot]])
                exponent[slot] += grown
        if not rescaling.write(total, total_exponent, normalize, out[tree]):
            return tree
    return -1
