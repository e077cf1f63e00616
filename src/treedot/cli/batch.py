"""The commands that work on many files: into folders of parts, and how far those are."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treedot._pages.printable import printable_json
from treedot.cli.choices import check_options, make_vectorizer
from treedot.cli.pipes import note, show
from treedot.cli.progress import Counted, Passes
from treedot.errors import ParameterError, SourceError, missing

if TYPE_CHECKING:  # each command imports what it needs, and all of this takes seconds
    from treedot.batch import Reading
    from treedot.batch.run import Done
    from treedot.batch.shard import Outcome
    from treedot.models.linear_model import LinearModel

FILES = (".npz", ".npy", ".parquet", ".arrow", ".tsv", ".csv", ".txt")
REPORTS = (".html", ".htm", ".json", ".sarif", ".md")
A_FOLDER = "parts are written to a folder: give one, such as -o out/"
GIVEN = ("workers", "engine", "scheduler", "shard", "shard_size")
FIT_GIVEN = ("workers", "engine", "scheduler", "shard_size", "rounds", "partitions")
IN_MEMORY = "leave out " + ", ".join(f"--{name.replace('_', '-')}" for name in FIT_GIVEN)
FOR_SOURCE_CODE = (
    "unit",
    "language",
    "exclude",
    "top",
    "format",
    "changed_since",
    "baseline",
    "write_baseline",
    "fail_on_new",
)
FOR_ONE_PROCESS = {
    "passes": "use --rounds",
    "jobs": "use --workers",
    **dict.fromkeys(("group", "weight", "kernel", "tree_column", "number_column", "text_column"), IN_MEMORY),
}


def wants_parts(options: argparse.Namespace) -> bool:
    """Tell whether a command is to write a folder of parts."""
    output = options.output or ""
    a_file = Path(output).suffix in (*FILES, *REPORTS)
    folder = output.endswith(os.sep) or (os.path.isdir(output) and not a_file)
    if folder or any(getattr(options, name) is not None for name in GIVEN):
        if not folder and (output in ("", "-") or a_file or os.path.isfile(output)):
            raise ParameterError(A_FOLDER)
        if getattr(options, "device", None) not in (None, "cpu"):
            raise ParameterError("--device has no effect on parts, which processors make: leave it out")
        if options.jobs not in (None, -1):
            raise ParameterError(
                "--jobs has no effect on parts, each of which one thread makes: use --workers"
            )
        return True
    return False


def wants_workers(options: argparse.Namespace) -> bool:
    """Tell whether a model is to be trained by many processes."""
    return any(getattr(options, name) is not None for name in FIT_GIVEN)


def encode_parts(options: argparse.Namespace) -> None:
    """Turn the trees of many files into vectors."""
    from treedot.batch.jobs import encode as encode_files

    check_options(options)
    _run(options, encode_files, make_vectorizer(options))


def predict_parts(options: argparse.Namespace) -> None:
    """Tell the classes of the trees of many files."""
    from treedot.batch.jobs import predict as predict_files

    _run(options, predict_files, options.model, scores=options.scores)


def duplicate_parts(options: argparse.Namespace) -> None:
    """Find near-duplicates among the trees of many files."""
    from treedot.batch.duplicates import find_duplicates
    from treedot.batch.plan import find_inputs
    from treedot.batch.status import DUPLICATES
    from treedot.languages import LANGUAGES
    from treedot.readers.sources import format_of

    for name in FOR_SOURCE_CODE:
        value = getattr(options, name)
        if value is not None and value is not False:
            raise ParameterError(
                f"--{name.replace('_', '-')} is for source code, which is compared in memory: leave it out, "
                "or -o FOLDER/ and what chooses workers"
            )
    for source in find_inputs(options.paths, None, Path(options.output)):
        if format_of(source.path) in LANGUAGES:
            raise ParameterError(
                f"{source.path} is source code, which is compared in memory: leave out -o FOLDER/ and what "
                "chooses workers; or give files of trees, such as read_code(…, identifiers='blur') saves"
            )
    names = ("threshold", "min_nodes")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    limited: list[int] = []
    with _running(options) as how:
        found = find_duplicates(options.paths, options.output, on_limit=limited.append, **given, **how)
    for count in limited:
        note(
            f"{count:,} trees met a limit: so much is like them that not all of it was compared; "
            "raise --threshold"
        )
    if found is None:
        show(
            f"{options.output}: this share is done; when all are, give them once more, and the last one to "
            f"be done writes {DUPLICATES}"
        )
    else:
        groups = len(set(found["group"].to_pylist()))
        show(f"{Path(options.output, DUPLICATES)}: {groups:,} groups of {len(found):,} trees")


def _run(options: argparse.Namespace, work: Callable[..., Done], *what: Any, **more: Any) -> None:
    with _running(options) as how:
        done = work(options.trees, options.output, *what, **how, **more)
    there = f" ({done.found} of them were there)" if done.found else ""
    show(f"{options.output}: {done.made + done.found} part(s){there}, {done.rows:,} rows")


@contextlib.contextmanager
def _running(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Give what all works on parts are called with; say meanwhile how far they are, and what is left out."""
    with _client(options) as client, Counted("shards") as progress, _left_out() as tell:

        def on_done(outcome: Outcome, total: int) -> None:
            progress.add(total)
            tell(outcome)

        yield {
            "client": client,
            "workers": options.workers,
            "share": options.shard or (1, 1),
            "reading": _reading(options),
            "shard_size": options.shard_size,
            "on_done": on_done,
        }


def _reading(options: argparse.Namespace) -> Reading:
    from treedot.batch import Reading

    return Reading(options.format, options.column, options.unit, options.skip_bad)


@contextlib.contextmanager
def _left_out() -> Iterator[Callable[[Outcome], None]]:
    """Give what tells of the trees that a shard left out; say at the end how many they were."""
    skipped = 0

    def tell(outcome: Outcome) -> None:
        nonlocal skipped
        skipped += outcome.skipped
        for message in outcome.messages:
            note(f"skipped {message}")

    yield tell
    if skipped:
        note(f"left out {skipped} bad tree(s)")


@contextlib.contextmanager
def _client(options: argparse.Namespace) -> Iterator[Any]:
    engine = options.engine or "local"
    if engine == "local" and options.scheduler is not None:
        raise ParameterError("--scheduler is for --engine dask and --engine ray")
    if engine != "local" and options.workers is not None:
        raise ParameterError(f"--workers is for processes of this machine: --engine {engine} has its own")
    if engine == "local":
        yield None
    elif engine == "dask":
        if options.scheduler is None:
            raise ParameterError("--engine dask needs the address of its scheduler: --scheduler tcp://…")
        try:
            from distributed import Client
        except ModuleNotFoundError:
            raise missing("distributed", "dask", "--engine dask") from None
        # Where the scheduler goes away, Dask would log tracebacks beside the error.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            client = Client(options.scheduler)
        except (OSError, ValueError) as error:
            raise SourceError(f"no Dask scheduler answers at {options.scheduler}: {error}") from None
        with client:
            yield client
    else:
        try:
            import ray
        except ModuleNotFoundError:
            raise missing("ray", "ray", "--engine ray") from None
        try:
            ray.init(address=options.scheduler or "auto", log_to_driver=False)
        except (OSError, ValueError) as error:
            raise SourceError(f"no Ray cluster answers at {options.scheduler or 'auto'}: {error}") from None
        try:
            yield ray
        finally:
            ray.shutdown()


def status(options: argparse.Namespace) -> int:
    """Say how far a folder of parts is."""
    from treedot.batch import status as look_at

    found = look_at(options.folder)
    facts = {
        "parts": found.parts,
        "finished": found.parts - len(found.missing),
        "rows": found.rows,
        "missing": found.missing,
        "failed": found.failed,
    }
    if options.json:
        print(printable_json(facts))
    else:
        print(f"{facts['finished']} of {found.parts} parts are finished, with {found.rows:,} rows")
        for name in found.missing:
            why = found.failed.get(name, "not made yet")
            show(f"  missing {name}: {(why.splitlines() or ['it failed'])[-1]}")
    return 1 if found.missing else 0


def train_by_many(options: argparse.Namespace, settings: dict[str, Any]) -> LinearModel:
    """Train a model on the trees of many files, by many processes, and write it to a folder."""
    from treedot.batch.fitting import fit as fit_files

    for name, instead in FOR_ONE_PROCESS.items():
        if getattr(options, name) not in (None, -1):
            raise ParameterError(f"--{name.replace('_', '-')} is for training by one process: {instead}")
    own = ("vectorizer", "decay", "C", "cv", "class_weight")
    rounds = {} if options.rounds is None else {"rounds": options.rounds}
    progress = Passes("round", "began with a duality gap of")
    with _client(options) as client, progress, _left_out() as tell:
        return fit_files(
            options.trees,
            options.output,
            client=client,
            label=options.class_column,
            **{name: settings[name] for name in own},
            **rounds,
            partitions=options.partitions,
            workers=options.workers,
            reading=_reading(options),
            shard_size=options.shard_size,
            checkpoint=options.checkpoint,
            overwrite=options.overwrite,
            on_done=lambda outcome, _: tell(outcome),
            progress=progress,
        )
