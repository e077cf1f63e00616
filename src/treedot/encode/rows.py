"""Forest in, sparse rows out: chunks of trees, threads over chunks."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from treedot.encode.encoder import forest_chunks
from treedot.encode.slots import make_below
from treedot.encode.spec import StratifiedSpec
from treedot.encode.strata import BLOCK, label_keys, mix, stratum
from treedot.encode.stratified import Rules, encode, make_room, make_tables
from treedot.errors import LimitError, ParameterError, RangeError
from treedot.parameters import n_threads
from treedot.readers import read_tree, read_trees
from treedot.trees import Forest

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.signedinteger[Any]]
WordArray = npt.NDArray[np.uint64]

CHUNK_TREES = 512
CHUNK_NODES = 1 << 16
PREFIXES = 1 << 10  # room to begin with
VALUES_PER_NODE = 32
KEPT_LABELS = 1 << 20
MAX_PREFIXES = 1 << 22

Rows = tuple[IntArray, IntArray, npt.NDArray[np.floating[Any]]]


class StratifiedEncoder:
    """Turns forests into sparse matrices, one row per tree, as a spec says.

    Examples
    --------
    >>> from treedot.readers import read_trees
    >>> forest = read_trees(["(S (NP Ann) (VP runs))", "(S (NP Bob) (VP runs))"])
    >>> rows = StratifiedEncoder(StratifiedSpec(decay=0.5)).encode(forest)
    >>> rows.shape
    (2, 1048576)
    >>> print(f"{(rows[0] @ rows[1].T).toarray()[0, 0]:.2f}")  # the exact kernel is 2.5 too
    2.50
    """

    def __init__(self, spec: StratifiedSpec) -> None:
        self.spec = spec
        half = spec.n_features // 2
        self._rules = Rules(spec.budget, spec.normalize, half, half // BLOCK)
        self._tables = make_tables(spec.decay, spec.budget, spec.seed)
        self._keys: dict[str, int] = {}

    def encode(self, trees: Any, n_jobs: int | None = None) -> csr_matrix:
        """Return the rows of all trees of a source.

        The columns of a row are not sorted. Whatever the threads, the bytes are the same.
        """
        from scipy.sparse import csr_matrix

        forest = read_trees(trees)
        keys = self._label_keys(forest.labels)

        def run(limits: tuple[int, int]) -> Rows:
            return self._chunk(forest, keys, *limits)

        threads = n_threads(n_jobs)
        scale = 16 if threads == 1 else 1  # fewer, larger chunks where there is nothing to share out
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(run, forest_chunks(forest, scale * CHUNK_TREES, scale * CHUNK_NODES)))
        if not parts:
            parts = [(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, self.spec.dtype))]
        lengths, indices, values = (
            parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        )
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        return csr_matrix((values, indices, indptr), shape=(len(forest), self.spec.n_features))

    def fragment(self, fragment: Any) -> csr_matrix:
        """Return f̂(τ) of one fragment as a row: a number that is ±1, or a block."""
        from scipy.sparse import csr_matrix

        tree = read_tree(fragment)[0]
        if not tree.children:
            raise ParameterError(f"{tree.label!r} is a single node, and fragments have more than one")
        key, block = stratum(tree, self.spec.budget, self.spec.seed)
        word = mix(key)
        sign = -1.0 if word >> 63 else 1.0
        if block is None:
            columns, values = np.array([word & (self._rules.numbers - 1)]), np.array([sign])
        else:
            start = self._rules.numbers + BLOCK * (word >> 32 & (self._rules.blocks - 1))
            columns = start + np.arange(BLOCK)
            values = sign * block.view(np.float64) / math.sqrt(BLOCK // 2)
        rows = np.zeros(columns.size, int)
        shape = (1, self.spec.n_features)
        return csr_matrix((values.astype(self.spec.dtype), (rows, columns)), shape=shape)

    def _label_keys(self, texts: tuple[str, ...]) -> WordArray:
        """Return the keys of labels; those of the last calls are kept."""
        known = self._keys
        new = [text for text in texts if text not in known]
        if len(known) + len(new) > KEPT_LABELS:
            known, new = {}, list(texts)
        if new:
            known = {**known, **dict(zip(new, label_keys(self.spec.seed, new).tolist(), strict=True))}
            self._keys = known  # in one go: other threads may read it
        return np.array([known[text] for text in texts], np.uint64)

    def _chunk(self, forest: Forest, keys: WordArray, first: int, last: int) -> Rows:
        """Encode some trees, in more room where it does not suffice."""
        nodes, count = int(forest.sizes[first:last].max()), last - first
        limits = slice(forest.offsets[first], forest.offsets[last])
        starts = forest.offsets[first:last] - forest.offsets[first]
        inner = int(np.add.reduceat(forest.arity[limits] > 0, starts, dtype=np.int64).max())
        prefixes, most = PREFIXES, 1 + BLOCK
        limit = float(np.finfo(self.spec.dtype).max)
        room = make_room(make_below(nodes, inner), prefixes)
        indptr = np.full(count + 1, -1)
        indptr[0] = 0
        size = prefixes * most + VALUES_PER_NODE * int(forest.sizes[first:last].sum())
        indices, values = np.empty(size, np.int32), np.empty(size, self.spec.dtype)
        done = 0
        while done < count:
            if values.size < indptr[done] + prefixes * most:
                indices, values = (np.concatenate([x, np.empty_like(x)]) for x in (indices, values))
            with np.errstate(over="ignore"):  # hashes wrap around
                stopped = encode(
                    forest.offsets[first : last + 1], forest.arity, forest.label, keys, done,
                    self._rules, self._tables, room, limit, indptr, indices, values,
                )  # fmt: skip
            if stopped < count and indptr[stopped + 1] >= 0:
                raise RangeError(
                    f"the row of {_named(forest, first + stopped)} is too large for {self.spec.dtype} with "
                    f"decay={self.spec.decay}: use normalize=True, dtype='float64' or a smaller decay"
                )
            if stopped < count and values.size >= indptr[stopped] + prefixes * most:
                prefixes *= 2
                if prefixes > MAX_PREFIXES:
                    raise LimitError(
                        f"{_named(forest, first + stopped)} has more than {MAX_PREFIXES} prefixes: "
                        f"use a budget below {self.spec.budget}"
                    )
                room = make_room(room.below, prefixes)
            done = stopped
        indices, values = indices[: indptr[-1]], values[: indptr[-1]]
        return np.diff(indptr), indices, values


def _named(forest: Forest, tree: int) -> str:
    return f"tree {tree + 1} ({forest.sizes[tree]} nodes)"
