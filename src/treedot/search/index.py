"""An index of trees on disk: the inverted index of their rows, and the trees themselves."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from treedot.errors import ParameterError, SourceError, SpecMismatchError, TreedotError
from treedot.files import check_target
from treedot.jit import njit
from treedot.learn import FragmentVectorizer
from treedot.learn.vectorizer_state import VectorizerState
from treedot.parameters import checked_flag, checked_integer, n_threads
from treedot.readers import iter_trees, read_trees
from treedot.safetensors import read_arrays, write_arrays
from treedot.search import top_k
from treedot.search.inverted_index_writer import InvertedIndexWriter
from treedot.search.packed_trees import PackedTrees, PackedWriter
from treedot.search.rerank import checked_candidates, ranked_again
from treedot.search.top_k import keep_best
from treedot.threads import thread_map
from treedot.trees import Forest
from treedot.vectors.files import INDEX_FORMAT, check_is
from treedot.vectors.inverted_index import locate

VERSION = 1

BATCH = 4096  # trees that are turned into rows at a time
BLOCK = 1 << 15  # rows whose sums are in the cache together


class TreeIndex:
    """Many trees that can be searched: made once, kept in one file, mapped into memory.

    The file holds an inverted index, a list of trees for every column, so that a query reads only the lists
    of its own columns; and the trees with their metadata, so that what is found can be compared exactly,
    shown and explained. Make one with ``TreeIndex.build``, and use it again with ``TreeIndex.open``.

    Attributes
    ----------
    path : Path
        The file.
    vectorizer : FragmentVectorizer
        What turned the trees into rows, and turns queries into rows.
    fingerprint : str
        The name of everything that determines a row.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treedot import SubsetTreeKernel, TreeIndex
    >>> path = pathlib.Path(tempfile.mkdtemp(), "trees.index")
    >>> trees = ["(S (NP Ann) (VP runs))", "(S (NP Bob) (VP runs))", "(T (X y) (Z w))"]
    >>> index = TreeIndex.build(trees, path)
    >>> rows, values = index.search(["(S (NP Eve) (VP runs))", "(T (X y) (Z w))"], k=2)
    >>> rows[:, 0]
    array([0, 2])
    >>> print(index.forest(rows[1, :1])[0])
    (T (X y) (Z w))
    >>> TreeIndex.open(path).search(["(S (NP Eve) (VP runs))"], k=1, rerank=SubsetTreeKernel(0.5))[1]
    array([[2.5]])
    """

    def __init__(
        self, path: Path, vectorizer: FragmentVectorizer, fingerprint: str, arrays: Mapping[str, np.ndarray]
    ) -> None:
        self.path = path
        self.vectorizer = vectorizer
        self.fingerprint = fingerprint
        self._trees = PackedTrees(_group(arrays, "trees"))
        self._column, self._start, self._row, self._value = _checked_lists(_group(arrays, "lists"))

    @classmethod
    def build(
        cls,
        source: Any,
        path: str | os.PathLike[str],
        vectorizer: FragmentVectorizer | None = None,
        *,
        overwrite: bool = False,
        n_jobs: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> TreeIndex:
        """Make the index of a source of trees; it appears whole or not at all, and is then open.

        Parameters
        ----------
        source : path, open file, Forest, or iterable
            As ``iter_trees`` takes it, or an iterator of Forests; trees are read in batches and need not
            fit into memory.
        path : path
            The file to write, which is none of those that the trees are read from. Beside it, there must be
            room for about three times as much.
        vectorizer : FragmentVectorizer, optional
            What turns trees into rows; ``FragmentVectorizer(n_features=2**30)`` by default.
        overwrite : bool
            Whether a file that is already there may be replaced, once the new one is complete. By default it
            is an error: an index can take hours to make.
        n_jobs : int, optional
            Threads; -1 for all cores. The file is the same to the byte.
        progress : callable, optional
            Called after each batch with the number of trees so far.
        """
        target = Path(path)
        check_target(target, *_files_of(source))
        if target.exists() and not checked_flag("overwrite", overwrite):
            raise ParameterError(f"{path} exists: TreeIndex.open reads it, and overwrite=True replaces it")
        if vectorizer is not None and not isinstance(vectorizer, FragmentVectorizer):
            raise ParameterError(
                f"an index is made of sparse rows: give a FragmentVectorizer, not {type(vectorizer).__name__}"
            )
        vectorizer = FragmentVectorizer(n_features=2**30) if vectorizer is None else vectorizer
        fast = _with_threads(vectorizer, n_jobs)
        with InvertedIndexWriter(target) as lists, PackedWriter(target) as trees:
            for forest in _batches(source, target):
                lists.add(fast.transform(forest))
                trees.add(forest)
                if progress is not None:
                    progress(lists.n_rows)
            if not lists.n_rows:
                raise SourceError("there is no tree to make an index of")
            state = vectorizer._state()
            description = {
                "format": INDEX_FORMAT,
                "version": VERSION,
                "fingerprint": state.fingerprint,
                "vectorizer": state.settings,
                "trees": lists.n_rows,
            }
            groups: dict[str, Mapping[str, Any]] = {
                "trees": trees.finish(),
                "lists": lists.finish(n_jobs),
                "vectorizer": state.arrays,
            }
            arrays = {f"{group}.{name}": array for group in groups for name, array in groups[group].items()}
            write_arrays(target, description, arrays)
        return cls.open(target)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> TreeIndex:
        """Open an index that ``build`` made; it is mapped into memory, not loaded."""
        check_is(path, "TreeIndex.open")
        description, arrays = read_arrays(path)
        if description.get("format") != INDEX_FORMAT:
            raise SourceError(f"{path} is not an index of trees: make one with TreeIndex.build")
        if description.get("version") != VERSION:
            raise SourceError(
                f"{path} is an index of version {description.get('version')!r}, "
                f"and this is version {VERSION}: build it again"
            )
        try:
            vectorizer = FragmentVectorizer._of_state(
                VectorizerState(description["vectorizer"], _group(arrays, "vectorizer"))
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SourceError(f"{path} is damaged: its vectorizer cannot be rebuilt: {error}") from error
        fingerprint = vectorizer.fingerprint
        if fingerprint != description.get("fingerprint"):
            raise SpecMismatchError(
                f"{path} was made by a vectorizer with the fingerprint {description.get('fingerprint')!r}, "
                f"but its settings now give {fingerprint!r}: it is damaged, or another version "
                "of treedot made it; build it again"
            )
        try:
            index = cls(Path(path), vectorizer, fingerprint, arrays)
        except SourceError as error:
            raise SourceError(f"{path} is damaged: {error}") from None
        if len(index) != description.get("trees"):
            raise SourceError(
                f"{path} is damaged: it holds {len(index)} trees, not {description.get('trees')!r}"
            )
        return index

    def __len__(self) -> int:
        return len(self._trees)

    @property
    def nnz(self) -> int:
        """The number of non-zeros of all rows."""
        return int(self._row.size)

    def forest(self, rows: npt.ArrayLike) -> Forest:
        """Return the trees of some rows, with their columns."""
        numbers = np.atleast_1d(np.asarray(rows))
        if numbers.size == 0:
            numbers = numbers.astype(np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise ParameterError(f"rows must be a list of row numbers, not {rows!r}")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise ParameterError(f"a row number lies outside the {len(self)} trees of the index")
        try:
            return self._trees.take(numbers.astype(np.int64))
        except TreedotError as error:
            raise SourceError(f"{self.path}: {error}") from None
        except (ValueError, RecursionError) as error:  # text that is not UTF-8 or not JSON
            raise SourceError(f"{self.path}: the stored trees are damaged: {error}") from None

    def search(
        self, trees: Any, k: int = 10, *, rerank: Any = None, candidates: int = 100, n_jobs: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return for every tree the ``k`` trees of the index with the largest dot products, best first.

        Nothing is left out or approximated: these are the dot products of rows, which are cosines where the
        vectorizer normalises.

        Parameters
        ----------
        trees : source of trees
            The queries, as ``read_trees`` takes them.
        k : int
            How many to find.
        rerank : kernel, optional
            Compare the best by dot product again, exactly, by a kernel such as
            ``SubsetTreeKernel(normalize=True)``, and return the best of those, with their kernels as values.
        candidates : int
            With ``rerank``, how many of the best by dot product are compared exactly.
        n_jobs : int, optional
            Threads; -1 for all cores. The results are the same.

        Returns
        -------
        rows, values : arrays of shape (queries, k)
            Row numbers, and dot products in float64. Equal values are ordered by row number. With fewer than
            k trees in the index, there are fewer columns.
        """
        k = min(checked_integer("k", k, at_least=1), len(self))
        wanted = min(checked_candidates(rerank, candidates, k), len(self))
        queries = read_trees(trees)
        rows, values = self._best(self.vectorizer.transform(queries), wanted, n_jobs)
        if rerank is None:
            return rows, values
        return ranked_again(rerank, queries, self.forest, rows, k)

    def _best(self, queries: Any, k: int, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the best rows for each query: queries in parallel, or, of a few, parts of the rows."""
        threads = n_threads(n_jobs)
        count = queries.shape[0]
        parts = 1 if count >= threads else threads
        step = max(1, -(-len(self) // parts))
        lists = [self._lists_of(queries[i]) for i in range(count)]

        def task(which: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
            query, first_row = which
            rows, values = top_k.empty(1, k)
            last_row = min(first_row + step, len(self))
            sound = _search(
                *lists[query], self._row, self._value, first_row, last_row, len(self), rows[0], values[0]
            )
            if not sound:
                raise SourceError(
                    f"{self.path}: a list of rows is out of order, or a product is not finite; "
                    "build it again, with normalize=True if rows are not normalised"
                )
            return rows, values

        tasks = [(query, first) for query in range(count) for first in range(0, len(self), step)]
        with thread_map(n_jobs, len(tasks)) as run_all:
            found = list(run_all(task, tasks))
        rows, values = top_k.empty(count, k * parts)
        for (query, first), (some_rows, some_values) in zip(tasks, found, strict=True):
            here = slice(first // step * k, (first // step + 1) * k)
            rows[query, here], values[query, here] = some_rows[0], some_values[0]
        return top_k.ranked(rows, values, k)

    def _lists_of(self, query: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return where the lists of a row's columns start and end, and the row's values."""
        known, number = locate(query.indices.astype(self._column.dtype), self._column)
        first, last = self._start[number], self._start[number + 1]
        if not ((first >= 0) & (first <= last) & (last <= self._row.size)).all():
            raise SourceError(f"{self.path} is damaged: a list of rows leads out of the file; build it again")
        return first, last, query.data[known].astype(np.float64)

    def __repr__(self) -> str:
        return (
            f"<TreeIndex of {len(self)} trees, {self._column.size} columns, {self.nnz} non-zeros: "
            f"{self.path}>"
        )


@njit
def _search(
    first: np.ndarray, last: np.ndarray, weight: np.ndarray, posting_row: np.ndarray, value: np.ndarray,
    first_row: int, last_row: int, n_rows: int, rows: np.ndarray, values: np.ndarray,
) -> bool:  # fmt: skip
    """Add up a query's lists for some rows and keep the best; return whether the lists are sound.

    Rows are taken in blocks whose sums stay in the cache; each list is read once, from block to block. A
    list that does not ascend stops the reading, so that nothing is ever written outside of the block.
    """
    place = first.copy()
    if first_row > 0:
        for j in range(place.size):
            place[j] += np.searchsorted(posting_row[first[j] : last[j]], first_row)
    line = np.empty(min(BLOCK, last_row - first_row))
    for block in range(first_row, last_row, BLOCK):
        size = min(BLOCK, last_row - block)
        line[:] = 0
        for j in range(place.size):
            x, k, end = weight[j], place[j], last[j]
            while k < end:
                row = np.int64(posting_row[k]) - block
                if row < 0 or row >= size:
                    break
                line[row] += x * np.float64(value[k])
                k += 1
            place[j] = k
        if not keep_best(line[:size], block, rows, values):
            return False
    for j in range(place.size):
        if place[j] < last[j] and (last_row == n_rows or posting_row[place[j]] < last_row):
            return False
    return True


def _group(arrays: Mapping[str, np.ndarray], group: str) -> dict[str, np.ndarray]:
    """Return the arrays of one part of the file, by the rest of their names."""
    before = f"{group}."
    return {name.removeprefix(before): array for name, array in arrays.items() if name.startswith(before)}


def _checked_lists(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the arrays of the lists, or raise where they do not fit together."""
    for name, types in {
        "column": ("i4", "i8"),
        "start": ("i8",),
        "row": ("i4",),
        "value": ("f4", "f8"),
    }.items():
        if name not in arrays or arrays[name].dtype.str[1:] not in types or arrays[name].ndim != 1:
            raise SourceError(f"the array {name!r} is missing or of another type")
    column, start, row, value = (arrays[name] for name in ("column", "start", "row", "value"))
    if start.size != column.size + 1 or start[0] != 0 or not start[-1] == row.size == value.size:
        raise SourceError("the lists of rows do not end where they should")
    return column, start, row, value


def _files_of(source: Any) -> list[Any]:
    """Return what of a source may be files: it may be a path or an open file, or hold paths."""
    if isinstance(source, (list, tuple)):
        return [item for item in source if isinstance(item, os.PathLike)]
    return [source]


def _batches(source: Any, target: Path) -> Iterator[Forest]:
    """Yield the trees of a source; raise where an iterator comes to the target itself."""
    if not isinstance(source, Iterator) or hasattr(source, "read"):
        yield from iter_trees(source, batch_size=BATCH)
        return
    for item in source:
        if not isinstance(item, Forest):  # an iterator of trees or of paths, then
            yield from iter_trees(_without(target, itertools.chain([item], source)), batch_size=BATCH)
            return
        yield from iter_trees(item, batch_size=BATCH)


def _without(target: Path, items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, os.PathLike):
            check_target(target, item)
        yield item


def _with_threads(vectorizer: FragmentVectorizer, n_jobs: int | None) -> FragmentVectorizer:
    """Return the vectorizer, made to use some threads where it does not say how many."""
    if n_jobs is None or vectorizer.n_jobs is not None:
        return vectorizer
    fast = copy(vectorizer)
    fast.n_jobs = n_jobs
    return fast
