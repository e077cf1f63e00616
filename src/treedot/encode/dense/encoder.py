"""Forest in, dense vectors out: chunks of trees, threads over trees, one table of label vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np

from treedot.algebra import Algebra, MixedProduct, ShuffledConvolution, ShuffledProduct
from treedot.array_types import IntArray, Matrix
from treedot.encode.chunks import check_forest, forest_chunks
from treedot.encode.dense.schedule import Schedule, make_schedule
from treedot.encode.spec import DenseSpec
from treedot.errors import ParameterError, RangeError
from treedot.parameters import n_threads
from treedot.threads import thread_map
from treedot.trees import Forest

CHUNK_TREES = 2048
CHUNK_NODES = 1 << 20
TABLE_BYTES = 1 << 29  # for label vectors that are kept


class DenseEncoder:
    """Turns forests into matrices, one row per tree, as a spec says.

    The vector of a tree is ``T̃ = Σ s(n)`` over its nodes (see ``reference.distributed_tree``). Labels are
    looked up in a table that an encoder keeps: encode many trees with the same one. Threads may share it.

    Parameters
    ----------
    spec : DenseSpec
        What a vector depends on besides its tree.

    Examples
    --------
    >>> from treedot.readers import read_trees
    >>> forest = read_trees(["(S (NP Ann) (VP runs))", "(S (NP Bob) (VP runs))"])
    >>> vectors = DenseEncoder(DenseSpec(n_components=4096, normalize=False)).encode(forest)
    >>> vectors.shape
    (2, 4096)
    >>> print(f"{vectors[0] @ vectors[1]:.1f}")  # the exact kernel is 2.4
    2.5
    """

    def __init__(self, spec: DenseSpec) -> None:
        self.spec = spec
        self._compiled = _compiled_encoder(spec.algebra(), spec.dtype)
        self._share()
        _encoders.add(self)

    def _share(self) -> None:
        """Start an empty table of labels, and the lock of the threads that share it."""
        self._labels = _LabelTable(self._compiled.label_table)
        self._lock = Lock()

    def _after_fork(self) -> None:
        """Go on in a child process, where the thread that held the lock does not exist.

        It may have been amidst a change of the table, which is left to the parent then.
        """
        if self._lock.locked():
            self._share()

    def encode(
        self,
        forest: Forest,
        out: Matrix | None = None,
        n_jobs: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Matrix:
        """Return the vectors of all trees, one row each. Whatever the threads, the bytes are the same.

        Parameters
        ----------
        forest : Forest
            The trees.
        out : array of shape (number of trees, n_components), optional
            Where to write the vectors, for instance a memory map.
        n_jobs : int, optional
            Threads; -1 for all cores.
        progress : callable, optional
            Called now and then with the number of trees that were finished since the last call.
        """
        check_forest(forest)
        shape = (len(forest), self.spec.n_components)
        result = np.empty(shape, self.spec.dtype) if out is None else self._checked(out, shape)
        with thread_map(n_jobs, len(forest)) as run_all:
            for first, last in forest_chunks(forest, CHUNK_TREES, CHUNK_NODES):
                chunk = forest if last - first == len(forest) else forest[first:last]
                with self._lock:  # the label table serves one chunk at a time
                    self._encode_chunk(chunk, result[first:last], first, run_all, n_jobs)
                if progress is not None:
                    progress(last - first)
        return result

    def _checked(self, out: Matrix, shape: tuple[int, int]) -> Matrix:
        if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != self.spec.dtype:
            raise ParameterError(
                f"out must be an array of shape {shape} and type {self.spec.dtype}, "
                f"not {getattr(out, 'shape', type(out).__name__)} and {getattr(out, 'dtype', 'no type')}"
            )
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise ParameterError("out must be a writeable array in C order")
        return out

    def _encode_chunk(
        self, chunk: Forest, out: Matrix, first: int, run_all: Callable[..., Any], n_jobs: int | None
    ) -> None:
        rows, table = self._labels.lookup(chunk.labels)
        schedule = make_schedule(chunk, rows[chunk.label], from_right=not self._compiled.folds_left)
        root_decay = float(np.sqrt(self.spec.decay))

        def run(start: int, stop: int) -> int:
            return self._compiled.encode(schedule, table, start, stop, root_decay, self.spec.normalize, out)

        threads = n_threads(n_jobs)
        limits = [0, len(chunk)] if threads == 1 else _even_parts(chunk, 8 * threads)
        for done, stop in zip(run_all(run, limits[:-1], limits[1:]), limits[1:], strict=True):
            if done < stop:
                raise RangeError(
                    f"the vector of tree {first + done + 1} ({chunk.sizes[done]} nodes) is too "
                    f"large for {self.spec.dtype} with decay={self.spec.decay}: use normalize=True, "
                    "dtype='float64' or a smaller decay"
                )


_encoders: WeakSet[DenseEncoder] = WeakSet()


def _after_fork() -> None:
    for encoder in _encoders:
        encoder._after_fork()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)


class CompiledEncoder(Protocol):
    """What the compiled encoders, one for each algebra, have in common."""

    folds_left: bool

    def label_table(self, texts: Sequence[str]) -> Any:
        """Return a named tuple of arrays with one row per label."""

    def encode(
        self, schedule: Schedule, labels: Any, first: int, last: int,
        root_decay: float, normalize: bool, out: Matrix,
    ) -> int:  # fmt: skip
        """Encode the trees ``first … last - 1`` into ``out``; return ``last``, or the first too large tree.

        Nothing is encoded behind a tree whose vector is too large for its type.
        """


def _compiled_encoder(algebra: Algebra, dtype: str) -> CompiledEncoder:
    if isinstance(algebra, MixedProduct):
        from treedot.encode.dense.mixed import MixedEncoder

        return MixedEncoder(algebra)
    if isinstance(algebra, ShuffledProduct):
        from treedot.encode.dense.product import ProductEncoder

        return ProductEncoder(algebra, dtype)
    if isinstance(algebra, ShuffledConvolution):
        from treedot.encode.dense.convolution import ConvolutionEncoder

        return ConvolutionEncoder(algebra, dtype)
    raise TypeError(f"there is no encoder for {algebra.name}")


class _LabelTable:
    """The labels met so far, in at most ``TABLE_BYTES``: new ones replace those not used for longest.

    Only a chunk that has more labels of its own makes the table larger.
    """

    def __init__(self, make: Callable[[Sequence[str]], Any]) -> None:
        self._make = make
        self._row: dict[str, int] = {}
        self._text: list[str] = []
        self._used = np.zeros(0, np.int64)  # when each row was last asked for
        self._now = 0
        self._table: Any = None

    def lookup(self, texts: Sequence[str]) -> tuple[IntArray, Any]:
        """Return the row of every text, and the table, which stays as it is until the next call."""
        self._now += 1
        known = [self._row[text] for text in texts if text in self._row]
        self._used[known] = self._now
        new = [text for text in texts if text not in self._row]
        if new:
            fresh = self._make(new)
            rows = self._rows_for(new, fresh)
            for array, values in zip(self._table, fresh, strict=True):
                array[rows] = values
            self._used[rows] = self._now
        return np.array([self._row[text] for text in texts], np.int32), self._table

    def _rows_for(self, new: list[str], fresh: Any) -> IntArray:
        """Give rows to new texts: free ones first, then those of texts that were not asked for now."""
        row_bytes = sum(array.nbytes for array in fresh) // len(new)
        capacity = 0 if self._table is None else len(self._table[0])
        in_use = int((self._used[: len(self._text)] == self._now).sum())
        if self._table is None or in_use + len(new) > capacity:
            larger = max(TABLE_BYTES // row_bytes, in_use + len(new))
            table = [np.empty((larger, *array.shape[1:]), array.dtype) for array in fresh]
            for array, old in zip(table, self._table or (), strict=False):
                array[:capacity] = old
            self._table = type(fresh)(*table)
            self._used = np.concatenate([self._used, np.zeros(larger - capacity, np.int64)])
            capacity = larger
        free = min(capacity - len(self._text), len(new))
        oldest = np.argsort(self._used[: len(self._text)], kind="stable")[: len(new) - free]
        for row in oldest:
            del self._row[self._text[row]]
        rows = np.concatenate([oldest, np.arange(len(self._text), len(self._text) + free)])
        self._text += [""] * free
        for text, row in zip(new, rows.tolist(), strict=True):
            self._row[text] = row
            self._text[row] = text
        return rows


def _even_parts(forest: Forest, parts: int) -> list[int]:
    """Return the limits of at most ``parts`` runs of trees with about equally many nodes."""
    nodes = np.linspace(0, forest.n_nodes, parts + 1)
    return [int(limit) for limit in np.unique(np.searchsorted(forest.offsets, nodes))]
