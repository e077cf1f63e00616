"""The rest of a row in blocks of columns, compiled: for each prefix, the sum of its continuations.

``reference.block`` defines the block of a fragment: its productions are read depth-first, from the last
expanded child to the first, until their cost exceeds the budget. The productions read so far are its
*prefix*, which determines the block; the others, its *continuation*, become a product of random phases.

Let F(c) be the sum, over all fragments rooted at a child c, of the phases of their productions. A node keeps
the products H[k] = ∏ (1 + √λ F(c)) over its children from the k-th in reading order on: the sum of everything
that can follow after the first k children. A prefix consists of the root's production and prefixes of some
children. The last of these children determines what can follow: the continuations inside that child, times
H after it. So the sum of all continuations, the *tail* of a prefix, is one product of two known numbers at
each of the two coordinates of a block.

The tree ``(S (A a) (B (C c)))`` has four productions, S, A, B and C, and with a budget of 2 three fragments
beyond it. They are read in the order S, B, C, A:

    ====================  ====  ==================  ============
    fragment              cost  prefix              continuation
    ====================  ====  ==================  ============
    (S A (B (C c)))       3     S B C               nothing
    (S (A a) (B C))       4     S B A               nothing
    (S (A a) (B (C c)))   5     S B C               A
    ====================  ====  ==================  ============

C and A have no children to expand, so F(C) = u(C) and F(A) = u(A), their phases, and F(B) is the phases of B
times 1 + √λ F(C). The children of S are read in the order B, A; the only child of B is C:

    H_B = [1 + √λ F(C), 1]
    H_S = [(1 + √λ F(B)) (1 + √λ F(A)), 1 + √λ F(A), 1]

The prefixes rooted at S, with their costs and tails; the tail of the single production is H[0]:

    =======  ====  =============================  =============================================
    prefix   cost  tail
    =======  ====  =============================  =============================================
    S        0     H_S[0]                         within the budget
    S B      2     H_B[0] H_S[1]                  within the budget
    S B C    3     H_B[1] H_S[1] = 1 + √λ u(A)    cut: block of the first and third fragment
    S A      2     H_S[2] = 1                     within the budget
    S B A    4     H_S[2] = 1                     cut: block of the second fragment
    =======  ====  =============================  =============================================

A prefix within the budget can be extended; as a fragment it has its own column. A prefix that is cut is not
extended; its block is its tail times √λ^(productions - 1), here λ, over √2, so that the two complex numbers
of a fragment have length 1. S B and S B C extend S by the prefixes B and B C, which are found first.

Vectors are rows of sixteen real parts and sixteen imaginary ones, with one exponent for all. Coordinates that
are 2^1000 times smaller than others become zero; this takes hundreds of thousands of children.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, Row, WordArray
from treedot._runtime.hashing import mix64
from treedot._runtime.jit import inlined, njit_borrowing, njit_inside
from treedot._runtime.simd import LANES, exceeds, load, splat, store
from treedot.vectors.chunks import ALL_DONE, NEEDS_MEMORY, NEEDS_OUTPUT, Ended, NonZeros, TreeArrays
from treedot.vectors.sparse import bounded
from treedot.vectors.sparse.reference import BLOCK, COORDINATES, POSITIONS, TURN, circle, shuffles

V = COORDINATES
assert V == LANES
ROW = 2 * V
STEP = 400
LARGE = 2.0 ** (STEP - 2)  # larger vectors are multiplied by SMALL; then products do not exceed it either
SMALL = 2.0**-STEP
ROOT = -(2**30)  # the cost before the root's production: within any budget, at any position
U8, U255 = np.uint64(8), np.uint64(255)
WORDS = V // 8

# Complex numbers at two coordinates, real and imaginary parts, and an exponent.
Following = tuple[float, float, float, float, int]

PREFIX = np.dtype(
    [
        ("hash", np.uint64),  # ``key_of`` makes it a key
        ("cost", np.int32),
        ("before", np.int32),  # the cost without the last production
        ("productions", np.int32),
        ("tail", np.int32),
    ],
    align=True,
)

# The sum of all continuations, including the empty one, at the coordinates of a block.
TAIL = np.dtype(
    [
        ("x", np.float64),  # real and imaginary part at the first coordinate
        ("xi", np.float64),
        ("y", np.float64),  # and at the second
        ("yi", np.float64),
        ("exponent", np.int32),
        ("turn", np.int32),  # the first coordinate at the root
    ],
    align=True,
)


class Tables(NamedTuple):
    """Constants for all trees."""

    phases: FloatArray  # real and imaginary parts, times √λ
    shuffle: IntArray
    weight: FloatArray  # the weight of a prefix, by its number of productions


class Below(NamedTuple):
    """The products H of the nodes of one tree: one for every child that can be expanded, in reading order."""

    first: IntArray  # for every node, its first row; row 0 is for nodes with no child to expand
    value: FloatArray
    exponent: IntArray
    factor: FloatArray  # 1 + √λ F of one child


class BlockMemory(NamedTuple):
    """Working memory for the prefixes of one tree at a time."""

    stack: IntArray  # nodes that wait for their parents
    hash: WordArray  # the hash of every node's production
    below: Below
    first: IntArray  # the prefixes of every node are first … last - 1
    last: IntArray
    prefixes: Any
    tails: Any
    open: IntArray  # the prefixes of the current node that can be extended
    cut: IntArray  # the prefixes whose cost exceeds the budget
    table: bounded.SortedKeys
    value: FloatArray

    @classmethod
    def make(cls, nodes: int, fragments: int) -> Self:
        """Return memory for trees of at most ``nodes`` nodes and ``fragments`` prefixes."""
        rows = 2 * nodes + 2
        below = Below(
            np.empty(nodes, np.int32), np.empty(rows * ROW), np.empty(rows, np.int64), np.empty(ROW)
        )
        below.value[:V], below.value[V:ROW], below.exponent[0] = 1.0, 0.0, 0
        stack, first, last = np.empty((3, nodes), np.int32)
        extendable, cut = np.empty((2, fragments), np.int32)
        return cls(
            stack,
            np.empty(nodes, np.uint64),
            below,
            first,
            last,
            np.recarray(fragments, PREFIX),
            np.recarray(fragments, TAIL),
            extendable,
            cut,
            bounded.SortedKeys.make(fragments),
            np.empty(fragments * BLOCK),
        )

    @property
    def nodes(self) -> int:
        """The most nodes that a tree may have."""
        return self.stack.size

    @property
    def fragments(self) -> int:
        """The most prefixes that a tree may have."""
        return int(self.prefixes.size)


class CutPrefixes(NamedTuple):
    """The number of prefixes that are cut, and their largest exponent; incomplete if memory was too small."""

    complete: bool
    n_cut: int
    exponent: int


def make_tables(decay: float, budget: int, seed: int) -> Tables:
    """Return the tables of a spec."""
    weight = np.append(0.0, np.power(math.sqrt(decay), np.arange(budget + 2.0)))
    phases = math.sqrt(decay) * circle().view(np.float64)
    return Tables(phases, shuffles(seed), weight / math.sqrt(BLOCK // 2))


@njit_inside
def _power(exponent: int) -> float:
    """Return 2^-exponent, or 0 if it is too small."""
    return math.ldexp(1.0, -int(exponent)) if exponent > 0 else 1.0


@njit_inside
def _fill_below(
    arity: IntArray, hash: WordArray, stack: IntArray, tables: Tables, below: Below,
) -> None:  # fmt: skip
    """Compute H of all nodes, starting at the last child in reading order, which is the leftmost."""
    height, end = 0, 1
    for node in range(arity.size):
        m = arity[node]
        height -= m
        inner = 0
        for i in range(height, height + m):
            inner += arity[stack[i]] > 0
        below.first[node] = 0
        if inner > 0:
            row = end + inner  # the row of the last H, which is 1: nothing follows
            end = row + 1
            below.exponent[row] = 0
            store(below.value, ROW * row, splat(1.0))
            store(below.value, ROW * row + V, splat(0.0))
            for position in range(m):
                child = stack[height + position]
                if arity[child] > 0:
                    turned = tables.shuffle[position % POSITIONS]
                    _fill_factor(below, hash[child], position, below.first[child], tables.phases, turned)
                    row -= 1
                    _times_factor(below, row, below.exponent[below.first[child]])
            below.first[node] = row
        stack[height] = node
        height += 1


@njit_inside
def _fill_factor(
    below: Below, own: np.uint64, position: int, row: int, phases: FloatArray, shuffle: IntArray
) -> None:
    """Compute 1 + √λ F of a child; F is its random phases times its first H, in ``row``."""
    under, one = ROW * row, _power(below.exponent[row])
    for word in range(WORDS):
        bits = mix64(own ^ (np.uint64(WORDS * position + word + 1) * bounded.SALTED))
        for j in range(8 * word, 8 * word + 8):
            phase = 2 * np.int64(bits & U255)
            c, s = phases[phase], phases[phase + 1]
            re, im = below.value[under + shuffle[j]], below.value[under + V + shuffle[j]]
            below.factor[j] = one + (c * re - s * im)
            below.factor[V + j] = c * im + s * re
            bits >>= U8


@njit_inside
def _times_factor(below: Below, row: int, exponent: int) -> None:
    """Set a row to the next row times the factor, whose exponent is ``exponent``."""
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


@njit_inside
def _following(row: int, turn: int, below: Below) -> Following:
    """Return H in a row: complex numbers at two coordinates, from ``turn`` on, and an exponent."""
    at, other, value = ROW * row + turn, ROW * row + (turn + 1) % V, below.value
    return value[at], value[at + V], value[other], value[other + V], below.exponent[row]


@njit_inside
def _set_tail(tail: Any, turn: int, follows: Following, inner: Following) -> None:
    """Set a tail to the continuations after the last child times those inside it, scaled down if large."""
    x, xi, y, yi, exponent = follows
    a, b, c, d, inner_exponent = inner
    x, xi, y, yi = x * a - xi * b, x * b + xi * a, y * c - yi * d, y * d + yi * c
    exponent += inner_exponent
    size = abs(x) + abs(xi) + abs(y) + abs(yi)
    if size > LARGE:
        x, xi, y, yi, exponent = x * SMALL, xi * SMALL, y * SMALL, yi * SMALL, exponent + STEP
    tail.x, tail.xi, tail.y, tail.yi = x, xi, y, yi
    tail.exponent, tail.turn = exponent if size > 0.0 else 0, turn


@njit_inside
def _find_prefixes(arity: IntArray, budget: int, memory: BlockMemory) -> CutPrefixes:
    """Find all prefixes of a tree, with their tails."""
    stack, prefixes, tails, below = memory.stack, memory.prefixes, memory.tails, memory.below
    height, count, n_cut, exponent, tail, limit = 0, 0, 0, 0, 0, prefixes.size
    for node in range(arity.size):
        m = arity[node]
        height -= m
        if m > 0:
            if count == limit:
                return CutPrefixes(False, n_cut, exponent)
            start, n_open = count, 1
            root = prefixes[count]
            root.hash, root.cost, root.before, root.productions = memory.hash[node], 0, ROOT, 1
            _set_tail(tails[tail], 0, _following(below.first[node], 0, below), (1.0, 0.0, 1.0, 0.0, 0))
            root.tail, memory.open[0] = tail, count
            count, tail = count + 1, tail + 1
            follows = below.first[node]
            for position in range(m - 1, -1, -1):
                child = stack[height + position]
                if arity[child] == 0:
                    continue
                follows += 1
                waiting = n_open
                for inner in range(memory.first[child], memory.last[child]):
                    part = prefixes[inner]
                    if part.before + m > budget:
                        continue
                    if count + waiting > limit:
                        return CutPrefixes(False, n_cut, exponent)
                    _extend_tail(tails[tail], tails[part.tail], follows, below)
                    before = n_cut
                    count, n_open, n_cut = _extend(
                        waiting, part, position, m, tail, budget, count, n_open, n_cut, memory
                    )
                    if n_cut > before:
                        exponent = max(exponent, tails[tail].exponent)
                    tail += 1
            memory.first[node], memory.last[node] = start, count
        stack[height] = node
        height += 1
    return CutPrefixes(True, n_cut, exponent)


@inlined
def _extend_tail(tail: Any, inner: Any, follows: int, below: Below) -> None:
    """Set the tail of prefixes that end with a child's prefix: the tail of the latter times H after it."""
    turn = (inner.turn + TURN) % V
    inside = (inner.x, inner.xi, inner.y, inner.yi, inner.exponent)
    _set_tail(tail, turn, _following(follows, turn, below), inside)


@inlined
def _extend(
    waiting: int, part: Any, position: int, m: int, tail: int, budget: int,
    count: int, n_open: int, n_cut: int, memory: BlockMemory,
) -> tuple[int, int, int]:  # fmt: skip
    """Extend the first ``waiting`` open prefixes by a prefix of one of m children, if the budget allows.

    Return the new numbers of all prefixes, of the open and of the cut ones.
    """
    salted = mix64(part.hash + np.uint64(position + 1) * bounded.GOLD)
    before, cost = part.before + m, part.cost + m
    for k in range(waiting):
        base = memory.prefixes[memory.open[k]]
        if base.cost + before > budget:
            continue
        new = memory.prefixes[count]
        new.hash, new.tail = base.hash + salted, tail
        new.cost, new.before = base.cost + cost, base.cost + max(before, 0)
        new.productions = base.productions + part.productions
        if new.cost > budget:
            memory.cut[n_cut] = count
            n_cut += 1
        else:
            memory.open[n_open] = count
            n_open += 1
        count += 1
    return count, n_open, n_cut


@njit_borrowing
def encode(
    trees: TreeArrays, tree: int, budget: int, shift: np.uint64, origin: int, tables: Tables,
    memory: BlockMemory, out: NonZeros, indptr: IntArray, log_factors: FloatArray, squares: FloatArray,
) -> Ended:  # fmt: skip
    """Write the blocks of the trees from ``tree`` on.

    Those of tree t are written to ``out`` from ``indptr[t]`` to ``indptr[t + 1]``, with columns starting at
    ``origin``. ``squares[t]`` becomes the sum of squares of the values; the factor of the values is
    ``exp(log_factors[t])``.
    """
    offsets, arity, label, label_key = trees
    indices, values = out
    while tree < offsets.size - 1:
        here = slice(offsets[tree], offsets[tree + 1])
        bounded.hash_productions(arity[here], label[here], label_key, memory.stack, memory.hash)
        _fill_below(arity[here], memory.hash, memory.stack, tables, memory.below)
        complete, n_cut, exponent = _find_prefixes(arity[here], budget, memory)
        if not complete:
            return tree, NEEDS_MEMORY
        start = indptr[tree]
        if start + BLOCK * n_cut > values.size:
            return tree, NEEDS_OUTPUT
        buckets = _sum_blocks(n_cut, exponent, tables, memory)
        size = _write_blocks(buckets, shift, origin, memory, indices[start:], values[start:])
        log_factors[tree] = exponent * math.log(2.0)
        squares[tree] = 0.0
        for k in range(start, start + size):
            squares[tree] += values[k] * values[k]
        indptr[tree + 1] = start + size
        tree += 1
    return tree, ALL_DONE


@njit_inside
def _sum_blocks(n_cut: int, exponent: int, tables: Tables, memory: BlockMemory) -> int:
    """Sum the tails of equal prefixes, over 2^exponent; return the number of buckets of the table."""
    value = memory.value
    shift, buckets = bounded.clear_keys(memory.table, n_cut)
    for k in range(n_cut):
        prefix = memory.prefixes[memory.cut[k]]
        tail = memory.tails[prefix.tail]
        number = bounded.insert_key(bounded.key_of(prefix.hash), k, shift, memory.table)
        at = BLOCK * number
        if number == k:
            value[at] = value[at + 1] = value[at + 2] = value[at + 3] = 0.0
        weight = tables.weight[prefix.productions] * _power(exponent - tail.exponent)
        value[at] += weight * tail.x
        value[at + 1] += weight * tail.xi
        value[at + 2] += weight * tail.y
        value[at + 3] += weight * tail.yi
    return buckets


@njit_inside
def _write_blocks(
    buckets: int, shift: np.uint64, origin: int, memory: BlockMemory, indices: IntArray, values: Row
) -> int:
    """Write the blocks of one row by ascending key, with random signs; return the number of values."""
    table = memory.table
    size, last = 0, -1
    for bucket in range(buckets):
        key = table.key[bucket]
        if key == bounded.FREE:
            continue
        column = int(np.int64(key >> shift))
        if column != last:
            for j in range(BLOCK):
                indices[size + j], values[size + j] = origin + BLOCK * column + j, 0.0
            size, last = size + BLOCK, column
        sign = -1.0 if key & bounded.ONE else 1.0
        for j in range(BLOCK):
            values[size - BLOCK + j] += sign * memory.value[BLOCK * table.number[bucket] + j]
    return size
