"""Make one part from one shard, without an engine."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Self

from treedot._storage.files import reason, write_whole
from treedot.batch.encoding import Encoding
from treedot.batch.pair_search import PairSearch
from treedot.batch.part_file import PartFile, planned_types, source_metadata
from treedot.batch.plan import Plan, Shard
from treedot.batch.prediction import MODEL, Prediction
from treedot.batch.production_lists import ProductionLists
from treedot.batch.work import Source, Work, first_to_compile, kept
from treedot.errors import SourceError, TreedotError
from treedot.parameters import checked_path
from treedot.readers.on_bad import OnBad
from treedot.vectors.dense.label_table import small_tables
from treedot.vectors.encoder_cache import clear_encoders
from treedot.vectors.parts import PLAN

LABEL_BYTES = 3 << 27  # bytes for vectors of labels: 384 MiB
MAX_MESSAGES = 20  # most messages about skipped trees, per shard


class Outcome(NamedTuple):
    """The result of one shard: a part, or an error.

    Attributes
    ----------
    shard : int
        The number of the shard.
    rows : int
        The rows of its part.
    error : str
        The error message; empty if there was no error.
    skipped : int
        The number of trees that could not be read and were skipped.
    messages : tuple of str
        The errors of the first skipped trees.
    """

    shard: int
    rows: int = 0
    error: str = ""
    skipped: int = 0  # trees that could not be read
    messages: tuple[str, ...] = ()  # about the first of them

    @classmethod
    def failed(cls, number: int, error: Exception) -> Self:
        """Return the outcome of a task that raised an error; unexpected errors include their traceback.

        Parameters
        ----------
        number : int
            The number of the shard.
        error : Exception
            The exception.

        Returns
        -------
        Outcome
            The outcome.
        """
        known = isinstance(error, (TreedotError, OSError, MemoryError))
        text = reason(error) or type(error).__name__ if known else traceback.format_exc()
        return cls(number, error=text)

    @classmethod
    def of(cls, number: int, rows: int, left_out: list[SourceError]) -> Self:
        """Return the outcome of a successful task.

        Parameters
        ----------
        number : int
            The number of the shard.
        rows : int
            The number of rows written.
        left_out : list of SourceError
            The errors of skipped trees.

        Returns
        -------
        Outcome
            The outcome.
        """
        return cls(number, rows, "", len(left_out), tuple(map(str, left_out[:MAX_MESSAGES])))


def do_shard(folder: str, number: int) -> Outcome:
    """Make one part of a folder, in one thread; its file appears atomically.

    An engine only has to call this function, on any machine that can reach the folder and the inputs. Errors
    are returned, and stored in the folder for ``status``; a failed shard does not stop the others.

    Parameters
    ----------
    folder : str
        The folder that ``plan_encode`` or ``plan_predict`` made.
    number : int
        The number of the shard, from 0.

    Returns
    -------
    Outcome
        The rows of the part, or the error.
    """
    try:
        job = kept(_Job, checked_path("folder", folder), PLAN)
        shard = job.shard(number)
        job.warm_up(shard)
        done = job.write_part(number)
    except Exception as error:
        failed = Outcome.failed(number, error)
        note_failure(folder, number, failed.error)
        return failed
    with contextlib.suppress(OSError):
        failure_file(Path(folder), shard).unlink(missing_ok=True)
    return done


def note_failure(folder: str, number: int, error: str) -> None:
    """Store the error of a failed shard; if that is impossible, only the outcome reports it."""
    with contextlib.suppress(TreedotError, OSError):
        shard = Plan.load(checked_path("folder", folder)).shard(number)
        with write_whole(failure_file(Path(folder), shard), sweep=False) as aside:
            aside.write_text(error + "\n", encoding="utf-8", errors="backslashreplace")


def failure_file(folder: Path, shard: Shard) -> Path:
    """Return the file that stores the error of a failed shard."""
    return folder / shard.part.replace("part-", "_failed-").replace(".arrow", ".txt")


class _Job:
    """The plan of a folder and its work, loaded once per process.

    The data of another folder are dropped and label tables are small: a process should fit in one gigabyte.
    """

    def __init__(self, folder: Path) -> None:
        clear_encoders()
        self._folder, self._plan = folder, Plan.load(folder)
        self._work = load_work(folder, self._plan.work)
        self._planned = _without(planned_types(self._plan), self._work.left_out)
        self._lock, self._is_warm = Lock(), False

    def shard(self, number: int) -> Shard:
        """Return a shard."""
        return self._plan.shard(number)

    def _source(self, shard: Shard, on_bad: OnBad) -> Source:
        return Source(self._plan.inputs[shard.file].path, shard.range, self._plan.reading, on_bad)

    def warm_up(self, shard: Shard) -> None:
        """Compile the code that shards need; the first process of a machine does it before the others.

        Compiling takes seconds, and many processes that compile at once have crashed, since they write to the
        same cache files.
        """
        with self._lock:
            if self._is_warm:
                return
            with first_to_compile():
                with small_tables(LABEL_BYTES):
                    self._work.warm_up()
                if self._work.reads_trees:
                    with contextlib.suppress(TreedotError):  # ``write_part`` will report the error
                        next(self._source(shard, OnBad(lambda _: None)).pieces())
            self._is_warm = True

    def write_part(self, number: int) -> Outcome:
        """Write the part of a shard."""
        shard, errors = self.shard(number), list[SourceError]()
        source = self._plan.inputs[shard.file]
        source.check_unchanged()
        metadata = self._work.metadata | source_metadata(self._plan, shard)
        trees = self._source(shard, OnBad(errors.append if self._plan.reading.skip_bad else None))
        with (
            write_whole(self._folder / shard.part, sweep=False) as aside,
            PartFile(aside, metadata, self._planned) as part,
        ):
            for made, columns in self._work.batches(trees):
                part.write(made, _without(columns, self._work.left_out))
            part.n_trees = trees.n_trees
            source.check_unchanged()
        return Outcome.of(number, part.rows, errors)


def load_work(folder: Path, description: dict[str, Any]) -> Work:
    """Load the work that was saved in a folder."""
    work: Work
    match description.get("task"):
        case "encode":
            work = Encoding.load(folder, description["vectors"])
        case "predict":
            work = Prediction(folder / MODEL, scores=bool(description["scores"]))
        case "duplicates":
            work = ProductionLists(description["threshold"], description["min_nodes"])
        case "similar pairs":
            work = PairSearch(folder, description)
        case other:
            raise SourceError(f"{folder} holds work of an unknown kind, {other!r}: update treedot")
    if work.description != description:
        raise SourceError(f"{folder} is damaged: its work does not match its plan")
    return work


def _without(columns: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values for name, values in columns.items() if name not in names}
