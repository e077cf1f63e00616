"""Forest in, sparse rows out: every prefix of ``strata`` a number, its continuations a block.

A prefix is put together from the root's production and prefixes of some children, and the last of them
decides what its continuations are: what follows inside that child, times what follows it in the node's own
reading. So the sum of all continuations, the *tail* of a prefix, is one product of two known numbers at each
of the two coordinates that a block shows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.algebra.labels import GOLDEN, mix64
from treedot.encode.slots import (
    LARGE,
    SMALL,
    STEP,
    U0,
    Below,
    Following,
    V,
    fill_below,
    following,
    following_taken,
    power,
)
from treedot.encode.strata import BLOCK, GRID, TURN, circle, shuffles
from treedot.jit import njit

IntArray = npt.NDArray[np.signedinteger[Any]]
WordArray = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float64]

ROOT = -(2**30)  # the cost before the root's production: no budget is spent yet, wherever it stands
GOLD, SIGN, HALF = np.uint64(GOLDEN), np.uint64(63), np.uint64(32)

PREFIX = np.dtype(
    [
        ("key", np.uint64),
        ("taken", np.uint64),  # the bits of the double children that are heavy in it
        ("cost", np.int32),
        ("before", np.int32),  # the cost without the last production
        ("productions", np.int32),
        ("tail", np.int32),
        ("deep", np.bool_),  # something has to follow inside the last child
    ],
    align=True,
)

# The sum of all continuations, the empty one too unless the prefix is deep, at the coordinates of a block.
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
    number_weight: FloatArray  # of a prefix by its productions
    block_weight: FloatArray


class Rules(NamedTuple):
    """What a spec says."""

    budget: int
    normalize: bool
    numbers: int  # columns for numbers; blocks stand behind them
    blocks: int


class Room(NamedTuple):
    """Working memory for one tree at a time."""

    below: Below
    prefixes: Any
    tails: Any
    open: IntArray  # the prefixes of the current node that can be extended
    bucket: IntArray  # finds the values of a row by their columns; -1 where it is free
    value: FloatArray


def make_tables(decay: float, budget: int, seed: int) -> Tables:
    """Return the tables of a spec; weights of numbers lie on a grid, so that sums of them are exact."""
    weight = np.append(0.0, np.power(math.sqrt(decay), np.arange(budget + 2.0)))  # by productions
    phases = math.sqrt(decay) * circle().view(np.float64)
    return Tables(phases, shuffles(seed), np.round(weight * GRID) / GRID, weight / math.sqrt(BLOCK // 2))


def make_room(below: Below, prefixes: int) -> Room:
    """Return room for trees of so many prefixes."""
    return Room(
        below,
        np.recarray(prefixes, PREFIX),
        np.recarray(prefixes, TAIL),
        np.empty(prefixes, np.int32),
        np.empty(8 * prefixes, np.int32),
        np.empty(prefixes * (1 + BLOCK)),
    )


@njit
def encode(
    offsets: IntArray, arity: IntArray, label: IntArray, label_key: WordArray, tree: int,
    rules: Rules, tables: Tables, room: Room, limit: float,
    indptr: IntArray, indices: IntArray, values: npt.NDArray[Any],
) -> int:  # fmt: skip
    """Write the rows of trees from ``tree`` on; return the first tree that there is no room for.

    Row t is ``values`` at ``indices`` from ``indptr[t]`` to ``indptr[t + 1]``. A row that is too large for
    its type is empty, and its tree stops the work.
    """
    while tree < offsets.size - 1:
        here = slice(offsets[tree], offsets[tree + 1])
        fill_below(
            arity[here], label[here], label_key, rules.budget, tables.phases, tables.shuffle, room.below
        )
        count, cut, scale = _find_prefixes(offsets[tree + 1] - offsets[tree], rules.budget, room)
        start = indptr[tree]
        if count < 0 or start + count + BLOCK * cut > values.size:
            return tree
        size = _write_row(count, scale, rules, tables, room, indices[start:])
        if rules.normalize:
            largest, norm = 0.0, 0.0
            for k in range(size):
                largest = max(largest, abs(room.value[k]))
            for k in range(size):
                norm += (room.value[k] / largest) ** 2
            factor = 1.0 / largest / math.sqrt(norm) if largest > 0.0 else 0.0
        else:
            factor = math.ldexp(1.0, int(scale)) if scale < 1000 else math.inf
        fits = True
        for k in range(size):
            value = room.value[k] * factor
            values[start + k] = value
            fits &= abs(value) <= limit
        if not fits:
            indptr[tree + 1] = start
            return tree
        indptr[tree + 1] = start + size
        tree += 1
    return tree


@njit
def _find_prefixes(n: int, budget: int, room: Room) -> tuple[int, int, int]:
    """Find all prefixes of a tree and their tails.

    Return their number, -1 where they do not fit, how many are cut, and the largest exponent of those.
    """
    nodes, slots, vectors = room.below.nodes, room.below.slots, room.below.vectors
    prefixes, tails = room.prefixes, room.tails
    count, cut, scale, tail, limit = 0, 0, 0, -1, prefixes.size
    for node in range(n):
        m = nodes[node].arity
        if m == 0:
            continue
        if count == limit:
            return -1, 0, 0
        tail += 1
        _set_tail(tails[tail], 0, following(nodes[node].heavy, 0, vectors))
        root = prefixes[count]
        root.key, root.taken, root.cost, root.before = nodes[node].hash, U0, 0, ROOT
        root.productions, root.tail, root.deep = 1, tail, False
        nodes[node].first, room.open[0], n_open = count, count, 1
        count += 1
        for slot in range(nodes[node].heavy, nodes[node].end):
            here = slots[slot]
            if here.kid < 0:
                continue
            child, light, waiting = nodes[here.kid], here.light, n_open
            bit = U0 if light else here.bit
            barred = here.bit if light else U0  # a double child that is heavy cannot be light
            salt = np.uint64(here.place + 1) * GOLD
            for inner in range(child.first, child.first + 1 if light else child.last):
                part = prefixes[inner]
                before = part.before + m
                if before >= budget:
                    continue
                if count + waiting > limit:
                    return -1, 0, 0
                alone = inner == child.first and not light and here.twin >= 0
                deep = part.deep or alone
                key, cost, productions = mix64(part.key + salt), part.cost + m, part.productions
                turn = TURN if light else (tails[part.tail].turn + TURN) % V
                taken = ~U0  # by the prefix that made the last tail
                for k in range(waiting):
                    base = prefixes[room.open[k]]
                    spent = base.cost
                    if spent + before >= budget or base.taken & barred != U0:
                        continue
                    if base.taken != taken:
                        tail, taken = tail + 1, base.taken
                        if taken == U0:
                            follows = following(here.follows, turn, vectors)
                        else:
                            follows = following_taken(slot, taken, turn, slots, vectors)
                        if not light:
                            follows = _times(follows, tails[part.tail], alone)
                        _set_tail(tails[tail], turn, follows)
                    new = prefixes[count]
                    new.key, new.taken, new.tail, new.deep = base.key + key, taken | bit, tail, deep
                    new.cost, new.before = spent + cost, spent + max(before, 0)
                    new.productions = base.productions + productions
                    if spent + cost >= budget:
                        cut += 1
                        scale = max(scale, tails[tail].exponent)
                    elif not deep:
                        room.open[n_open] = count
                        n_open += 1
                    count += 1
        nodes[node].last = count
    return count, cut, scale


@njit
def _times(follows: Following, inner: Any, alone: bool) -> Following:
    """Multiply what follows the last child by the tail of its part.

    Where only the child's own production is taken, ``alone``, something has to follow inside.
    """
    x, xi, y, yi, exponent = follows
    without = power(inner.exponent) if alone else 0.0
    a, b, c, d = inner.x - without, inner.xi, inner.y - without, inner.yi
    return x * a - xi * b, x * b + xi * a, y * c - yi * d, y * d + yi * c, exponent + inner.exponent


@njit
def _set_tail(tail: Any, turn: int, value: Following) -> None:
    """Set a tail, scaled down if it is large."""
    x, xi, y, yi, exponent = value
    size = abs(x) + abs(xi) + abs(y) + abs(yi)
    if size > LARGE:
        x, xi, y, yi, exponent = x * SMALL, xi * SMALL, y * SMALL, yi * SMALL, exponent + STEP
    tail.x, tail.xi, tail.y, tail.yi = x, xi, y, yi
    tail.exponent, tail.turn = exponent if size > 0.0 else 0, turn


@njit
def _write_row(count: int, scale: int, rules: Rules, tables: Tables, room: Room, indices: IntArray) -> int:
    """Write the columns of one row, and its values over 2^scale; return how many."""
    prefixes, tails, value = room.prefixes, room.tails, room.value
    at, buckets = 0, 8
    while buckets < 4 * count:
        buckets *= 2
    bucket = room.bucket[:buckets]
    tiny = power(scale)
    bucket[:] = -1
    for k in range(count):
        prefix = prefixes[k]
        if not prefix.deep:
            word = mix64(prefix.key)
            column = np.int64(word & np.uint64(rules.numbers - 1))
            found = _place(column, column, bucket, indices, at)
            if found == at:
                indices[at], value[at] = column, 0.0
                at += 1
            value[found] += tables.number_weight[prefix.productions] * tiny * _sign(word)
    bucket[:] = -1
    for k in range(count):
        prefix = prefixes[k]
        if prefix.cost >= rules.budget:
            tail = tails[prefix.tail]
            empty = 0.0 if prefix.deep else power(tail.exponent)
            x, xi, y, yi = tail.x - empty, tail.xi, tail.y - empty, tail.yi
            if x == 0.0 and xi == 0.0 and y == 0.0 and yi == 0.0:
                continue  # nothing can follow
            word = mix64(prefix.key)
            number = np.int64(word >> HALF) & (rules.blocks - 1)
            column = rules.numbers + BLOCK * number
            found = _place(number, column, bucket, indices, at)
            if found == at:
                for j in range(BLOCK):
                    indices[at + j], value[at + j] = column + j, 0.0
                at += BLOCK
            weight = tables.block_weight[prefix.productions] * power(scale - tail.exponent) * _sign(word)
            value[found] += weight * x
            value[found + 1] += weight * xi
            value[found + 2] += weight * y
            value[found + 3] += weight * yi
    return at


@njit
def _sign(word: np.uint64) -> float:
    return 1.0 - 2.0 * np.int64(word >> SIGN)


@njit
def _place(hash: Any, column: Any, buckets: IntArray, indices: IntArray, at: int) -> Any:
    """Return where the row has a column; a new one gets the place ``at``."""
    bucket = hash & (buckets.size - 1)
    while buckets[bucket] >= 0:
        if indices[buckets[bucket]] == column:
            return buckets[bucket]
        bucket = (bucket + 1) & (buckets.size - 1)
    buckets[bucket] = at
    return at
