"""Forest in, sparse rows out: every prefix of ``strata`` a number, its continuations a block.

With F(c) the sum of the vectors of all fragments rooted at a child c, seen from its parent, and L(c) the
part of its production alone, a node keeps the products

    H[k] = ∏ (1 + √λ F(c)) over the heavy children from the k-th in reading order on, times ∏ (1 + √λ L(c))
           over the children that can only be light,
    S[k] = ∏ (1 + √λ L(c)) over the light children from the k-th on.

So H[0] is the sum over everything below the node. A prefix is put together from the root's production and
prefixes of some children, and the last of them decides what its continuations are: what follows inside that
child, times what follows it in the node's own reading. A child whose only child can be expanded is *double*:
heavy where that is done, else light. So behind a heavy child follow H and the light parts of the double
children that were passed over, and behind a light one S without the double children that were taken as heavy.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.algebra.labels import GOLDEN
from treedot.encode.strata import BLOCK, COORDINATES, GRID, POSITIONS, SALT, circle, shuffles
from treedot.jit import njit

IntArray = npt.NDArray[np.signedinteger[Any]]
WordArray = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]
BoolArray = npt.NDArray[np.bool_]

V = COORDINATES
ROOT = -(2**30)  # the cost before the root's production: no budget is spent yet, wherever it stands
LARGE = 2.0**400  # products are scaled down by it when they exceed it
STEP = 400

# np.uint64 all through: mixed with signed integers, Numba would turn to floating point.
U0, U1, U8, U27, U30, U31, U255 = (np.uint64(x) for x in (0, 1, 8, 27, 30, 31, 255))
M1, M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
GOLD, SALTED = np.uint64(GOLDEN), np.uint64(SALT)
SIGN, HALF = np.uint64(63), np.uint64(32)
WORDS = V // 8


class Tables(NamedTuple):
    """What does not depend on the trees."""

    circle: ComplexArray
    shuffle: IntArray
    number_weight: FloatArray  # of a prefix by its productions
    block_weight: FloatArray


class Rules(NamedTuple):
    """What a spec says."""

    budget: int
    root_decay: float
    normalize: bool
    numbers: int  # columns for numbers; blocks stand behind them
    blocks: int


class Nodes(NamedTuple):
    """Of the nodes of a tree; ``stack`` holds those that wait for their parents."""

    stack: IntArray
    hash: WordArray  # of the production
    arity: IntArray
    bottom: BoolArray  # no child can be expanded
    first: IntArray  # prefix
    last: IntArray
    heavy: IntArray  # the first of the node's heavy slots
    light: IntArray
    standing: IntArray  # the heavy slot that the node has at its parent, or -1


class Slots(NamedTuple):
    """One for every heavy child of a node and one at the end, then the same for the light ones."""

    kid: IntArray  # -1 at the end
    place: IntArray
    origin: IntArray  # the first slot of the same node
    twin: IntArray  # of a double child, its other slot; or -1
    bit: WordArray  # that marks a double child, where several children can be taken
    light: BoolArray
    plain: BoolArray  # what follows is the product of the next slot


class Products(NamedTuple):
    """Complex vectors, one for each slot, with an exponent each."""

    value: ComplexArray
    exponent: IntArray


class Prefixes(NamedTuple):
    """Of all prefixes; ``open`` lists those of the current node that can be extended."""

    key: WordArray
    cost: IntArray
    before: IntArray  # the cost without the last production
    size: IntArray
    slot: IntArray  # in which the last child stands, -1 for the root's production alone
    inner: IntArray  # that child's prefix
    taken: WordArray  # the bits of the double children that are heavy in it
    deep: BoolArray  # something has to follow inside the last child
    block: IntArray  # what continues it
    open: IntArray


class Blocks(NamedTuple):
    """Sums of continuations, pairs of complex numbers, with an exponent each."""

    value: ComplexArray
    exponent: IntArray


class Row(NamedTuple):
    """The values of a row, and a table that finds them by their columns."""

    bucket: IntArray  # -1 where it is free
    value: FloatArray


class Room(NamedTuple):
    """Working memory for one tree at a time."""

    nodes: Nodes
    slots: Slots
    products: Products  # of a slot: H or S
    factors: Products  # of a light slot 1 + √λ L, of a heavy one what follows it
    prefixes: Prefixes
    blocks: Blocks
    row: Row


def make_tables(decay: float, budget: int, seed: int) -> Tables:
    """Return the tables of a spec; weights of numbers lie on a grid, so that sums of them are exact."""
    weight = np.append(0.0, np.power(math.sqrt(decay), np.arange(budget + 2.0)))  # by productions
    return Tables(circle(), shuffles(seed), np.round(weight * GRID) / GRID, weight / math.sqrt(BLOCK // 2))


def make_room(nodes: int, inner: int, prefixes: int) -> Room:
    """Return room for trees of so many nodes, so many of them with children, and so many prefixes."""
    slots = 4 * inner + 2  # an inner node has at most two at its parent, and two ends of its own

    def vectors(count: int, size: int) -> tuple[ComplexArray, IntArray]:
        return np.empty((count, size), complex), np.empty(count, np.int64)

    return Room(
        _columns(Nodes, nodes, words=("hash",), flags=("bottom",)),
        _columns(Slots, slots, words=("bit",), flags=("light", "plain")),
        Products(*vectors(slots, V)),
        Products(*vectors(slots, V)),
        _columns(Prefixes, prefixes, words=("key", "taken"), flags=("deep",)),
        Blocks(*vectors(prefixes, BLOCK // 2)),
        Row(np.empty(1 << (2 * prefixes - 1).bit_length(), np.int32), np.empty(prefixes * (1 + BLOCK))),
    )


def _columns(kind: Any, size: int, words: tuple[str, ...], flags: tuple[str, ...]) -> Any:
    types = {**dict.fromkeys(words, np.uint64), **dict.fromkeys(flags, np.bool_)}
    return kind(*(np.empty(size, types.get(name, np.int32)) for name in kind._fields))


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
        _fill_products(arity[here], label[here], label_key, rules.budget, rules.root_decay, tables, room)
        count, cut = _find_prefixes(offsets[tree + 1] - offsets[tree], rules.budget, room)
        start = indptr[tree]
        if count < 0 or start + count + BLOCK * cut > values.size:
            return tree
        scale = _sum_continuations(count, rules.budget, tables.shuffle, room)
        size = _write_row(count, scale, rules, tables, room.prefixes, room.blocks, room.row, indices[start:])
        if rules.normalize:
            largest, norm = 0.0, 0.0
            for k in range(size):
                largest = max(largest, abs(room.row.value[k]))
            for k in range(size):
                norm += (room.row.value[k] / largest) ** 2
            factor = 1.0 / largest / math.sqrt(norm) if largest > 0.0 else 0.0
        else:
            factor = 2.0**scale if scale < 1000 else math.inf
        fits = True
        for k in range(size):
            value = room.row.value[k] * factor
            values[start + k] = value
            fits &= abs(value) <= limit
        if not fits:
            indptr[tree + 1] = start
            return tree
        indptr[tree + 1] = start + size
        tree += 1
    return tree


@njit
def _mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> U30)) * M1
    x = (x ^ (x >> U27)) * M2
    return x ^ (x >> U31)


@njit
def _power(exponent: int) -> float:
    """Return 2^-exponent, 0 where it is that small."""
    if exponent == 0:
        return 1.0
    return 2.0**-exponent if exponent < 1000 else 0.0


@njit
def _fill_products(
    arity: IntArray, label: IntArray, label_key: WordArray, budget: int, root_decay: float,
    tables: Tables, room: Room,
) -> None:  # fmt: skip
    """Give all children that can be expanded their slots, and compute H, S and what follows them."""
    nodes, slots, products, factors = room.nodes, room.slots, room.products, room.factors
    height, end = 0, 0
    for node in range(arity.size):
        m = arity[node]
        height -= m
        family = nodes.stack[height : height + m]
        nodes.arity[node] = m
        nodes.bottom[node] = True
        if m > 0:
            own = _mix(label_key[label[node]] + np.uint64(m + 1) * SALTED)
            for child in family:
                own = _mix(own + label_key[label[child]])
            nodes.hash[node] = own
            heavy = end
            light, end = _take_slots(family, m < budget, heavy, nodes, slots)
            nodes.heavy[node], nodes.light[node] = heavy, light
            nodes.bottom[node] = end - heavy == 2
            _ones(products, light - 1)
            _ones(products, end - 1)
            double = False
            for slot in range(end - 2, light - 1, -1):
                own, place = nodes.hash[slots.kid[slot]], slots.place[slot]
                _phases(factors, slot, own, place, 1.0, root_decay, tables.circle)
                _times(products, slot, slot + 1, factors, slot)
                double |= slots.twin[slot] >= 0
            for slot in range(light, end - 1):  # what can only be light follows every heavy child
                if not double:
                    _copy(products, light - 1, light)
                    break
                if slots.twin[slot] < 0:
                    _times(products, light - 1, light - 1, factors, slot)
            for slot in range(light - 2, heavy - 1, -1):
                child, place = slots.kid[slot], slots.place[slot]
                _phases(factors, slot, nodes.hash[child], place, 0.0, root_decay, tables.circle)
                _expanded(factors, slot, products, nodes.heavy[child], tables.shuffle[place % POSITIONS])
                _times(products, slot, slot + 1, factors, slot)
            _fill_following(heavy, light - 1, slots, products, factors)
        nodes.stack[height] = node
        height += 1


@njit
def _take_slots(family: IntArray, several: bool, heavy: int, nodes: Nodes, slots: Slots) -> tuple[int, int]:
    """Return the first light slot and the first free one.

    Unless ``several`` children can be taken, every prefix ends with the first that is.
    """
    end = heavy
    for i in range(family.size - 1, -1, -1):
        child = family[i]
        nodes.standing[child] = -1
        if nodes.arity[child] > 1 or (nodes.arity[child] == 1 and not nodes.bottom[child]):
            nodes.standing[child] = end
            slots.kid[end], slots.place[end], slots.origin[end] = child, i, heavy
            slots.light[end], slots.twin[end], slots.bit[end] = False, -1, U0
            end += 1
    slots.kid[end] = -1
    light = end + 1
    end = light
    for i in range(family.size):
        child = family[i]
        if nodes.arity[child] == 1:
            twin = nodes.standing[child]
            slots.kid[end], slots.place[end], slots.origin[end] = child, i, heavy
            slots.light[end], slots.plain[end], slots.twin[end], slots.bit[end] = True, True, twin, U0
            if twin >= 0:
                slots.twin[twin] = end
                if several:
                    slots.bit[end] = U1 << np.uint64(twin - heavy)
                    slots.bit[twin] = slots.bit[end]
            end += 1
    slots.kid[end] = -1
    return light, end + 1


@njit
def _ones(products: Products, slot: int) -> None:
    products.exponent[slot] = 0
    products.value[slot] = 1.0


@njit
def _copy(products: Products, slot: int, other: int) -> None:
    products.exponent[slot] = products.exponent[other]
    for j in range(V):
        products.value[slot, j] = products.value[other, j]


@njit
def _phases(
    factors: Products,
    slot: int,
    own: np.uint64,
    place: int,
    one: float,
    root_decay: float,
    circle: ComplexArray,
) -> None:
    """Set a factor to one + √λ L of a child: its random phases."""
    factors.exponent[slot] = 0
    for word in range(WORDS):
        bits = _mix(own ^ (np.uint64(WORDS * place + word + 1) * SALTED))
        for j in range(8 * word, 8 * word + 8):
            factors.value[slot, j] = one + root_decay * circle[np.int64(bits & U255)]
            bits >>= U8


@njit
def _expanded(factors: Products, slot: int, products: Products, below: int, shuffle: IntArray) -> None:
    """Turn √λ L of a child into 1 + √λ F, with what is below the child."""
    one = _power(products.exponent[below])
    for j in range(V):
        factors.value[slot, j] = one + factors.value[slot, j] * products.value[below, shuffle[j]]
    factors.exponent[slot] = products.exponent[below]


@njit
def _times(products: Products, slot: int, left: int, factors: Products, right: int) -> None:
    """Set the product of a slot to that of another times a factor."""
    largest = 0.0
    for j in range(V):
        z = products.value[left, j] * factors.value[right, j]
        products.value[slot, j] = z
        largest = max(largest, abs(z.real), abs(z.imag))
    products.exponent[slot] = products.exponent[left] + factors.exponent[right]
    if largest > LARGE:
        products.exponent[slot] += STEP
        for j in range(V):
            products.value[slot, j] /= LARGE


@njit
def _fill_following(heavy: int, last: int, slots: Slots, products: Products, factors: Products) -> None:
    """Put what follows a heavy child behind double ones, if none of those is taken, where its factor was.

    That is H of the next slot times the light parts of the double children before, whose product runs
    along in the factor of the last heavy slot, which has no child.
    """
    plain = True
    for slot in range(heavy, last):
        slots.plain[slot] = plain
        if not plain:
            _times(factors, slot, last, products, slot + 1)
        if slots.twin[slot] >= 0:
            if plain:
                _ones(factors, last)
                plain = False
            _times(factors, last, last, factors, slots.twin[slot])


@njit
def _find_prefixes(n: int, budget: int, room: Room) -> tuple[int, int]:
    """Find all prefixes of a tree; return their number, -1 where they do not fit, and how many are cut."""
    nodes, slots, prefixes = room.nodes, room.slots, room.prefixes
    count, cut, limit = 0, 0, prefixes.key.size
    for node in range(n):
        nodes.first[node] = count
        m = nodes.arity[node]
        if m > 0:
            if count == limit:
                return -1, 0
            prefixes.key[count], prefixes.cost[count], prefixes.before[count] = nodes.hash[node], 0, ROOT
            prefixes.size[count], prefixes.slot[count], prefixes.inner[count] = 1, -1, -1
            prefixes.taken[count], prefixes.deep[count] = U0, False
            prefixes.open[0] = count
            n_open = 1
            count += 1
            slot = nodes.heavy[node]
            while slot < nodes.light[node] or slots.kid[slot] >= 0:
                child = slots.kid[slot]
                if child < 0:
                    slot += 1
                    continue
                single = slots.light[slot]
                double = not single and slots.twin[slot] >= 0
                bit = U0 if single else slots.bit[slot]
                barred = slots.bit[slot] if single else U0  # a double child that is heavy cannot be light
                salt = np.uint64(slots.place[slot] + 1) * GOLD
                waiting = n_open
                last = nodes.first[child] + 1 if single else nodes.last[child]
                for inner in range(nodes.first[child], last):
                    before = prefixes.before[inner] + m
                    if before >= budget:
                        continue
                    if count + waiting > limit:
                        return -1, 0
                    deep = prefixes.deep[inner] or (double and prefixes.slot[inner] < 0)
                    key = _mix(prefixes.key[inner] + salt)
                    cost, size = prefixes.cost[inner] + m, prefixes.size[inner]
                    for k in range(waiting):
                        base = prefixes.open[k]
                        spent = prefixes.cost[base]
                        if spent + before >= budget or prefixes.taken[base] & barred != U0:
                            continue
                        prefixes.key[count] = prefixes.key[base] + key
                        prefixes.cost[count] = spent + cost
                        prefixes.before[count] = spent + max(before, 0)
                        prefixes.size[count] = prefixes.size[base] + size
                        prefixes.slot[count], prefixes.inner[count] = slot, inner
                        prefixes.taken[count], prefixes.deep[count] = prefixes.taken[base] | bit, deep
                        if spent + cost >= budget:
                            cut += 1
                        elif not deep:
                            prefixes.open[n_open] = count
                            n_open += 1
                        count += 1
                slot += 1
        nodes.last[node] = count
    return count, cut


@njit
def _sum_continuations(count: int, budget: int, shuffle: IntArray, room: Room) -> int:
    """Sum up all that continues each prefix that is cut; return the largest exponent.

    The way leads from the root to the last production; what follows at each node on it is multiplied, at
    the two coordinates that the block shows. A block serves all prefixes in which the same child comes last,
    as they stand one behind the other; its exponent is -1 where nothing can follow.
    """
    nodes, slots, prefixes, blocks = room.nodes, room.slots, room.prefixes, room.blocks
    products, factors = room.products, room.factors
    block, largest = -1, 0
    last_slot, last_inner, last_taken = -1, -1, U0
    for prefix in range(count):
        if prefixes.cost[prefix] < budget:
            continue
        at, slot, taken = prefix, prefixes.slot[prefix], prefixes.taken[prefix]
        if slot == last_slot and prefixes.inner[prefix] == last_inner and taken == last_taken:
            prefixes.block[prefix] = block
            continue
        last_slot, last_inner, last_taken = slot, prefixes.inner[prefix], taken
        block += 1
        prefixes.block[prefix] = block
        x, y = 1.0 + 0.0j, 1.0 + 0.0j
        i, j, exponent = 0, 1, 0
        while True:
            slot, taken = prefixes.slot[at], prefixes.taken[at]
            light = slots.light[slot]
            if taken != U0:
                x *= _following_taken(slot, taken, i, slots, products.value, factors.value)
                y *= _following_taken(slot, taken, j, slots, products.value, factors.value)
                exponent += 0 if light else products.exponent[slot + 1]
            elif slots.plain[slot]:
                x *= products.value[slot + 1, i]
                y *= products.value[slot + 1, j]
                exponent += products.exponent[slot + 1]
            else:
                x *= factors.value[slot, i]
                y *= factors.value[slot, j]
                exponent += factors.exponent[slot]
            if light:
                break
            place = slots.place[slot] % POSITIONS
            i, j = shuffle[place, i], shuffle[place, j]
            at = prefixes.inner[at]
            if prefixes.slot[at] < 0:
                below = nodes.heavy[slots.kid[slot]]
                without = _power(products.exponent[below]) if prefixes.deep[prefix] else 0.0
                x *= products.value[below, i] - without
                y *= products.value[below, j] - without
                exponent += products.exponent[below]
                break
            if _size(x, y) > LARGE:
                x, y, exponent = x / LARGE, y / LARGE, exponent + STEP
        if _size(x, y) > LARGE:
            x, y, exponent = x / LARGE, y / LARGE, exponent + STEP
        if not prefixes.deep[prefix]:
            x, y = x - _power(exponent), y - _power(exponent)
        blocks.value[block, 0], blocks.value[block, 1] = x, y
        blocks.exponent[block] = exponent if _size(x, y) > 0.0 else -1
        largest = max(largest, blocks.exponent[block])
    return largest


@njit
def _size(x: complex, y: complex) -> float:
    return max(abs(x.real), abs(x.imag), abs(y.real), abs(y.imag))


@njit
def _following_taken(
    slot: int, taken: np.uint64, coordinate: int, slots: Slots, products: ComplexArray, factors: ComplexArray
) -> Any:
    """Return what follows a child where double children are taken as heavy."""
    if slots.light[slot]:
        follows = np.complex128(1.0)
        slot += 1
        while slots.kid[slot] >= 0:
            if slots.bit[slot] & taken == U0:
                follows *= factors[slot, coordinate]
            slot += 1
        return follows
    follows = products[slot + 1, coordinate]
    for k in range(slots.origin[slot], slot):
        if slots.twin[k] >= 0 and slots.bit[k] & taken == U0:
            follows *= factors[slots.twin[k], coordinate]
    return follows


@njit
def _write_row(
    count: int, scale: int, rules: Rules, tables: Tables, prefixes: Prefixes, blocks: Blocks, row: Row,
    indices: IntArray,
) -> int:  # fmt: skip
    """Write the columns of one row, and its values over 2^scale; return how many."""
    at = 0
    tiny = _power(scale)
    row.bucket[:] = -1
    for prefix in range(count):
        if not prefixes.deep[prefix]:
            word = _mix(prefixes.key[prefix])
            column = np.int64(word & np.uint64(rules.numbers - 1))
            found = _place(column, column, row.bucket, indices, at)
            if found == at:
                indices[at], row.value[at] = column, 0.0
                at += 1
            weight = tables.number_weight[prefixes.size[prefix]] * tiny
            row.value[found] += -weight if word >> SIGN else weight
    row.bucket[:] = -1
    for prefix in range(count):
        if prefixes.cost[prefix] >= rules.budget and blocks.exponent[prefixes.block[prefix]] >= 0:
            word = _mix(prefixes.key[prefix])
            number = np.int64(word >> HALF) & (rules.blocks - 1)
            column = rules.numbers + BLOCK * number
            found = _place(number, column, row.bucket, indices, at)
            if found == at:
                for j in range(BLOCK):
                    indices[at + j], row.value[at + j] = column + j, 0.0
                at += BLOCK
            block = prefixes.block[prefix]
            weight = tables.block_weight[prefixes.size[prefix]] * _power(scale - blocks.exponent[block])
            if word >> SIGN:
                weight = -weight
            for j in range(BLOCK // 2):
                row.value[found + 2 * j] += weight * blocks.value[block, j].real
                row.value[found + 2 * j + 1] += weight * blocks.value[block, j].imag
    return at


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
