"""Cut forests into chunks, run compiled code over each, and join the rows into a matrix.

Compiled code cannot enlarge its arrays while it runs. So it stops at a tree that needs more memory, and
returns the number of this tree and the reason; ``run_to_end`` enlarges the arrays and resumes there.
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
LEAST_TREES = 64  # the fewest trees that pay for a thread
FRAGMENTS = 1 << 10  # initial working memory: fragments of one tree
LEAST_ENTRIES = 1 << 16  # the fewest non-zeros that pay for a thread
KEPT = 1 << 14  # working memory for more nodes or fragments than this is not reused
MAX_FRAGMENTS = 1 << 22

# Why a compiled run over trees ended.
ALL_DONE = 0
NEEDS_MEMORY = 1  # the next tree has more fragments than fit into the working memory
NEEDS_OUTPUT = 2  # the results of the next tree may not fit into the rest of the output
TOO_LARGE = 3  # a value of the next tree's row is too large for its number type
TOO_MANY_OPEN = 4  # the next tree has more open nodes at a time than the limit on vectors allows
NOT_FINITE = 5  # a value of the next tree's row is NaN or infinite


# Arguments and results of compiled code. Plain tuples: each named one costs a microsecond per call.
TreeArrays = tuple[IntArray, IntArray, IntArray, WordArray]  # offsets, arity, label, keys of labels
NonZeros = tuple[IntArray, Row]  # columns and values of all rows, with free space at the end
Ended = tuple[int, int]  # the first tree that is not done, and why


class Chunk:
    """The trees ``first`` to ``last - 1`` of a forest."""

    def __init__(self, forest: Forest, label_keys: WordArray, first: int, last: int) -> None:
        self.forest, self.first, self.n_trees = forest, first, last - first
        self.arrays: TreeArrays = (
            forest.offsets[first : last + 1], forest.arity, forest.label, label_keys
        )  # fmt: skip
        self.n_nodes = int(forest.offsets[last] - forest.offsets[first])
        self.most_nodes = self.n_nodes if self.n_trees == 1 else int(np.diff(self.arrays[0]).max())

    def name(self, tree: int) -> str:
        """Return a description of a tree for messages: its number in the forest and its size."""
        return f"tree {self.first + tree + 1} ({self.forest.sizes[self.first + tree]} nodes)"


class Rows(NamedTuple):
    """Sparse rows: the number of non-zeros of each row, their columns and their values."""

    lengths: IntArray
    indices: IntArray
    values: Row

    def write(self, indices: IntArray, values: Row) -> None:
        """Copy the columns and values to a part of a matrix."""
        indices[:] = self.indices
        values[:] = self.values


class SomeRows(Protocol):
    """Sparse rows that can be written to a part of a matrix."""

    @property
    def lengths(self) -> IntArray:
        """The number of non-zeros of each row."""

    def write(self, indices: IntArray, values: Row) -> None:
        """Write the columns and values to a part of a matrix."""


class WorkingMemory(Protocol):
    """Arrays for the intermediate results of one tree at a time."""

    @classmethod
    def make(cls, nodes: int, fragments: int) -> Self:
        """Return memory for trees of at most ``nodes`` nodes and ``fragments`` fragments."""

    @property
    def fragments(self) -> int:
        """The most fragments that a tree may have."""


class KeptMemory(WorkingMemory, Protocol):
    """Working memory that several chunks use in turn."""

    @property
    def nodes(self) -> int:
        """The most nodes that a tree may have."""


T = TypeVar("T")
Memory = TypeVar("Memory", bound=WorkingMemory)
Kept = TypeVar("Kept", bound=KeptMemory)
Output = TypeVar("Output", bound=tuple[Array, ...])


class IdleMemory(Generic[Kept]):
    """A pool of working memory that no thread is using."""

    def __init__(self, make: Callable[[int, int], Kept]) -> None:
        self._make, self._idle = make, list[Kept]()

    @property
    def nbytes(self) -> int:
        """The size of the idle memory."""
        return sum(map(bytes_of, list(self._idle)))

    def take(self, nodes: int) -> Kept:
        """Return memory for trees of at most ``nodes`` nodes: idle memory if it is large enough."""
        try:
            memory = self._idle.pop()
        except IndexError:
            return self._make(nodes, FRAGMENTS)
        return memory if memory.nodes >= nodes else self._make(nodes, FRAGMENTS)

    def give_back(self, memory: Kept) -> None:
        """Put memory back into the pool, unless it is large."""
        if memory.nodes <= KEPT and memory.fragments <= KEPT:
            self._idle.append(memory)


def bytes_of(value: Any) -> int:
    """Return the size of the arrays in a tuple and in the tuples inside it."""
    return sum(map(bytes_of, value)) if isinstance(value, tuple) else int(getattr(value, "nbytes", 0))


def check_forest(forest: Any) -> None:
    """Raise unless the input of an encoder is a forest."""
    if not isinstance(forest, Forest):
        raise ParameterError(f"an encoder takes a Forest, not {type(forest).__name__}: call read_trees first")


def forest_chunks(forest: Forest, trees: int, nodes: int, threads: int = 1) -> Iterator[tuple[int, int]]:
    """Yield the limits of chunks of at most ``trees`` trees and ``nodes`` nodes; a large tree is a chunk.

    With several threads, chunks become smaller towards the end, so that all threads finish together.
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
    """Call ``run`` on all chunks of a forest; return the results in order.

    A chunk has at most ``scale`` times ``CHUNK_TREES`` trees and ``CHUNK_NODES`` nodes.
    """
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
    """Run compiled code over a chunk; double its memory or output whenever either is too small.

    Parameters
    ----------
    run : callable
        Processes the trees from a given number on, using the memory and writing to the output that it is
        given. Returns the first tree that is not done, and why.
    budget : int or None
        The largest cost of a fragment, for the message about trees with too many fragments.

    Returns
    -------
    tuple
        The final memory, the final output, and how the run ended: with ``ALL_DONE``, or at a tree for which
        more memory does not help.
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
    """Return twice a number of fragments; raise if that exceeds ``MAX_FRAGMENTS``."""
    if 2 * fragments > MAX_FRAGMENTS:
        advice = "give a budget" if budget is None else f"use a budget below {budget}"
        raise LimitError(
            f"{chunk.name(tree)} has more than {MAX_FRAGMENTS} fragments within the budget: "
            f"{advice if budget != 0 else 'it is too large'}"
        )
    return 2 * fragments


def rows_of(written: NonZeros, indptr: IntArray) -> Rows:
    """Return the rows that compiled code wrote one after another; row i begins at ``indptr[i]``."""
    indices, values = written
    return Rows(indptr[1:] - indptr[:-1], indices[: indptr[-1]], values[: indptr[-1]])


def matrix_of(
    parts: Sequence[SomeRows], n_columns: int, dtype: str, threads: Threads = ONE_THREAD
) -> csr_matrix:
    """Return rows as a matrix; the columns of each row must be sorted and distinct."""
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
    """Return the rows of all parts in order; several threads write them."""
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
