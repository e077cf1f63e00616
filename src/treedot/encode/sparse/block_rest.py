"""What lies beyond the budget in blocks, compiled: for every prefix the sum of all its continuations.

With F(c) the sum of the vectors of all fragments rooted at a child c, seen from its parent, a node keeps the
products H[k] = ∏ (1 + √λ F(c)) over its children from the k-th in reading order on: whatever can follow what
is read of the others. A prefix is put together from the root's production and prefixes of some children, and
the last of them decides what can follow: what follows inside that child, times H behind it. So the sum of
all continuations, the *tail* of a prefix, is one product of two known numbers at each of the two coordinates
that a block shows (see ``rest_reference.block``).

Vectors are rows of sixteen real parts and sixteen imaginary ones, with one exponent for all: coordinates that
are 2^1000 times smaller than others, as hundreds of thousands of children can make them, become zero.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from treedot.algebra.splitmix import mix64
from treedot.encode.sparse.bounded import (
    GOLD,
    NOTHING,
    SALTED,
    Found,
    Sorted,
    clear,
    hash_productions,
    insert,
    key_of,
    make_found,
    make_sorted,
)
from treedot.encode.sparse.reference import BLOCK, COORDINATES, POSITIONS, TURN, circle, shuffles
from treedot.jit import njit
from treedot.simd import LANES, exceeds, load, splat, store
from treedot.types import FloatArray, IntArray, WordArray

V = COORDINATES
assert V == LANES
ROW = 2 * V
STEP = 400
SMALL = 2.0**-STEP  # by which vectors are scaled down,
LARGE = 2.0 ** (STEP - 2)  # if they exceed this: the product of two that do not, scaled, does not either
ROOT = -(2**30)  # the cost before the root's production: no budget is spent yet, wherever it stands
U8, U255 = np.uint64(8), np.uint64(255)
WORDS = V // 8

Following = tuple[float, float, float, float, int]

PREFIX = np.dtype(
    [
        ("hash", np.uint64),  # becomes the key when it is mixed
        ("cost", np.int32),
        ("before", np.int32),  # the cost without the last production
        ("productions", np.int32),
        ("tail", np.int32),
    ],
    align=True,
)

# The sum of all continuations, the empty one too, at the coordinates of a block.
TAIL = np.dtype(
    [
        ("x", np.float64),  # real and imaginary part of the first
        ("xi", np.float64),
        ("y", np.float64),  # and of the second
        ("yi", np.float64),
        ("exponent", np.int32),
        ("turn", np.int32),  # the first coordinate at the root
    ],
    align=True,
)


class Tables(NamedTuple):
    """What does not depend on the trees."""

    phases: FloatArray  # real and imaginary parts, times √λ
    shuffle: IntArray
    weight: FloatArray  # of a prefix by its productions


class Below(NamedTuple):
    """What stands below the nodes of one tree: H for every child that can be expanded, in reading order."""

    first: IntArray  # of every node, its first row; row 0 is for nodes with nothing to expand
    value: FloatArray
    exponent: IntArray
    factor: FloatArray  # 1 + √λ F of one child


class Room(NamedTuple):
    """Working memory for one tree at a time."""

    found: Found
    below: Below
    first: IntArray  # prefixes of every node
    last: IntArray
    prefixes: Any
    tails: Any
    open: IntArray  # the prefixes of the current node that can be extended
    cut: IntArray  # the prefixes whose cost exceeds the budget
    table: Sorted
    value: FloatArray


def make_tables(decay: float, budget: int, seed: int) -> Tables:
    """Return the tables of a spec."""
    weight = np.append(0.0, np.power(math.sqrt(decay), np.arange(budget + 2.0)))  # by productions
    phases = math.sqrt(decay) * circle().view(np.float64)
    return Tables(phases, shuffles(seed), weight / math.sqrt(BLOCK // 2))


def make_room(nodes: int, prefixes: int) -> Room:
    """Return room for trees of so many nodes and prefixes."""
    rows = 2 * nodes + 2
    below = Below(np.empty(nodes, np.int32), np.empty(rows * ROW), np.empty(rows, np.int64), np.empty(ROW))
    below.value[:V], below.value[V:ROW], below.exponent[0] = 1.0, 0.0, 0
    first, last = np.empty((2, nodes), np.int32)
    extendable, cut = np.empty((2, prefixes), np.int32)
    return Room(
        make_found(nodes, 1),
        below,
        first,
        last,
        np.recarray(prefixes, PREFIX),
        np.recarray(prefixes, TAIL),
        extendable,
        cut,
        make_sorted(prefixes),
        np.empty(prefixes * BLOCK),
    )


@njit
def _power(exponent: int) -> float:
    """Return 2^-exponent, 0 where it is that small."""
    return math.ldexp(1.0, -int(exponent)) if exponent > 0 else 1.0


@njit
def _fill_below(
    arity: IntArray, hash: WordArray, stack: IntArray, tables: Tables, below: Below,
) -> None:  # fmt: skip
    """Compute H of all nodes, from the last child in reading order, the first one, on."""
    height, end = 0, 1
    for node in range(arity.size):
        m = arity[node]
        height -= m
        inner = 0
        for i in range(height, height + m):
            inner += arity[stack[i]] > 0
        below.first[node] = 0
        if inner > 0:
            row = end + inner  # 1: nothing follows
            end = row + 1
            below.exponent[row] = 0
            store(below.value, ROW * row, splat(1.0))
            store(below.value, ROW * row + V, splat(0.0))
            for place in range(m):
                child = stack[height + place]
                if arity[child] > 0:
                    turned = tables.shuffle[place % POSITIONS]
                    _fill_factor(below, hash[child], place, below.first[child], tables.phases, turned)
                    row -= 1
                    _times_factor(below, row, below.exponent[below.first[child]])
            below.first[node] = row
        stack[height] = node
        height += 1


@njit
def _fill_factor(
    below: Below, own: np.uint64, place: int, row: int, phases: FloatArray, shuffle: IntArray
) -> None:
    """Compute 1 + √λ F of a child: its random phases, times what is below it."""
    under, one = ROW * row, _power(below.exponent[row])
    for word in range(WORDS):
        bits = mix64(own ^ (np.uint64(WORDS * place + word + 1) * SALTED))
        for j in range(8 * word, 8 * word + 8):
            phase = 2 * np.int64(bits & U255)
            c, s = phases[phase], phases[phase + 1]
            re, im = below.value[under + shuffle[j]], below.value[under + V + shuffle[j]]
            below.factor[j] = one + (c * re - s * im)
            below.factor[V + j] = c * im + s * re
            bits >>= U8


@njit
def _times_factor(below: Below, row: int, exponent: int) -> None:
    """Set a row to the next one times the factor, which has an exponent."""
    at = ROW * (row + 1)
    a, b = load(below.value, at), load(below.value, at + V)
    c, d = load(below.factor, 0), load(below.factor, V)
    re, im = a * c - b * d, a * d + b * c
    exponent += below.exponent[row + 1]
    if exceeds(re, LARGE) or exceeds(im, LARGE):
        re, im, exponent = re * splat(SMALL), im * splat(SMALL), exponent + STEP
    store(below.value, ROW * row, re)
    store(below.value, ROW * row + V, im)
    below.exponent[row] = exponent


@njit
def _following(row: int, turn: int, below: Below) -> Following:
    """Return what can follow, from its row: complex numbers at two coordinates, and an exponent."""
    at, other, value = ROW * row + turn, ROW * row + (turn + 1) % V, below.value
    return value[at], value[at + V], value[other], value[other + V], below.exponent[row]


@njit
def _set_tail(tail: Any, turn: int, follows: Following, inner: Following) -> None:
    """Set a tail to what follows the last child times what follows inside, scaled down if it is large."""
    x, xi, y, yi, exponent = follows
    a, b, c, d, inner_exponent = inner
    x, xi, y, yi = x * a - xi * b, x * b + xi * a, y * c - yi * d, y * d + yi * c
    exponent += inner_exponent
    size = abs(x) + abs(xi) + abs(y) + abs(yi)
    if size > LARGE:
        x, xi, y, yi, exponent = x * SMALL, xi * SMALL, y * SMALL, yi * SMALL, exponent + STEP
    tail.x, tail.xi, tail.y, tail.yi = x, xi, y, yi
    tail.exponent, tail.turn = exponent if size > 0.0 else 0, turn


@njit
def _find_prefixes(arity: IntArray, budget: int, room: Room) -> tuple[int, int]:
    """Find all prefixes of a tree and their tails; return how many are cut, -1 for no room, and the scale.

    The scale is the largest exponent of those.
    """
    stack, prefixes, tails, below = room.found.stack, room.prefixes, room.tails, room.below
    height, count, n_cut, scale, tail, limit = 0, 0, 0, 0, 0, prefixes.size
    for node in range(arity.size):
        m = arity[node]
        height -= m
        if m > 0:
            if count == limit:
                return -1, 0
            start, n_open = count, 1
            root = prefixes[count]
            root.hash, root.cost, root.before, root.productions = room.found.hash[node], 0, ROOT, 1
            _set_tail(tails[tail], 0, _following(below.first[node], 0, below), (1.0, 0.0, 1.0, 0.0, 0))
            root.tail, room.open[0] = tail, count
            count, tail = count + 1, tail + 1
            follows = below.first[node]
            for place in range(m - 1, -1, -1):
                child = stack[height + place]
                if arity[child] == 0:
                    continue
                follows += 1
                salt, waiting = np.uint64(place + 1) * GOLD, n_open
                for inner in range(room.first[child], room.last[child]):
                    part = prefixes[inner]
                    before = part.before + m
                    if before > budget:
                        continue
                    if count + waiting > limit:
                        return -1, 0
                    last = tails[part.tail]
                    turn = (last.turn + TURN) % V
                    inside = (last.x, last.xi, last.y, last.yi, last.exponent)
                    _set_tail(tails[tail], turn, _following(follows, turn, below), inside)
                    salted, added = mix64(part.hash + salt), part.cost + m
                    for k in range(waiting):
                        base = prefixes[room.open[k]]
                        if base.cost + before > budget:
                            continue
                        new = prefixes[count]
                        new.hash, new.tail = base.hash + salted, tail
                        new.cost, new.before = base.cost + added, base.cost + max(before, 0)
                        new.productions = base.productions + part.productions
                        if new.cost > budget:
                            room.cut[n_cut] = count
                            n_cut += 1
                            scale = max(scale, tails[tail].exponent)
                        else:
                            room.open[n_open] = count
                            n_open += 1
                        count += 1
                    tail += 1
            room.first[node], room.last[node] = start, count
        stack[height] = node
        height += 1
    return n_cut, scale


@njit
def encode(
    offsets: IntArray, arity: IntArray, label: IntArray, label_key: WordArray, tree: int,
    budget: int, shift: np.uint64, origin: int, tables: Tables, room: Room,
    indptr: IntArray, indices: IntArray, values: FloatArray, logarithms: FloatArray,
) -> tuple[int, bool]:  # fmt: skip
    """Write the blocks of trees from ``tree`` on; return the first not done, and if prefixes want room.

    The columns of a row are ``indices`` from ``indptr[t]`` to ``indptr[t + 1]``, counted from ``origin``
    on; its values are ``values`` times e to the power of ``logarithms[t]``.
    """
    while tree < offsets.size - 1:
        here = slice(offsets[tree], offsets[tree + 1])
        hash_productions(arity[here], label[here], label_key, room.found.stack, room.found.hash)
        _fill_below(arity[here], room.found.hash, room.found.stack, tables, room.below)
        n_cut, scale = _find_prefixes(arity[here], budget, room)
        start = indptr[tree]
        if n_cut < 0 or start + BLOCK * n_cut > values.size:
            return tree, n_cut < 0
        size = _write(n_cut, scale, shift, origin, tables, room, indices[start:], values[start:])
        logarithms[tree] = scale * math.log(2.0)
        indptr[tree + 1] = start + size
        tree += 1
    return tree, False


@njit
def _write(
    n_cut: int, scale: int, shift: np.uint64, origin: int, tables: Tables, room: Room,
    indices: IntArray, values: FloatArray,
) -> int:  # fmt: skip
    """Write the blocks of one row, over 2^scale; return how many values."""
    prefixes, tails, table, value = room.prefixes, room.tails, room.table, room.value
    first_bits, places = clear(table, n_cut)
    distinct = 0
    for k in range(n_cut):
        prefix = prefixes[room.cut[k]]
        key, tail = key_of(prefix.hash), tails[prefix.tail]
        number = insert(key, distinct, first_bits, table)
        at = BLOCK * number
        if number == distinct:
            value[at : at + BLOCK] = 0.0
            distinct += 1
        weight = tables.weight[prefix.productions] * _power(scale - tail.exponent)
        value[at] += weight * tail.x
        value[at + 1] += weight * tail.xi
        value[at + 2] += weight * tail.y
        value[at + 3] += weight * tail.yi
    size, last = 0, -1
    for place in range(places):
        key = table.key[place]
        if key == NOTHING:
            continue
        column = int(np.int64(key >> shift))
        if column != last:
            for j in range(BLOCK):
                indices[size + j], values[size + j] = origin + BLOCK * column + j, 0.0
            size, last = size + BLOCK, column
        sign = -1.0 if key & np.uint64(1) else 1.0
        for j in range(BLOCK):
            values[size - BLOCK + j] += sign * value[BLOCK * table.number[place] + j]
    return size
