"""The command ``treedot predict``: print the predicted classes of trees."""

from __future__ import annotations

import argparse
import contextlib
import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import treedot as td
from treedot._pages.printable import printable
from treedot._storage.files import check_target, write_whole
from treedot.cli.examples import iter_examples, set_column
from treedot.cli.options import MODEL_HELP, SOURCE_HELP, add_output, add_reading, refuse_folder
from treedot.cli.reading import Skipped


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    command.add_argument("trees", nargs="+", metavar="TREES", help=SOURCE_HELP)
    command.add_argument(
        "--scores",
        action="store_true",
        help="print a table with the score of every class (of two classes, only of the second)",
    )
    add_output(command, "FILE", "the file to write (default: print)", required=False)
    command.add_argument(
        "--device", metavar="NAME", help="cuda computes dense vectors and scores on a GPU (default: cpu)"
    )
    add_reading(command, jobs=True)


def run(options: argparse.Namespace) -> None:
    """Predict the classes of trees.

    Print the class of every tree, one per line. For many files and many processes, use treedot batch predict.

    Example: treedot predict questions.model new.tsv
    """
    from treedot.models.inputs.table import read_table

    refuse_folder(options.output, "predict")
    model = td.LinearModel.load(options.model, device=options.device or "cpu")
    if options.output:
        check_target(Path(options.output), *options.trees)
    set_column(options, model.reads)
    skipped, row = Skipped(options.skip_bad), 0
    with _output(options.output) as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        shown = printable if file.isatty() else str  # in a file or pipe, the names are data: no escapes
        if options.scores:
            scored = model.classes[1:] if model.classes.size == 2 else model.classes
            writer.writerow(["class", *(shown(str(name)) for name in scored.tolist())])
        for source in options.trees:
            for batch in iter_examples(source, options, model.reads, skipped):
                scores = model.scores(read_table(batch, model.reads, row), n_jobs=options.jobs)
                row += len(batch)
                labels = model.best(scores).tolist()
                columns = scores.reshape(len(batch), -1)[:, : None if options.scores else 0]
                for label, values in zip(labels, columns.tolist(), strict=True):
                    writer.writerow([shown(str(label)), *(f"{score:.6f}" for score in values)])
    skipped.report()


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[IO[str]]:
    if path is None:
        yield sys.stdout
    else:
        with write_whole(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
            yield file
