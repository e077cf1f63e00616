"""``TreeIndex``: a searchable index of trees on disk."""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from treedot._storage.files import check_target, identity_of
from treedot._storage.locks import lock
from treedot.errors import ParameterError, SourceError
from treedot.parameters import checked_flag, checked_integer
from treedot.readers import iter_trees, read_trees
from treedot.readers.code.grammars import grammar_changes
from treedot.search.index.index_file import (
    BATCH,
    IndexFile,
    read_index,
    stored_trees,
    weighted_rows,
    write_index,
)
from treedot.search.index.index_rows import rows_of, rows_of_metric
from treedot.search.index.learned_search import LearnedSearch
from treedot.search.index.posting_search import best_rows
from treedot.search.rerank import checked_candidates, ranked_again
from treedot.trees import Forest
from treedot.vectors.metric.metric import Metric

if TYPE_CHECKING:
    from treedot.vectors.fragment_vectorizer import FragmentVectorizer


class TreeIndex:
    """A searchable index of trees in one file, which is mapped into memory.

    The file holds an inverted index, so that a query reads only the posting lists of its own columns, and the
    trees with their metadata, so that results can be compared exactly, shown and explained. Create an index
    with ``TreeIndex.build``, open it with ``TreeIndex.open``, and keep it up to date with ``add``, ``remove``
    and ``update``.

    Several processes and threads may search and change one index. Changes wait for each other, and none is
    lost. An open index shows the file as of its opening, or of the last change by this object.

    Parameters
    ----------
    path : Path
        The file of an index, which ``TreeIndex.build`` creates.

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

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = read_index(path)
        self._is_renumbered = False  # whether another process has renumbered it since this object was opened

    @property
    def vectorizer(self) -> FragmentVectorizer:
        """The vectorizer that turns trees and queries into rows, before the weights of ``idf``."""
        from treedot.vectors.fragment_vectorizer import FragmentVectorizer

        return FragmentVectorizer._of_rows(self._file.rows)

    @property
    def fingerprint(self) -> str:
        """A hash of all settings that determine the rows."""
        return self._file.rows.fingerprint

    @property
    def metric(self) -> Metric | None:
        """The learned similarity that the index holds, if any."""
        return None if self._file.learned is None else self._file.learned.metric

    @property
    def reading(self) -> dict[str, Any]:
        """How the trees were read, as given to ``build``."""
        return self._file.reading

    @property
    def idf(self) -> bool:
        """Whether fragments are weighted by their rarity among the trees of the index."""
        return self._file.idf

    @property
    def grammars(self) -> dict[str, str]:
        """The versions that parsed the trees of source code, by language, when the index was built.

        If trees were added under several versions, it is the oldest. A search with source code warns if other
        versions are installed. Empty for other trees, and for indexes of earlier versions of treedot.
        """
        return self._file.grammars

    @classmethod
    def build(
        cls,
        source: Any,
        path: str | os.PathLike[str],
        vectorizer: FragmentVectorizer | None = None,
        *,
        metric: Metric | None = None,
        idf: bool = False,
        overwrite: bool = False,
        reading: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> TreeIndex:
        """Create an index atomically, and open it.

        Parameters
        ----------
        source : path, open file, Forest, or iterable
            The trees, as ``iter_trees`` takes them, or an iterator of Forests. They are read in batches and
            need not fit into memory.
        path : path
            The file to write. It must not be one of the files to read. Its folder needs about three times as
            much free space.
        vectorizer : FragmentVectorizer, default=None
            Turns trees into rows; by default ``FragmentVectorizer(n_features=2**30)``. An index stores only
            the columns that occur, so many columns cost nothing, and fragments hardly ever collide.
        metric : Metric, default=None
            A learned similarity, as ``TreeMetric`` learns it from trees; then leave out ``vectorizer``, since
            the metric has its own. The index holds it, and ``search`` goes by it.
        idf : bool, default=False
            Whether to weigh every fragment by its rarity among the trees of the index: the inverse document
            frequency of ``FragmentVectorizer``, counted again whenever the index changes. Queries get the
            same weights. The vectorizer must normalise rows, and must not have weights of its own.
        overwrite : bool, default=False
            Whether to replace an existing file, once the new one is complete. By default, an existing file
            is an error, since an index can take hours to build.
        reading : mapping, default=None
            How the trees were read, so that queries can be read in the same way. It is stored as JSON, and
            ``index.reading`` returns it.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores. The file is the same to the byte.
        progress : callable, default=None
            Called after each batch with the number of trees so far.
        """
        target = Path(path)
        check_target(target, *_files_of(source))
        replace, weighted = checked_flag("overwrite", overwrite), checked_flag("idf", idf)
        _check_free(target, replace)
        if weighted and metric is not None:
            raise ParameterError("a metric has weights of its own: leave out idf")
        rows = rows_of(vectorizer) if metric is None else rows_of_metric(metric, vectorizer)
        if weighted and not (rows.spec.normalize and rows.idf is False and rows.spec.rest is None):
            raise ParameterError(
                "idf=True weighs normalised rows without weights and without a rest: use a "
                "FragmentVectorizer with normalize=True, idf=False and rest=None"
            )
        forests = _batches(source, target)
        with lock(target):
            _check_free(target, replace)  # another process may have created it meanwhile
            write_index(
                target,
                rows,
                forests,
                reading=reading or {},
                metric=metric,
                idf=weighted,
                check=partial(_check_free, target, replace),
                n_jobs=n_jobs,
                progress=progress,
            )
            return cls.open(target)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> TreeIndex:
        """Open an index; the file is mapped into memory, not loaded.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        TreeIndex
            The index.

        Raises
        ------
        SourceError
            If the file cannot be read, or is not an index.
        """
        return cls(Path(path))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the index against changes by others, and show its current state, in a ``with`` statement.

        Other processes and threads wait before they change it; searches never wait. Row numbers found inside
        stay valid until this object removes rows.

        Yields
        ------
        None
            The lock is held until the ``with`` statement ends.

        Raises
        ------
        SourceError
            If the file system does not support locks.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from treedot import TreeIndex
        >>> index = TreeIndex.build(["(A b)", "(C d)"], pathlib.Path(tempfile.mkdtemp(), "trees.index"))
        >>> with index.locked():
        ...     rows, values = index.search(["(C d)"], k=1)
        ...     index.remove(rows[0])
        >>> len(index)
        1
        """
        with lock(self.path):
            self._refresh()
            self._is_renumbered = False
            yield

    def _refresh(self) -> None:
        """Read the file again if it has changed."""
        if self._file.identity != identity_of(self.path):
            self._file = read_index(self.path)
            self._is_renumbered = True

    def add(
        self, trees: Any, *, n_jobs: int | None = None, progress: Callable[[int], object] | None = None
    ) -> None:
        """Append trees to the index, in the rows from ``len(index)`` on.

        Every change of an index writes a new file, which replaces the old one when it is complete. Objects
        that have the old file open keep it, and an interrupted change has no effect. The rows of existing
        trees are copied. If another process or thread is changing the index, this call waits, then adds to
        the result. A fitted vectorizer is not fitted again.

        Parameters
        ----------
        trees : source of trees
            As ``build`` takes them.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores. The file is the same to the byte.
        progress : callable, default=None
            Called after each batch with the number of trees so far.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from treedot import TreeIndex
        >>> index = TreeIndex.build(["(A b)", "(C d)"], pathlib.Path(tempfile.mkdtemp(), "trees.index"))
        >>> index.add(["(E f)"])
        >>> index.remove([0])
        >>> [str(tree) for tree in index.forest(range(len(index)))]
        ['(C d)', '(E f)']
        """
        with lock(self.path):
            self._refresh()
            self._rewrite(np.arange(len(self)), trees, n_jobs, progress)

    def remove(self, rows: npt.ArrayLike, *, n_jobs: int | None = None) -> None:
        """Remove trees by row number; later rows move up. See ``add``.

        Parameters
        ----------
        rows : array of int
            The row numbers.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores. The file is the same to the byte.

        Raises
        ------
        SourceError
            If another object has changed the index since this one was opened: the row numbers may then be
            wrong, and nothing is removed. Open the index again, or find the rows inside ``with
            index.locked():``.
        """
        seen = self._file
        gone = _checked_rows(rows, seen)
        with lock(self.path):
            known = self._file is seen and not self._is_renumbered  # or another thread used this object
            if not known or seen.identity != identity_of(self.path):
                raise SourceError(
                    f"{self.path} was changed by another process, so the row numbers may be wrong: "
                    "open it again, or find the rows inside 'with index.locked():'"
                )
            self._rewrite(np.setdiff1d(np.arange(len(self)), gone), [], n_jobs, None)

    def update(
        self,
        trees: Any,
        *,
        files: Iterable[str] | None = None,
        n_jobs: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        """Replace all trees of some files, given by the column ``file``. See ``add``.

        Other trees keep their order, and the new trees follow them.

        Parameters
        ----------
        trees : source of trees
            As ``build`` takes them, with a column ``file``.
        files : iterable of str, default=None
            The files whose trees are replaced, including files that have no trees any more. By default, these
            are the files in the column ``file`` of ``trees``, which are then read into memory.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores. The file is the same to the byte.
        progress : callable, default=None
            Called after each batch with the number of trees so far.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from treedot import Tree, TreeIndex
        >>> forest = Forest.from_trees([Tree.parse("(A b)"), Tree.parse("(C d)")], {"file": ["a", "c"]})
        >>> index = TreeIndex.build(forest, pathlib.Path(tempfile.mkdtemp(), "trees.index"))
        >>> index.update(Forest.from_trees([Tree.parse("(A e)")], {"file": ["a"]}))
        >>> [str(tree) for tree in index.forest(range(len(index)))]
        ['(C d)', '(A e)']
        """
        if files is None:
            trees = read_trees(trees)
            if "file" not in trees.columns:
                raise ParameterError("the trees have no column 'file': name their files with files=[…]")
            files = trees.columns["file"]
        changed = {files} if isinstance(files, str) else set(files)
        with lock(self.path):
            self._refresh()
            stays = [not isinstance(file, str) or file not in changed for file in self.column("file")]
            self._rewrite(np.flatnonzero(stays), trees, n_jobs, progress)

    def _rewrite(
        self,
        rows: np.ndarray,
        trees: Any,
        n_jobs: int | None,
        progress: Callable[[int], object] | None,
    ) -> None:
        """Write the index again, while it is locked: the given rows, then the given trees."""
        check_target(self.path, *_files_of(trees))
        write_index(
            self.path,
            self._file.rows,
            _batches(trees, self.path),
            reading=self.reading,
            idf=self._file.idf,
            kept=(self._file, rows),
            metric=self.metric,
            check=self._check_is_current,
            n_jobs=n_jobs,
            progress=progress,
        )
        self._file = read_index(self.path)
        self._warn_of_grammars(self.grammars)

    def _warn_of_grammars(self, languages: Iterable[Any]) -> None:
        """Warn if the installed grammars differ from those that parsed the trees of the index."""
        if changes := grammar_changes(self.grammars, languages):
            advice = "build the index again (treedot index --overwrite)"
            warnings.warn(f"{self.path} {changes}; {advice}", stacklevel=3)

    def _check_is_current(self) -> None:
        """Raise SourceError if another program, or the source of the trees, ignored the lock."""
        if identity_of(self.path) != self._file.identity:
            raise SourceError(f"{self.path} was changed by another process meanwhile: open it again")

    def __len__(self) -> int:
        return len(self._file.trees)

    @property
    def nnz(self) -> int:
        """The number of non-zeros in all rows."""
        return int(self._file.lists.row.size)

    def forest(self, rows: npt.ArrayLike) -> Forest:
        """Return trees by row number, with their columns.

        Parameters
        ----------
        rows : array of int
            The row numbers.

        Returns
        -------
        Forest
            The trees, in the order of ``rows``.
        """
        return self._forest(self._file, rows)

    def _forest(self, file: IndexFile, rows: npt.ArrayLike) -> Forest:
        numbers = _checked_rows(rows, file)
        with stored_trees(self.path):
            return file.trees.take(numbers)

    def column(self, name: str) -> list[Any]:
        """Return one column of all trees.

        Parameters
        ----------
        name : str
            The name of the column, such as ``"file"``.

        Returns
        -------
        list
            One value for every tree; None if a tree has no value.
        """
        trees = self._file.trees
        rows = np.arange(len(trees))
        parts = (rows[start : start + BATCH] for start in range(0, len(trees), BATCH))
        with stored_trees(self.path):
            return [value for part in parts for value in trees.column(name, part)]

    def search(
        self,
        trees: Any,
        k: int = 10,
        *,
        rerank: Any = None,
        candidates: int = 100,
        learned: bool = True,
        expand: int = 0,
        n_jobs: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return for every tree the ``k`` trees of the index with the largest dot products, best first.

        The search is exact. Dot products are cosines if the vectorizer normalises rows. If the index holds a
        metric, the similarities are the learned ones, and every query reads all rows.

        Parameters
        ----------
        trees : source of trees
            The queries, as ``read_trees`` takes them.
        k : int, default=10
            The number of trees to find.
        rerank : kernel, default=None
            An exact kernel, such as ``SubsetTreeKernel(normalize=True)``. The candidates with the largest dot
            products are ranked again by this kernel, and the returned values are kernels.
        candidates : int, default=100
            With ``rerank``, the number of candidates to rank again.
        learned : bool, default=True
            Whether to use the metric of the index, if it holds one; otherwise, the dot products of rows.
        expand : int, default=0
            Add to each query the vectors of this number of its nearest trees, then search again. This needs a
            metric. It helps to find all of a large family of trees, more than any other option; a query with
            fewer relatives than ``expand`` is drawn away from them.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores. The results are the same.

        Returns
        -------
        rows : array of int of shape (n_queries, k)
            Row numbers, best first; fewer columns if the index has fewer than k trees.
        values : array of float64 of shape (n_queries, k)
            The dot products, or kernels with ``rerank``. Equal values are ordered by row number.
        """
        file = self._file  # another thread may change the index meanwhile
        n_rows = len(file.trees)
        k = min(checked_integer("k", k, at_least=1), n_rows)
        wanted = min(checked_candidates(rerank, candidates, k), n_rows)
        queries = read_trees(trees)
        self._warn_of_grammars(queries.columns.get("language", ()))
        expand = min(checked_integer("expand", expand, at_least=0), n_rows)
        if file.learned is None or not checked_flag("learned", learned):
            if expand:
                raise ParameterError("expand needs an index that holds a metric, and learned=True")
            made = weighted_rows(file, queries)
            rows, values = best_rows(file.lists, n_rows, made, wanted, n_jobs, self.path)
        else:
            take = partial(self._forest, file)
            search = LearnedSearch(file.lists, file.learned, take, self.path, n_jobs)
            rows, values = search.best(queries, wanted, expand)
        if rerank is None:
            return rows, values
        return ranked_again(rerank, queries, partial(self._forest, file), rows, k, n_jobs)

    def __repr__(self) -> str:
        return (
            f"<TreeIndex of {len(self)} trees, {self._file.lists.column.size} columns, {self.nnz} non-zeros: "
            f"{self.path}>"
        )


def _check_free(target: Path, overwrite: bool) -> None:
    if target.exists() and not overwrite:
        raise ParameterError(
            f"{target} exists: use TreeIndex.open to read it, or overwrite=True to replace it"
        )


def _checked_rows(rows: npt.ArrayLike, file: IndexFile) -> np.ndarray:
    numbers = np.atleast_1d(np.asarray(rows))
    if numbers.size == 0:
        numbers = numbers.astype(np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ParameterError(f"rows must be a list of row numbers, not {rows!r}")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(file.trees):
        raise ParameterError(
            f"row numbers must be from 0 to {len(file.trees) - 1}, the last row of the index"
        )
    return numbers.astype(np.int64)


def _files_of(source: Any) -> list[Any]:
    """Return the possible files of a source: the source itself, or the paths in a list."""
    if isinstance(source, (list, tuple)):
        return [item for item in source if isinstance(item, os.PathLike)]
    return [source]


def _batches(source: Any, target: Path) -> Iterator[Forest]:
    """Yield the trees of a source in batches; raise if an iterator yields the target itself."""
    if not isinstance(source, Iterator) or hasattr(source, "read"):
        yield from iter_trees(source, batch_size=BATCH)
        return
    for item in source:
        if not isinstance(item, Forest):  # an iterator of trees or paths
            yield from iter_trees(_without(target, itertools.chain([item], source)), batch_size=BATCH)
            return
        yield from iter_trees(item, batch_size=BATCH)


def _without(target: Path, items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, os.PathLike):
            check_target(target, item)
        yield item
