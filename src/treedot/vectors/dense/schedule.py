"""The order in which nodes are composed into their parents, and the stack rows of open nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, IntArray
from treedot._runtime.jit import njit, njit_borrowing
from treedot.trees.derived import parents, subtree_sizes


class Schedule(NamedTuple):
    """The order of work of an encoder: visit nodes in order, finish each, compose it into its parent.

    A node is *open* from when its first child (in the order of the fold) is composed until it is finished
    itself. Open nodes form a stack of rows. Its height is the number of open ancestors, and does not depend
    on the number of children.
    """

    order: IntArray
    label: IntArray  # by node: its row in the label table
    arity: IntArray  # by node
    parent: IntArray  # by node
    stack_row: IntArray  # by node: its height in the stack, -1 for leaves
    is_first: BoolArray  # by node: whether it is its parent's first child in the order of the fold
    offsets: IntArray  # by tree
    height: IntArray  # by tree: the height of the stack


def make_schedule(arity: IntArray, offsets: IntArray, label: IntArray, from_right: bool) -> Schedule:
    """Return the schedule of consecutive trees; ``label`` holds the row of each node in the label table."""
    parent = parents(arity)
    if from_right:
        order = _mirrored(parent, subtree_sizes(arity), offsets)
    else:
        order = np.arange(arity.size, dtype=np.int32)
    stack_row, is_first = np.full(order.size, -1, np.int32), np.zeros(order.size, np.bool_)
    height = np.zeros(offsets.size - 1, np.int32)
    _stack(order, arity, parent, offsets, stack_row, is_first, height)
    return Schedule(order, label, arity, parent, stack_row, is_first, offsets, height)


@njit
def _mirrored(parent: IntArray, size: IntArray, offsets: IntArray) -> IntArray:
    """Return the reversed pre-order: children before their parents, and from right to left."""
    n = parent.size
    order = np.empty(n, np.int32)
    step = np.empty(n, np.int32)  # the position of each node in the mirrored order
    free = np.empty(n, np.int32)  # the last position before those of each node's next child to the left
    for tree in range(offsets.size - 1):
        for node in range(offsets[tree + 1] - 1, offsets[tree] - 1, -1):
            above = parent[node]
            # This loop meets children from right to left, and the rightmost comes first in the order.
            step[node] = node if above < 0 else free[above] + size[node]
            if above >= 0:
                free[above] += size[node]
            free[node] = step[node] - size[node]
            order[step[node]] = node
    return order


@njit_borrowing
def _stack(
    order: IntArray, arity: IntArray, parent: IntArray, offsets: IntArray,
    stack_row: IntArray, is_first: BoolArray, height: IntArray,
) -> None:  # fmt: skip
    """Fill in the stack rows, which must be -1 before, the first children, and the heights of the stacks."""
    for tree in range(offsets.size - 1):
        n_open = 0
        for step in range(offsets[tree], offsets[tree + 1]):
            node = order[step]
            if arity[node] > 0:
                n_open -= 1
            above = parent[node]
            if above >= 0 and stack_row[above] < 0:
                stack_row[above] = n_open
                is_first[node] = True
                n_open += 1
                if n_open > height[tree]:
                    height[tree] = n_open


def stack_height(schedule: Schedule) -> int:
    """Return the height of the highest stack, at least 1."""
    return int(schedule.height.max(initial=1))
