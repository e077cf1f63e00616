"""Coordinate descent over labelled trees in blocks on disk.

Blocks are visited in a random order, several at a time: the rows of such a *group* are visited in random
order. All orders follow from the seed, whatever the number of workers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack

from treedot._runtime.array_types import FloatArray, IntArray, Matrix
from treedot._runtime.hashing import GOLDEN, mix
from treedot.models.training.coordinate_descent import Descent, PassFigures, Rows, shuffle, visit_rows
from treedot.models.training.tree_blocks import Block
from treedot.vectors.sparse.encoder import SparseEncoder
from treedot.vectors.sparse.rows import sums_of_squares

GROUP = 8  # blocks per group


class EncodedBlock(NamedTuple):
    """The rows of a block's trees, and the numbers of their classes."""

    rows: csr_matrix
    classes: IntArray

    @classmethod
    def of(cls, block: Block, encoder: SparseEncoder) -> EncodedBlock:
        """Encode a block on one thread."""
        return cls(encoder.encode(block.trees), block.classes)


class Group:
    """The rows of several blocks, ready to be visited.

    Parameters
    ----------
    blocks : list of EncodedBlock
        The blocks.
    targets : array of int
        The number of the class on the positive side of each problem.
    """

    def __init__(self, blocks: list[EncodedBlock], targets: IntArray) -> None:
        self._matrix = matrix = vstack([block.rows for block in blocks], "csr")
        self._rows = Rows(matrix.indptr, matrix.indices, matrix.data)
        self._squares = sums_of_squares(np.diff(matrix.indptr), matrix.data)
        self._positive = np.concatenate([block.classes for block in blocks])[:, None] == targets

    def visit(
        self,
        alpha: Matrix,
        weights: Matrix,
        bias: FloatArray,
        cost: FloatArray,
        figures: PassFigures,
        key: int,
        turns: int,
    ) -> None:
        """Solve for the α of all rows, ``turns`` times over; the arrays are changed in place.

        A visit costs less than encoding a tree, so rows are visited more than once while they are in memory.
        The order of each turn follows from ``key``. ``figures`` collects the losses of the first turn.
        """
        descent = Descent(self._positive, cost, np.ones(len(alpha)), alpha, weights, bias)
        for turn in range(turns):
            order = shuffled(len(alpha), key_of(key, turn) if turn else key)
            visit_rows(self._rows, self._squares, order, descent, figures)
            loss, excess = np.zeros((2, bias.size))
            figures = figures._replace(loss=loss, excess=excess, visited=figures.visited + len(alpha))

    def loss_and_excess(
        self, alpha: Matrix, weights: Matrix, bias: FloatArray, cost: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the contributions of the rows to P and to the duality gap P - D, for every problem."""
        costs = np.where(self._positive, cost[:, 1], cost[:, 0])
        slack = 1.0 - np.where(self._positive, 1.0, -1.0) * (self._matrix @ weights + bias)
        loss = costs * np.maximum(0.0, slack) ** 2
        excess = loss + alpha * (alpha / (4 * costs) - slack)
        return loss.sum(axis=0), excess.sum(axis=0)


def groups(count: int, seed: int) -> list[IntArray]:
    """Divide the block numbers up to ``count`` into groups at random, in the order of their visits."""
    order = shuffled(count, seed)
    return [order[first : first + GROUP] for first in range(0, count, GROUP)]


def key_of(seed: int, number: int) -> int:
    """Derive the seed of the part with this number from a common seed."""
    return mix(seed + (number + 1) * GOLDEN)


def shuffled(count: int, key: int) -> IntArray:
    """Return the numbers from 0 to ``count - 1`` in a random order that follows from a key."""
    order = np.arange(count)
    shuffle(order, np.uint64(key))
    return order


def sums_of_column_squares(weights: Matrix) -> FloatArray:
    """Return the sum of the squares of every column, in double precision, with little extra memory."""
    parts = np.array_split(weights, max(1, len(weights) >> 16))
    return sum((np.square(part, dtype=np.float64).sum(axis=0) for part in parts), np.zeros(weights.shape[1]))
