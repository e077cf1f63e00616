"""The shard function: one range of a file to one part. It knows no engine."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from treedot.errors import ParameterError, SourceError, TreedotError
from treedot.files import reason, write_whole
from treedot.readers.problems import OnBad
from treedot.scale.encoding import Encoding
from treedot.scale.neighbour_search import NeighbourSearch
from treedot.scale.part_file import PartFile, planned_types, source_metadata
from treedot.scale.plan import Plan, Shard
from treedot.scale.prediction import MODEL, Prediction
from treedot.scale.work import Source, Work
from treedot.vectors.parts import PLAN

MAX_MESSAGES = 20  # about trees that were left out, of one shard


class Outcome(NamedTuple):
    """What became of a shard: a part of so many rows, or an error."""

    shard: int
    rows: int = 0
    error: str = ""
    skipped: int = 0  # trees that could not be read
    messages: tuple[str, ...] = ()  # about the first of them


def do_shard(folder: str, number: int) -> Outcome:
    """Make one part of a folder, by one thread; it appears whole or not at all.

    This is all that an engine has to call, anywhere where the folder and the inputs can be reached. Errors
    are returned, and written to the folder for ``status``: one shard that fails is no reason to end others.

    Parameters
    ----------
    folder : str
        The folder that ``plan_encode`` or ``plan_predict`` made.
    number : int
        Which shard, from 0.
    """
    try:
        plan, work = _job(folder)
        if not 0 <= number < len(plan.shards):
            raise ParameterError(f"there is no shard {number}: there are {len(plan.shards)}, from 0")
        shard = plan.shards[number]
        done = _write_part(Path(folder), plan, work, number)
    except Exception as error:
        known = isinstance(error, (TreedotError, OSError, MemoryError))
        text = reason(error) or type(error).__name__ if known else traceback.format_exc()
        note_failure(folder, number, text)
        return Outcome(number, error=text)
    with contextlib.suppress(OSError):
        failure_file(Path(folder), shard).unlink(missing_ok=True)
    return done


def warm_up(folder: str) -> None:
    """Load what shards need, and compile it where it is not yet: once per machine, before all of them do."""
    _, work = _job(folder)
    work.warm_up()


def note_failure(folder: str, number: int, error: str) -> None:
    """Write down why a shard failed; where that cannot be written, the outcome still says it."""
    with contextlib.suppress(TreedotError, OSError):
        for shard in Plan.load(Path(folder)).shards[
            max(0, number) : number + 1
        ]:  # none where there is no such
            with write_whole(failure_file(Path(folder), shard), sweep=False) as aside:
                aside.write_text(error + "\n", encoding="utf-8", errors="backslashreplace")


def failure_file(folder: Path, shard: Shard) -> Path:
    """Return where it is written why a shard failed."""
    return folder / shard.part.replace("part-", "_failed-").replace(".arrow", ".txt")


def _job(folder: str) -> tuple[Plan, Work]:
    try:
        found = os.stat(Path(folder, PLAN))
    except OSError as error:
        raise SourceError(f"cannot open {Path(folder, PLAN)}: {reason(error)}") from None
    return _loaded(folder, found.st_mtime_ns, found.st_ino)


@lru_cache(maxsize=2)
def _loaded(folder: str, *version: int) -> tuple[Plan, Work]:
    plan = Plan.load(Path(folder))
    return plan, load_work(Path(folder), plan.work)


def load_work(folder: Path, description: dict[str, Any]) -> Work:
    """Return the work that was saved in a folder."""
    work: Work
    match description.get("task"):
        case "encode":
            work = Encoding.load(folder, description["vectors"])
        case "predict":
            work = Prediction(folder / MODEL, scores=bool(description["scores"]))
        case "nearest":
            work = NeighbourSearch.load(folder, description)
        case other:
            raise SourceError(f"{folder} is of a work that this treedot does not know: {other!r}")
    if work.description != description:
        raise SourceError(f"{folder} is damaged: what it was made with is not what its plan says")
    return work


def _write_part(folder: Path, plan: Plan, work: Work, number: int) -> Outcome:
    shard, errors = plan.shards[number], list[SourceError]()
    source = plan.inputs[shard.file]
    source.check_unchanged()
    metadata = work.metadata | source_metadata(plan, shard)
    on_bad = OnBad(errors.append if plan.reading.skip_bad else None)
    trees = Source(source.path, shard.range, plan.reading, on_bad)
    planned = _without(planned_types(plan), work.left_out)
    with write_whole(folder / shard.part, sweep=False) as aside, PartFile(aside, metadata, planned) as part:
        for made, columns in work.batches(trees):
            part.write(made, _without(columns, work.left_out))
        part.n_trees = trees.n_trees
        source.check_unchanged()
    return Outcome(number, part.rows, "", len(errors), tuple(map(str, errors[:MAX_MESSAGES])))


def _without(columns: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values for name, values in columns.items() if name not in names}
