"""Encode a forest as a matrix of sparse rows: fragments within the budget, and the rest of the kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, WordArray
from treedot._runtime.threads import open_threads
from treedot.errors import ParameterError, RangeError
from treedot.kernels.fragments.cost import fragment_cost
from treedot.trees import Forest, Tree
from treedot.vectors import chunks
from treedot.vectors.sparse.bounded import fragment_key, label_keys
from treedot.vectors.sparse.dictionary import DistinctFragments, ListMemory, distinct, joined, list_bounded
from treedot.vectors.sparse.occurrences import Occurrences, find_occurrences
from treedot.vectors.sparse.rest import BlockRest, DenseRest, RestRows, rest_of
from treedot.vectors.sparse.rows import LearnedColumns, Part, RowMemory, RowsWithRest, Rules, write_rows
from treedot.vectors.spec import SparseSpec, not_finite, too_large

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


FRAGMENTS_PER_NODE = 4  # initial size of the output
KEPT_LABELS = 1 << 20
LABEL_BYTES = 160  # estimated memory of a cached label: its text, its key and its entry in the dict


class Halves(NamedTuple):
    """The rows of a chunk, not yet scaled: bounded fragments and rests."""

    chunk: chunks.Chunk
    bounded: chunks.Rows
    squares: FloatArray  # sums of squares of the bounded fragments
    rest: RestRows


class SparseEncoder:
    """Turns forests into sparse matrices, one row per tree.

    Parameters
    ----------
    spec : SparseSpec
        The settings of the rows.
    learned : LearnedColumns, default=None
        What ``fit`` learned: weights, and the fragments that have columns if ``spec.n_features`` is None.

    Examples
    --------
    >>> from treedot.readers import read_trees
    >>> forest = read_trees(["(S (NP Ann) (VP runs))", "(S (NP Bob) (VP runs))"])
    >>> rows = SparseEncoder(SparseSpec(decay=0.5, damping="linear", normalize=False)).encode(forest)
    >>> rows.shape
    (2, 1048576)
    >>> print(f"{(rows[0] @ rows[1].T).toarray()[0, 0]:.2f}")  # (VP runs), (S NP VP), (S NP (VP runs))
    2.50
    """

    def __init__(self, spec: SparseSpec, learned: LearnedColumns | None = None) -> None:
        if spec.n_features is None and learned is None:
            raise ParameterError("n_features=None needs learned columns")
        self.spec = spec
        self.learned = LearnedColumns.make(np.zeros(0, np.uint64)) if learned is None else learned
        # With a rest, rows are normalised later, when the length of the rest is known.
        self._rules = Rules.make(spec, learned is not None, spec.normalize and spec.rest is None)
        self._rest = rest_of(spec, self.n_explicit)
        self._keys: dict[str, int] = {}
        self._idle = chunks.IdleMemory(RowMemory.make)

    @property
    def nbytes(self) -> int:
        """The memory that the encoder keeps: keys of labels, learned columns and working memory."""
        return LABEL_BYTES * len(self._keys) + chunks.bytes_of(self.learned) + self._idle.nbytes

    @property
    def n_explicit(self) -> int:
        """The number of columns of bounded fragments."""
        return int(self.learned.key.size) if self.spec.n_features is None else self.spec.n_features

    @property
    def n_columns(self) -> int:
        """The number of columns of the rows."""
        return self.n_explicit + (0 if self._rest is None else self._rest.width)

    def encode(
        self, forest: Forest, log_norms: FloatArray | None = None, n_jobs: int | None = None
    ) -> csr_matrix:
        """Return the rows of all trees, columns ascending; the bytes do not depend on the number of threads.

        Parameters
        ----------
        forest : Forest
            The trees.
        log_norms : array, default=None
            For rows with a rest, the logarithm of √K(a, a) of every tree. A dense rest is scaled to its exact
            length, and rows are normalised with √K(a, a). By default the rest is not scaled, and rows are
            normalised with their own length.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        csr_matrix of shape (n_trees, n_columns)
            The rows.
        """
        chunks.check_forest(forest)
        keys, rest = self.label_keys(forest.labels), self._rest
        parts: Sequence[chunks.SomeRows]
        with open_threads(n_jobs, len(forest)) as threads:
            if rest is None:
                parts = chunks.in_chunks(
                    lambda chunk: self._bounded_rows(chunk)[0], forest, keys, 16, threads
                )
            else:  # in smaller chunks, since a rest takes more memory
                made = chunks.in_chunks(
                    lambda chunk: self._halves(chunk, rest, log_norms is not None), forest, keys, 1, threads
                )
                parts = self._scaled(made, rest, log_norms)
            return chunks.matrix_of(parts, self.n_columns, self.spec.dtype, threads)

    def encode_fragment(self, fragment: Tree) -> csr_matrix:
        """Return the row of one fragment: ±1 in its column, or its vector in the rest.

        The row is empty if the fragment has no column.

        Parameters
        ----------
        fragment : Tree
            The fragment.

        Returns
        -------
        csr_matrix of shape (1, n_columns)
            The row.
        """
        if not fragment.children:
            raise ParameterError(f"{fragment.label!r} is a single node: a fragment needs at least two")
        indices, values = np.zeros(0, np.int64), np.zeros(0)
        if self.spec.budget is not None and fragment_cost(fragment) > self.spec.budget:
            if self._rest is not None:
                indices, values = self._rest.fragment(fragment)
        else:
            key = fragment_key(fragment, self.spec.seed)
            if self.spec.n_features is None:
                indices = np.flatnonzero(self.learned.key == np.uint64(key))
                values = np.ones(indices.size)
            else:
                indices = np.array([key >> self.spec.shift])
                values = np.array([-1.0 if key & 1 else 1.0])
        row = chunks.Rows(np.array([indices.size]), indices.astype(np.int32), values)
        return chunks.matrix_of([row], self.n_columns, self.spec.dtype)

    def bounded_fragments(self, forest: Forest, n_jobs: int | None = None) -> DistinctFragments:
        """Return the distinct bounded fragments of some trees, and the number of trees that hold each.

        Parameters
        ----------
        forest : Forest
            The trees.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        DistinctFragments
            The fragments by ascending key.
        """
        chunks.check_forest(forest)
        keys = self.label_keys(forest.labels)
        with open_threads(n_jobs, len(forest)) as threads:
            return joined(chunks.in_chunks(self._list_bounded, forest, keys, 1, threads))

    def occurrences(self, forest: Forest, log_norm: float | None = None) -> Occurrences:
        """Return all occurrences of bounded fragments in the only tree of a forest.

        Parameters
        ----------
        forest : Forest
            The tree.
        log_norm : float, default=None
            With a rest, the logarithm of √K(a, a), which normalises the row.

        Returns
        -------
        Occurrences
            The occurrences.
        """
        chunks.check_forest(forest)
        if len(forest) != 1:
            raise ParameterError(f"occurrences takes one tree, not {len(forest)}")
        chunk = chunks.Chunk(forest, self.label_keys(forest.labels), 0, 1)
        length = None
        if self._rest is not None:
            divided = self.spec.normalize and log_norm is not None and log_norm > -math.inf
            with np.errstate(over="ignore"):  # divided by an infinite length, every value is 0
                length = float(np.exp(log_norm or 0.0)) if divided else 1.0
        return find_occurrences(chunk, self._rules, self.learned, length)

    def label_keys(self, texts: tuple[str, ...]) -> WordArray:
        """Return the keys of labels; the keys of recent calls are cached.

        Parameters
        ----------
        texts : tuple of str
            The labels.

        Returns
        -------
        array of uint64 of shape (n_labels,)
            The keys.
        """
        known = self._keys
        try:
            return np.fromiter(map(known.__getitem__, texts), np.uint64, len(texts))
        except KeyError:  # rare, since most labels recur
            new = [text for text in texts if text not in known]
        if len(known) + len(new) > KEPT_LABELS:  # other threads may still use the old dict
            self._keys = known = {}
            new = list(texts)
        known.update(zip(new, label_keys(self.spec.seed, new).tolist(), strict=True))
        return np.array([known[text] for text in texts], np.uint64)

    def _bounded_rows(self, chunk: chunks.Chunk) -> tuple[chunks.Rows, FloatArray]:
        """Return the rows of bounded fragments of a chunk, and the sum of squares of each row."""
        indptr, squares = np.zeros(chunk.n_trees + 1, np.int64), np.empty(chunk.n_trees)

        def run(tree: int, memory: RowMemory, out: chunks.NonZeros) -> chunks.Ended:
            return write_rows(chunk.arrays, tree, self._rules, self.learned, memory, out, indptr, squares)

        memory = self._idle.take(chunk.most_nodes)
        size = FRAGMENTS_PER_NODE * chunk.n_nodes + memory.fragments
        dtype = self.spec.dtype if self._rest is None else "float64"
        out: chunks.NonZeros = np.empty(size, np.int32), np.empty(size, dtype)
        memory, out, (tree, why) = chunks.run_to_end(run, chunk, memory, out, self.spec.budget)
        if why != chunks.ALL_DONE:
            raise self._refused(chunk, tree, why)
        self._idle.give_back(memory)
        return chunks.rows_of(out, indptr), squares

    def _list_bounded(self, chunk: chunks.Chunk) -> DistinctFragments:
        """Return the distinct bounded fragments of a chunk."""
        indptr = np.zeros(chunk.n_trees + 1, np.int64)

        def run(tree: int, memory: ListMemory, out: tuple[Array, ...]) -> chunks.Ended:
            listed = DistinctFragments._make(out)
            return list_bounded(chunk.arrays, tree, self._rules.budget, memory, listed, indptr)

        memory = ListMemory.make(chunk.most_nodes, chunks.FRAGMENTS)
        out = DistinctFragments.make(FRAGMENTS_PER_NODE * chunk.n_nodes + chunks.FRAGMENTS)
        _, out, _ = chunks.run_to_end(run, chunk, memory, out, self.spec.budget)
        return distinct(DistinctFragments._make(column[: indptr[-1]] for column in out))

    def _halves(self, chunk: chunks.Chunk, beyond: DenseRest | BlockRest, exact: bool) -> Halves:
        """Return the rows of bounded fragments and the rests of a chunk."""
        return Halves(chunk, *self._bounded_rows(chunk), beyond.encode(chunk, exact))

    def _scaled(
        self, parts: list[Halves], beyond: DenseRest | BlockRest, log_norms: FloatArray | None
    ) -> list[RowsWithRest]:
        """Return rows with their rests, and the factors that scale both."""
        if not parts:
            return []
        # For all trees at once: with a step per chunk, other threads would have to wait.
        squares = np.concatenate([part.squares for part in parts])
        log_factors = np.concatenate([part.rest.log_factors for part in parts])
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            if log_norms is None:
                rest_squares = np.concatenate([part.rest.squares for part in parts])
                log_norms = 0.5 * np.logaddexp(np.log(squares), np.log(rest_squares) + 2 * log_factors)
            else:
                log_factors = beyond.exact_log_factors(log_factors, squares, log_norms)
            log_scale = -log_norms if self.spec.normalize else np.zeros(squares.size)
            log_scale[log_norms == -np.inf] = 0.0  # a tree without fragments
            factor, rest_factor = np.exp(log_scale), np.exp(log_factors + log_scale)
        found = []
        for part in parts:
            trees = slice(part.chunk.first, part.chunk.first + part.chunk.n_trees)
            left = Part(*part.bounded, factor[trees])
            right = Part(*part.rest.rows, rest_factor[trees], beyond.origin)
            found.append(RowsWithRest(left, right, self._rules.limit, partial(self._refused, part.chunk)))
        return found

    def _refused(self, chunk: chunks.Chunk, tree: int, why: int) -> RangeError:
        """Return the error for a row that cannot be written."""
        error = not_finite if why == chunks.NOT_FINITE else too_large
        return error(f"row of {chunk.name(tree)}", self.spec)
