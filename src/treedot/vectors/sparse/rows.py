"""Write the bounded fragments of a tree as one sparse row, with hashed or learned columns.

The value of a fragment f that occurs c(f) times and has p(f) productions is √λ^(p(f) - 1) g(c(f)) w(f), where
g is the damping and w a weight, by default 1. A hashed column is the first bits of the fragment's key, and
the last bit gives the sign: the values of colliding fragments are added with random signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, Row, WordArray
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot.errors import ParameterError
from treedot.parameters import DAMPINGS
from treedot.vectors import chunks
from treedot.vectors.sparse import bounded
from treedot.vectors.spec import SparseSpec

UNBOUNDED = 2**30 - 1  # means no budget; the sum of two costs still fits into 32 bits
MOST_PRODUCTIONS = 4096  # in a fragment; a tree with a larger one has too many fragments to list
TABLED = 64  # counts below this have a table of damped values


class LearnedColumns(NamedTuple):
    """Columns learned from other trees: sorted keys, their weights, and the weight of all other keys.

    A key identifies a fragment that has a column. For hashed columns, the first bits of a key are the number
    of the column.
    """

    key: WordArray
    start: IntArray  # for each value of the first bits, the index of the first such key
    shift: np.uint64
    weight: FloatArray
    other: float

    @classmethod
    def make(cls, key: WordArray, weight: FloatArray | None = None, other: float = 1.0) -> Self:
        """Return learned columns for sorted keys, with an index of their first bits."""
        bits = max(1, int(key.size).bit_length())
        limits = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        start = np.append(np.searchsorted(key, limits), key.size)
        weight = np.ones(key.size) if weight is None else np.ascontiguousarray(weight, np.float64)
        if weight.shape != key.shape:
            raise ParameterError(f"got {weight.size} weights for {key.size} columns")
        return cls(np.ascontiguousarray(key), start, np.uint64(64 - bits), weight, float(other))


class Rules(NamedTuple):
    """The settings of a spec in the form that compiled code needs."""

    budget: int
    normalize: bool
    mask: np.uint64  # the bits of a key that determine its column; all bits for a dictionary
    shift: np.uint64  # shifts a key right to its column
    learned: bool  # whether keys are looked up, for their columns, their weights or both
    dictionary: bool  # whether columns are looked up
    limit: float  # the largest value of the number type
    weight: FloatArray  # the weight of a fragment, by its number of productions
    damped: FloatArray  # g of small counts
    damping: int  # the index of g in DAMPINGS

    @classmethod
    def make(cls, spec: SparseSpec, learned: bool, normalize: bool) -> Self:
        """Return the rules of a spec."""
        budget = UNBOUNDED if spec.budget is None else spec.budget
        shift = spec.shift
        productions = np.arange(min(budget, MOST_PRODUCTIONS) + 2.0)
        damping = DAMPINGS.index(spec.damping)
        return cls(
            budget,
            normalize,
            np.uint64((2**64 - 1) >> shift << shift),
            np.uint64(shift),
            learned,
            spec.n_features is None,
            float(np.finfo(spec.dtype).max),
            np.power(math.sqrt(spec.decay), np.maximum(productions - 1.0, 0.0)),
            np.array([damped(count, damping) for count in range(TABLED)]),
            damping,
        )


class RowMemory(NamedTuple):
    """Working memory for the fragments of one tree at a time."""

    found: bounded.FoundFragments
    table: bounded.SortedKeys
    occurrences: IntArray  # the count of every distinct fragment, at the number of its first occurrence
    value: FloatArray

    @classmethod
    def make(cls, nodes: int, fragments: int) -> Self:
        """Return memory for trees of at most ``nodes`` nodes and ``fragments`` bounded fragments."""
        found, table = bounded.FoundFragments.make(nodes, fragments), bounded.SortedKeys.make(fragments)
        return cls(found, table, np.empty(fragments, np.int32), np.empty(fragments))

    @property
    def nodes(self) -> int:
        """The most nodes that a tree may have."""
        return self.found.stack.size

    @property
    def fragments(self) -> int:
        """The most fragments that a tree may have."""
        return self.value.size


@njit_borrowing
def write_rows(
    trees: chunks.TreeArrays, tree: int, rules: Rules, learned: LearnedColumns, memory: RowMemory,
    out: chunks.NonZeros, indptr: IntArray, squares: FloatArray,
) -> chunks.Ended:  # fmt: skip
    """Write the rows of the trees from ``tree`` on.

    Row t is written to ``out`` from ``indptr[t]`` to ``indptr[t + 1]``. ``squares[t]`` becomes the sum of the
    squares of the values of all its fragments, including those without a column.
    """
    offsets, arity, label, label_key = trees
    indices, values = out
    found, table, occurrences, value = memory
    while tree < offsets.size - 1:
        here = slice(offsets[tree], offsets[tree + 1])
        family = arity[here]
        bounded.hash_productions(family, label[here], label_key, found.stack, found.hash)
        complete, count = bounded.find_fragments(family, rules.budget, found)
        if not complete:
            return tree, chunks.NEEDS_MEMORY
        start = indptr[tree]
        if start + count > values.size:
            return tree, chunks.NEEDS_OUTPUT
        buckets = _count_distinct(found.sum, count, table, occurrences)
        size, square = _write_row(
            buckets, rules, learned, table, found.productions, occurrences, value, indices[start:]
        )
        if not math.isfinite(square):
            return tree, chunks.NOT_FINITE
        factor = 1.0 / math.sqrt(square) if rules.normalize and square > 0.0 else 1.0
        for k in range(size):
            scaled = value[k] * factor
            if not abs(scaled) <= rules.limit:
                return tree, chunks.TOO_LARGE
            values[start + k] = scaled
        squares[tree] = square
        indptr[tree + 1] = start + size
        tree += 1
    return tree, chunks.ALL_DONE


@njit_inside
def _count_distinct(sums: WordArray, count: int, table: bounded.SortedKeys, occurrences: IntArray) -> int:
    """Sort the fragments of a tree and count the occurrences of each; return the size of the sorted table."""
    shift, buckets = bounded.clear_keys(table, count)
    for k in range(count):
        number = bounded.insert_key(bounded.key_of(sums[k]), k, shift, table)
        if number == k:
            occurrences[k] = 0
        occurrences[number] += 1
    return buckets


@njit_inside
def _write_row(
    buckets: int, rules: Rules, learned: LearnedColumns, table: bounded.SortedKeys, productions: IntArray,
    occurrences: IntArray, values: FloatArray, indices: IntArray,
) -> tuple[int, float]:  # fmt: skip
    """Write the columns and values of one row; return their number, and the sum of squares of all values."""
    size, square, last = 0, 0.0, -1
    column: Any
    for bucket in range(buckets):
        key = table.key[bucket]
        if key == bounded.FREE:
            continue
        number = table.number[bucket]
        count = occurrences[number]
        value = rules.damped[count] if count < TABLED else damped(count, rules.damping)
        value *= rules.weight[productions[number]]
        column, has_column = np.int64(key >> rules.shift), True
        if rules.learned:
            known, rank = _find_key(key & rules.mask, learned)
            value *= learned.weight[rank] if known else learned.other
            if rules.dictionary:
                column, has_column = rank, known
        square += value * value
        if not has_column:
            continue
        if not rules.dictionary and key & bounded.ONE:
            value = -value
        if column == last:
            values[size - 1] += value
        else:
            indices[size], values[size], last = column, value, column
            size += 1
    return size, square


@njit_inside
def damped(count: int, damping: int) -> float:
    """Return g(count); ``damping`` is the index of g in DAMPINGS."""
    if damping == 0:
        return float(count)
    return math.sqrt(count) if damping == 1 else math.log1p(count)


@njit_inside
def _find_key(key: np.uint64, learned: LearnedColumns) -> tuple[bool, int]:
    """Return whether a key was learned, and its index in the learned keys."""
    bucket = np.int64(key >> learned.shift)
    for k in range(learned.start[bucket], learned.start[bucket + 1]):
        if learned.key[k] == key:
            return True, k
    return False, 0


def sums_of_squares(lengths: IntArray, values: Row) -> FloatArray:
    """Return the sum of squares of each row; ``lengths`` holds the number of values of each row."""
    sums = np.zeros(lengths.size)
    _sum_squares(lengths, values, sums)
    return sums


@njit_borrowing
def _sum_squares(lengths: IntArray, values: Row, sums: FloatArray) -> None:
    at = 0
    for row in range(lengths.size):
        for k in range(at, at + lengths[row]):
            sums[row] += np.float64(values[k]) * np.float64(values[k])
        at += lengths[row]


class Part(NamedTuple):
    """The left or right part of some rows, as in ``chunks.Rows``, and a factor for each row.

    If ``indices`` is empty, the columns of every row are consecutive, starting at ``origin``.
    """

    lengths: IntArray
    indices: IntArray
    values: Row
    factor: FloatArray
    origin: int = 0


@njit_borrowing
def join_parts(left: Part, right: Part, limit: float, indices: IntArray, values: Row) -> int:
    """Write rows that consist of two parts; return the first row with a value above the limit."""
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
    return left.lengths.size


def _is_finite(part: Part, row: int) -> bool:
    """Return whether the values of a row are finite and its factor is not NaN; it may be infinite."""
    end = part.lengths[: row + 1].sum()
    values = part.values[end - part.lengths[row] : end]
    return bool(np.isfinite(values).all()) and not math.isnan(part.factor[row])


class RowsWithRest(NamedTuple):
    """Rows of bounded fragments with their rests; ``write`` joins them."""

    left: Part
    right: Part
    limit: float  # the largest value of the number type
    refused: Callable[[int, int], Exception]  # returns the error for a row and a reason

    @property
    def lengths(self) -> IntArray:
        """The number of non-zeros of each row."""
        return self.left.lengths + self.right.lengths

    def write(self, indices: IntArray, values: Row) -> None:
        """Write the columns and values to a part of a matrix; raise if a value is too large."""
        row = join_parts(self.left, self.right, self.limit, indices, values)
        if row < self.left.lengths.size:
            finite = _is_finite(self.left, row) and _is_finite(self.right, row)
            raise self.refused(row, chunks.TOO_LARGE if finite else chunks.NOT_FINITE)
