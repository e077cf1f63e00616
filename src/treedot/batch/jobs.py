"""The jobs on many files: ``encode`` (trees to vectors) and ``predict`` (trees to classes)."""

from __future__ import annotations

import os
from typing import Any

from treedot.batch.encoding import Encoding
from treedot.batch.prediction import Prediction
from treedot.batch.run import Done, OnDone, Paths, Workers, planned, run
from treedot.parameters import checked_path
from treedot.readers.ranges import Reading

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
    """Encode the trees of many files, or of one large file, to a folder of parts.

    The files are cut into shards. Each shard becomes an Arrow file in the folder, with the other columns of
    its input; ``load_vectors(out)`` reads all of them as one. The same call resumes an interrupted run:
    finished parts are kept. Local processes do not import the calling script, so it needs no
    ``if __name__ == "__main__":``.

    Parameters
    ----------
    paths : path, or iterable of paths
        Files of trees, patterns such as ``"shards/*.parquet"``, and folders.
    out : path
        The folder to write to.
    vectorizer : FragmentVectorizer or DistributedTreeVectorizer
        The vectorizer; its fitted state is stored in the folder.
    client : object, default=None
        What runs the tasks: None for processes on this machine, a Dask client, the module ``ray``, or any
        ``concurrent.futures.Executor``. All machines must reach the files and the folder by the same paths.
    workers : int, default=None
        Local processes, each with one thread; by default one for every core.
    share : tuple of (int, int), default=(1, 1)
        ``(3, 64)`` does the third of 64 shares of the shards, and leaves the others to other runs.
    reading : Reading, default=Reading()
        How the trees are read: ``Reading(format, column, unit, skip_bad)``. By default as in ``read_trees``;
        a shard fails if one of its trees cannot be read.
    shard_size : int, default=None
        The approximate number of bytes of a file per part; by default 16 MiB.
    on_done : callable, default=None
        Called with the ``Outcome`` of every shard, and the number of shards to do.

    Returns
    -------
    Done
        The numbers of new and of existing parts, and the rows of all parts.

    Raises
    ------
    IncompleteError
        Some shards failed; all others are finished.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from treedot import FragmentVectorizer, load_vectors, batch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "trees.mrg").write_text("(S (NP Ann) (VP runs)) (S (NP Bob) (VP sits))")
    >>> with ThreadPoolExecutor(2) as pool:
    ...     batch.encode(folder / "*.mrg", folder / "rows", FragmentVectorizer(), pool)
    Done(made=1, found=0, rows=2, skipped=0)
    >>> load_vectors(folder / "rows")
    <Vectors: 2 × 1048576, sparse, float32, fingerprint ...>
    """
    by = Workers(client, workers, share)
    by.check()
    folder = checked_path("out", out)
    plan = planned(paths, folder, Encoding.of(vectorizer), reading, shard_size)
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
    """Predict the classes of the trees of many files; write a folder of parts with a column ``predicted``.

    The vectors of the trees are not stored. A model with named columns reads tables that have these columns.
    The parts contain all columns of the input except those of trees.

    Parameters
    ----------
    paths : path, or iterable of paths
        Files of trees, patterns such as ``"shards/*.parquet"``, and folders.
    out : path
        The folder to write to.
    model : path
        The folder of a ``LinearModel``; a copy is stored in ``out``.
    client : object, default=None
        What runs the tasks, as in ``encode``.
    scores : bool, default=False
        Add a column ``scores`` with the score of every class; with two classes, only that of the second.
    workers : int, default=None
        Local processes, each with one thread; by default one for every core.
    share : tuple of (int, int), default=(1, 1)
        ``(3, 64)`` does the third of 64 shares of the shards, and leaves the others to other runs.
    reading : Reading, default=Reading()
        How the trees are read.
    shard_size : int, default=None
        The approximate number of bytes of a file per part; by default 16 MiB.
    on_done : callable, default=None
        Called with the ``Outcome`` of every shard, and the number of shards to do.

    Returns
    -------
    Done
        The numbers of new and of existing parts, and the rows of all parts.

    Raises
    ------
    IncompleteError
        Some shards failed; all others are finished.
    """
    by = Workers(client, workers, share)
    by.check()
    folder, work = checked_path("out", out), Prediction(model, scores)
    plan = planned(paths, folder, work, work.reading(reading), shard_size)
    return run(folder, plan, by, on_done)


def plan_encode(
    paths: Paths,
    out: str | os.PathLike[str],
    vectorizer: Any,
    *,
    reading: Reading = AS_IT_COMES,
    shard_size: int | None = None,
) -> int:
    """Plan ``encode`` without running it; any engine can then run it by calling ``do_shard``.

    Parameters
    ----------
    paths : path, or iterable of paths
        Files of trees, patterns such as ``"shards/*.parquet"``, and folders.
    out : path
        The folder to write to.
    vectorizer : FragmentVectorizer or DistributedTreeVectorizer
        The vectorizer; its fitted state is stored in the folder.
    reading : Reading, default=Reading()
        How the trees are read.
    shard_size : int, default=None
        The approximate number of bytes of a file per part; by default 16 MiB.

    Returns
    -------
    int
        The number of shards.

    See Also
    --------
    do_shard : Makes one part.
    """
    return len(planned(paths, checked_path("out", out), Encoding.of(vectorizer), reading, shard_size).shards)


def plan_predict(
    paths: Paths,
    out: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    scores: bool = False,
    reading: Reading = AS_IT_COMES,
    shard_size: int | None = None,
) -> int:
    """Plan ``predict`` without running it; any engine can then run it by calling ``do_shard``.

    Parameters
    ----------
    paths : path, or iterable of paths
        Files of trees, patterns such as ``"shards/*.parquet"``, and folders.
    out : path
        The folder to write to.
    model : path
        The folder of a ``LinearModel``.
    scores : bool, default=False
        Add a column of scores, as in ``predict``.
    reading : Reading, default=Reading()
        How the trees are read.
    shard_size : int, default=None
        The approximate number of bytes of a file per part; by default 16 MiB.

    Returns
    -------
    int
        The number of shards.

    See Also
    --------
    do_shard : Makes one part.
    """
    work = Prediction(model, scores)
    return len(planned(paths, checked_path("out", out), work, work.reading(reading), shard_size).shards)
