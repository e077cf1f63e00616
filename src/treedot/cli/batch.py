"""The commands ``treedot batch``: many files, by many processes, into a folder of parts or a model."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import treedot as td
from treedot._pages.printable import printable_json
from treedot.cli.engines import add_engine, add_share, client
from treedot.cli.options import MODEL_HELP, Work, add_command, add_output, add_reading
from treedot.cli.pipes import note, show
from treedot.cli.progress import Progress, report_passes
from treedot.cli.reading import Skipped
from treedot.cli.training import add_training, resumable, show_streamed, training_settings
from treedot.cli.vector_options import add_encoding, add_streamed_rows, check_options, make_vectorizer
from treedot.errors import ParameterError
from treedot.languages import LANGUAGES

FILES_HELP = "files of trees, folders of them, and patterns in quotes, such as 'trees/*.parquet'"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the commands."""
    commands = command.add_subparsers(metavar="COMMAND", required=True)
    for name, (add_own, work) in WORKS.items():
        own = add_command(commands, name, work)
        own.set_defaults(run=run, work=work)
        add_own(own)


def run(options: argparse.Namespace) -> int | None:
    """Work on many files, by many processes or machines.

    Work on many files, or on one huge file, by all cores, Dask, Ray or an array of jobs. The files are cut
    into shards; each becomes a part, an Arrow file in the output folder (fit writes a model). A command that
    was stopped or killed resumes when it is given again; treedot batch status lists what is missing.
    """
    work: Work = options.work
    return work(options)


def _add_parts(command: argparse.ArgumentParser, what: str) -> None:
    """Add the options of every command that writes parts."""
    command.add_argument("trees", nargs="+", metavar="TREES", help=FILES_HELP)
    add_output(command, "FOLDER", f"the folder to write: {what}")
    add_share(add_engine(command))
    add_reading(command, cache=False)


def _add_encode(command: argparse.ArgumentParser) -> None:
    _add_parts(command, "a part with vectors for every shard")
    add_encoding(command, parts=True)


def _encode(options: argparse.Namespace) -> None:
    """Turn the trees of many files into vectors.

    Write the vectors of all trees to a folder of parts, which load_vectors reads as one matrix.

    Example: treedot batch encode 'trees/*.parquet' -o rows/ --workers 8
    """
    options.vectors = options.vectors or ("sparse" if options.kernel is None else "dense")
    check_options(options)
    _make_parts(options, td.batch.encode, make_vectorizer(options))


def _add_predict(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    command.add_argument(
        "--scores", action="store_true", help="also write the scores of all classes, in the column scores"
    )
    _add_parts(command, "a part with classes for every shard")


def _predict(options: argparse.Namespace) -> None:
    """Predict the classes of the trees of many files.

    Write the class of every tree to a folder of parts, in the column predicted, beside the other columns of
    the files.

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
        help="how often the partitions exchange what they found (default: 10)",
    )
    group.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="partitions, at least as many as there are workers (default: one for 16,384 trees, at most 16)",
    )
    group.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="keep there what is needed to resume; it is removed when the model is written (default: "
        "MODEL.training)",
    )
    add_streamed_rows(command)
    add_reading(command, cache=False)


def _fit(options: argparse.Namespace) -> None:
    """Train one model on the trees of many files.

    Train a linear model as treedot train does, by many processes. The trees are dealt out to partitions,
    which are trained on side by side and exchange what they found after every round. Several --decay and --C
    are compared on a random sample of 20,000 trees.

    Example: treedot batch fit 'trees/*.parquet' --class class -o trees.model --workers 8
    """
    from treedot.models.training.training_settings import N_FEATURES

    rows = argparse.Namespace(**vars(options) | {"vectors": "sparse", "decay": None})
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
    command.add_argument("--min-nodes", type=int, metavar="N", help="leave out smaller trees (default: 40)")
    command.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="above 0, up to 1: of all productions in either of two trees, the share that is in both. Below "
        "T + 0.1, what they share must also be rare enough (default: 0.7)",
    )
    _add_parts(command, "duplicates.arrow, and what is needed to resume")


def _dups(options: argparse.Namespace) -> None:
    """Find near-duplicates among the trees of many files.

    Write groups of trees that are near-duplicates of each other to duplicates.arrow in a folder, with a row
    for every member. Source code is compared by treedot dups, in memory.

    Example: treedot batch dups 'trees/*.parquet' -o dups/ --workers 8
    """
    from treedot.batch.plan import find_inputs
    from treedot.batch.status import DUPLICATES
    from treedot.readers.sources import format_of

    for source in find_inputs(options.trees, options.format, Path(options.output)):
        if (options.format or format_of(source.path)) in LANGUAGES:
            raise ParameterError(
                f"{source.path} is source code: use treedot dups, which compares it in memory; or give files "
                "of trees, such as read_code(…, identifiers='blur') saves"
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


def _add_status(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", metavar="FOLDER", help="a folder that batch encode, predict or dups wrote")
    command.add_argument("--json", action="store_true", help="print JSON")


def _status(options: argparse.Namespace) -> int:
    """Show how much of a folder of parts is finished.

    Count the parts of a folder and their rows, and list those that are missing and why they failed. The exit
    code is 0 if all are there, 1 if some are missing.

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
            why = found.failed.get(name, "not made yet")
            show(f"  missing {name}: {(why.splitlines() or ['it failed'])[-1]}")
    return 1 if found.missing else 0


def _make_parts(
    options: argparse.Namespace, work: Callable[..., td.batch.Done], *what: Any, **more: Any
) -> None:
    with _counting_shards(options) as how:
        done = work(options.trees, options.output, *what, **how, **more)
    there = f" ({done.found} of them were there)" if done.found else ""
    show(f"{options.output}: {done.made + done.found} part(s){there}, {done.rows:,} rows")


@contextlib.contextmanager
def _counting_shards(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a work on parts, and show how many of its shards are done."""
    with Progress("shards") as progress, _running(options, progress.add) as how:
        yield {**how, "share": options.shard}


@contextlib.contextmanager
def _running(
    options: argparse.Namespace, on_shard: Callable[[int], object] = lambda total: None
) -> Iterator[dict[str, Any]]:
    """Yield the arguments of any work on many files, and report the trees that it leaves out."""
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
