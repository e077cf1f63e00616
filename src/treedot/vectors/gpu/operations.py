"""List the operations that encode a tree on a GPU in a few rows of memory.

Each operation composes one child into its parent (``treedot.vectors.dense.mixed`` lists the four ways):

    LEAF_FIRST, LEAF_NEXT    a leaf, as first or as later child
    TAG_FIRST, TAG_NEXT      a pre-terminal (a node over one leaf), which has no row of its own
    NODE_FIRST, NODE_NEXT    any other node, whose row is finished: a first child's row becomes its parent's
    ROOT, ROOT_TAG           the end: only add the vector of the root to the total

The operation that composes an inner node also adds its vector to the total. Children are composed from left
to right, but may be finished in any order. Rows are few, so the child that needs most of them is finished
first if that saves a row, as in the allocation of registers (Sethi & Ullman 1970). Then a tree needs more
than r rows only if it has more than about 1.6^r nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, FloatArray, IntArray, Row
from treedot._runtime.atomics import next_number
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.vectors.dense.mixing import MIXER_BOUND

LEAF_FIRST, LEAF_NEXT, TAG_FIRST, TAG_NEXT, NODE_FIRST, NODE_NEXT, ROOT, ROOT_TAG = range(8)
NOTHING = 255
NEXT = 1  # added to the kind of a first child to get that of a later one
LAST = 64  # added to the place of a last child
OF_LEAF, OF_TAG, OF_NODE = LEAF_FIRST, TAG_FIRST, NODE_FIRST

MOST_ROWS = 63  # bits of a signed word; no machine holds a tree of 1.6^63 nodes
SAFE = 2.0**96  # sums of many such magnitudes do not overflow float32
PART_NODES = 1 << 15  # the fewest nodes that pay for another thread


class Operations(NamedTuple):
    """The operations of consecutive trees; each tree has as many as nodes.

    Unused ones at the end of a tree are ``NOTHING``, as is the one of a tree with a single node. A row of
    ``words`` is ``kind | row << 8 | row of the child << 16 | place of the child << 24``, the label of the
    node, the label of the child, and for a pre-terminal the label of its leaf (0 otherwise). Places count
    from 1, plus ``LAST`` for a last child; places from ``LAST`` on are 0.
    """

    words: IntArray  # shape (operations, 4)
    offsets: IntArray  # the limits of the operations of each tree, which are those of its nodes
    rows: IntArray  # by tree: the number of rows it needs
    large: BoolArray  # by tree: whether its elements may overflow float32

    def part(self, first: int, last: int) -> Operations:
        """Return the operations of the trees ``first`` to ``last - 1``."""
        begin, end = self.offsets[first], self.offsets[last]
        offsets = self.offsets[first : last + 1] - begin
        return Operations(self.words[begin:end], offsets, self.rows[first:last], self.large[first:last])


def list_operations(
    arity: IntArray, offsets: IntArray, label: IntArray, row: IntArray, root_decay: float,
    threads: Threads = ONE_THREAD, memory: Callable[[int], IntArray] | None = None,
) -> Operations:  # fmt: skip
    """Return the operations of consecutive trees.

    Parameters
    ----------
    arity, offsets, label : arrays
        The columns of a packed forest; ``offsets`` may be those of a part of the trees.
    row : array
        The row of each label in the label table.
    root_decay : float
        √λ.
    memory : callable, optional
        Returns an array for a given number of operations.
    """
    n_trees = len(offsets) - 1
    starts = offsets - offsets[0]
    words = np.empty((int(starts[-1]), 4), np.int32) if memory is None else memory(int(starts[-1]))
    rows, large = np.empty(n_trees, np.int32), np.empty(n_trees, np.bool_)
    largest = int(np.diff(offsets).max(initial=0))

    def fill(limits: IntArray, taken: IntArray) -> None:
        of, bound = np.empty((largest, COLUMNS), np.int32), np.empty(largest)
        stack = np.empty(largest, np.int32)
        given = arity, label, row, offsets, root_decay
        _fill(*given, limits, taken, stack, of, bound, words, rows, large)

    threads.share(fill, threads.even_spans(offsets, at_least=PART_NODES))
    return Operations(words, starts, rows, large)


# The properties of a node while operations are being listed, as columns of one array. (Passing a tuple of
# arrays from function to function would take half of the time.)
KIND = 0  # OF_LEAF, OF_TAG or OF_NODE
PARENT = 1
EARLY = 2  # the child that is finished before the others, -1 if none is
NEEDED = 3  # number of rows
LENGTH = 4  # number of operations
BEGIN = 5  # first operation
END = 6  # end of the operations still to be placed
MISSING = 7  # number of children still to be placed
ROW = 8
COLUMNS = 9


@njit_borrowing
def _fill(
    arity: IntArray, label: IntArray, row_of_label: IntArray, offsets: IntArray, root_decay: float,
    limits: IntArray, taken: IntArray, stack: IntArray, of: IntArray, bound: FloatArray,
    words: IntArray, rows: IntArray, large: BoolArray,
) -> None:  # fmt: skip
    """Write the operations of trees, the rows they need and whether their elements may be large.

    Threads share the spans of trees between ``limits``: each takes the next one, counted in ``taken``. The
    arrays ``stack``, ``of`` and ``bound`` are working memory for one tree.
    """
    span = next_number(taken)
    while span < limits.size - 1:
        for tree in range(limits[span], limits[span + 1]):
            first, last = offsets[tree], offsets[tree + 1]
            here = words[first - offsets[0] : last - offsets[0]]
            _choose_orders(arity[first:last], stack, of)
            length = of[last - first - 1, LENGTH] + 1 if last - first > 1 else 0
            here[length:, 0] = NOTHING
            rows[tree], large[tree] = 0, False
            if length > 1:
                _place(arity[first:last], of, here)
            if length > 0:
                rows[tree], large[tree] = _complete(
                    label[first:last], row_of_label, root_decay, of, bound, here[:length]
                )
        span = next_number(taken)


@njit_inside
def _choose_orders(arity: IntArray, stack: IntArray, of: IntArray) -> None:
    """Compute the number of rows and operations of each node, and choose the child to finish early."""
    height = 0
    for node in range(arity.size):
        of[node, PARENT], of[node, NEEDED], of[node, LENGTH], of[node, EARLY] = -1, 0, 0, -1
        low = height - arity[node]
        if low == height:
            of[node, KIND] = OF_LEAF
        elif low + 1 == height and of[node - 1, KIND] == OF_LEAF:
            of[node, KIND] = OF_TAG
            of[node - 1, PARENT] = node
        else:
            of[node, KIND] = OF_NODE
            _choose_order(node, low, height, stack, of)
        stack[low] = node
        height = low + 1


@njit_inside
def _choose_order(node: int, low: int, high: int, stack: IntArray, of: IntArray) -> None:
    """Compute the rows that a node with children on the stack needs, and choose the child to finish early.

    A child needs its own rows, one row for the composition before it, if any, and one for the early child
    until that is composed.
    """
    length, most, place, in_order = high - low, 0, low, 1
    for k in range(low, high):
        child = stack[k]
        of[child, PARENT] = node
        length += of[child, LENGTH]
        own = of[child, NEEDED]
        if own > most:
            most, place = own, k
        elif own == most:
            place = low  # several children need most rows
        in_order = max(in_order, own + (1 if k > low else 0))
    of[node, LENGTH], of[node, NEEDED] = length, in_order
    if place == low or in_order <= 2:
        return
    with_early = max(most, max(1, of[stack[low], NEEDED]) + 1)
    for k in range(low + 1, high):
        if k != place:
            with_early = max(with_early, of[stack[k], NEEDED] + (2 if k < place else 1))
    if with_early < in_order:
        of[node, NEEDED], of[node, EARLY] = with_early, stack[place]


@njit_inside
def _place(arity: IntArray, of: IntArray, words: IntArray) -> None:
    """Write the kind and the child of each operation at its position, from the last to the first."""
    root = arity.size - 1
    of[root, BEGIN], of[root, END], of[root, MISSING] = 0, of[root, LENGTH], arity[root]
    for node in range(root - 1, -1, -1):  # meets children from right to left
        parent = of[node, PARENT]
        if of[parent, KIND] == OF_TAG:
            continue
        of[parent, MISSING] -= 1
        of[parent, END] -= 1
        step = of[parent, END]
        place = of[parent, MISSING] + 1
        if place < LAST:
            place += LAST if place == arity[parent] else 0
        else:
            place = 0
        words[step, 0] = of[node, KIND] + (NEXT if of[parent, MISSING] > 0 else 0) | (place << 24)
        words[step, 1] = node
        if of[node, KIND] == OF_NODE:
            if of[parent, EARLY] == node:
                of[node, BEGIN] = of[parent, BEGIN]
            else:
                of[parent, END] -= of[node, LENGTH]
                of[node, BEGIN] = of[parent, END]
            of[node, END], of[node, MISSING] = of[node, BEGIN] + of[node, LENGTH], arity[node]


@njit_inside
def _complete(
    label: IntArray, row_of_label: IntArray, root_decay: float, of: IntArray, bound: Row, words: IntArray
) -> tuple[int, bool]:
    """Fill in the rows and labels of operations; return the number of rows, and whether values may be large.

    No magnitude in the row of a node is above its ``bound``.
    """
    free, most, largest = (1 << MOST_ROWS) - 1, 0, 1.0
    last, root = len(words) - 1, label.size - 1
    for step in range(last):
        kind, place, child = words[step, 0] & 255, words[step, 0] >> 24, words[step, 1]
        node = of[child, PARENT]
        of_operand = 1.0
        if kind >= TAG_FIRST:
            of_operand += MIXER_BOUND * root_decay * (bound[child] if kind >= NODE_FIRST else 1.0)
        of_child = 0
        if kind == NODE_FIRST:
            of[node, ROW] = of[child, ROW]
        elif kind == NODE_NEXT:
            of_child = int(of[child, ROW])
            free |= 1 << of_child
        elif kind in (LEAF_FIRST, TAG_FIRST):
            lowest = 0
            while not (free >> lowest) & 1:
                lowest += 1
            of[node, ROW] = lowest
            free ^= 1 << lowest
            most = max(most, lowest + 1)
        bound[node] = of_operand if kind % 2 == 0 else MIXER_BOUND * of_operand * bound[node]
        largest = max(largest, bound[node])
        words[step, 0] = kind | (of[node, ROW] << 8) | (of_child << 16) | (place << 24)
        words[step, 1], words[step, 2] = row_of_label[label[node]], row_of_label[label[child]]
        words[step, 3] = 0
        if kind in (TAG_FIRST, TAG_NEXT):
            words[step, 3] = row_of_label[label[child - 1]]
    words[last, 1] = words[last, 2] = row_of_label[label[root]]
    if of[root, KIND] == OF_TAG:
        words[last, 0], words[last, 3] = ROOT_TAG, row_of_label[label[root - 1]]
    else:
        words[last, 0], words[last, 3] = ROOT | (of[root, ROW] << 8), 0
    return most, largest > SAFE
