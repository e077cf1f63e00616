"""In which order a tree's nodes are folded into their parents, and which row each open node uses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.jit import njit
from treedot.trees import Forest
from treedot.types import IntArray


class Schedule(NamedTuple):
    """The program that the encoders run: visit ``order``, finish a node, fold it into its parent.

    A node opens a row when its first child (in the order of the fold) arrives and gives it back when
    it is finished, so ``slot`` is a height in a stack and ``rows`` is how high it gets; ``opens`` marks
    those first children.
    """

    order: IntArray
    label: IntArray
    arity: IntArray
    parent: IntArray
    slot: IntArray
    opens: npt.NDArray[np.bool_]
    offsets: IntArray
    rows: IntArray


def schedule(forest: Forest, label: IntArray, from_right: bool) -> Schedule:
    """Return the program for a forest whose labels are numbered by ``label``."""
    if from_right:
        order = _mirrored(forest.parent, forest.subtree_size, forest.offsets)
    else:
        order = np.arange(forest.n_nodes, dtype=np.int32)
    slot, opens, rows = _slots(order, forest.arity, forest.parent, forest.offsets)
    return Schedule(order, label, forest.arity, forest.parent, slot, opens, forest.offsets, rows)


@njit
def _mirrored(parent: IntArray, size: IntArray, offsets: IntArray) -> IntArray:
    """Return the order in which children come before parents and from right to left: pre-order reversed."""
    n = parent.size
    order = np.empty(n, np.int32)
    place = np.empty(n, np.int32)  # of each node in the mirrored order
    free = np.empty(n, np.int32)  # of each node, the place where its next child to the left ends
    for tree in range(offsets.size - 1):
        for node in range(offsets[tree + 1] - 1, offsets[tree] - 1, -1):
            above = parent[node]
            # Children are met from right to left here, and the rightmost comes first in the order.
            place[node] = node if above < 0 else free[above] + size[node]
            if above >= 0:
                free[above] += size[node]
            free[node] = place[node] - size[node]
            order[place[node]] = node
    return order


@njit
def _slots(
    order: IntArray, arity: IntArray, parent: IntArray, offsets: IntArray
) -> tuple[IntArray, npt.NDArray[np.bool_], IntArray]:
    slot = np.full(order.size, -1, np.int32)
    opens = np.zeros(order.size, np.bool_)
    rows = np.zeros(offsets.size - 1, np.int32)
    for tree in range(offsets.size - 1):
        height = 0
        for step in range(offsets[tree], offsets[tree + 1]):
            node = order[step]
            if arity[node] > 0:
                height -= 1
            above = parent[node]
            if above >= 0 and slot[above] < 0:
                slot[above] = height
                opens[node] = True
                height += 1
                rows[tree] = max(rows[tree], height)
    return slot, opens, rows


@njit
def most_rows(program: Schedule, first: int, last: int) -> int:
    """Return how many rows the trees ``first … last - 1`` need at most, and at least one."""
    most = 1
    for tree in range(first, last):
        most = max(most, program.rows[tree])
    return most
