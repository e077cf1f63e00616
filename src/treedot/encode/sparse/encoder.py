"""Forest in, sparse rows out: the bounded fragments of every tree, and what lies beyond."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from treedot.encode.chunks import FRAGMENTS, Rows, doubled, in_chunks, matrix_of, more_room, most_nodes, named
from treedot.encode.sparse import columns
from treedot.encode.sparse.bounded import fragment_key, label_keys, make_found, make_sorted
from treedot.encode.sparse.columns import Known, make_room, make_rules
from treedot.encode.sparse.dictionary import Fragments, distinct, joined, list_bounded
from treedot.encode.sparse.rest import BlockRest, DenseRest, rest_of
from treedot.encode.spec import SparseSpec
from treedot.errors import ParameterError, RangeError
from treedot.parameters import n_threads
from treedot.trees import Forest, Tree
from treedot.types import FloatArray, WordArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


VALUES_PER_NODE = 4
KEPT_LABELS = 1 << 20
KEPT_NODES = 1 << 14  # working memory for larger trees is not kept


class SparseEncoder:
    """Turns forests into sparse matrices, one row per tree, as a spec says.

    Parameters
    ----------
    spec : SparseSpec
        What a row depends on.
    known : Known, optional
        What was learned from other trees: the keys that have columns, where the spec has no number of
        columns, and weights.

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

    def __init__(self, spec: SparseSpec, known: Known | None = None) -> None:
        self.spec = spec
        self.known = Known.make(np.zeros(0, np.uint64)) if known is None else known
        if spec.n_features is None and known is None:
            raise ParameterError("n_features=None wants the keys of the fragments that have columns")
        # With a rest, rows are scaled when that is known too.
        alone = spec.rest is None
        self._rules = make_rules(spec, known is not None, spec.normalize and alone)
        self._keys: dict[str, int] = {}
        self._rooms: list[columns.Room] = []  # that no thread is using

    @property
    def n_explicit(self) -> int:
        """How many columns bounded fragments have."""
        return int(self.known.key.size) if self.spec.n_features is None else self.spec.n_features

    @property
    def n_columns(self) -> int:
        """How many columns the rows have."""
        return self.n_explicit + (0 if self._rest is None else self._rest.width)

    @cached_property
    def _rest(self) -> DenseRest | BlockRest | None:
        return rest_of(self.spec, self.n_explicit)

    def encode(
        self, forest: Forest, log_norms: FloatArray | None = None, n_jobs: int | None = None
    ) -> csr_matrix:
        """Return the rows of all trees, columns ascending. Whatever the threads, the bytes are the same.

        Parameters
        ----------
        forest : Forest
            The trees.
        log_norms : array, optional
            For rows with a rest, the logarithm of √K(a, a) of every tree: a dense rest gets the length that
            it should have, and rows are normalised by it. Without, everything keeps its own length.
        """
        keys = self.label_keys(forest.labels)

        def run(first: int, last: int) -> Rows:
            explicit, squares = self._explicit(forest, keys, first, last)
            if self._rest is None:
                return explicit
            rest, log_lengths = self._rest.encode(forest, keys, first, last)
            own = None if log_norms is None else log_norms[first:last]
            return self._joined(explicit, squares, rest, log_lengths, own, forest, first)

        # Fewer, larger chunks where there is nothing to share out.
        scale = 16 if n_threads(n_jobs) == 1 and self._rest is None else 1
        return matrix_of(list(in_chunks(run, forest, scale, n_jobs)), self.n_columns, self.spec.dtype)

    def fragments(self, forest: Forest, n_jobs: int | None = None) -> Fragments:
        """Return the distinct bounded fragments of some trees, and how many trees hold each."""
        keys = self.label_keys(forest.labels)

        def run(first: int, last: int) -> Fragments:
            return self._listed(forest, keys, first, last)

        return joined(list(in_chunks(run, forest, 1, n_jobs)))

    def fragment(self, tree: Tree) -> csr_matrix:
        """Return the row of one fragment: ±1 in its column, or its vector in the rest.

        It is nothing where the fragment has no column.
        """
        if not tree.children:
            raise ParameterError(f"{tree.label!r} is a single node, and fragments have more than one")
        indices, values = np.zeros(0, np.int64), np.zeros(0)
        if _cost(tree) > self._rules.budget:
            if self._rest is not None:
                indices, values = self._rest.fragment(tree)
        else:
            key = fragment_key(tree, self.spec.seed)
            if self.spec.n_features is None:
                indices = np.flatnonzero(self.known.key == np.uint64(key))
                values = np.ones(indices.size)
            else:
                indices = np.array([key >> int(self._rules.shift)])
                values = np.array([-1.0 if key & 1 else 1.0])
        row = Rows(np.array([indices.size]), indices.astype(np.int32), values)
        return matrix_of([row], self.n_columns, self.spec.dtype)

    def label_keys(self, texts: tuple[str, ...]) -> WordArray:
        """Return the keys of labels; those of the last calls are kept."""
        known = self._keys
        new = [text for text in texts if text not in known]
        if len(known) + len(new) > KEPT_LABELS:  # other threads go on with the old ones
            self._keys = known = {}
            new = list(texts)
        if new:
            known.update(zip(new, label_keys(self.spec.seed, new).tolist(), strict=True))
        return np.array([known[text] for text in texts], np.uint64)

    def _explicit(self, forest: Forest, keys: WordArray, first: int, last: int) -> tuple[Rows, FloatArray]:
        """Encode bounded fragments, in more room where it does not suffice; return sums of squares too."""
        nodes, count = most_nodes(forest, first, last), last - first
        room = self._room(nodes)
        fragments = room.value.size
        size = VALUES_PER_NODE * int(forest.offsets[last] - forest.offsets[first]) + fragments
        dtype = self.spec.dtype if self._rest is None else "float64"
        indices, values = np.empty(size, np.int32), np.empty(size, dtype)
        indptr, squares = np.zeros(count + 1, np.int64), np.empty(count)
        done, why = 0, columns.MORE_VALUES
        while why != columns.DONE:
            with np.errstate(over="ignore"):  # hashes wrap around
                done, why = columns.encode(
                    forest.offsets[first : last + 1], forest.arity, forest.label, keys, done,
                    self._rules, self.known, room, indptr, indices, values, squares,
                )  # fmt: skip
            if why == columns.MORE_VALUES:
                indices, values = doubled(indices), doubled(values)
            elif why == columns.MORE_FRAGMENTS:
                fragments = more_room(fragments, forest, first + done, self.spec.budget)
                room = make_room(nodes, fragments)
            elif why == columns.TOO_LARGE:
                raise _too_large(forest, first + done, self.spec)
        if nodes <= KEPT_NODES and fragments <= KEPT_NODES:
            self._rooms.append(room)
        return Rows(indptr[1:] - indptr[:-1], indices[: indptr[-1]], values[: indptr[-1]]), squares

    def _room(self, nodes: int) -> columns.Room:
        try:
            room = self._rooms.pop()
        except IndexError:
            return make_room(nodes, FRAGMENTS)
        return room if room.found.stack.size >= nodes else make_room(nodes, FRAGMENTS)

    def _listed(self, forest: Forest, keys: WordArray, first: int, last: int) -> Fragments:
        nodes, count = most_nodes(forest, first, last), last - first
        room = FRAGMENTS
        size = VALUES_PER_NODE * int(forest.offsets[last] - forest.offsets[first]) + room
        kinds = (np.uint64, np.int64, np.uint64, np.uint64, np.int32, np.int64)
        out = Fragments._make(np.empty(size, kind) for kind in kinds)
        found, table = make_found(nodes, room), make_sorted(room)
        done = number = 0
        while done < count:
            with np.errstate(over="ignore"):
                done, number = list_bounded(
                    forest.offsets[first : last + 1], forest.arity, forest.label, keys, done,
                    self._rules.budget, found, table, number, out,
                )  # fmt: skip
            if done < count and out.key.size < number + room:
                out = Fragments._make(map(doubled, out))
            elif done < count:
                room = more_room(room, forest, first + done, self.spec.budget)
                found, table = make_found(nodes, room), make_sorted(room)
        return distinct(Fragments._make(column[:number] for column in out))

    def _joined(
        self, explicit: Rows, squares: FloatArray, rest: Rows, log_lengths: FloatArray,
        log_norms: FloatArray | None, forest: Forest, first: int,
    ) -> Rows:  # fmt: skip
        """Return rows with their rest, both with the right length; rests come with lengths apart."""
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            if log_norms is None:
                tree = np.repeat(np.arange(squares.size), rest.lengths)
                beyond = np.bincount(tree, rest.values.astype(np.float64) ** 2, squares.size)
                log_norms = 0.5 * np.logaddexp(np.log(squares), np.log(beyond) + 2 * log_lengths)
            elif isinstance(self._rest, DenseRest):
                beyond = np.clip(1.0 - np.exp(np.log(squares) - 2 * log_norms), 0.0, 1.0)
                log_lengths = np.where(rest.lengths > 0, log_norms + 0.5 * np.log(beyond), -np.inf)
            scale = -log_norms if self.spec.normalize else np.zeros(squares.size)
            scale[log_norms == -np.inf] = 0.0  # a tree without fragments
            left = columns.Part(*explicit, np.exp(scale))
            right = columns.Part(*rest, np.exp(log_lengths + scale), self.n_explicit)
        lengths = explicit.lengths + rest.lengths
        indices, values = np.empty(lengths.sum(), np.int32), np.empty(lengths.sum(), self.spec.dtype)
        too_large = columns.join(left, right, self._rules.limit, indices, values)
        if too_large >= 0:
            raise _too_large(forest, first + too_large, self.spec)
        return Rows(lengths, indices, values)


def _cost(fragment: Tree) -> int:
    """Return the cost of a fragment: of every expanded child, the number of its siblings and itself."""
    return sum(
        len(node.children) * sum(bool(child.children) for child in node.children)
        for node in fragment.postorder()
    )


def _too_large(forest: Forest, tree: int, spec: SparseSpec) -> RangeError:
    return RangeError(
        f"the row of {named(forest, tree)} is too large for {spec.dtype} with decay={spec.decay}: "
        "use normalize=True, dtype='float64' or a smaller decay"
    )
