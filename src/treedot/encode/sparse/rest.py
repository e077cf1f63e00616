"""What lies beyond the budget of a row: one dense vector, or blocks."""

from __future__ import annotations

import math

import numpy as np

from treedot.encode.chunks import FRAGMENTS, Rows, doubled, more_room, most_nodes, named
from treedot.encode.sparse import block_rest, dense_rest
from treedot.encode.sparse.reference import BLOCK, block, dense_vector
from treedot.encode.spec import SparseSpec
from treedot.errors import LimitError
from treedot.trees import Forest, Tree
from treedot.types import FloatArray, IntArray, WordArray


class DenseRest:
    """What lies beyond the budget as one dense vector."""

    def __init__(self, spec: SparseSpec, origin: int) -> None:
        self.spec, self.origin, self.width = spec, origin, spec.rest_width
        self._budget = int(spec.budget or 0)
        self._mixers = dense_rest.make_mixers(spec.rest_size, spec.seed)

    def encode(self, forest: Forest, keys: WordArray, first: int, last: int) -> tuple[Rows, FloatArray]:
        """Return unit vectors, nothing where nothing lies beyond, and the logarithms of their lengths."""
        vectors = np.empty((last - first, self.width), self.spec.dtype)
        log_lengths = np.empty(last - first)
        with np.errstate(over="ignore"):
            too_deep = dense_rest.encode(
                forest.offsets[first : last + 1], forest.arity, forest.label, keys,
                self._budget, math.sqrt(self.spec.decay), self._mixers, vectors, log_lengths,
            )  # fmt: skip
        if too_deep >= 0:
            raise LimitError(
                f"{named(forest, first + too_deep)} has too many open nodes at a time for a dense rest: "
                "use a smaller rest_size, or no rest"
            )
        held = log_lengths > -np.inf
        vectors = vectors if held.all() else vectors[held]
        return Rows(held * self.width, np.zeros(0, np.int32), vectors.ravel()), log_lengths

    def fragment(self, tree: Tree) -> tuple[IntArray, FloatArray]:
        """Return columns and values of one fragment."""
        return self.origin + np.arange(self.width), dense_vector(tree, self.width, self.spec.seed)


class BlockRest:
    """What lies beyond the budget in blocks of four numbers."""

    def __init__(self, spec: SparseSpec, origin: int) -> None:
        self.spec, self.origin = spec, origin
        self.width = spec.rest_width
        self._shift = 65 - (self.width // BLOCK).bit_length()
        self._budget = int(spec.budget or 0)
        self._tables = block_rest.make_tables(spec.decay, self._budget, spec.seed)

    def encode(self, forest: Forest, keys: WordArray, first: int, last: int) -> tuple[Rows, FloatArray]:
        """Return blocks, and the logarithms of what they are to be multiplied by."""
        count, prefixes = last - first, FRAGMENTS
        nodes = most_nodes(forest, first, last)
        room = block_rest.make_room(nodes, prefixes)
        size = BLOCK * (int(forest.offsets[last] - forest.offsets[first]) + prefixes)
        indices, values = np.empty(size, np.int32), np.empty(size)
        indptr, log_lengths = np.zeros(count + 1, np.int64), np.empty(count)
        done = 0
        while done < count:
            with np.errstate(over="ignore"):
                done, wants_room = block_rest.encode(
                    forest.offsets[first : last + 1], forest.arity, forest.label, keys, done,
                    self._budget, np.uint64(self._shift), self.origin, self._tables, room,
                    indptr, indices, values, log_lengths,
                )  # fmt: skip
            if done < count and wants_room:
                prefixes = more_room(prefixes, forest, first + done, self.spec.budget)
                room = block_rest.make_room(nodes, prefixes)
            elif done < count:
                indices, values = doubled(indices), doubled(values)
        return Rows(np.diff(indptr), indices[: indptr[-1]], values[: indptr[-1]]), log_lengths

    def fragment(self, tree: Tree) -> tuple[IntArray, FloatArray]:
        """Return columns and values of one fragment."""
        key, vector = block(tree, self._budget, self.spec.seed)
        sign = -1.0 if key & 1 else 1.0
        values = sign * vector.view(np.float64) / math.sqrt(BLOCK // 2)
        return self.origin + BLOCK * (key >> self._shift) + np.arange(BLOCK), values


def rest_of(spec: SparseSpec, origin: int) -> DenseRest | BlockRest | None:
    """Return what a spec asks for; its columns begin at ``origin``."""
    if spec.rest is None:
        return None
    return DenseRest(spec, origin) if spec.rest == "dense" else BlockRest(spec, origin)
