"""Forests cut into chunks, and the rows that come of them put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from treedot.errors import LimitError
from treedot.threads import thread_map
from treedot.trees import Forest
from treedot.types import IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

T = TypeVar("T")

CHUNK_TREES = 512
CHUNK_NODES = 1 << 16
FRAGMENTS = 1 << 10  # of one tree, that there is room for to begin with
MAX_FRAGMENTS = 1 << 22


class Rows(NamedTuple):
    """Some rows: how many values each has, their columns and the values."""

    lengths: IntArray
    indices: IntArray
    values: npt.NDArray[np.floating[Any]]


def forest_chunks(forest: Forest, trees: int, nodes: int) -> Iterator[tuple[int, int]]:
    """Cut a forest into runs of at most so many trees and nodes (or of one tree)."""
    first = 0
    while first < len(forest):
        fitting = int(np.searchsorted(forest.offsets, forest.offsets[first] + nodes, side="right")) - 1
        last = min(first + trees, max(fitting, first + 1), len(forest))
        yield first, last
        first = last


def in_chunks(run: Callable[[int, int], T], forest: Forest, scale: int, n_jobs: int | None) -> Iterator[T]:
    """Yield the results for runs of trees, in order."""
    if 0 < len(forest) <= scale * CHUNK_TREES and forest.n_nodes <= scale * CHUNK_NODES:
        yield run(0, len(forest))
        return
    chunks = list(forest_chunks(forest, scale * CHUNK_TREES, scale * CHUNK_NODES))
    with thread_map(n_jobs, len(chunks)) as run_all:
        yield from run_all(lambda limits: run(*limits), chunks)


def doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return room for twice as much, with what is there."""
    return np.concatenate([array, np.empty_like(array)])


def more_room(room: int, forest: Forest, tree: int, budget: int | None) -> int:
    """Return twice the room for fragments, or raise where it is too much."""
    if 2 * room > MAX_FRAGMENTS:
        advice = "give a budget" if budget is None else f"use a budget below {budget}"
        raise LimitError(
            f"{named(forest, tree)} has more than {MAX_FRAGMENTS} fragments within the budget: "
            f"{advice if budget != 0 else 'it is too large'}"
        )
    return 2 * room


def matrix_of(parts: list[Rows], n_columns: int, dtype: str) -> csr_matrix:
    """Return rows as a matrix, whose columns are known to be sorted and distinct."""
    from scipy.sparse import csr_matrix

    if not parts:
        return csr_matrix((0, n_columns), dtype=dtype)
    lengths, indices, values = (
        parts[0] if len(parts) == 1 else (np.concatenate(part) for part in zip(*parts, strict=True))
    )
    indptr = np.zeros(lengths.size + 1, np.int32 if indices.size < 2**31 else np.int64)
    lengths.cumsum(out=indptr[1:])
    matrix = csr_matrix((values.astype(dtype, copy=False), indices, indptr), shape=(lengths.size, n_columns))
    matrix.has_canonical_format = True
    return matrix


def named(forest: Forest, tree: int) -> str:
    """Return how a tree is called in messages."""
    return f"tree {tree + 1} ({forest.sizes[tree]} nodes)"


def most_nodes(forest: Forest, first: int, last: int) -> int:
    """Return how many nodes the largest of some trees has."""
    return forest.n_nodes if len(forest) == 1 else int(forest.sizes[first:last].max())
