"""What stands below each node of a tree, as products of random phases: the stuff of continuations.

With F(c) the sum of the vectors of all fragments rooted at a child c, seen from its parent, and L(c) the
part of its production alone, a node keeps the products

    H[k] = ∏ (1 + √λ F(c)) over the heavy children from the k-th in reading order on, times ∏ (1 + √λ L(c))
           over the children that can only be light,
    S[k] = ∏ (1 + √λ L(c)) over the light children from the k-th on.

So H[0] is the sum over everything below the node. A child whose only child can be expanded is *double*:
heavy where that is done, else light. So behind a heavy child follow H and the light parts of the double
children that were passed over, and behind a light one S without the double children that were taken as heavy.

Vectors are rows of sixteen real parts and sixteen imaginary ones, with one exponent for all: coordinates that
are 2^1000 times smaller than others, as hundreds of thousands of children can make them, become zero.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.algebra.labels import mix64
from treedot.encode.strata import COORDINATES, POSITIONS, SALT
from treedot.jit import njit
from treedot.simd import LANES, exceeds, load, splat, store

IntArray = npt.NDArray[np.signedinteger[Any]]
WordArray = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float64]

V = COORDINATES
assert V == LANES
ROW = 2 * V
STEP = 400
SMALL = 2.0**-STEP  # by which vectors are scaled down,
LARGE = 2.0 ** (STEP - 2)  # if they exceed this: the product of two that do not, scaled, does not either

# np.uint64 all through: mixed with signed integers, Numba would turn to floating point.
U0, U1, U8, U255 = (np.uint64(x) for x in (0, 1, 8, 255))
SALTED = np.uint64(SALT)
WORDS = V // 8

NODE = np.dtype(
    [
        ("hash", np.uint64),  # of the production
        ("arity", np.int32),
        ("bottom", np.bool_),  # no child can be expanded
        ("first", np.int32),  # prefix
        ("last", np.int32),
        ("heavy", np.int32),  # the first of the node's slots
        ("end", np.int32),  # behind its last child's slot
        ("standing", np.int32),  # the heavy slot that the node has at its parent, or -1
    ],
    align=True,
)

# A node has a slot for every heavy child and one at the end, then the same for the light ones.
SLOT = np.dtype(
    [
        ("bit", np.uint64),  # that marks a double child, where several children can be taken
        ("kid", np.int32),  # -1 at the end
        ("place", np.int32),
        ("origin", np.int32),  # the first slot of the same node
        ("twin", np.int32),  # of a double child, its other slot; or -1
        ("follows", np.int32),  # the row of what follows, if no double child is taken
        ("light", np.bool_),
    ],
    align=True,
)


Following = tuple[float, float, float, float, int]


class Vectors(NamedTuple):
    """Complex vectors: one for each slot, H or S; behind those one of its factor.

    The factor of a light slot is 1 + √λ L; that of a heavy one may give way to what follows it.
    """

    value: FloatArray
    exponent: IntArray


class Below(NamedTuple):
    """Working memory for what stands below the nodes of one tree at a time."""

    stack: IntArray  # nodes that wait for their parents
    nodes: Any
    slots: Any
    vectors: Vectors


def make_below(nodes: int, inner: int) -> Below:
    """Return room for trees of so many nodes, so many of them with children."""
    slots = 4 * inner + 2  # an inner node has at most two at its parent, and two ends of its own
    below = Below(
        np.empty(nodes, np.int32),
        np.recarray(nodes, NODE),
        np.recarray(slots, SLOT),
        Vectors(np.empty(2 * slots * ROW), np.empty(2 * slots, np.int64)),
    )
    _ones(below.vectors, 0)  # below all nodes whose children cannot be expanded
    return below


@njit
def power(exponent: int) -> float:
    """Return 2^-exponent, 0 where it is that small."""
    return math.ldexp(1.0, -int(exponent)) if exponent > 0 else 1.0


@njit
def fill_below(
    arity: IntArray, label: IntArray, label_key: WordArray, budget: int,
    phases: FloatArray, shuffle: IntArray, below: Below,
) -> None:  # fmt: skip
    """Give all children that can be expanded their slots, and compute H, S and what follows them."""
    stack, nodes, slots, vectors = below
    height, end = 0, 1
    for node in range(arity.size):
        m = arity[node]
        height -= m
        nodes[node].arity = m
        nodes[node].bottom = True
        if m > 0:
            own = mix64(label_key[label[node]] + np.uint64(m + 1) * SALTED)
            for child in stack[height : height + m]:
                own = mix64(own + label_key[label[child]])
                nodes[node].bottom &= nodes[child].arity == 0
            nodes[node].hash = own
            nodes[node].heavy = nodes[node].end = 0
            if not nodes[node].bottom:
                heavy = end
                light, end = _take_slots(stack[height : height + m], m < budget, heavy, nodes, slots)
                _multiply(heavy, light, end - 1, nodes, slots, vectors, phases, shuffle)
                nodes[node].heavy, nodes[node].end = heavy, end - 1
        stack[height] = node
        height += 1


@njit
def _multiply(
    heavy: int, light: int, end: int, nodes: Any, slots: Any, vectors: Vectors,
    phases: FloatArray, shuffle: IntArray,
) -> None:  # fmt: skip
    """Compute H and S of one node, whose light slots end with ``end``."""
    factors, double = slots.size, False
    _ones(vectors, end)
    for slot in range(end - 1, light - 1, -1):
        place = slots[slot].place
        _light_factor(vectors, factors + slot, nodes[slots[slot].kid].hash, place, phases)
        _times(vectors, slot, slot + 1, factors + slot)
        double |= slots[slot].twin >= 0
    if not double:
        _copy(vectors, light - 1, light)
    else:  # what can only be light follows every heavy child
        _ones(vectors, light - 1)
        for slot in range(light, end):
            if slots[slot].twin < 0:
                _times(vectors, light - 1, light - 1, factors + slot)
    for slot in range(light - 2, heavy - 1, -1):
        place, child = slots[slot].place, nodes[slots[slot].kid]
        turned = shuffle[place % POSITIONS]
        _heavy_factor(vectors, factors + slot, child.hash, place, child.heavy, phases, turned)
        _times(vectors, slot, slot + 1, factors + slot)
    if double:
        _fill_following(heavy, light - 1, slots, vectors)


@njit
def _take_slots(family: IntArray, several: bool, heavy: int, nodes: Any, slots: Any) -> tuple[int, int]:
    """Return the first light slot and the first free one.

    Unless ``several`` children can be taken, every prefix ends with the first that is.
    """
    end = heavy
    for i in range(family.size - 1, -1, -1):
        child = nodes[family[i]]
        child.standing = -1
        if child.arity > 1 or (child.arity == 1 and not child.bottom):
            child.standing = end
            slot = slots[end]
            slot.kid, slot.place, slot.origin, slot.follows = family[i], i, heavy, end + 1
            slot.light, slot.twin, slot.bit = False, -1, U0
            end += 1
    slots[end].kid = -1
    light = end + 1
    end = light
    for i in range(family.size):
        child = nodes[family[i]]
        if child.arity == 1:
            twin = child.standing
            slot = slots[end]
            slot.kid, slot.place, slot.origin, slot.follows = family[i], i, heavy, end + 1
            slot.light, slot.twin, slot.bit = True, twin, U0
            if twin >= 0:
                slots[twin].twin = end
                if several:
                    slot.bit = slots[twin].bit = U1 << np.uint64(twin - heavy)
            end += 1
    slots[end].kid = -1
    return light, end + 1


@njit
def _ones(vectors: Vectors, row: int) -> None:
    vectors.exponent[row] = 0
    store(vectors.value, ROW * row, splat(1.0))
    store(vectors.value, ROW * row + V, splat(0.0))


@njit
def _copy(vectors: Vectors, row: int, other: int) -> None:
    vectors.exponent[row] = vectors.exponent[other]
    store(vectors.value, ROW * row, load(vectors.value, ROW * other))
    store(vectors.value, ROW * row + V, load(vectors.value, ROW * other + V))


@njit
def _times(vectors: Vectors, row: int, left: int, right: int) -> None:
    """Set a row to the product of two."""
    value = vectors.value
    a, b = load(value, ROW * left), load(value, ROW * left + V)
    c, d = load(value, ROW * right), load(value, ROW * right + V)
    re, im = a * c - b * d, a * d + b * c
    exponent = vectors.exponent[left] + vectors.exponent[right]
    if exceeds(re, LARGE) or exceeds(im, LARGE):
        re, im, exponent = re * splat(SMALL), im * splat(SMALL), exponent + STEP
    store(value, ROW * row, re)
    store(value, ROW * row + V, im)
    vectors.exponent[row] = exponent


@njit
def _light_factor(vectors: Vectors, row: int, own: np.uint64, place: int, phases: FloatArray) -> None:
    """Set a row to 1 + √λ L of a child: its random phases."""
    at = ROW * row
    for word in range(WORDS):
        bits = mix64(own ^ (np.uint64(WORDS * place + word + 1) * SALTED))
        for j in range(at + 8 * word, at + 8 * word + 8):
            phase = 2 * np.int64(bits & U255)
            vectors.value[j] = 1.0 + phases[phase]
            vectors.value[j + V] = phases[phase + 1]
            bits >>= U8
    vectors.exponent[row] = 0


@njit
def _heavy_factor(
    vectors: Vectors, row: int, own: np.uint64, place: int, below: int, phases: FloatArray, shuffle: IntArray
) -> None:
    """Set a row to 1 + √λ F of a child: its random phases, times what is below it."""
    at, under = ROW * row, ROW * below
    one = power(vectors.exponent[below])
    for word in range(WORDS):
        bits = mix64(own ^ (np.uint64(WORDS * place + word + 1) * SALTED))
        for j in range(8 * word, 8 * word + 8):
            phase = 2 * np.int64(bits & U255)
            c, s = phases[phase], phases[phase + 1]
            re, im = vectors.value[under + shuffle[j]], vectors.value[under + V + shuffle[j]]
            vectors.value[at + j] = one + (c * re - s * im)
            vectors.value[at + V + j] = c * im + s * re
            bits >>= U8
    vectors.exponent[row] = vectors.exponent[below]


@njit
def _fill_following(heavy: int, last: int, slots: Any, vectors: Vectors) -> None:
    """Put what follows a heavy child behind double ones, if none of those is taken, where its factor was.

    That is H of the next slot times the light parts of the double children before, whose product runs
    along in the factor of the last heavy slot, which has no child.
    """
    factors = slots.size
    passed = False
    for slot in range(heavy, last):
        if passed:
            _times(vectors, factors + slot, factors + last, slot + 1)
            slots[slot].follows = factors + slot
        if slots[slot].twin >= 0:
            if not passed:
                _ones(vectors, factors + last)
            passed = True
            _times(vectors, factors + last, factors + last, factors + slots[slot].twin)


@njit
def following(row: int, turn: int, vectors: Vectors) -> Following:
    """Return what follows a child, from its row: complex numbers at two coordinates, and an exponent."""
    at, other, value = ROW * row + turn, ROW * row + (turn + 1) % V, vectors.value
    return value[at], value[at + V], value[other], value[other + V], vectors.exponent[row]


@njit
def following_taken(slot: int, taken: np.uint64, turn: int, slots: Any, vectors: Vectors) -> Following:
    """Return the same where double children are taken as heavy."""
    if slots[slot].light:
        first, last = slot + 1, slot + 1
        while slots[last].kid >= 0:
            last += 1
        x, xi, y, yi, exponent = 1.0, 0.0, 1.0, 0.0, 0
    else:
        first, last = slots[slot].origin, slot
        x, xi, y, yi, exponent = following(slot + 1, turn, vectors)
    for k in range(first, last):
        light = k if slots[k].light else slots[k].twin
        if light >= 0 and slots[k].bit & taken == U0:
            a, b, c, d, _ = following(slots.size + light, turn, vectors)
            x, xi = x * a - xi * b, x * b + xi * a
            y, yi = y * c - yi * d, y * d + yi * c
    return x, xi, y, yi, exponent
