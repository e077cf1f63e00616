"""The rest of a row as one dense vector, compiled: the sum of the vectors of fragments beyond the budget.

``reference.dense_vector`` defines the vector of a fragment: a product of random signs of its
productions, in which the vectors of children pass through a mixer. So the sum over all fragments
rooted at a node n with the children c1 … cm is

    s(n) = P(n) ⊗ ∏ (1 + √λ Q_i s(c_i)),

where P(n) are the signs of the node's production and Q_i is the mixer, rotated by the position i. At nodes of
more than three children, the norms of such products would scatter. There the composition so far is mixed too:
``s ← s + √λ M(s) ⊗ Q_i s(c_i)`` for one child after the other.

The bounded fragments, which must not be in the sum, are kept separately by cost: besides the row of all its
fragments, a node has one row for each cost up to the budget. These multiply like polynomials, with the cost
as the exponent. The fragment of cost 0 is the node's production, which consists of signs only. It is the only
fragment of a node with no child to expand.

In ``(S (A a) (B b))`` the rows of S are P(S) for cost 0, √λ P(S) ⊗ (Q_0 P(A) + Q_1 P(B)) for cost 2, nothing
for costs 1 and 3, and for all fragments P(S) ⊗ (1 + √λ Q_0 P(A)) ⊗ (1 + √λ Q_1 P(B)). With a budget of 2 the
rest is the last minus the first two: λ P(S) ⊗ Q_0 P(A) ⊗ Q_1 P(B), the vector of the whole tree.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, Label, Matrix, Row, SignWords, WordArray
from treedot._runtime.hashing import mix64
from treedot._runtime.jit import njit_inside, njit_of_steps
from treedot._runtime.simd import LANES, load, splat, store, times
from treedot.vectors.chunks import ALL_DONE, NEEDS_MEMORY, TOO_MANY_OPEN, Ended, TreeArrays
from treedot.vectors.dense import rescaling
from treedot.vectors.dense.mixing import (
    BUTTERFLY_FACTOR,
    EDGE,
    MIXER_BOUND,
    Shuffle,
    add_label,
    mix_row,
    mix_sign_words,
    targets,
)
from treedot.vectors.dense.partial_passes import add_row_and_label
from treedot.vectors.sparse.bounded import GOLD, hash_productions
from treedot.vectors.sparse.reference import WIDE, child_mixer, node_mixer

SLACK = 20  # rows between 2^-20 and 2^20 are not rescaled, even if their pessimistic bound is larger
MAX_VALUES = 2**28  # numbers in the rows of open nodes
ALL = 0  # the index of the row of all fragments of a node; row k is for cost k


class Mixers(NamedTuple):
    """The mixer for vectors of children, and the one for the composition so far of a wide node."""

    child: Shuffle
    node: Shuffle


class NodeTable(NamedTuple):
    """The properties of the nodes of one tree, computed before composing."""

    stack: IntArray  # nodes that wait for their parents
    hash: WordArray  # the hash of the production
    parent: IntArray
    position: IntArray  # among its siblings
    reach: IntArray  # the largest cost of a fragment rooted here, at most the budget + 1
    slot: IntArray  # the node's number among the open nodes, or -1


class Unused(NamedTuple):
    """The numbers of rows or of open nodes that are free: the first ``size[0]`` of ``numbers``."""

    numbers: IntArray
    size: IntArray


class Pool(NamedTuple):
    """Rows for open nodes."""

    rows: Matrix
    unused: Unused


class OpenNodes(NamedTuple):
    """The nodes into which children are being composed: the signs of their productions, and their rows."""

    signs: SignWords
    row: IntArray  # numbers in the pool: of the row of ALL fragments, then by cost; -1 if there is none
    exponent: IntArray  # all rows of the node are over 2^exponent
    bound: FloatArray  # a bound of the magnitudes in all rows
    unused: Unused


class Work(NamedTuple):
    """Rows for composing one child into its parent."""

    below: Matrix  # mixed rows of the child: of ALL fragments, then by cost from 0 on
    above: Matrix  # mixed rows of a wide parent, likewise
    edge: Row
    moved: Shuffle  # the child's mixer at its position
    signs: SignWords


def make_mixers(size: int, seed: int) -> Mixers:
    """Return the mixers, without signs, in the form that compiled code needs."""
    mixers = child_mixer(size, seed), node_mixer(size, seed)
    return Mixers(*(Shuffle(targets(mixer), np.zeros(0, np.uint16), mixer.rotation) for mixer in mixers))


def make_open(rows: int, budget: int, out: Matrix) -> tuple[OpenNodes, Pool]:
    """Return memory for ``rows`` rows and for one more open node, since the newest may not have a row yet."""
    nodes = rows + 1
    numbers = [Unused(np.arange(n), np.array([n])) for n in (nodes, rows)]
    of_nodes = OpenNodes(
        np.empty((nodes, out.shape[1] // LANES), np.uint16),
        np.full((nodes, budget + 1), -1),
        np.zeros(nodes, np.int64),
        np.zeros(nodes),
        numbers[0],
    )
    return of_nodes, Pool(np.empty((rows, out.shape[1]), out.dtype), numbers[1])


def encode(
    trees: TreeArrays, budget: int, root_decay: float, mixers: Mixers, out: Matrix, log_lengths: FloatArray
) -> Ended:
    """Write the rest of every tree to ``out``, as a unit vector or zeros, and the log of its length."""
    most = int(np.diff(trees[0]).max(initial=0))
    kinds = (np.int32, np.uint64, np.int32, np.int32, np.int64, np.int32)
    nodes = NodeTable._make([np.empty(most, kind) for kind in kinds])
    size, child = out.shape[1], mixers.child
    moved = Shuffle(np.empty_like(child.target), child.signs, child.rotation)
    below, above = np.empty((2, budget + 2, size), out.dtype)
    work = Work(below, above, np.empty(EDGE, out.dtype), moved, np.empty(size // LANES, np.uint16))
    total = np.empty(size, out.dtype)
    rows, tree, why = 16, 0, NEEDS_MEMORY
    while why == NEEDS_MEMORY:
        memory = make_open(rows, budget, out)
        tree, why = _encode(
            trees, tree, budget, root_decay, mixers, nodes, *memory, work, total, log_lengths, out
        )
        if why == NEEDS_MEMORY and rows * size > MAX_VALUES:
            return tree, TOO_MANY_OPEN
        rows *= 2
    return tree, why


@njit_inside
def _prepare(arity: IntArray, budget: int, nodes: NodeTable) -> None:
    """Fill in the parents, positions and largest costs of all nodes."""
    stack, height = nodes.stack, 0
    for node in range(arity.size):
        m = arity[node]
        height -= m
        nodes.parent[node], nodes.reach[node], nodes.slot[node] = -1, 0, -1
        for i in range(m):
            child = stack[height + i]
            nodes.parent[child], nodes.position[child] = node, i
            if arity[child] > 0:
                nodes.reach[node] = min(nodes.reach[node] + m + nodes.reach[child], budget + 1)
        stack[height] = node
        height += 1


@njit_inside
def _write_production_signs(hash: np.uint64, out: SignWords) -> None:
    """Write the random signs of a production, sixteen to a word."""
    for k in range(out.size // 4):
        bits = mix64(hash + np.uint64(k + 1) * GOLD)
        for j in range(4):
            out[4 * k + j] = np.uint16((bits >> np.uint64(16 * j)) & np.uint64(0xFFFF))


@njit_inside
def _multiply(row: Row, x: Label, z: Row, a: Any, b: Any) -> None:
    """Set row to x ⊗ (a + b z), where x is a row, maybe the same, or signs."""
    for j in range(0, row.size, LANES):
        store(row, j, times(splat(a) + splat(b) * load(z, j), x, j))


@njit_inside
def _add_products(row: Row, x: Label, z: Row, a: Any, b: Any) -> None:
    """Set row to a row + b x ⊗ z, where x is another row or signs."""
    for j in range(0, row.size, LANES):
        store(row, j, splat(a) * load(row, j) + times(splat(b), x, j) * load(z, j))


@njit_inside
def _take(unused: Unused) -> int:
    """Take a number that is not in use; there must be one."""
    unused.size[0] -= 1
    return int(unused.numbers[unused.size[0]])


@njit_inside
def _give_back(unused: Unused, number: int) -> None:
    unused.numbers[unused.size[0]] = number
    unused.size[0] += 1


@njit_inside
def _mix_child(
    slot: int, hash: np.uint64, position: int, most: int,
    open: OpenNodes, rows: Matrix, mixer: Shuffle, work: Work,
) -> None:  # fmt: skip
    """Mix the rows of a finished child: all fragments, and those of cost up to ``most``."""
    size = rows.shape[1]
    for k in range(mixer.target.size):
        at = mixer.target[k] + LANES * position
        work.moved.target[k] = at if at < size else at - size
    if slot < 0:
        _write_production_signs(hash, work.signs)
        mix_sign_words(work.signs, work.moved, work.below[ALL])
        return
    mix_row(rows[open.row[slot, ALL]], work.moved, work.edge, work.below[ALL])
    if most >= 0:
        mix_sign_words(open.signs[slot], work.moved, work.below[1])
        for k in range(1, most + 1):
            if open.row[slot, k] >= 0:
                mix_row(rows[open.row[slot, k]], work.moved, work.edge, work.below[k + 1])


@njit_of_steps(lambda trees, *others: trees[1].size * others[-1].shape[1], borrowing=True)
def _encode(
    trees: TreeArrays, tree: int, budget: int, root_decay: float, mixers: Mixers, nodes: NodeTable,
    open: OpenNodes, pool: Pool, work: Work, total: Row, log_lengths: FloatArray, out: Matrix,
) -> Ended:  # fmt: skip
    """Write the rests of the trees from ``tree`` on; stop at a tree that needs more rows for open nodes."""
    offsets, arity, label, label_key = trees
    b = out.dtype.type(root_decay)
    while tree < offsets.size - 1:
        here = slice(offsets[tree], offsets[tree + 1])
        family = arity[here]  # how many children each node has
        hash_productions(family, label[here], label_key, nodes.stack, nodes.hash)
        _prepare(family, budget, nodes)
        total[:] = 0
        exponent = rescaling.NO_VALUE
        for node in range(family.size):
            if family[node] == 0:
                continue
            slot, above = nodes.slot[node], nodes.parent[node]
            if nodes.reach[node] > budget:
                exponent = _add_beyond(total, exponent, slot, open, pool.rows)
            if above >= 0:
                m = family[above]
                if pool.unused.size[0] < budget + 1:
                    return tree, NEEDS_MEMORY
                if nodes.slot[above] < 0:
                    nodes.slot[above] = _open_node(nodes.hash[above], open)
                position = nodes.position[node] % work.signs.size
                _mix_child(slot, nodes.hash[node], position, budget - m, open, pool.rows, mixers.child, work)
                _compose(slot, nodes.slot[above], m, b, open, pool, mixers.node, work)
            if slot >= 0:
                _close_node(slot, open, pool)
        log_lengths[tree] = _write_direction(total, exponent, out[tree])
        tree += 1
    return tree, ALL_DONE


@njit_inside
def _add_beyond(total: Row, exponent: int, slot: int, open: OpenNodes, rows: Matrix) -> int:
    """Add the fragments of a finished node beyond the budget to the total; return its new exponent."""
    scalar, row = rows.dtype.type, open.row[slot]
    exponent, factor = rescaling.meet(total, exponent, open.exponent[slot])
    scale = scalar(factor)
    one = scalar(-factor * rescaling.power_of_two(-open.exponent[slot]))
    add_row_and_label(total, rows[row[ALL]], scale, open.signs[slot], one)
    for cost in range(1, row.size):
        if row[cost] >= 0:
            add_label(total, rows[row[cost]], -scale)
    return exponent


@njit_inside
def _open_node(hash: np.uint64, open: OpenNodes) -> int:
    """Open a node with only its production; return its number among the open nodes."""
    slot = _take(open.unused)
    _write_production_signs(hash, open.signs[slot])
    open.exponent[slot], open.bound[slot] = 0, 1.0
    return slot


@njit_inside
def _close_node(slot: int, open: OpenNodes, pool: Pool) -> None:
    """Free the rows of a node, and its number."""
    row = open.row[slot]
    for k in range(row.size):
        if row[k] >= 0:
            _give_back(pool.unused, row[k])
            row[k] = -1
    _give_back(open.unused, slot)


@njit_inside
def _write_direction(total: Row, exponent: int, out: Row) -> float:
    """Write a total as a unit vector, or zeros; return the log of its length, NaN if it is not finite."""
    square = 0.0
    for j in range(total.size):
        square += np.float64(total[j]) * np.float64(total[j])  # float() would stay float32 when compiled
    length = math.sqrt(square)
    inverse = 1.0 / length if length > 0.0 else 0.0
    for j in range(total.size):
        out[j] = np.float64(total[j]) * inverse
    if length == 0.0:
        return -math.inf
    if not math.isfinite(length):
        return math.nan
    return math.log(length) + exponent * math.log(2.0) - 0.5 * math.log(total.size)


@njit_inside
def _compose(
    slot: int, parent: int, m: int, b: Any, open: OpenNodes, pool: Pool, mixer: Shuffle, work: Work
) -> None:
    """Compose a child, whose mixed rows are in ``work``, into its parent."""
    scalar = pool.rows.dtype.type
    wide = m > WIDE
    child_exponent = open.exponent[slot] if slot >= 0 else 0
    below = open.bound[slot] if slot >= 0 else 1.0
    a = scalar(rescaling.power_of_two(-child_exponent))
    mixed = b * scalar(1 / (BUTTERFLY_FACTOR**2 if wide else BUTTERFLY_FACTOR))
    if wide:
        _mix_parent(parent, m, open, pool.rows, mixer, work)
    _compose_bounded(slot, parent, m, a, mixed, open, pool, work)
    _compose_all(parent, wide, a, mixed, open, pool, work)
    open.exponent[parent] += child_exponent
    open.bound[parent] *= float(a) + MIXER_BOUND * (MIXER_BOUND if wide else 1.0) * float(b) * below
    if open.bound[parent] > rescaling.LARGE or open.exponent[parent] != 0:  # scaled rows may get too small
        _rescale(parent, open, pool.rows)


@njit_inside
def _mix_parent(parent: int, m: int, open: OpenNodes, rows: Matrix, mixer: Shuffle, work: Work) -> None:
    """Mix the rows of a wide parent that will be multiplied by rows of its child."""
    row, budget = open.row[parent], open.row.shape[1] - 1
    if row[ALL] >= 0:
        mix_row(rows[row[ALL]], mixer, work.edge, work.above[ALL])
    if m <= budget or row[ALL] < 0:
        mix_sign_words(open.signs[parent], mixer, work.above[1])
    for k in range(1, budget - m + 1):
        if row[k] >= 0:
            mix_row(rows[row[k]], mixer, work.edge, work.above[k + 1])


@njit_inside
def _compose_bounded(
    slot: int, parent: int, m: int, a: Any, mixed: Any,
    open: OpenNodes, pool: Pool, work: Work,
) -> None:  # fmt: skip
    """Add to the row of each cost the products of rows whose costs, with m, add up to it."""
    rows, row, signs = pool.rows, open.row[parent], open.signs[parent]
    scalar = rows.dtype.type
    one = scalar(rescaling.power_of_two(-open.exponent[parent]))  # the scale of signs relative to rows
    for cost in range(row.size - 1, 0, -1):  # descending, so that the factors are still the old rows
        scale = a  # multiplies the old row when the first product is added
        for inner in range(cost - m + 1):
            outer = cost - m - inner
            if outer > 0 and row[outer] < 0:
                continue
            if inner > 0 and (slot < 0 or open.row[slot, inner] < 0):
                continue
            z = work.below[ALL] if slot < 0 else work.below[inner + 1]
            if row[cost] < 0:
                row[cost] = _take(pool.unused)
                rows[row[cost]][:] = 0
            factor = mixed * a if inner == 0 else mixed  # rows are scaled down, signs are not
            if outer == 0:
                factor *= one
            if m > WIDE:
                _add_products(rows[row[cost]], work.above[outer + 1], z, scale, factor)
            elif outer == 0:
                _add_products(rows[row[cost]], signs, z, scale, factor)
            else:
                _add_products(rows[row[cost]], rows[row[outer]], z, scale, factor)
            scale = scalar(1)
        if scale != scalar(1) and row[cost] >= 0:
            for j in range(rows.shape[1]):
                rows[row[cost], j] *= a


@njit_inside
def _compose_all(
    parent: int, wide: bool, a: Any, mixed: Any,
    open: OpenNodes, pool: Pool, work: Work,
) -> None:  # fmt: skip
    """Compose all fragments: those without the child, and those with any of its fragments."""
    row, signs, z = open.row[parent], open.signs[parent], work.below[ALL]
    first = row[ALL] < 0
    if first:
        row[ALL] = _take(pool.unused)
    whole = pool.rows[row[ALL]]
    if not wide and first:
        _multiply(whole, signs, z, a, mixed)
    elif not wide:
        _multiply(whole, whole, z, a, mixed)
    else:
        if first:
            whole[:] = 0
            add_label(whole, signs, whole.dtype.type(1))
        _add_products(whole, work.above[1] if first else work.above[ALL], z, a, mixed)


@njit_inside
def _rescale(slot: int, open: OpenNodes, rows: Matrix) -> None:
    """Scale all rows of a node by the same power of two, to a magnitude of about 1."""
    top = 0.0
    for k in range(open.row.shape[1]):
        if open.row[slot, k] >= 0:
            magnitude = rescaling.largest(rows[open.row[slot, k]])
            if magnitude > top or math.isnan(magnitude):
                top = magnitude
    if top > 0.0 and math.isfinite(top):
        fraction, exponent = math.frexp(top)
        if abs(exponent) > SLACK:
            for k in range(open.row.shape[1]):
                if open.row[slot, k] >= 0:
                    rescaling.scale(rows[open.row[slot, k]], -exponent)
            open.exponent[slot] += exponent
            top = fraction
    open.bound[slot] = top * open.row.shape[1]
