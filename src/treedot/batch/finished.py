"""The progress of a folder of parts, read from the parts themselves."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from treedot._runtime.threads import thread_map
from treedot._storage.files import read_plain
from treedot.batch.pair_search import is_planned
from treedot.batch.part_file import is_result, rows_of_part, source_metadata
from treedot.batch.plan import Plan, Shard
from treedot.batch.shard import failure_file
from treedot.errors import SourceError
from treedot.parameters import checked_path

PAIRS = "_pairs"  # the folder for the second round of a search for near-duplicates
DUPLICATES = "duplicates.arrow"
MAX_MESSAGE = 1 << 20  # most bytes read of a stored failure


class Status(NamedTuple):
    """The progress of a folder of parts.

    The parts of a search for near-duplicates are lists of productions and pairs.

    Attributes
    ----------
    parts : int
        The number of all parts, finished or not.
    rows : int
        The rows of the finished parts; of a search for near-duplicates, the trees.
    missing : list of str
        The parts that are missing or damaged. If all parts are finished but the result made from them is
        missing, the name of the result.
    failed : dict of str to str
        The error of each missing part that was attempted.
    """

    parts: int
    rows: int
    missing: list[str]
    failed: dict[str, str]


def status(folder: str | os.PathLike[str]) -> Status:
    """Read all parts of a folder and count the finished ones.

    Parameters
    ----------
    folder : path
        The folder of a run.

    Returns
    -------
    Status
        The numbers of parts and rows, and the missing parts.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treedot import FragmentVectorizer, batch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "trees.mrg").write_text("(S (NP Ann) (VP runs))")
    >>> parts = batch.plan_encode(folder / "trees.mrg", folder / "rows", FragmentVectorizer())
    >>> status(folder / "rows").missing
    ['part-000000-000000000000000-000000000000022.arrow']
    """
    plan = Plan.load(checked_path("folder", folder))
    task, found = plan.work.get("task"), plan_status(Path(folder), plan)
    if task != "duplicates":
        return found
    found = _with_pairs(Path(folder), plan, found)
    if not found.missing and not is_result(Path(folder, DUPLICATES)):
        found = found._replace(parts=found.parts + 1, missing=[DUPLICATES])
    return found


def _with_pairs(folder: Path, plan: Plan, own: Status) -> Status:
    """Add the parts of pairs; they count as one while they are not planned yet."""
    if not is_planned(folder / PAIRS, plan):
        return own._replace(parts=own.parts + 1, missing=[*own.missing, PAIRS])
    pairs = plan_status(folder / PAIRS, Plan.load(folder / PAIRS))
    return Status(
        own.parts + pairs.parts,
        own.rows,
        own.missing + [f"{PAIRS}/{name}" for name in pairs.missing],
        own.failed | {f"{PAIRS}/{name}": why for name, why in pairs.failed.items()},
    )


def plan_status(folder: Path, plan: Plan) -> Status:
    """Return the progress of a plan, from its parts."""
    rows = list(rows_of_shards(folder, plan, range(len(plan.shards))).values())
    missing = [shard for shard, found in zip(plan.shards, rows, strict=True) if found is None]
    failed = {}
    for shard in missing:
        with contextlib.suppress(SourceError):  # there is none, or a worker has just removed it
            text = read_plain(failure_file(folder, shard), MAX_MESSAGE)
            failed[shard.part] = text.decode("utf-8", "replace").rstrip()
    return Status(len(rows), sum(found or 0 for found in rows), [shard.part for shard in missing], failed)


def is_complete(folder: Path, plan: Plan) -> bool:
    """Return whether all parts of a plan exist; damage is detected when they are read."""
    return all(_rows(folder, plan, shard, look_closely=False) is not None for shard in plan.shards)


def rows_of_shards(folder: Path, plan: Plan, numbers: range) -> dict[int, int | None]:
    """Return the number of rows in the parts of shards; None for parts that are missing or damaged."""
    with thread_map(-1, len(numbers)) as run_all:
        shards = [plan.shards[number] for number in numbers]
        rows = run_all(lambda shard: _rows(folder, plan, shard, look_closely=True), shards)
        return dict(zip(numbers, rows, strict=True))


def _rows(folder: Path, plan: Plan, shard: Shard, look_closely: bool) -> int | None:
    return rows_of_part(folder / shard.part, source_metadata(plan, shard), plan.sealed, look_closely)
