"""Encode a forest as a matrix of dense vectors, in several threads that share a table of label vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np

from treedot._runtime.array_types import IntArray, Matrix
from treedot._runtime.threads import Threads, open_threads
from treedot.errors import ParameterError, SpecMismatchError
from treedot.kernels.word_vectors import WordVectors
from treedot.trees import Forest
from treedot.vectors.chunks import ALL_DONE, NOT_FINITE, Ended, check_forest
from treedot.vectors.dense.label_table import LabelTable
from treedot.vectors.dense.schedule import Schedule, make_schedule
from treedot.vectors.spec import DenseSpec, not_finite, too_large

PART_NODES = 1 << 16  # most nodes prepared at a time; a larger tree is a part of its own


class DenseEncoder:
    """Turns forests into matrices of dense vectors, one row per tree.

    The vector of a tree is ``T̃ = Σ s(n)`` over its nodes (see ``reference.distributed_tree``, and
    ``reference.distributed_partial_tree`` for partial trees). An encoder keeps a table of label vectors, so
    encode many trees with the same encoder. Threads may share it.

    Parameters
    ----------
    spec : DenseSpec
        The settings of the vectors.
    similarity : WordVectors, default=None
        With ``kernel="smoothed"``, the word vectors whose fingerprint is in the spec.

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

    def __init__(self, spec: DenseSpec, similarity: WordVectors | None = None) -> None:
        self.spec = spec
        self._compiled = _compiled_encoder(spec, similarity)
        self._labels = LabelTable(self._compiled.label_table)
        self._word_bytes = 0 if similarity is None else similarity.nbytes
        _encoders.add(self)

    @property
    def nbytes(self) -> int:
        """The memory that the encoder keeps: the vectors of labels and of words."""
        return self._labels.nbytes + self._word_bytes

    def _after_fork(self) -> None:
        """Make a new table in a child process if a thread of the parent was using the old one.

        That thread does not exist in the child and may have left the table half changed.
        """
        if self._labels.is_busy:
            self._labels = LabelTable(self._compiled.label_table)

    def encode(
        self,
        forest: Forest,
        out: Matrix | None = None,
        n_jobs: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Matrix:
        """Return the vectors of all trees, one row each; the bytes do not depend on the number of threads.

        Parameters
        ----------
        forest : Forest
            The trees.
        out : array of shape (number of trees, n_components), default=None
            Where to write the vectors, for instance a memory map.
        n_jobs : int, default=None
            Threads; -1 for all cores.
        progress : callable, default=None
            Called from time to time, by one thread at a time, with the number of trees finished since the
            last call.

        Returns
        -------
        array of shape (n_trees, n_components)
            The vectors; ``out`` if it is given.
        """
        check_forest(forest)
        shape = (len(forest), self.spec.n_components)
        result = np.empty(shape, self.spec.dtype) if out is None else self._checked(out, shape)
        with open_threads(n_jobs, len(forest)) as threads:
            for first, last, used in self._sections(forest, 0, len(forest)):
                texts = [forest.labels[k] for k in used.tolist()]
                with self._labels.rows(texts, threads) as (rows, table):
                    row_of_label = np.empty(len(forest.labels), np.int32)
                    row_of_label[used] = rows
                    run = self._encoding(forest, row_of_label, table, result, progress)
                    threads.run(run, _parts(forest, first, last, threads))
        return result

    def _sections(self, forest: Forest, first: int, last: int) -> Iterator[tuple[int, int, IntArray]]:
        """Cut a range of trees into sections whose labels fit into the table; yield limits and labels."""
        here = np.zeros(len(forest.labels), bool)
        here[forest.label[forest.offsets[first] : forest.offsets[last]]] = True
        (used,) = here.nonzero()
        if used.size <= self._labels.capacity or last - first == 1:
            yield first, last, used
        else:
            middle = (first + last) // 2
            yield from self._sections(forest, first, middle)
            yield from self._sections(forest, middle, last)

    def _checked(self, out: Matrix, shape: tuple[int, int]) -> Matrix:
        if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != self.spec.dtype:
            raise ParameterError(
                f"out must be an array of shape {shape} and type {self.spec.dtype}, "
                f"not {getattr(out, 'shape', type(out).__name__)} and {getattr(out, 'dtype', 'no type')}"
            )
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise ParameterError("out must be a writeable array in C order")
        return out

    def _encoding(
        self, forest: Forest, row_of_label: IntArray, table: Any, out: Matrix,
        progress: Callable[[int], object] | None,
    ) -> Callable[[int, int], None]:  # fmt: skip
        """Return a function that encodes a range of trees whose labels are in the table."""
        from_right = not self._compiled.folds_left
        one_at_a_time = Lock()

        def run(first: int, last: int) -> None:
            offsets = forest.offsets[first : last + 1]
            nodes = slice(offsets[0], offsets[-1])
            label = row_of_label[forest.label[nodes]]
            schedule = make_schedule(forest.arity[nodes], offsets - offsets[0], label, from_right)
            encoded, why = self._compiled.encode(schedule, table, self.spec, out[first:last])
            if why != ALL_DONE:
                tree = first + encoded
                refused = not_finite if why == NOT_FINITE else too_large
                raise refused(f"vector of tree {tree + 1} ({forest.sizes[tree]} nodes)", self.spec)
            if progress is not None:
                with one_at_a_time:
                    progress(last - first)

        return run


def _parts(forest: Forest, first: int, last: int, threads: Threads) -> list[tuple[int, int]]:
    """Cut a range of trees into parts with about the same number of nodes."""
    spans = threads.even_spans(forest.offsets[first : last + 1], at_most=PART_NODES)
    return [(first + start, first + stop) for start, stop in spans]


_encoders: WeakSet[DenseEncoder] = WeakSet()


def _after_fork() -> None:
    for encoder in _encoders:
        encoder._after_fork()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)


class CompiledEncoder(Protocol):
    """The interface of the compiled encoders, one for each algebra."""

    folds_left: bool

    def label_table(self, texts: Sequence[str]) -> Any:
        """Return a named tuple of arrays with one row per label."""

    def encode(self, schedule: Schedule, labels: Any, spec: DenseSpec, out: Matrix) -> Ended:
        """Encode trees into ``out``; return the first tree that is not done, and why."""


def _compiled_encoder(spec: DenseSpec, similarity: WordVectors | None) -> CompiledEncoder:
    """Return the compiled encoder of a spec; only its module is imported."""
    named = similarity.fingerprint if isinstance(similarity, WordVectors) else None
    if spec.similarity != named or (named is None) != (similarity is None):
        raise SpecMismatchError(
            f"similarity must be the word vectors of fingerprint {spec.similarity}, not {similarity!r:.80}"
            if spec.kernel == "smoothed"
            else f"similarity has no effect with kernel={spec.kernel!r}: leave it out"
        )
    algebra: Any = spec.algebra()
    if spec.composition == "product":
        from treedot.vectors.dense.product import ProductEncoder

        return ProductEncoder(algebra, spec.dtype)
    if spec.composition == "convolution":
        from treedot.vectors.dense.convolution import ConvolutionEncoder

        return ConvolutionEncoder(algebra, spec.dtype)
    if similarity is not None:
        from treedot.vectors.dense.smoothed import SmoothedEncoder

        return SmoothedEncoder(algebra, similarity, spec.dtype)
    if spec.kernel == "partial":
        from treedot.vectors.dense.partial import PartialEncoder

        return PartialEncoder(algebra)
    from treedot.vectors.dense.mixed import MixedEncoder

    return MixedEncoder(algebra)
