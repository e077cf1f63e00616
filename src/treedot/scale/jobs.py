"""What is done with many files: trees to vectors, to classes, and to the nearest of them all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treedot.errors import ParameterError, SourceError
from treedot.files import path_list
from treedot.learn import FragmentVectorizer
from treedot.parameters import checked_integer, checked_path
from treedot.readers import read_trees
from treedot.readers.ranges import Reading
from treedot.scale.encoding import Encoding
from treedot.scale.neighbour_search import NeighbourSearch, merge_parts
from treedot.scale.plan import Plan
from treedot.scale.prediction import Prediction
from treedot.scale.run import Done, OnDone, Paths, Workers, planned, run
from treedot.scale.status import is_complete
from treedot.vectors.parts import PLAN, whole_parts

AS_IT_COMES = Reading()


def encode(
    paths: Paths,
    out: str | os.PathLike[str],
    vectorizer: Any,
    client: Any = None,
    *,
    workers: int | None = None,
    share: tuple[int, int] = (1, 1),
    reading: Reading = AS_IT_COMES,
    shard_size: int | None = None,
    on_done: OnDone | None = None,
) -> Done:
    """Turn the trees of many files, or of one large file, into vectors: a folder of parts.

    The files are cut into shards; each becomes a file of Arrow in the folder, with the columns that came with
    the trees. ``load_vectors(out)`` reads them as one. A run that was ended goes on where it was when it
    is started again: parts that are whole are kept. Local processes do not import the script that calls
    this, which needs no ``if __name__ == "__main__":``.

    Parameters
    ----------
    paths : path, or iterable of paths
        Files of trees, patterns such as ``"shards/*.parquet"``, and folders.
    out : path
        The folder to write to.
    vectorizer : FragmentVectorizer or DistributedTreeVectorizer
        What makes the vectors; what it has learned goes along.
    client : optional
        Who does the work: None for processes of this machine, a Dask client, the module ``ray``, or any
        ``concurrent.futures.Executor``. All machines must reach the files and the folder by the same paths.
    workers : int, optional
        Local processes, each with one thread; by default one for every core.
    share : (int, int)
        ``(3, 64)`` does the third of 64 shares of the shards and leaves the others to other runs.
    reading : Reading
        How the trees are read: ``Reading(format, column, unit, skip_bad)``. By default as ``read_trees``
        does; a shard fails that has a tree which cannot be read.
    shard_size : int, optional
        Bytes of a file that one part is made of, about; by default 16 MiB.
    on_done : callable, optional
        Called with the ``Outcome`` of every shard, and how many there are to do.

    Returns
    -------
    done : Done
        How many parts were made and how many were there already; the rows of all.

    Raises
    ------
    IncompleteError
        Some shards failed; all others are finished.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from treedot import FragmentVectorizer, load_vectors, scale
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "trees.mrg").write_text("(S (NP Ann) (VP runs)) (S (NP Bob) (VP sits))")
    >>> with ThreadPoolExecutor(2) as pool:
    ...     scale.encode(folder / "*.mrg", folder / "rows", FragmentVectorizer(), pool)
    Done(made=1, found=0, rows=2, skipped=0)
    >>> load_vectors(folder / "rows")
    <Vectors: 2 × 1048576, sparse, float32, fingerprint ...>
    """
    by = Workers(client, workers, share)
    by.check()
    folder = checked_path("out", out)
    plan = planned(paths, folder, Encoding(vectorizer), reading, shard_size)
    return run(folder, plan, by, on_done)


def predict(
    paths: Paths,
    out: str | os.PathLike[str],
    model: str | os.PathLike[str],
    client: Any = None,
    *,
    scores: bool = False,
    workers: int | None = None,
    share: tuple[int, int] = (1, 1),
    reading: Reading = AS_IT_COMES,
    shard_size: int | None = None,
    on_done: OnDone | None = None,
) -> Done:
    """Tell the classes of the trees of many files: a folder of parts with a column ``predicted``.

    Rows are made and used, not stored. The parameters are those of ``encode``; ``model`` is the folder of a
    ``LinearModel``, of which ``out`` gets a copy, and with ``scores`` a column of that name holds the score
    of every class, of two classes that of the second. A model of named columns takes tables that have them;
    columns of trees are not written, all others are.
    """
    by = Workers(client, workers, share)
    by.check()
    folder, work = checked_path("out", out), Prediction(model, scores)
    plan = planned(paths, folder, work, work.reading(reading), shard_size)
    return run(folder, plan, by, on_done)


def nearest(
    queries: Any,
    paths: Paths,
    out: str | os.PathLike[str],
    client: Any = None,
    *,
    k: int = 10,
    vectorizer: Any = None,
    workers: int | None = None,
    share: tuple[int, int] = (1, 1),
    reading: Reading = AS_IT_COMES,
    shard_size: int | None = None,
    on_done: OnDone | None = None,
) -> Any:
    """Find for every query the ``k`` nearest of all trees of many files, exactly.

    Nearest are those with the largest dot products of vectors, which are cosines where the vectorizer
    normalises. Each shard gives its best, and the best of all are merged. Rows are made and used, not stored;
    or else those of a folder that ``encode`` made are read. The time is that of encoding, and of comparing
    every query with every tree. The parameters that are not listed are those of ``encode``.

    Parameters
    ----------
    queries : source of trees
        As ``read_trees`` takes them. Each worker holds the vectors of all: some ten thousand are a good
        number.
    paths : path, or iterable of paths
        Files of trees, patterns and folders; or one folder that ``encode`` made.
    out : path
        The folder to write to.
    k : int
        How many to find for each query.
    vectorizer : FragmentVectorizer or DistributedTreeVectorizer, optional
        What makes the vectors, by default ``FragmentVectorizer()``; a folder of vectors has its own.

    Returns
    -------
    found : pyarrow.Table, or None
        Query by query, best first: ``query`` and ``row``, the numbers of the query and of the tree among all
        inputs, from 0; ``rank``, from 1; ``similarity``; the ``tree``, but for a folder of vectors; the
        columns that came with it, and its ``file``. Equal ones are ordered by ``row``. The same is in
        ``nearest.arrow`` in the folder. None where other shares are not done yet; the last one to be done
        finds all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from treedot import scale
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "trees.mrg").write_text("(S (NP Ann) (VP runs)) (S (NP Bob) (VP sits))")
    >>> with ThreadPoolExecutor(2) as pool:
    ...     found = scale.nearest(["(NP Bob)"], folder / "*.mrg", folder / "found", pool, k=1)
    >>> found["row"].to_pylist(), found["tree"].to_pylist()
    ([1], ['(S (NP Bob) (VP sits))'])
    """
    by, folder = Workers(client, workers, share), checked_path("out", out)
    by.check()
    k = checked_integer("k", k, at_least=1)
    forest = read_trees(queries)
    if not len(forest):
        raise ParameterError("there is no query: give trees to look for")
    paths = path_list(paths)
    vectors = _folder_of_vectors(paths)
    if vectors is None:
        encoding = Encoding(FragmentVectorizer() if vectorizer is None else vectorizer)
    elif vectorizer is not None or reading != AS_IT_COMES:
        raise ParameterError(f"{vectors} holds vectors: leave out the vectorizer, and how trees are read")
    else:
        encoding, paths = _its_encoding(vectors), whole_parts(vectors)
    work = NeighbourSearch(encoding, forest, k, of_vectors=vectors is not None)
    plan = planned(paths, folder, work, reading, shard_size)
    run(folder, plan, by, on_done)
    return merge_parts(folder, plan) if is_complete(folder, plan) else None


def _folder_of_vectors(paths: Sequence[str | os.PathLike[str]]) -> Path | None:
    """Return the one folder of parts that is given, None where there is none."""
    folders = [Path(path) for path in paths if Path(path, PLAN).is_file()]
    if folders and len(paths) > 1:
        raise ParameterError(f"{folders[0]} is a folder of parts: give it alone, or files of trees instead")
    return folders[0] if folders else None


def _its_encoding(folder: Path) -> Encoding:
    """Return what made the vectors of a folder."""
    work = Plan.load(folder).work
    if work.get("task") != "encode":
        raise SourceError(f"{folder} does not hold vectors: it is of {work.get('task')!r}")
    return Encoding.load(folder, work["vectors"])


def plan_encode(
    paths: Paths,
    out: str | os.PathLike[str],
    vectorizer: Any,
    *,
    reading: Reading = AS_IT_COMES,
    shard_size: int | None = None,
) -> int:
    """Do all of ``encode`` but the work: return the number of shards, for ``do_shard`` under any engine."""
    return len(planned(paths, checked_path("out", out), Encoding(vectorizer), reading, shard_size).shards)


def plan_predict(
    paths: Paths,
    out: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    scores: bool = False,
    reading: Reading = AS_IT_COMES,
    shard_size: int | None = None,
) -> int:
    """Do all of ``predict`` but the work: return the number of shards, for ``do_shard`` under any engine."""
    work = Prediction(model, scores)
    return len(planned(paths, checked_path("out", out), work, work.reading(reading), shard_size).shards)
