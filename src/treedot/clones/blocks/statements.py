"""``Statements``: all statements of some files, with the bodies that hold them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import njit_borrowing
from treedot.errors import ParameterError
from treedot.trees import Forest


class Statements(NamedTuple):
    """The statements of files, body by body; those of a body are in source order.

    A body is a node whose children are statements: a block, the body of a class, a file. Where something else
    lies between them, as an ignored function does, another body begins. So consecutive statements of a body,
    a run, are consecutive nodes of the forest.
    """

    node: IntArray  # the roots of the statements, in the forest of files
    first: IntArray  # the first node of each
    tree: IntArray  # the number of the file
    lines: IntArray  # the first and the last line
    texts: IntArray  # the range of names and literals among those of the file
    body: IntArray  # the number of the body
    body_end: IntArray  # the number after the last statement of the same body
    around: IntArray  # the innermost statement around the body; -1 for none

    @property
    def sizes(self) -> IntArray:
        """The number of nodes of each statement."""
        return self.node + 1 - self.first


def statement_rows(files: Forest) -> tuple[IntArray, IntArray]:
    """Return the rows of the column ``statements`` of files, and the number of each row's file."""
    if len(files) and "statements" not in files.columns:
        raise ParameterError(
            "blocks are found in files with the column 'statements': read them with "
            "CodeSettings(unit='file', statements=True)"
        )
    listed = [(i, rows) for i, rows in enumerate(files.columns.get("statements", ())) if rows is not None]
    rows = np.concatenate([np.zeros((0, 5), np.int64), *(rows for _, rows in listed)])
    tree = np.repeat([i for i, _ in listed], [len(rows) for _, rows in listed])
    return rows, tree.astype(np.int64)


def statements_of(files: Forest) -> Statements:
    """Return the statements that the column ``statements`` of a forest of files lists."""
    rows, tree = statement_rows(files)
    node = rows[:, 0] + files.offsets[tree]
    parent = files.parent[node].astype(np.int64)
    order = np.lexsort((node, parent))
    node, parent, tree, rows = node[order], parent[order], tree[order], rows[order]
    first = node + 1 - files.subtree_size[node]
    is_next = (parent[1:] == parent[:-1]) & (first[1:] == node[:-1] + 1)
    start = np.append(np.flatnonzero(np.append(True, ~is_next)[: len(node)]), len(node))
    bodies, sizes = parent[start[:-1]], np.diff(start)
    around = np.full(len(bodies), -1, np.int64)
    statement_at = np.full(files.n_nodes, -1, np.int64)
    statement_at[node] = np.arange(len(node))
    _enclosing(bodies, files.parent, statement_at, around)
    return Statements(
        node,
        first,
        tree,
        rows[:, 1:3],
        rows[:, 3:5],
        np.repeat(np.arange(len(bodies)), sizes),
        np.repeat(start[1:], sizes),
        np.repeat(around, sizes),
    )


@njit_borrowing
def _enclosing(bodies: IntArray, parent: IntArray, statement_at: IntArray, around: IntArray) -> None:
    """Write to ``around`` the innermost statement that contains each body, or whose root the body is."""
    for k in range(bodies.size):
        node = bodies[k]
        while node >= 0 and statement_at[node] < 0:
            node = parent[node]
        if node >= 0:
            around[k] = statement_at[node]
