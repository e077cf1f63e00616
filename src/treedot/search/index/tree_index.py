"""An index of trees on disk: the inverted index of their rows, and the trees themselves."""

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

from treedot._storage.files import check_target
from treedot._storage.locks import lock
from treedot.errors import ParameterError, SourceError
from treedot.parameters import checked_flag, checked_integer
from treedot.readers import iter_trees, read_trees
from treedot.readers.code.grammars import grammar_changes
from treedot.search.index.index_file import (
    BATCH,
    IndexFile,
    identity_of,
    read_index,
    stored_trees,
    write_index,
)
from treedot.search.index.posting_search import best_rows
from treedot.search.rerank import checked_candidates, ranked_again
from treedot.trees import Forest
from treedot.vectors.sparse.fitted_rows import FittedRows
from treedot.vectors.spec import MAX_FEATURES, SparseSpec

if TYPE_CHECKING:
    from treedot.vectors.fragment_vectorizer import FragmentVectorizer


class TreeIndex:
    """Many trees that can be searched, kept in one file, which is mapped into memory.

    The file holds an inverted index, a list of trees for every column, so that a query reads only the lists
    of its own columns; and the trees with their metadata, so that what is found can be compared exactly,
    shown and explained. Make one with ``TreeIndex.build``, use it again with ``TreeIndex.open``, and keep it
    up to date with ``add``, ``remove`` and ``update``.

    Several processes and threads may search and change one index. Changes wait for each other and are all
    kept. An open index shows the file as it was when it was opened, or when this object last changed it.

    Parameters
    ----------
    path : Path
        The file of an index. ``TreeIndex.open`` takes any path, and ``TreeIndex.build`` makes the file.

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
        self._is_renumbered = False  # by another process, since this object was opened

    @property
    def vectorizer(self) -> FragmentVectorizer:
        """What turned the trees into rows, and turns queries into rows."""
        from treedot.vectors.fragment_vectorizer import FragmentVectorizer

        return FragmentVectorizer._of_rows(self._file.rows)

    @property
    def fingerprint(self) -> str:
        """The name of everything that determines a row."""
        return self._file.rows.fingerprint

    @property
    def reading(self) -> dict[str, Any]:
        """How the trees were read, as given to ``build``."""
        return self._file.reading

    @property
    def grammars(self) -> dict[str, str]:
        """The versions that parsed the trees of source code, by language, when the index was built.

        Of trees that were added under several versions, the oldest. A search with source code warns if other
        versions are installed. Empty for other trees, and for an index that an earlier treedot made.
        """
        return self._file.grammars

    @classmethod
    def build(
        cls,
        source: Any,
        path: str | os.PathLike[str],
        vectorizer: FragmentVectorizer | None = None,
        *,
        overwrite: bool = False,
        reading: Mapping[str, Any] | None = None,
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
        vectorizer : FragmentVectorizer, default=None
            What turns trees into rows; ``FragmentVectorizer(n_features=2**30)`` by default. An index stores
            only the columns that occur, so a large number is free, and hardly any two fragments collide.
        overwrite : bool, default=False
            Whether a file that is already there may be replaced, once the new one is complete. By default it
            is an error: an index can take hours to make.
        reading : mapping, default=None
            How the trees were read, as far as it matters for queries, which are to be read alike. It is kept
            as JSON, for ``index.reading``.
        n_jobs : int, default=None
            Threads; -1 for all cores. The file is the same to the byte.
        progress : callable, default=None
            Called after each batch with the number of trees so far.
        """
        target = Path(path)
        check_target(target, *_files_of(source))
        replace = checked_flag("overwrite", overwrite)
        _check_free(target, replace)
        rows = _rows_of(vectorizer)
        forests = _batches(source, target)
        with lock(target):
            _check_free(target, replace)  # another process may have made one meanwhile
            write_index(
                target,
                rows,
                forests,
                reading=reading or {},
                check=partial(_check_free, target, replace),
                n_jobs=n_jobs,
                progress=progress,
            )
            return cls.open(target)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> TreeIndex:
        """Open an index that ``build`` made; it is mapped into memory, not loaded.

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
        """Keep all others from changing the index, and show it as it is now, for a ``with`` statement.

        Other processes and other threads wait before they change it; searches never wait. Row numbers that
        are found inside stay valid until this object removes rows.

        Yields
        ------
        None
            The lock is held until the ``with`` statement ends.

        Raises
        ------
        SourceError
            If the file system has no locks.

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
        """Show the file as it is now."""
        if self._file.identity != identity_of(self.path):
            self._file = read_index(self.path)
            self._is_renumbered = True

    def add(
        self, trees: Any, *, n_jobs: int | None = None, progress: Callable[[int], object] | None = None
    ) -> None:
        """Add trees behind those of the index, in the rows from ``len(index)`` on.

        As all changes of an index, it is written to a new file, which takes the old one's place when it is
        complete: whoever has the old one open keeps it, and what is interrupted changes nothing. The rows of
        the trees that stay are not made again. If another process or thread is changing the index, this one
        waits, then adds to what the other has written. A vectorizer that has learned columns or weights
        stays as it is.

        Parameters
        ----------
        trees : source of trees
            As ``build`` takes them.
        n_jobs : int, default=None
            Threads; -1 for all cores. The file is the same to the byte.
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
        """Remove the trees of some rows; the rows after them move up. See ``add``.

        Parameters
        ----------
        rows : array of int
            The row numbers.
        n_jobs : int, default=None
            Threads; -1 for all cores. The file is the same to the byte.

        Raises
        ------
        SourceError
            If anyone else has changed the index since this object was opened: the numbers may then be those
            of other trees, and nothing is removed. Open it again, or find the rows inside ``with
            index.locked():``.
        """
        seen = self._file
        gone = _checked_rows(rows, seen)
        with lock(self.path):
            known = self._file is seen and not self._is_renumbered  # or another thread used this object
            if not known or seen.identity != identity_of(self.path):
                raise SourceError(
                    f"{self.path} was changed by another process, so the row numbers may be those of other "
                    "trees: open it again, or find the rows inside 'with index.locked():'"
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
        """Replace the trees of some files, as their column ``file`` says, by those of now. See ``add``.

        Trees that stay keep their order, and the new ones come behind them.

        Parameters
        ----------
        trees : source of trees
            As ``build`` takes them, with a column ``file``.
        files : iterable of str, default=None
            Which files they are all the trees of, also those in which none is left; by default, those that
            the column ``file`` of ``trees`` names, which are then read into memory.
        n_jobs : int, default=None
            Threads; -1 for all cores. The file is the same to the byte.
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
                raise ParameterError("the trees have no column 'file': say whose trees they are, files=[…]")
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
        """Write the index anew, under its lock: some of its rows, and trees after them."""
        check_target(self.path, *_files_of(trees))
        write_index(
            self.path,
            self._file.rows,
            _batches(trees, self.path),
            reading=self.reading,
            kept=(self._file, rows),
            check=self._check_is_current,
            n_jobs=n_jobs,
            progress=progress,
        )
        self._file = read_index(self.path)
        self._warn_of_grammars(self.grammars)

    def _warn_of_grammars(self, languages: Iterable[Any]) -> None:
        """Warn if the trees of the index were parsed by other versions than those that are installed."""
        if changes := grammar_changes(self.grammars, languages):
            advice = "build the index again (treedot index --overwrite)"
            warnings.warn(f"{self.path} {changes}; {advice}", stacklevel=3)

    def _check_is_current(self) -> None:
        """Raise where the lock was not respected: by another program, or by the source of the trees."""
        if identity_of(self.path) != self._file.identity:
            raise SourceError(f"{self.path} was changed by another process meanwhile: open it again")

    def __len__(self) -> int:
        return len(self._file.trees)

    @property
    def nnz(self) -> int:
        """The number of non-zeros of all rows."""
        return int(self._file.lists.row.size)

    def forest(self, rows: npt.ArrayLike) -> Forest:
        """Return the trees of some rows, with their columns.

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
            One value for every tree; None where a tree has none.
        """
        trees = self._file.trees
        rows = np.arange(len(trees))
        parts = (rows[start : start + BATCH] for start in range(0, len(trees), BATCH))
        with stored_trees(self.path):
            return [value for part in parts for value in trees.column(name, part)]

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
        k : int, default=10
            How many to find.
        rerank : kernel, default=None
            Compare the best by dot product again, exactly, by a kernel such as
            ``SubsetTreeKernel(normalize=True)``, and return the best of those, with their kernels as values.
        candidates : int, default=100
            With ``rerank``, how many of the best by dot product are compared exactly.
        n_jobs : int, default=None
            Threads; -1 for all cores. The results are the same.

        Returns
        -------
        rows : array of int of shape (n_queries, k)
            Row numbers, best first. With fewer than k trees in the index, there are fewer columns.
        values : array of float64 of shape (n_queries, k)
            The dot products, or kernels with ``rerank``. Equal values are ordered by row number.
        """
        file = self._file  # another thread may change the index meanwhile
        n_rows = len(file.trees)
        k = min(checked_integer("k", k, at_least=1), n_rows)
        wanted = min(checked_candidates(rerank, candidates, k), n_rows)
        queries = read_trees(trees)
        self._warn_of_grammars(queries.columns.get("language", ()))
        made = file.rows.transform(queries)
        rows, values = best_rows(file.lists, n_rows, made, wanted, n_jobs, self.path)
        if rerank is None:
            return rows, values
        return ranked_again(rerank, queries, partial(self._forest, file), rows, k, n_jobs)

    def __repr__(self) -> str:
        return (
            f"<TreeIndex of {len(self)} trees, {self._file.lists.column.size} columns, {self.nnz} non-zeros: "
            f"{self.path}>"
        )


def _rows_of(vectorizer: FragmentVectorizer | None) -> FittedRows:
    """Return what makes the rows of an index."""
    if vectorizer is None:
        return FittedRows(SparseSpec(n_features=MAX_FEATURES), parameters={"damping": None, "n_jobs": None})
    from treedot.vectors.fragment_vectorizer import FragmentVectorizer

    if not isinstance(vectorizer, FragmentVectorizer):
        raise ParameterError(
            f"an index is made of sparse rows: give a FragmentVectorizer, not {type(vectorizer).__name__}"
        )
    return vectorizer._rows()


def _check_free(target: Path, overwrite: bool) -> None:
    if target.exists() and not overwrite:
        raise ParameterError(f"{target} exists: TreeIndex.open reads it, and overwrite=True replaces it")


def _checked_rows(rows: npt.ArrayLike, file: IndexFile) -> np.ndarray:
    numbers = np.atleast_1d(np.asarray(rows))
    if numbers.size == 0:
        numbers = numbers.astype(np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ParameterError(f"rows must be a list of row numbers, not {rows!r}")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(file.trees):
        raise ParameterError(f"a row number lies outside the {len(file.trees)} trees of the index")
    return numbers.astype(np.int64)


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
