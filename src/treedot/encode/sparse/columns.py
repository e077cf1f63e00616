"""From the bounded fragments of a tree to one sparse row: hashed columns, or those of a dictionary."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.encode.sparse.bounded import (
    NOTHING,
    Found,
    Sorted,
    clear,
    find,
    hash_productions,
    insert,
    key_of,
    make_found,
    make_sorted,
)
from treedot.encode.spec import MAX_BUDGET, SparseSpec
from treedot.errors import ParameterError
from treedot.jit import njit
from treedot.parameters import DAMPINGS
from treedot.types import FloatArray, IntArray, WordArray

MOST_PRODUCTIONS = 4096  # of a fragment: a tree with a larger one has too many fragments to list
TABLED = 64  # counts whose damped values are looked up

# Why a run over trees ended.
DONE, MORE_FRAGMENTS, MORE_VALUES, TOO_LARGE = 0, 1, 2, 3


class Known(NamedTuple):
    """Sorted keys, found by their first bits, with a weight each; and the weight of all others."""

    key: WordArray
    start: IntArray  # where the keys with each value of the first bits begin
    shift: np.uint64
    weight: FloatArray
    other: float

    @classmethod
    def make(cls, key: WordArray, weight: FloatArray | None = None, other: float = 1.0) -> Known:
        """Index sorted keys."""
        bits = max(1, int(key.size).bit_length())
        limits = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        start = np.append(np.searchsorted(key, limits), key.size)
        weight = np.ones(key.size) if weight is None else np.ascontiguousarray(weight, np.float64)
        if weight.shape != key.shape:
            raise ParameterError(f"there are {weight.size} weights for {key.size} columns")
        return cls(np.ascontiguousarray(key), start, np.uint64(64 - bits), weight, float(other))


class Rules(NamedTuple):
    """What a spec says, as compiled code wants it."""

    budget: int
    normalize: bool
    mask: np.uint64  # the bits of a key that make its column, all for a dictionary
    shift: np.uint64  # from there to the column
    looked_up: bool  # whether keys are known from a fit: for their columns, their weights or both
    dictionary: bool
    limit: float  # the largest value
    weight: FloatArray  # of a fragment, by its productions
    damped: FloatArray  # g of small counts
    damping: int  # the number of g


class Room(NamedTuple):
    """Working memory for one tree at a time."""

    found: Found
    table: Sorted
    occurrences: IntArray  # of every distinct fragment, by its number
    first: IntArray  # where it was found first
    value: FloatArray


def make_rules(spec: SparseSpec, looked_up: bool, normalize: bool) -> Rules:
    """Return the rules of a spec."""
    budget = MAX_BUDGET if spec.budget is None else spec.budget
    shift = spec.shift
    productions = np.arange(min(budget, MOST_PRODUCTIONS) + 2.0)
    damping = DAMPINGS.index(spec.damping)
    return Rules(
        budget,
        normalize,
        np.uint64((2**64 - 1) >> shift << shift),
        np.uint64(shift),
        looked_up,
        spec.n_features is None,
        float(np.finfo(spec.dtype).max),
        np.power(math.sqrt(spec.decay), np.maximum(productions - 1.0, 0.0)),
        np.array([damped(count, damping) for count in range(TABLED)]),
        damping,
    )


def make_room(nodes: int, fragments: int) -> Room:
    """Return room for trees of so many nodes and bounded fragments."""
    occurrences, first = np.empty((2, fragments), np.int32)
    return Room(make_found(nodes, fragments), make_sorted(fragments), occurrences, first, np.empty(fragments))


@njit
def encode(
    offsets: IntArray, arity: IntArray, label: IntArray, label_key: WordArray, tree: int,
    rules: Rules, known: Known, room: Room,
    indptr: IntArray, indices: IntArray, values: npt.NDArray[Any], squares: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Write the rows of trees from ``tree`` on; return the first tree that is not done, and why.

    Row t is ``values`` at ``indices`` from ``indptr[t]`` to ``indptr[t + 1]``, and ``squares[t]`` the sum of
    the squares of all its fragments' values, also of those that have no column.
    """
    while tree < offsets.size - 1:
        here = slice(offsets[tree], offsets[tree + 1])
        hash_productions(arity[here], label[here], label_key, room.found.stack, room.found.hash)
        count = find(arity[here], rules.budget, room.found)
        if count < 0:
            return tree, MORE_FRAGMENTS
        start = indptr[tree]
        if start + count > values.size:
            return tree, MORE_VALUES
        size, square = _write(count, rules, known, room, indices[start:])
        factor = 1.0 / math.sqrt(square) if rules.normalize and square > 0.0 else 1.0
        for k in range(size):
            value = room.value[k] * factor
            if not abs(value) <= rules.limit:
                return tree, TOO_LARGE
            values[start + k] = value
        squares[tree] = square
        indptr[tree + 1] = start + size
        tree += 1
    return tree, DONE


@njit
def _write(count: int, rules: Rules, known: Known, room: Room, indices: IntArray) -> tuple[int, float]:
    """Write the columns of one row and its values; return how many, and the sum of all squares."""
    table, value = room.table, room.value
    shift, places = clear(table, count)
    distinct = 0
    for k in range(count):
        which = insert(key_of(room.found.sum[k]), distinct, shift, table)
        if which == distinct:
            room.occurrences[which], room.first[which] = 0, k
            distinct += 1
        room.occurrences[which] += 1
    at, square, last = -1, 0.0, -1
    for place in range(places):
        key = table.key[place]
        if key == NOTHING:
            continue
        which = table.number[place]
        number = rules.weight[room.found.productions[room.first[which]]] * _counted(
            room.occurrences[which], rules
        )
        column = int(np.int64(key >> rules.shift))
        if rules.looked_up:
            position = _position(key & rules.mask, known)
            number *= known.weight[position] if position >= 0 else known.other
            column = position if rules.dictionary else column
        square += number * number
        if column < 0:
            continue
        if not rules.dictionary and key & np.uint64(1):
            number = -number
        if column == last:
            value[at] += number
        else:
            at += 1
            indices[at], value[at], last = column, number, column
    return at + 1, square


@njit
def damped(count: int, damping: int) -> float:
    """Return g(count), for the number of g among DAMPINGS."""
    if damping == 0:
        return float(count)
    return math.sqrt(count) if damping == 1 else math.log1p(count)


@njit
def _counted(count: int, rules: Rules) -> float:
    return rules.damped[count] if count < TABLED else damped(count, rules.damping)


@njit
def _position(key: np.uint64, known: Known) -> int:
    """Return where a key stands among the known ones, or -1."""
    bucket = np.int64(key >> known.shift)
    for k in range(known.start[bucket], known.start[bucket + 1]):
        if known.key[k] == key:
            return k
    return -1


class Part(NamedTuple):
    """Part of some rows: how many values each row has, their columns, the values, and each row's factor.

    Without columns, those of every row are neighbours, from ``origin`` on.
    """

    lengths: IntArray
    indices: IntArray
    values: npt.NDArray[Any]
    factor: FloatArray
    origin: int = 0


@njit
def join(left: Part, right: Part, limit: float, indices: IntArray, values: npt.NDArray[Any]) -> int:
    """Write rows that begin with one part and end with another; return the first too large one, or -1."""
    at, a, b = 0, 0, 0
    for row in range(left.lengths.size):
        fits = True
        for _ in range(left.lengths[row]):
            value = left.values[a] * left.factor[row]
            fits &= abs(value) <= limit
            indices[at], values[at] = left.indices[a], value
            at, a = at + 1, a + 1
        for k in range(right.lengths[row]):
            value = right.values[b] * right.factor[row]
            fits &= abs(value) <= limit
            indices[at] = right.indices[b] if right.indices.size else right.origin + k
            values[at] = value
            at, b = at + 1, b + 1
        if not fits:
            return row
    return -1
