"""Plan a folder of parts, run the shards on an engine, and resume interrupted runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._storage.files import remove_stale
from treedot._storage.locks import lock
from treedot.batch.engines import check_client, opened
from treedot.batch.finished import rows_of_shards
from treedot.batch.plan import Plan, check_folder, find_inputs
from treedot.batch.retries import first_failure, outcomes
from treedot.batch.shard import Outcome, do_shard, load_work, note_failure
from treedot.batch.work import Work
from treedot.errors import IncompleteError, ParameterError, TreedotError
from treedot.readers.ranges import Reading, checked_reading
from treedot.vectors.parts import PLAN

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
OnDone = Callable[[Outcome, int], object]


class Done(NamedTuple):
    """The result of a run.

    Attributes
    ----------
    made : int
        The number of parts that the run made.
    found : int
        The number of parts that existed before.
    rows : int
        The rows of all parts.
    skipped : int
        The number of trees that could not be read and were skipped.
    """

    made: int
    found: int
    rows: int
    skipped: int  # trees that could not be read


class Workers(NamedTuple):
    """The engine of a run, and its share of the work."""

    client: Any
    workers: int | None
    share: tuple[int, int]

    def check(self) -> None:
        """Raise for an invalid share or client, before anything is planned."""
        check_client(self.client, self.workers)
        share = self.share
        if not (
            isinstance(share, (tuple, list))
            and len(share) == 2
            and all(isinstance(x, (int, np.integer)) for x in share)
            and 1 <= share[0] <= share[1]
        ):
            raise ParameterError(f"share must be (i, n) with i from 1 to n, not {share!r}")


def planned(paths: Paths, folder: Path, work: Work, reading: Reading, shard_size: int | None) -> Plan:
    """Return the plan of a folder, made if there is none; raise if the folder belongs to other work."""
    check_folder(folder)
    inputs = find_inputs(paths, checked_reading(reading).format, folder)
    if not (folder / PLAN).exists():
        with lock(folder):
            if not (folder / PLAN).exists():  # another process may have written it meanwhile
                plan = Plan.make(work.description, reading, shard_size, inputs)
                folder.mkdir(exist_ok=True)
                work.save(folder)
                plan.save(folder)
                return plan
    plan = Plan.load(folder)
    size = plan.shard_size if shard_size is None else shard_size
    plan.check_same(Plan(work.description, reading, size, inputs, ()), folder)
    _mend(folder, work)
    return plan


def _mend(folder: Path, work: Work) -> None:
    """Restore the files that workers need, if they are missing or damaged."""
    try:
        load_work(folder, work.description)
    except (TreedotError, OSError):
        work.save(folder)


def run(folder: Path, plan: Plan, by: Workers, on_done: OnDone | None) -> Done:
    """Make the missing parts of a plan; raise if some could not be made."""
    which, shares = by.share
    folder = Path(os.path.abspath(folder))
    remove_stale(folder)
    mine = range(which - 1, len(plan.shards), shares)
    found = rows_of_shards(folder, plan, mine)
    missing = [number for number, rows in found.items() if rows is None]
    done: list[Outcome] = []
    if missing:
        with opened(by.client, by.workers) as engine:
            for outcome in outcomes(engine, do_shard, [(os.fspath(folder), number) for number in missing]):
                if outcome.error:  # also if the worker died and could not record the failure itself
                    note_failure(os.fspath(folder), outcome.shard, outcome.error)
                done.append(outcome)
                if on_done is not None:
                    on_done(outcome, len(missing))
        remove_stale(folder)
    failures = [outcome for outcome in done if outcome.error]
    if failures:
        raise IncompleteError(_message(folder, plan, failures, len(mine)))
    rows = sum(rows or 0 for rows in found.values()) + sum(outcome.rows for outcome in done)
    return Done(len(done), len(mine) - len(missing), rows, sum(outcome.skipped for outcome in done))


def _message(folder: Path, plan: Plan, failures: list[Outcome], total: int) -> str:
    return (
        f"{len(failures)} of {total} shards failed ({first_failure(failures, plan.where)}); the others are "
        f"finished. Repeat the call to retry only these; treedot batch status {folder} lists them"
    )
