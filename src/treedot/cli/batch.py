"""The commands of ``treedot batch``: many files and processes; they write a folder of parts or a model."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import treedot as td
from treedot._pages.printable import printable_json
from treedot.cli.engines import add_engine, add_share, client
from treedot.cli.options import MODEL_HELP, Work, add_command, add_output, add_reading, add_similarity
from treedot.cli.pipes import note, show
from treedot.cli.progress import Progress, report_passes
from treedot.cli.reading import Skipped
from treedot.cli.training import add_training, resumable, show_streamed, training_settings
from treedot.cli.vector_options import (
    add_encoding,
    add_streamed_rows,
    check_options,
    make_encoding,
    make_vectorizer,
)
from treedot.errors import ParameterError
from treedot.languages import LANGUAGES

FILES_HELP = "files of trees, folders of such files, or quoted patterns such as 'trees/*.parquet'"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the commands of ``treedot batch``."""
    commands = command.add_subparsers(metavar="COMMAND", required=True)
    for name, (add_own, work) in WORKS.items():
        own = add_command(commands, name, work)
        own.set_defaults(run=run, work=work)
        add_own(own)


def run(options: argparse.Namespace) -> int | None:
    """Process many files with many processes or machines.

    Process many files, or one huge file, on all cores, with Dask or Ray, or in an array of jobs. Files are
    cut into shards; each shard becomes a part, an Arrow file in the output folder (fit writes a model). To
    resume a command that was stopped or killed, run it again. treedot batch status lists missing parts.
    """
    work: Work = options.work
    return work(options)


def _add_parts(command: argparse.ArgumentParser, what: str) -> None:
    """Add the options that all commands that write parts share; ``what`` describes the folder."""
    command.add_argument("trees", nargs="+", metavar="TREES", help=FILES_HELP)
    add_output(command, "FOLDER", f"the folder to write: {what}")
    add_share(add_engine(command))
    add_reading(command, cache=False)


def _add_encode(command: argparse.ArgumentParser) -> None:
    _add_parts(command, "a part with vectors for every shard")
    add_encoding(command, parts=True)


def _encode(options: argparse.Namespace) -> None:
    """Turn the trees of many files into vectors.

    Write the vectors of all trees to a folder of parts. load_vectors in Python reads them as one matrix.

    Example: treedot batch encode 'trees/*.parquet' -o rows/ --workers 8
    """
    options.vectors = options.vectors or ("sparse" if options.kernel is None else "dense")
    check_options(options)
    _make_parts(options, td.batch.encode, make_encoding(options))


def _add_predict(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    command.add_argument(
        "--scores", action="store_true", help="also write the scores of all classes, in the column scores"
    )
    _add_parts(command, "a part with classes for every shard")


def _predict(options: argparse.Namespace) -> None:
    """Predict the classes or numbers of the trees of many files.

    Write a folder of parts: the columns of the input files except trees, and the predicted class or number in
    the column predicted.

    Example: treedot batch predict questions.model 'trees/*.parquet' -o classes/ --workers 8
    """
    _make_parts(options, td.batch.predict, options.model, scores=options.scores)


def _add_fit(command: argparse.ArgumentParser) -> None:
    add_training(command, FILES_HELP)
    group = add_engine(command)
    group.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help="how often the partitions exchange their results (default: 10)",
    )
    group.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="number of partitions, at least as many as workers (default: one per 16,384 trees, at most 16)",
    )
    group.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="folder for the state from which an interrupted training resumes; removed when the model is "
        "written (default: MODEL.training)",
    )
    add_streamed_rows(command)
    add_reading(command, cache=False)


def _fit(options: argparse.Namespace) -> None:
    """Train one model on the trees of many files.

    Train a linear model, like treedot train, with many processes. Each trains on one partition of the trees;
    after every round they exchange their results. If several values of --decay, --C or --damping are given,
    they are compared on a random sample of 20,000 trees.

    Example: treedot batch fit 'trees/*.parquet' --class class -o trees.model --workers 8
    """
    from treedot.models.training.training_settings import N_FEATURES

    rows = argparse.Namespace(**vars(options) | {"vectors": "sparse", "decay": None, "damping": None})
    rounds = {} if options.rounds is None else {"rounds": options.rounds}
    with resumable(options), _running(options) as how, Progress() as progress:
        model = td.batch.fit(
            options.trees,
            options.output,
            make_vectorizer(rows, n_features=N_FEATURES),
            label=options.class_column,
            partitions=options.partitions,
            checkpoint=options.checkpoint,
            overwrite=options.overwrite,
            progress=report_passes(progress, "round", "began with a duality gap of"),
            **training_settings(options),
            **rounds,
            **how,
        )
    show_streamed(model, options.output)


def _add_dups(command: argparse.ArgumentParser) -> None:
    add_similarity(command)
    _add_parts(command, "duplicates.arrow, and the state from which an interrupted command resumes")


def _dups(options: argparse.Namespace) -> None:
    """Find near-duplicates among the trees of many files.

    Write groups of near-duplicate trees to duplicates.arrow in the output folder, one row per tree. For
    source code, use treedot dups.

    Example: treedot batch dups 'trees/*.parquet' -o dups/ --workers 8
    """
    from treedot.batch.finished import DUPLICATES
    from treedot.batch.plan import find_inputs
    from treedot.readers.sources import format_of

    for source in find_inputs(options.trees, options.format, Path(options.output)):
        if (options.format or format_of(source.path)) in LANGUAGES:
            raise ParameterError(
                f"{source.path} is source code: use treedot dups; or convert it to a file of trees with "
                "read_code(…, identifiers='blur') in Python"
            )
    names = ("threshold", "min_nodes")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    limited: list[int] = []
    with _counting_shards(options) as how:
        found = td.batch.find_duplicates(
            options.trees, options.output, on_limit=limited.append, **given, **how
        )
    for count in limited:
        note(
            f"found too many near-duplicates of {count:,} trees; not all of them were compared: raise "
            "--threshold"
        )
    if found is None:
        show(
            f"{options.output}: this share is done; when all shares are, run them once more: the last one "
            f"to finish writes {DUPLICATES}"
        )
    else:
        groups = len(set(found["group"].to_pylist()))
        show(f"{Path(options.output, DUPLICATES)}: {groups:,} groups of {len(found):,} trees")


def _add_status(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", metavar="FOLDER", help="a folder that batch encode, predict or dups wrote")
    command.add_argument("--json", action="store_true", help="print JSON")


def _status(options: argparse.Namespace) -> int:
    """Show how much of a folder of parts is finished.

    Count the finished parts and their rows, and list the missing ones with the reason if they failed. The
    exit code is 0 if all parts are finished, 1 if some are missing.

    Example: treedot batch status rows/
    """
    found = td.batch.status(options.folder)
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
            why = found.failed.get(name, "not written yet")
            show(f"  missing {name}: {(why.splitlines() or ['it failed'])[-1]}")
    return 1 if found.missing else 0


def _make_parts(
    options: argparse.Namespace, work: Callable[..., td.batch.Done], *what: Any, **more: Any
) -> None:
    """Run a function of treedot.batch that writes parts, and print how many there are."""
    with _counting_shards(options) as how:
        done = work(options.trees, options.output, *what, **how, **more)
    there = f" ({done.found} were finished before)" if done.found else ""
    show(f"{options.output}: {done.made + done.found} part(s){there}, {done.rows:,} rows")


@contextlib.contextmanager
def _counting_shards(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a function that writes parts, and show how many of its shards are done."""
    with Progress("shards") as progress, _running(options, progress.add) as how:
        yield {**how, "share": options.shard}


@contextlib.contextmanager
def _running(
    options: argparse.Namespace, on_shard: Callable[[int], object] = lambda total: None
) -> Iterator[dict[str, Any]]:
    """Yield the arguments that all functions of treedot.batch share, and report the trees left out."""
    skipped = Skipped(options.skip_bad)

    def on_done(outcome: td.batch.Outcome, total: int) -> None:
        on_shard(total)
        skipped.add(outcome.skipped, *outcome.messages)

    with client(options) as found:
        yield {
            "client": found,
            "workers": options.workers,
            "reading": td.batch.Reading(options.format, options.column, options.unit, options.skip_bad),
            "shard_size": options.shard_size,
            "on_done": on_done,
        }
    skipped.report()


WORKS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], Work]] = {
    "encode": (_add_encode, _encode),
    "predict": (_add_predict, _predict),
    "fit": (_add_fit, _fit),
    "dups": (_add_dups, _dups),
    "status": (_add_status, _status),
}
