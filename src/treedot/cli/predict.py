"""The command ``treedot predict``: print the predicted classes or numbers of trees, or write a table."""

from __future__ import annotations

import argparse
import contextlib
import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import treedot as td
from treedot._pages.printable import first_few, printable
from treedot._storage.files import check_target, write_whole
from treedot.cli.examples import iter_examples, set_column
from treedot.cli.options import MODEL_HELP, SOURCE_HELP, add_output, add_reading, refuse_folder
from treedot.cli.reading import Skipped
from treedot.errors import ParameterError, SourceError

PREDICTED, SCORE, PROBABILITY = "predicted", "score_", "probability"

Write = Callable[[list[str]], object]


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    command.add_argument("trees", nargs="+", metavar="TREES", help=SOURCE_HELP)
    command.add_argument(
        "--scores",
        action="store_true",
        help="also give the score of every class (of two classes, only of the second), under a header: "
        "predicted, score_CLASS, …",
    )
    command.add_argument(
        "--proba",
        action="store_true",
        help="also give the probability of the predicted class and that of every class, under a header: "
        "predicted, probability, probability_CLASS, …",
    )
    add_output(
        command,
        "FILE",
        "write a table: the columns of the input except trees, then predicted; .csv separates by commas, "
        ".tsv, .txt and names without a suffix by tabs (default: print one prediction per line)",
        required=False,
    )
    command.add_argument(
        "--device", metavar="NAME", help="cuda computes dense vectors and scores on a GPU (default: cpu)"
    )
    add_reading(command, jobs=True)


def run(options: argparse.Namespace) -> None:
    """Predict the classes or numbers of trees.

    Print the class or number of every tree, one per line. With -o, write a table with a header: all columns
    of the input except trees, such as ids, and the column predicted. For many files and many processes, use
    treedot batch predict.

    Example: treedot predict questions.model new.tsv -o classes.tsv
    """
    from treedot.models.inputs.table import read_table

    refuse_folder(options.output, "predict")
    model = td.LinearModel.load(options.model, device=options.device or "cpu")
    _check(options, model)
    if options.output:
        _check_suffix(options.output)
        check_target(Path(options.output), *options.trees)
    options.remembered_column = model.tree_column
    set_column(options, model.reads)
    own = [PREDICTED, *_more_names(model, options)]
    skipped, row = Skipped(options.skip_bad), 0
    kept: list[str] | None = None  # the columns of the input to write
    with _output(options.output) as write:
        for source in options.trees:
            for batch in iter_examples(source, options, model.reads, skipped):
                if kept is None:
                    kept = [] if options.output is None else _kept(batch, model, own, source)
                    if options.output or len(own) > 1:
                        write([*kept, *own])
                others = _others(batch, kept, source, row)
                scores = model.scores(read_table(batch, model.reads, row), n_jobs=options.jobs)
                row += len(batch)
                predicted = map(_shown, model.best(scores).tolist())
                columns = _more(model, scores, options)
                for cells, found, values in zip(others, predicted, columns, strict=True):
                    write([*cells, found, *(f"{value:.6f}" for value in values)])
    skipped.report()


def _check_suffix(output: str) -> None:
    """Raise ParameterError if a suffix promises another format than that of a table of text."""
    if Path(output).suffix.lower() not in ("", ".csv", ".tsv", ".txt"):
        raise ParameterError(f"cannot write a table to {output}: use .tsv or .csv")


def _check(options: argparse.Namespace, model: td.LinearModel) -> None:
    """Raise ParameterError if the model has no scores or no probabilities, but they are asked for."""
    if options.scores and model.classes is None:
        raise ParameterError(f"{options.model} predicts numbers, which have no scores: remove --scores")
    if options.proba:
        try:
            model.check_calibrated()
        except ParameterError as error:
            raise ParameterError(f"{options.model}: {error}; or remove --proba") from None


def _more_names(model: td.LinearModel, options: argparse.Namespace) -> list[str]:
    """Return the names of the columns after the predictions; of two classes, only the second has a score."""
    classes = [] if model.classes is None else model.classes.tolist()
    scored = classes[1:] if len(classes) == 2 else classes
    return [
        *(f"{SCORE}{name}" for name in scored if options.scores),
        *((PROBABILITY, *(f"{PROBABILITY}_{name}" for name in classes)) if options.proba else ()),
    ]


def _more(model: td.LinearModel, scores: Any, options: argparse.Namespace) -> list[list[float]]:
    """Return the cells after the prediction of every row: scores, then probabilities."""
    import numpy as np

    columns = [scores.reshape(len(scores), -1)[:, : None if options.scores else 0]]
    if options.proba:
        assert model.classes is not None
        probabilities = model.probabilities(scores)
        own = np.searchsorted(model.classes, model.best(scores))
        columns += [np.take_along_axis(probabilities, own[:, None], axis=1), probabilities]
    return np.concatenate(columns, axis=1).tolist()


def _shown(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _kept(batch: td.Forest, model: td.LinearModel, own: Sequence[str], source: str) -> list[str]:
    """Return the columns of the input to write: all but those of trees."""
    kept = [name for name in batch.columns if name not in model.reads.trees]
    clash = next((name for name in kept if name in own), None)
    if clash is not None:
        raise ParameterError(
            f"{source} has a column {clash!r} already, which would be written twice: rename it"
        )
    return kept


def _others(batch: td.Forest, kept: Sequence[str], source: str, row: int) -> Iterator[list[str]]:
    """Yield the cells of every row that come from the input; None becomes an empty cell."""
    missing = [name for name in kept if name not in batch.columns]
    if missing:
        raise SourceError(
            f"{source} has no column {missing[0]!r}, unlike the trees before it; its columns are "
            f"{first_few(batch.columns) or 'none'}: predict files with different columns one by one"
        )
    if not kept:
        return iter([[]] * len(batch))
    columns = (["" if value is None else str(value) for value in batch.columns[name]] for name in kept)
    return map(list, zip(*columns, strict=True))


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[Write]:
    """Yield a function that writes a line of cells."""
    if path is None:
        # In a pipe, names are data and get no escapes.
        shown = printable if sys.stdout.isatty() else str
        writer = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
        yield lambda cells: writer.writerow(map(shown, cells))
        return
    with write_whole(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        if path.lower().endswith(".csv"):
            yield csv.writer(file, lineterminator="\n").writerow
        else:
            yield lambda cells: file.write(_tab_separated(cells))


def _tab_separated(cells: list[str]) -> str:
    """Return a line of a file that has no quoting, as treedot and most tools read it."""
    odd = next((cell for cell in cells if any(mark in cell for mark in "\t\n\r")), None)
    if odd is not None:
        raise ParameterError(
            f"cannot write {odd!r:.40} to a tab-separated file, since it holds a tab or a line break: use "
            "-o FILE.csv"
        )
    return "\t".join(cells) + "\n"
