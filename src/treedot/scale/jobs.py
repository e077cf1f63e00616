"""Trees of many files to a folder of parts: planned, handed to an engine, and taken up again where it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from treedot.errors import IncompleteError, ParameterError
from treedot.files import remove_stale
from treedot.readers.ranges import Reading
from treedot.scale.engines import Engine, check_client, opened
from treedot.scale.plan import Plan, check_folder, find_inputs
from treedot.scale.shard import Outcome, do_shard, note_failure, warm_up
from treedot.scale.status import rows_of_shard
from treedot.scale.work import Encoding, Prediction, Work
from treedot.vectors.parts import PLAN

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
OnDone = Callable[[Outcome, int], object]
AS_IT_COMES = Reading()
LISTED = 20  # failures in the message of an error


class Done(NamedTuple):
    """What a run has done: how many parts it made, how many were there before, and all their rows."""

    made: int
    found: int
    rows: int
    skipped: int  # trees that could not be read, and were left out


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
    is started again: parts that are whole are kept. Local processes are started anew, so that a script that
    calls this needs the usual ``if __name__ == "__main__":``.

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
    _check_run(client, workers, share)
    plan = _planned(paths, Path(out), Encoding(vectorizer), reading, shard_size)
    return _run(Path(out), plan, client, workers, share, on_done)


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
    _check_run(client, workers, share)
    work = Prediction(model, scores)
    plan = _planned(paths, Path(out), work, work.reading(reading), shard_size)
    return _run(Path(out), plan, client, workers, share, on_done)


def plan_encode(
    paths: Paths,
    out: str | os.PathLike[str],
    vectorizer: Any,
    *,
    reading: Reading = AS_IT_COMES,
    shard_size: int | None = None,
) -> int:
    """Do all of ``encode`` but the work: return the number of shards, for ``do_shard`` under any engine."""
    return len(_planned(paths, Path(out), Encoding(vectorizer), reading, shard_size).shards)


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
    return len(_planned(paths, Path(out), work, work.reading(reading), shard_size).shards)


def _planned(paths: Paths, folder: Path, work: Work, reading: Reading, shard_size: int | None) -> Plan:
    """Return the plan of a folder, made where there is none; raise where it is that of other work."""
    check_folder(folder)
    inputs = find_inputs(paths, reading.format, folder)
    if (folder / PLAN).exists():
        plan = Plan.load(folder)
        size = plan.shard_size if shard_size is None else shard_size
        asked = Plan(work.description, reading, size, inputs, ())
        plan.check_same(asked, folder)
        return plan
    plan = Plan.make(work.description, reading, shard_size, inputs)
    folder.mkdir(exist_ok=True)
    work.save(folder)
    plan.save(folder)
    return plan


def _check_run(client: Any, workers: int | None, share: tuple[int, int]) -> None:
    """Raise where a run cannot do anything, before anything is planned."""
    check_client(client, workers)
    which, shares = share
    if not 1 <= which <= shares:
        raise ParameterError(f"share must be (i, n) with i from 1 to n, not {share}")


def _run(
    folder: Path,
    plan: Plan,
    client: Any,
    workers: int | None,
    share: tuple[int, int],
    on_done: OnDone | None,
) -> Done:
    which, shares = share
    folder = Path(os.path.abspath(folder))
    remove_stale(folder)
    mine = range(which - 1, len(plan.shards), shares)
    found = {number: rows_of_shard(folder, plan, number) for number in mine}
    missing = [number for number, rows in found.items() if rows is None]
    outcomes: list[Outcome] = []
    if missing:
        with opened(client, workers) as engine:
            for outcome in _outcomes(engine, os.fspath(folder), missing):
                outcomes.append(outcome)
                if on_done is not None:
                    on_done(outcome, len(missing))
        remove_stale(folder)
    failures = sorted(outcome for outcome in outcomes if outcome.error)
    if failures:
        raise IncompleteError(_message(folder, plan, failures, len(mine)))
    rows = sum(rows or 0 for rows in found.values()) + sum(outcome.rows for outcome in outcomes)
    return Done(len(outcomes), len(mine) - len(missing), rows, sum(x.skipped for x in outcomes))


def _outcomes(engine: Engine, folder: str, numbers: list[int]) -> Iterable[Outcome]:
    """Yield the outcome of every shard.

    Those whose worker died are tried once more when the others are done, one at a time: so the one that
    kills its worker is known for certain, and takes no neighbour with it.
    """
    list(engine(warm_up, [(folder,)]))  # where that fails, the shards will say what is wrong
    lost = []
    for (_, number), result in engine(do_shard, [(folder, number) for number in numbers]):
        if isinstance(result, Outcome):
            yield result
        else:
            lost.append(number)
    for number in lost:
        ((_, result),) = engine(do_shard, [(folder, number)])
        if not isinstance(result, Outcome):
            error = f"its worker died, twice ({type(result).__name__}: {result})"
            note_failure(folder, number, error)
            result = Outcome(number, error=error)
        yield result


def _message(folder: Path, plan: Plan, failures: list[Outcome], total: int) -> str:
    lines = [f"{len(failures)} of {total} shards failed; the others are finished:"]
    for outcome in failures[:LISTED]:
        shard = plan.shards[outcome.shard]
        where = f"{plan.inputs[shard.file].path} [{shard.begin}:{shard.end}]"
        lines.append(f"  {where}: {outcome.error.splitlines()[-1]}")
    if len(failures) > LISTED:
        lines.append(f"  … and {len(failures) - LISTED} more")
    return "\n".join([*lines, f"run it again to try these alone; treedot status {folder} lists them"])
