"""The *rest* of a row: its fragments beyond the budget, as one dense vector or as blocks of columns.

The rest of a large tree may exceed any floating-point type, so each has a factor, given by its logarithm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot.errors import LimitError
from treedot.trees import Tree
from treedot.vectors import chunks
from treedot.vectors.sparse import block_rest, dense_rest
from treedot.vectors.sparse.reference import BLOCK, block, dense_vector
from treedot.vectors.sparse.rows import sums_of_squares
from treedot.vectors.spec import SparseSpec, not_finite

BLOCKS_PER_NODE = 2  # initial size of the output


class RestRows(NamedTuple):
    """The rests of some rows, the logarithm of a factor for each, and its sum of squares."""

    rows: chunks.Rows
    log_factors: FloatArray
    squares: FloatArray  # before the multiplication by the factor


class DenseRest:
    """Encodes each rest as one dense vector, in ``width`` columns starting at ``origin``."""

    def __init__(self, spec: SparseSpec, origin: int) -> None:
        self.spec, self.origin, self.width = spec, origin, spec.rest_width
        self._budget = int(spec.budget or 0)
        self._mixers = dense_rest.make_mixers(spec.rest_size, spec.seed)

    def encode(self, chunk: chunks.Chunk, exact: bool) -> RestRows:
        """Return the rests as unit vectors, with lengths as factors; empty rows for trees without a rest.

        The sums of squares are 1, apart from rounding. With ``exact``, rows get their exact lengths without
        them, so they are left out.
        """
        vectors = np.empty((chunk.n_trees, self.width), self.spec.dtype)
        log_lengths = np.empty(chunk.n_trees)
        with np.errstate(over="ignore"):  # hashes wrap around
            tree, why = dense_rest.encode(
                chunk.arrays, self._budget, math.sqrt(self.spec.decay), self._mixers, vectors, log_lengths
            )
        if why == chunks.TOO_MANY_OPEN:
            raise LimitError(
                f"{chunk.name(tree)} is too deep and wide for a dense rest, which keeps a vector for every "
                "unfinished node: use a smaller rest_size, or rest=None"
            )
        if np.isnan(log_lengths).any():
            tree = int(np.isnan(log_lengths).argmax())
            raise not_finite(f"rest of {chunk.name(tree)}", self.spec)
        held = log_lengths > -np.inf
        vectors = vectors if held.all() else vectors[held]
        rows = chunks.Rows(held * self.width, np.zeros(0, np.int32), vectors.ravel())
        squares = np.zeros(0) if exact else sums_of_squares(rows.lengths, rows.values)
        return RestRows(rows, log_lengths, squares)

    def exact_log_factors(
        self, log_factors: FloatArray, squares: FloatArray, log_norms: FloatArray
    ) -> FloatArray:
        """Return the factors that give rows their exact lengths; a rest has the length √(K - squares)."""
        share = np.clip(1.0 - np.exp(np.log(squares) - 2 * log_norms), 0.0, 1.0)
        return np.where(log_factors > -np.inf, log_norms + 0.5 * np.log(share), -np.inf)

    def fragment(self, tree: Tree) -> tuple[IntArray, FloatArray]:
        """Return the columns and values of one fragment."""
        return self.origin + np.arange(self.width), dense_vector(tree, self.width, self.spec.seed)


class BlockRest:
    """Encodes rests in blocks of four values, in ``width`` columns starting at ``origin``."""

    def __init__(self, spec: SparseSpec, origin: int) -> None:
        self.spec, self.origin = spec, origin
        self.width = spec.rest_width
        self._shift = 65 - (self.width // BLOCK).bit_length()
        self._budget = int(spec.budget or 0)
        self._tables = block_rest.make_tables(spec.decay, self._budget, spec.seed)
        self._idle = chunks.IdleMemory(block_rest.BlockMemory.make)

    def encode(self, chunk: chunks.Chunk, exact: bool) -> RestRows:
        """Return blocks, and the logarithms of powers of two as factors; ``exact`` has no effect."""
        indptr = np.zeros(chunk.n_trees + 1, np.int64)
        log_factors, squares = np.empty((2, chunk.n_trees))

        def run(tree: int, memory: block_rest.BlockMemory, out: chunks.NonZeros) -> chunks.Ended:
            return block_rest.encode(
                chunk.arrays, tree, self._budget, np.uint64(self._shift), self.origin, self._tables, memory,
                out, indptr, log_factors, squares,
            )  # fmt: skip

        memory = self._idle.take(chunk.most_nodes)
        size = BLOCK * (BLOCKS_PER_NODE * chunk.n_nodes + chunks.FRAGMENTS)
        out: chunks.NonZeros = np.empty(size, np.int32), np.empty(size)
        memory, out, _ = chunks.run_to_end(run, chunk, memory, out, self.spec.budget)
        self._idle.give_back(memory)
        return RestRows(chunks.rows_of(out, indptr), log_factors, squares)

    def exact_log_factors(
        self, log_factors: FloatArray, squares: FloatArray, log_norms: FloatArray
    ) -> FloatArray:
        """Return the factors unchanged: the block of a fragment has the same length in all rows."""
        return log_factors

    def fragment(self, tree: Tree) -> tuple[IntArray, FloatArray]:
        """Return the columns and values of one fragment."""
        key, vector = block(tree, self._budget, self.spec.seed)
        sign = -1.0 if key & 1 else 1.0
        values = sign * vector.view(np.float64) / math.sqrt(BLOCK // 2)
        return self.origin + BLOCK * (key >> self._shift) + np.arange(BLOCK), values


def rest_of(spec: SparseSpec, origin: int) -> DenseRest | BlockRest | None:
    """Return the encoder of the rests of a spec, None if it has none; their columns start at ``origin``."""
    if spec.rest is None:
        return None
    return DenseRest(spec, origin) if spec.rest == "dense" else BlockRest(spec, origin)
