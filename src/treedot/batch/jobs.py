"""The jobs on many files: trees to vectors, and trees to classes."""

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
