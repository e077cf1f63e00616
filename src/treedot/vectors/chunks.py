"""Cut forests into chunks, run compiled code over each, and join the rows into a matrix.

Compiled code cannot enlarge its arrays while it runs. So it goes from tree to tree as far as it can, and
says where it ended and why; ``run_to_end`` enlarges what was too small and lets it go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from treedot._runtime.array_types import Array, IntArray, Row, WordArray
from treedot._runtime.threads import ONE_THREAD, Span, Threads
from treedot.errors import LimitError, ParameterError
from treedot.trees import Forest

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CHUNK_TREES = 512
CHUNK_NODES = 1 << 16
LEAST_TREES = 64  # that are worth being given to a thread
FRAGMENTS = 1 << 10  # of one tree, that there is working memory for to begin with
LEAST_ENTRIES = 1 << 16  # of a matrix, that are worth being given to a thread
KEPT = 1 << 14  # working memory for more nodes, or more fragments, is not kept
MAX_FRAGMENTS = 1 << 22

# Why a compiled run over trees ended.
ALL_DONE = 0
NEEDS_MEMORY = 1  # the next tree has more fragments than there is working memory for
NEEDS_OUTPUT = 2  # what comes of the next tree may not fit behind that of the others
TOO_LARGE = 3  # a value of the next tree's row is too large for its number type
TOO_MANY_OPEN = 4  # more nodes of the next tree are open at a time than there may be vectors for
NOT_FINITE = 5  # a value of the next tree's row is NaN or infinite


# What compiled code is called with and returns. Plain tuples: named ones cost every call a microsecond each.
TreeArrays = tuple[IntArray, IntArray, IntArray, WordArray]  # offsets, arity, label; and each label's key
NonZeros = tuple[IntArray, Row]  # columns and values of rows one behind the other, with space at the end
Ended = tuple[int, int]  # the first tree that is not done, and why


class Chunk:
    """Neighbouring trees of a forest, those from ``first`` to before ``last``."""

    def __init__(self, forest: Forest, label_keys: WordArray, first: int, last: int) -> None:
        self.forest, self.first, self.n_trees = forest, first, last - first
        self.arrays: TreeArrays = (
            forest.offsets[first : last + 1], forest.arity, forest.label, label_keys
        )  # fmt: skip
        self.n_nodes = int(forest.offsets[last] - forest.offsets[first])
        self.most_nodes = self.n_nodes if self.n_trees == 1 else int(np.diff(self.arrays[0]).max())

    def name(self, tree: int) -> str:
        """Return how messages call a tree."""
        return f"tree {self.first + tree + 1} ({self.forest.sizes[self.first + tree]} nodes)"


class Rows(NamedTuple):
    """Some rows: how many non-zeros each has, their columns and their values."""

    lengths: IntArray
    indices: IntArray
    values: Row

    def write(self, indices: IntArray, values: Row) -> None:
        """Write columns and values where they belong in a matrix."""
        indices[:] = self.indices
        values[:] = self.values


class SomeRows(Protocol):
    """Rows that are written where they belong in a matrix."""

    @property
    def lengths(self) -> IntArray:
        """How many non-zeros each row has."""

    def write(self, indices: IntArray, values: Row) -> None:
        """Write their columns and values."""


class WorkingMemory(Protocol):
    """What compiled code keeps of one tree at a time."""

    @classmethod
    def make(cls, nodes: int, fragments: int) -> Self:
        """Return memory for trees of at most so many nodes and fragments."""

    @property
    def fragments(self) -> int:
        """For how many fragments of a tree there is memory."""


class KeptMemory(WorkingMemory, Protocol):
    """Working memory that is used again."""

    @property
    def nodes(self) -> int:
        """For how many nodes of a tree there is memory."""


T = TypeVar("T")
Memory = TypeVar("Memory", bound=WorkingMemory)
Kept = TypeVar("Kept", bound=KeptMemory)
Output = TypeVar("Output", bound=tuple[Array, ...])


class IdleMemory(Generic[Kept]):
    """Working memory that no thread is using."""

    def __init__(self, make: Callable[[int, int], Kept]) -> None:
        self._make, self._idle = make, list[Kept]()

    @property
    def nbytes(self) -> int:
        """How much memory is idle."""
        return sum(map(bytes_of, list(self._idle)))

    def take(self, nodes: int) -> Kept:
        """Return memory for trees of at most so many nodes, that of another chunk where it will do."""
        try:
            memory = self._idle.pop()
        except IndexError:
            return self._make(nodes, FRAGMENTS)
        return memory if memory.nodes >= nodes else self._make(nodes, FRAGMENTS)

    def give_back(self, memory: Kept) -> None:
        """Keep memory for the next chunk, unless it is large."""
        if memory.nodes <= KEPT and memory.fragments <= KEPT:
            self._idle.append(memory)


def bytes_of(value: Any) -> int:
    """Return how much memory the arrays of a tuple take, and of the tuples in it."""
    return sum(map(bytes_of, value)) if isinstance(value, tuple) else int(getattr(value, "nbytes", 0))


def check_forest(forest: Any) -> None:
    """Raise unless an encoder is given a forest."""
    if not isinstance(forest, Forest):
        raise ParameterError(f"an encoder wants a Forest, not {type(forest).__name__}: call read_trees first")


def forest_chunks(forest: Forest, trees: int, nodes: int, threads: int = 1) -> Iterator[tuple[int, int]]:
    """Cut a forest into runs of at most so many trees and nodes (or of one tree).

    For several threads they become shorter towards the end, so that all threads end at about the same time.
    """
    first = 0
    while first < len(forest):
        if threads > 1:
            trees = min(trees, max(LEAST_TREES, (len(forest) - first) // (2 * threads)))
        fitting = int(np.searchsorted(forest.offsets, forest.offsets[first] + nodes, side="right")) - 1
        last = min(first + trees, max(fitting, first + 1), len(forest))
        yield first, last
        first = last


def in_chunks(
    run: Callable[[Chunk], T], forest: Forest, label_keys: WordArray, scale: int, threads: Threads
) -> list[T]:
    """Return the results for all chunks of a forest, in order; of at most ``scale`` times the usual size."""
    trees, nodes = scale * CHUNK_TREES, scale * CHUNK_NODES
    if 0 < len(forest) <= (trees if threads.count == 1 else LEAST_TREES) and forest.n_nodes <= nodes:
        return [run(Chunk(forest, label_keys, 0, len(forest)))]
    limits = list(forest_chunks(forest, trees, nodes, threads.count))
    results: dict[Span, T] = {}

    def run_one(first: int, last: int) -> None:
        results[first, last] = run(Chunk(forest, label_keys, first, last))

    threads.run(run_one, limits)
    return [results[ends] for ends in limits]


def run_to_end(
    run: Callable[[int, Memory, Output], Ended],
    chunk: Chunk,
    memory: Memory,
    out: Output,
    budget: int | None,
) -> tuple[Memory, Output, Ended]:
    """Run compiled code over a chunk, with twice the memory or output wherever they do not suffice.

    Parameters
    ----------
    run : callable
        Goes over the trees from a given one on, in given memory, writes to given output, and returns how
        it ended.
    budget : int or None
        The largest cost of a fragment; the message for trees with too many fragments names it.

    Returns
    -------
    tuple
        Memory and output as they are at the end, and how the run ended: with everything done, or before a
        tree that no memory helps.
    """
    tree = 0
    while True:
        with np.errstate(over="ignore"):  # hashes wrap around
            tree, why = run(tree, memory, out)
        if why == NEEDS_MEMORY:
            memory = memory.make(chunk.most_nodes, _twice(memory.fragments, chunk, tree, budget))
        elif why == NEEDS_OUTPUT:
            twice: Any = tuple(np.concatenate([array, np.empty_like(array)]) for array in out)
            out = twice
        else:
            return memory, out, (tree, why)


def _twice(fragments: int, chunk: Chunk, tree: int, budget: int | None) -> int:
    """Return twice a number of fragments, or raise where it is too large."""
    if 2 * fragments > MAX_FRAGMENTS:
        advice = "give a budget" if budget is None else f"use a budget below {budget}"
        raise LimitError(
            f"{chunk.name(tree)} has more than {MAX_FRAGMENTS} fragments within the budget: "
            f"{advice if budget != 0 else 'it is too large'}"
        )
    return 2 * fragments


def rows_of(written: NonZeros, indptr: IntArray) -> Rows:
    """Return the rows that were written, and that begin and end where ``indptr`` says."""
    indices, values = written
    return Rows(indptr[1:] - indptr[:-1], indices[: indptr[-1]], values[: indptr[-1]])


def matrix_of(
    parts: Sequence[SomeRows], n_columns: int, dtype: str, threads: Threads = ONE_THREAD
) -> csr_matrix:
    """Return rows as a matrix, whose columns are known to be sorted and distinct."""
    from scipy.sparse import csr_matrix

    if not parts:
        return csr_matrix((0, n_columns), dtype=dtype)
    only = parts[0] if len(parts) == 1 else None
    lengths, indices, values = only if isinstance(only, Rows) else _joined(parts, dtype, threads)
    indptr = np.zeros(lengths.size + 1, np.int32 if indices.size < 2**31 else np.int64)
    lengths.cumsum(out=indptr[1:])
    matrix = csr_matrix((values.astype(dtype, copy=False), indices, indptr), shape=(lengths.size, n_columns))
    matrix.has_canonical_format = True
    return matrix


def _joined(parts: Sequence[SomeRows], dtype: str, threads: Threads) -> Rows:
    """Return the rows of all parts, one behind the other: each written by one thread."""
    ends = np.cumsum([0, *(part.lengths.sum() for part in parts)])
    joined = Rows(
        np.concatenate([part.lengths for part in parts]),
        np.empty(ends[-1], np.int32),
        np.empty(ends[-1], dtype),
    )

    def write(first: int, last: int) -> None:
        for k in range(first, last):
            place = slice(ends[k], ends[k + 1])
            parts[k].write(joined.indices[place], joined.values[place])

    threads.run(write, threads.even_spans(ends, LEAST_ENTRIES))
    return joined
