"""What lies beyond the budget as one dense vector, compiled: the sum of its fragments' vectors.

``rest_reference.dense_vector`` defines the vector of a fragment: a product of random signs of its
productions, in which everything that comes from below passes through a mixer. So the sum over all fragments
rooted at a node n with the children c1 … cm is

    s(n) = P(n) ⊗ ∏ (1 + √λ Q_i s(c_i)),

where P(n) are the signs of the node's production and Q_i is the mixer, turned by the place i. At nodes of
more than three children, products of so many factors would scatter: there what is composed so far is mixed
too, ``s ← s + √λ M(s) ⊗ Q_i s(c_i)`` for one child after the other.

What must not be in the sum, the bounded fragments, is kept apart by cost: a node has one row for each cost up
to the budget, besides the row of all its fragments, and they multiply as polynomials do. A node without
anything to expand below it is nothing but signs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from treedot.algebra.algebras import Mixer
from treedot.algebra.splitmix import GOLDEN, mix64
from treedot.encode.dense import rescaling
from treedot.encode.dense.mixing import Shuffle, add_signs, mix_row, mix_sign_words, targets
from treedot.encode.sparse.bounded import hash_productions
from treedot.encode.sparse.reference import WIDE, child_mixer, node_mixer
from treedot.jit import njit
from treedot.simd import LANES, flip, load, splat, store
from treedot.types import FloatArray, IntArray, Matrix, Row, SignWords, WordArray

GOLD = np.uint64(GOLDEN)
GROWTH = 4.0  # the most that a mixer can enlarge the largest element
SLACK = 20  # of two, the power that rows may have without being scaled down: their bound is pessimistic
MOST_NUMBERS = 2**28  # in the rows of open nodes
ALL = 0  # among the rows of a node, the one of all its fragments; k is the one of cost k


class Mixers(NamedTuple):
    """The mixer of what comes from a child, and that of what a wide node has composed so far."""

    child: Shuffle
    node: Shuffle


class Nodes(NamedTuple):
    """What is known of the nodes of one tree before anything is composed."""

    stack: IntArray  # those that wait for their parents
    hash: WordArray  # of the production
    parent: IntArray
    place: IntArray  # among its siblings
    reach: IntArray  # the largest cost of a fragment rooted here, as far as it matters
    open: IntArray  # the node's place among the open ones, or -1


class Open(NamedTuple):
    """The nodes of which some children that can be expanded are composed: signs, and rows by number."""

    signs: SignWords
    row: IntArray  # -1 where there is none
    exponent: IntArray  # of two, by which all rows are scaled down
    bound: FloatArray  # of the magnitudes in all rows together


class Work(NamedTuple):
    """Rows that are used while one child is composed into its parent."""

    below: Matrix  # mixed rows of the child, by cost; those of ALL fragments first
    above: Matrix  # mixed rows of a wide parent, likewise
    edge: Row
    moved: Shuffle  # the child's mixer at its place
    signs: SignWords


def make_mixers(size: int, seed: int) -> Mixers:
    """Return the mixers as compiled code wants them."""
    return Mixers(*(_shuffle(make(size, seed)) for make in (child_mixer, node_mixer)))


def _shuffle(mixer: Mixer) -> Shuffle:
    return Shuffle(targets(mixer), np.zeros(0, np.uint16), mixer.rotation)


@njit
def _prepare(arity: IntArray, budget: int, nodes: Nodes) -> None:
    """Note parents, places and how far costs reach."""
    stack, height = nodes.stack, 0
    for node in range(arity.size):
        m = arity[node]
        height -= m
        nodes.parent[node], nodes.reach[node], nodes.open[node] = -1, 0, -1
        for i in range(m):
            child = stack[height + i]
            nodes.parent[child], nodes.place[child] = node, i
            if arity[child] > 0:
                nodes.reach[node] = min(nodes.reach[node] + m + nodes.reach[child], budget + 1)
        stack[height] = node
        height += 1


@njit
def _write_signs(hash: np.uint64, out: SignWords) -> None:
    """Write the random signs of a production, sixteen to a word."""
    for k in range(out.size // 4):
        bits = mix64(hash + np.uint64(k + 1) * GOLD)
        for j in range(4):
            out[4 * k + j] = np.uint16((bits >> np.uint64(16 * j)) & np.uint64(0xFFFF))


@njit
def _multiply(row: Row, z: Row, a: Any, b: Any) -> None:
    """Row ← row ⊗ (a + b z)."""
    for j in range(0, row.size, LANES):
        store(row, j, load(row, j) * (splat(a) + splat(b) * load(z, j)))


@njit
def _sign_products(row: Row, signs: SignWords, z: Row, a: Any, b: Any) -> None:
    """Row ← signs ⊗ (a + b z)."""
    for k in range(signs.size):
        store(row, LANES * k, flip(splat(a) + splat(b) * load(z, LANES * k), signs[k]))


@njit
def _add_products(row: Row, x: Row, z: Row, a: Any, b: Any) -> None:
    """Row ← a row + b x ⊗ z."""
    for j in range(0, row.size, LANES):
        store(row, j, splat(a) * load(row, j) + splat(b) * load(x, j) * load(z, j))


@njit
def _add_sign_products(row: Row, signs: SignWords, z: Row, a: Any, b: Any) -> None:
    """Row ← a row + b signs ⊗ z."""
    for k in range(signs.size):
        product = flip(splat(b) * load(z, LANES * k), signs[k])
        store(row, LANES * k, splat(a) * load(row, LANES * k) + product)


@njit
def _add(row: Row, x: Row, b: Any) -> None:
    """Row ← row + b x."""
    for j in range(0, row.size, LANES):
        store(row, j, load(row, j) + splat(b) * load(x, j))


@njit
def _add_both(row: Row, x: Row, b: Any, signs: SignWords, c: Any) -> None:
    """Add b x + c signs to a row."""
    for k in range(signs.size):
        both = splat(b) * load(x, LANES * k) + flip(splat(c), signs[k])
        store(row, LANES * k, load(row, LANES * k) + both)


@njit
def _more_rows(pool: Matrix, free: IntArray, n_free: int) -> tuple[Matrix, IntArray]:
    """Return twice as many rows, and the numbers of the free ones."""
    n = pool.shape[0]
    more, waiting = np.empty((2 * n, pool.shape[1]), pool.dtype), np.empty(2 * n, np.int64)
    more[:n], waiting[:n_free] = pool, free[:n_free]
    waiting[n_free : n_free + n] = np.arange(n, 2 * n)
    return more, waiting


@njit
def _wider(open: Open) -> Open:
    """Return room for twice as many open nodes."""
    n = open.exponent.size
    more = Open(
        np.empty((2 * n, open.signs.shape[1]), np.uint16),
        np.full((2 * n, open.row.shape[1]), -1),
        np.zeros(2 * n, np.int64),
        np.zeros(2 * n),
    )
    more.signs[:n], more.row[:n] = open.signs, open.row
    more.exponent[:n], more.bound[:n] = open.exponent, open.bound
    return more


@njit
def _mix_child(
    slot: int, hash: np.uint64, place: int, most: int,
    open: Open, pool: Matrix, mixer: Shuffle, work: Work,
) -> None:  # fmt: skip
    """Mix the rows of a finished child that its parent needs: all fragments, and those of cost up to most."""
    size = pool.shape[1]
    for k in range(mixer.target.size):
        at = mixer.target[k] + LANES * place
        work.moved.target[k] = at if at < size else at - size
    if slot < 0:
        _write_signs(hash, work.signs)
        mix_sign_words(work.signs, work.moved, work.below[ALL])
        return
    mix_row(pool[open.row[slot, ALL]], work.moved, work.edge, work.below[ALL])
    if most >= 0:
        mix_sign_words(open.signs[slot], work.moved, work.below[1])
        for k in range(1, most + 1):
            if open.row[slot, k] >= 0:
                mix_row(pool[open.row[slot, k]], work.moved, work.edge, work.below[k + 1])


@njit
def encode(
    offsets: IntArray, arity: IntArray, label: IntArray, label_key: WordArray,
    budget: int, root_decay: float, mixers: Mixers, out: Matrix, logarithms: FloatArray,
) -> int:  # fmt: skip
    """Write for every tree the direction of its rest, a unit vector or zeros, and the log of its length.

    Return -1, or the first tree with so many open nodes that their rows would take too much memory.
    """
    number, size = out.dtype.type, out.shape[1]
    most = 0
    for tree in range(offsets.size - 1):
        most = max(most, offsets[tree + 1] - offsets[tree])
    nodes = Nodes(
        np.empty(most, np.int32), np.empty(most, np.uint64), np.empty(most, np.int32),
        np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.int32),
    )  # fmt: skip
    open = Open(
        np.empty((8, size // LANES), np.uint16), np.full((8, budget + 1), -1),
        np.zeros(8, np.int64), np.zeros(8),
    )  # fmt: skip
    free_slot, n_slots = np.arange(8), 8
    pool = np.empty((16, size), out.dtype)
    free, n_free = np.arange(16), 16
    work = Work(
        np.empty((budget + 2, size), out.dtype), np.empty((budget + 2, size), out.dtype),
        np.empty(32 * LANES, out.dtype),
        Shuffle(np.empty_like(mixers.child.target), mixers.child.signs, mixers.child.rotation),
        np.empty(size // LANES, np.uint16),
    )  # fmt: skip
    total = np.empty(size, out.dtype)
    b = number(root_decay)
    for tree in range(offsets.size - 1):
        begin, n = offsets[tree], offsets[tree + 1] - offsets[tree]
        here = slice(begin, begin + n)
        hash_productions(arity[here], label[here], label_key, nodes.stack, nodes.hash)
        _prepare(arity[here], budget, nodes)
        total[:] = 0
        total_exponent = rescaling.NO_VALUE
        for node in range(n):
            if arity[begin + node] == 0:
                continue
            slot = nodes.open[node]
            if nodes.reach[node] > budget:
                total_exponent, factor = rescaling.meet(total, total_exponent, open.exponent[slot])
                scale = number(factor)
                one = number(-factor * rescaling.power_of_two(-open.exponent[slot]))
                _add_both(total, pool[open.row[slot, ALL]], scale, open.signs[slot], one)
                for k in range(1, budget + 1):
                    if open.row[slot, k] >= 0:
                        _add(total, pool[open.row[slot, k]], -scale)
            above = nodes.parent[node]
            if above >= 0:
                m = arity[begin + above]
                if nodes.open[above] < 0:
                    if n_slots == 0:
                        n_slots = open.exponent.size
                        open = _wider(open)
                        free_slot = np.empty(2 * n_slots, np.int64)
                        free_slot[:n_slots] = np.arange(n_slots, 2 * n_slots)
                    n_slots -= 1
                    nodes.open[above] = free_slot[n_slots]
                    _write_signs(nodes.hash[above], open.signs[nodes.open[above]])
                    open.exponent[nodes.open[above]], open.bound[nodes.open[above]] = 0, 1.0
                while n_free < budget + 1:
                    if pool.size > MOST_NUMBERS:
                        return tree
                    pool, free = _more_rows(pool, free, n_free)
                    n_free += pool.shape[0] // 2
                place = nodes.place[node] % (size // LANES)
                _mix_child(slot, nodes.hash[node], place, budget - m, open, pool, mixers.child, work)
                n_free = _compose(
                    slot, nodes.open[above], m, budget, b, open, pool, free, n_free, mixers.node, work
                )
            if slot >= 0:
                for k in range(budget + 1):
                    if open.row[slot, k] >= 0:
                        free[n_free], open.row[slot, k] = open.row[slot, k], -1
                        n_free += 1
                free_slot[n_slots] = slot
                n_slots += 1
        square = 0.0
        for j in range(size):
            square += np.float64(total[j]) * np.float64(total[j])  # float() would stay float32 when compiled
        length = math.sqrt(square)
        inverse = 1.0 / length if length > 0.0 else 0.0
        for j in range(size):
            out[tree, j] = np.float64(total[j]) * inverse
        logarithms[tree] = (
            math.log(length) + total_exponent * math.log(2.0) - 0.5 * math.log(size)
            if length > 0.0
            else -math.inf
        )
    return -1


@njit
def _compose(
    slot: int, parent: int, m: int, budget: int, b: Any,
    open: Open, pool: Matrix, free: IntArray, n_free: int, mixer: Shuffle, work: Work,
) -> int:  # fmt: skip
    """Compose a child, whose mixed rows lie ready, into its parent; return how many rows are free then."""
    number, row, signs = pool.dtype.type, open.row[parent], open.signs[parent]
    grown = open.exponent[slot] if slot >= 0 else 0
    a = number(rescaling.power_of_two(-grown))
    one = number(rescaling.power_of_two(-open.exponent[parent]))  # what the signs count beside the rows
    below = open.bound[slot] if slot >= 0 else 1.0
    wide = m > WIDE
    mixed = b * number(1 / 16 if wide else 1 / 4)  # mixed rows are four times too large
    if wide:
        if row[ALL] >= 0:
            mix_row(pool[row[ALL]], mixer, work.edge, work.above[ALL])
        if m <= budget or row[ALL] < 0:
            mix_sign_words(signs, mixer, work.above[1])
        for k in range(1, budget - m + 1):
            if row[k] >= 0:
                mix_row(pool[row[k]], mixer, work.edge, work.above[k + 1])
    for cost in range(budget, 0, -1):  # from above, so that what is multiplied is still the old
        scale = a  # of what is there, the first time that something is added
        for inner in range(cost - m + 1):
            outer = cost - m - inner
            if outer > 0 and row[outer] < 0:
                continue
            if inner > 0 and (slot < 0 or open.row[slot, inner] < 0):
                continue
            z = work.below[ALL] if slot < 0 else work.below[inner + 1]
            if row[cost] < 0:
                n_free -= 1
                row[cost] = free[n_free]
                pool[row[cost]][:] = 0
            factor = mixed * a if inner == 0 else mixed  # signs are not scaled down, rows are
            if outer == 0:
                factor *= one
            if wide:
                _add_products(pool[row[cost]], work.above[outer + 1], z, scale, factor)
            elif outer == 0:
                _add_sign_products(pool[row[cost]], signs, z, scale, factor)
            else:
                _add_products(pool[row[cost]], pool[row[outer]], z, scale, factor)
            scale = number(1)
        if scale != number(1) and row[cost] >= 0:
            for j in range(pool.shape[1]):
                pool[row[cost], j] *= a
    z = work.below[ALL]
    first = row[ALL] < 0
    if first:
        n_free -= 1
        row[ALL] = free[n_free]
    whole = pool[row[ALL]]
    if not wide and first:
        _sign_products(whole, signs, z, a, mixed)
    elif not wide:
        _multiply(whole, z, a, mixed)
    else:
        if first:
            whole[:] = 0
            add_signs(whole, signs, number(1))
        _add_products(whole, work.above[1] if first else work.above[ALL], z, a, mixed)
    open.exponent[parent] += grown
    open.bound[parent] *= float(a) + GROWTH * (GROWTH if wide else 1.0) * float(b) * below
    if open.bound[parent] > rescaling.LARGE or open.exponent[parent] != 0:  # giants may also fade
        _rescale(parent, open, pool)
    return n_free


@njit
def _rescale(slot: int, open: Open, pool: Matrix) -> None:
    """Bring the rows of a node to a magnitude of about 1, all by the same power of two."""
    top = 0.0
    for k in range(open.row.shape[1]):
        if open.row[slot, k] >= 0:
            top = max(top, rescaling.largest(pool[open.row[slot, k]]))
    _, exponent = math.frexp(top)
    if top > 0.0 and abs(exponent) > SLACK:
        factor = pool.dtype.type(math.ldexp(1.0, -exponent))
        for k in range(open.row.shape[1]):
            if open.row[slot, k] >= 0:
                for j in range(pool.shape[1]):
                    pool[open.row[slot, k], j] *= factor
        open.exponent[slot] += exponent
        top = math.ldexp(top, -exponent)
    open.bound[slot] = top * open.row.shape[1]
