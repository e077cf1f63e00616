"""The mixers of ``compositions``, compiled: butterflies and block moves over rows and over sign bits.

A mixer passes the elements ``p, p + q, …, p + 15 q`` of a row (q = d/16) through the 16-point Hadamard
matrix over 4, rotates each of the sixteen segments of q elements, moves blocks of sixteen elements and
changes signs. This module works on blocks: the butterflies of one block of every segment are four tuples of
four blocks, in the order in which two rounds of 4-point transforms leave them, and each block is stored where
the mixer moves it. ``count``, the number of blocks in a segment, is an argument: dividing for it again in an
innermost loop would take a tenth of the time.

Butterflies are not divided by 4. So mixed rows are ``BUTTERFLY_FACTOR`` times too large here; callers correct
this in a multiplication that they need anyway.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, IntArray, Label, Matrix, Row, SignWords
from treedot._runtime.jit import in_compiled_code, inlined, njit_inside
from treedot._runtime.simd import LANES, flip, load, splat, store, times
from treedot.vectors.dense.compositions import Mixer

BUTTERFLY_FACTOR = 4.0  # the 16-point Hadamard matrix is 4 times an orthogonal one
UNMIX = 1.0 / BUTTERFLY_FACTOR
MIXER_BOUND = 4.0  # a mixer multiplies the largest magnitude of a row by at most √16
ROW_GAP = 272  # elements between rows; see ``empty_rows``
EDGE = 16 * 2 * LANES  # elements where rotated segments wrap around: two blocks of each


class Shuffle(NamedTuple):
    """A mixer as arrays: the target of each block of sixteen, and a word of signs for every target block."""

    target: IntArray
    signs: SignWords
    rotation: int


def targets(mixer: Mixer) -> IntArray:
    """Return the position of each block of sixteen elements after the shuffle."""
    return (np.argsort(mixer.source) * LANES).astype(np.int32)


def sign_words(negative: BoolArray) -> SignWords:
    """Return rows of signs packed sixteen to a word; True means minus."""
    packed = np.packbits(negative, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u2").astype(np.uint16)


def empty_rows(count: int, out: Matrix) -> Matrix:
    """Return memory for ``count`` rows like those of ``out``; get one with ``row_of``.

    There is a gap between rows. If their distance were a power of two, equal positions of all rows would
    share a few lines of the processor's cache and evict each other in passes over several rows.
    """
    return np.empty((count, out.shape[1] + ROW_GAP), out.dtype)


@inlined
def row_of(rows: Matrix, number: int) -> Row:
    """Return a row of the memory that ``empty_rows`` made."""
    return rows[number, : rows.shape[1] - ROW_GAP]


@njit_inside
def _four(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """Return the 4-point Hadamard transform."""
    s, t, u, v = a + b, a - b, c + d, c - d
    return s + u, t + v, s - u, t - v


@njit_inside
def _sixteen(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """Return the 16-point Hadamard transform of 4 × 4 blocks, as 4 × 4 blocks, transposed."""
    a, b, c, d = _four(*a), _four(*b), _four(*c), _four(*d)
    return (
        _four(a[0], b[0], c[0], d[0]),
        _four(a[1], b[1], c[1], d[1]),
        _four(a[2], b[2], c[2], d[2]),
        _four(a[3], b[3], c[3], d[3]),
    )


@njit_inside
def _butterflies(x: Row, at: int, q: int) -> tuple[Any, Any, Any, Any]:
    """Return the butterflies of the blocks at ``at, at + q, …, at + 15 q``."""
    return _sixteen(
        (load(x, at), load(x, at + q), load(x, at + 2 * q), load(x, at + 3 * q)),
        (load(x, at + 4 * q), load(x, at + 5 * q), load(x, at + 6 * q), load(x, at + 7 * q)),
        (load(x, at + 8 * q), load(x, at + 9 * q), load(x, at + 10 * q), load(x, at + 11 * q)),
        (load(x, at + 12 * q), load(x, at + 13 * q), load(x, at + 14 * q), load(x, at + 15 * q)),
    )


@njit_inside
def lay_edge(x: Row, edge: Row) -> None:
    """Copy the last and the first block of each segment next to each other, where a rotation wraps around."""
    q = x.size // 16
    for k in range(16):
        store(edge, 2 * LANES * k, load(x, k * q + q - LANES))
        store(edge, 2 * LANES * k + LANES, load(x, k * q))


@njit_inside
def row_butterflies(x: Row, edge: Row, block: int, rotation: int) -> tuple[Any, Any, Any, Any]:
    """Return the butterflies of a block of every rotated segment; the last block is read from ``edge``."""
    q = x.size // 16
    inside = LANES * (block + 1) < q
    # A single call: two calls would double the code of the innermost loop.
    source, at = (x, LANES * block + rotation) if inside else (edge, rotation)
    return _butterflies(source, at, q if inside else 2 * LANES)


@njit_inside
def _rotated(signs: SignWords, start: int, block: int, count: int, rotation: int, one: Any) -> Any:
    """Return a block of a rotated segment of a row of signs, directly from its bits."""
    here = np.uint32(signs[start + block])
    there = np.uint32(signs[start + (block + 1 if block + 1 < count else 0)])
    return flip(one, np.uint16((here | (there << np.uint32(16))) >> np.uint32(rotation)))


@inlined
def _four_rotated(signs: SignWords, segment: int, block: int, count: int, turn: int, one: Any) -> Any:
    return (
        _rotated(signs, segment * count, block, count, turn, one),
        _rotated(signs, (segment + 1) * count, block, count, turn, one),
        _rotated(signs, (segment + 2) * count, block, count, turn, one),
        _rotated(signs, (segment + 3) * count, block, count, turn, one),
    )


@inlined
def sign_butterflies(signs: SignWords, block: int, turn: int, one: Any) -> tuple[Any, Any, Any, Any]:
    """Return the butterflies of a block of every rotated segment of a row of signs (``one`` is all 1)."""
    count = signs.size // 16
    return _sixteen(
        _four_rotated(signs, 0, block, count, turn, one),
        _four_rotated(signs, 4, block, count, turn, one),
        _four_rotated(signs, 8, block, count, turn, one),
        _four_rotated(signs, 12, block, count, turn, one),
    )


@njit_inside
def _store_four(four: Any, first: int, gap: int, target: IntArray, out: Row) -> None:
    for_0, for_1, for_2, for_3 = four
    store(out, target[first], for_0)
    store(out, target[first + gap], for_1)
    store(out, target[first + 2 * gap], for_2)
    store(out, target[first + 3 * gap], for_3)


@njit_inside
def _store_all(butterflies: Any, block: int, count: int, target: IntArray, out: Row) -> None:
    """Store the butterflies of one block of every segment at their targets."""
    b0, b1, b2, b3 = butterflies
    _store_four(b0, block, 4 * count, target, out)
    _store_four(b1, count + block, 4 * count, target, out)
    _store_four(b2, 2 * count + block, 4 * count, target, out)
    _store_four(b3, 3 * count + block, 4 * count, target, out)


@njit_inside
def mix_row(x: Row, shuffle: Shuffle, edge: Row, out: Row) -> None:
    """Write 4 M(x) to out, without the mixer's signs."""
    lay_edge(x, edge)
    count = x.size // 16 // LANES
    for block in range(count):
        _store_all(row_butterflies(x, edge, block, shuffle.rotation), block, count, shuffle.target, out)


@njit_inside
def mix_sign_words(signs: SignWords, shuffle: Shuffle, out: Row) -> None:
    """Write 4 M(x) to out for a row x of signs, without the mixer's own signs."""
    one = splat(out.dtype.type(1))
    count = signs.size // 16
    for block in range(count):
        _store_all(sign_butterflies(signs, block, shuffle.rotation, one), block, count, shuffle.target, out)


class Sum(NamedTuple):
    """The coefficients of the sum ``b · signs ⊗ x + a · label`` for butterflies x.

    The label is a row of sign words or of numbers. If the signs are already multiplied by a label, they have
    the type of that label.
    """

    a: Any
    label: Label
    b: Any
    signs: Label


@njit_inside
def _plus_one(x: Any, at: int, plus: Sum, out: Row) -> None:
    mixed = times(x * splat(plus.b), plus.signs, at)
    store(out, at, mixed + times(splat(plus.a), plus.label, at))


@njit_inside
def _plus(four: Any, first: int, gap: int, target: IntArray, plus: Sum, out: Row) -> None:
    """Store the sums for four blocks of butterflies at their targets."""
    for_0, for_1, for_2, for_3 = four
    _plus_one(for_0, target[first], plus, out)
    _plus_one(for_1, target[first + gap], plus, out)
    _plus_one(for_2, target[first + 2 * gap], plus, out)
    _plus_one(for_3, target[first + 3 * gap], plus, out)


@njit_inside
def mix_plus(x: Row, shuffle: Shuffle, plus: Sum, edge: Row, out: Row) -> None:
    """Write ``4 b · signs ⊗ M°(x) + a · label`` to out."""
    lay_edge(x, edge)
    count = x.size // 16 // LANES
    for block in range(count):
        b0, b1, b2, b3 = row_butterflies(x, edge, block, shuffle.rotation)
        _plus(b0, block, 4 * count, shuffle.target, plus, out)
        _plus(b1, count + block, 4 * count, shuffle.target, plus, out)
        _plus(b2, 2 * count + block, 4 * count, shuffle.target, plus, out)
        _plus(b3, 3 * count + block, 4 * count, shuffle.target, plus, out)


@njit_inside
def mix_signs_plus(x: SignWords, shuffle: Shuffle, plus: Sum, out: Row) -> None:
    """Write ``4 b · signs ⊗ M°(x) + a · label`` to out for a row x of signs."""
    one = splat(out.dtype.type(1))
    count = x.size // 16
    for block in range(count):
        b0, b1, b2, b3 = sign_butterflies(x, block, shuffle.rotation, one)
        _plus(b0, block, 4 * count, shuffle.target, plus, out)
        _plus(b1, count + block, 4 * count, shuffle.target, plus, out)
        _plus(b2, 2 * count + block, 4 * count, shuffle.target, plus, out)
        _plus(b3, 3 * count + block, 4 * count, shuffle.target, plus, out)


@in_compiled_code("treedot.vectors.dense.mixing_overloads")
def mix_label_plus(x: Any, shuffle: Shuffle, plus: Sum, edge: Row, out: Row) -> None:
    """Write ``4 b · signs ⊗ M°(x) + a · label`` to out for a label x."""
    if x.dtype == np.uint16:
        mix_signs_plus(x, shuffle, plus, out)
    else:
        mix_plus(x, shuffle, plus, edge, out)


@njit_inside
def add_label(total: Row, label: Label, scale: Any) -> None:
    """Add ``scale · label`` to a row."""
    unit = splat(scale)
    for at in range(0, total.size, LANES):
        store(total, at, load(total, at) + times(unit, label, at))


@njit_inside
def store_label(label: Label, scale: Any, out: Row) -> None:
    """Write ``scale · label`` to a row."""
    unit = splat(scale)
    for at in range(0, out.size, LANES):
        store(out, at, times(unit, label, at))
