"""In which order the nodes of a tree are composed into their parents, and where open nodes lie on a stack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, IntArray
from treedot._runtime.jit import njit, njit_borrowing
from treedot.trees.derived import parents, subtree_sizes


class Schedule(NamedTuple):
    """What the encoders work through: visit nodes in order, finish each, compose it into its parent.

    A node is *open* from when its first child (in the order of the fold) is composed until it is finished
    itself. Open nodes form a stack of rows: as many as there are open ancestors at a time, however many
    children a node has.
    """

    order: IntArray
    label: IntArray  # the rest is by node: its row in the label table,
    arity: IntArray
    parent: IntArray
    stack_row: IntArray  # how high in the stack its row lies, -1 for leaves,
    is_first: BoolArray  # and whether it is its parent's first child in the order of the fold
    offsets: IntArray  # by tree
    height: IntArray  # by tree: of the stack


def make_schedule(arity: IntArray, offsets: IntArray, label: IntArray, from_right: bool) -> Schedule:
    """Return the schedule of neighbouring trees whose nodes have the rows ``label`` of the label table."""
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
    """Return the order in which children come before parents and from right to left: pre-order reversed."""
    n = parent.size
    order = np.empty(n, np.int32)
    step = np.empty(n, np.int32)  # at which each node comes in the mirrored order
    free = np.empty(n, np.int32)  # of each node, the last step before those of its next child to the left
    for tree in range(offsets.size - 1):
        for node in range(offsets[tree + 1] - 1, offsets[tree] - 1, -1):
            above = parent[node]
            # Children are met from right to left here, and the rightmost comes first in the order.
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
    """Note stack rows, which are -1 before, first children, and the heights of the stacks."""
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
    """Return how many stack rows the trees need at most, and at least one."""
    return int(schedule.height.max(initial=1))
