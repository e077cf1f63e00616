"""The command ``treedot evaluate``: how good a model is."""

from __future__ import annotations

import argparse
from pathlib import Path

import treedot as td
from treedot._pages.printable import printable_json
from treedot._storage.files import check_target, write_whole
from treedot.cli.examples import read_examples
from treedot.cli.options import MODEL_HELP, SOURCE_HELP, add_class, add_reading
from treedot.errors import ParameterError

MISTAKES = 20  # that are listed


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    command.add_argument("trees", nargs="+", metavar="TREES", help=SOURCE_HELP)
    add_class(command, required=False, default=" (default: the one that the model was trained with)")
    command.add_argument("--against", metavar="MODEL", help="a second model to compare with")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument("--html", metavar="FILE", help="also write a page, with the most confident mistakes")
    add_reading(command, jobs=True)


def run(options: argparse.Namespace) -> None:
    """Measure how good a model is.

    Print the accuracy with its 95 % interval, precision, recall and F1 of every class, and the confusion
    matrix; with --against, also whether another model is better by more than chance (McNemar's exact test).

    Example: treedot evaluate questions.model test.tsv --html report.html
    """
    import numpy as np

    from treedot.models.classes import class_names
    from treedot.models.evaluation import evaluate, margins, mcnemar
    from treedot.models.evaluation_report import EvaluationReport, Mistake, as_json, as_page, as_text

    model = td.LinearModel.load(options.model)
    other = td.LinearModel.load(options.against) if options.against else None
    class_column = options.class_column or _class_column(model, other, options)
    if options.html:
        check_target(Path(options.html), *options.trees)
    theirs = None
    if other is not None and other.reads.trees[0] != model.reads.trees[0]:
        if options.skip_bad:
            raise ParameterError(
                f"{options.against} reads another column, with other bad trees: leave out --skip-bad"
            )
        theirs = read_examples(options.trees, argparse.Namespace(**vars(options)), other.reads)
    trees = read_examples(options.trees, options, model.reads)
    truth = np.array(class_names(trees, class_column))
    scores = model.decision_function(trees, n_jobs=options.jobs)
    classes, predicted = model.classes.astype(str), model.best(scores).astype(str)
    found = evaluate(classes, truth, predicted)
    above = margins(classes, truth, scores)
    wrong = [int(i) for i in np.argsort(-above, kind="stable")[:MISTAKES] if predicted[i] != truth[i]]
    mistakes = [Mistake(i + 1, truth[i], predicted[i], float(above[i]), str(trees[i])) for i in wrong]
    report = EvaluationReport(options.model, found, mistakes)
    if other is not None:
        second = other.predict(trees if theirs is None else theirs, n_jobs=options.jobs).astype(str)
        report = report._replace(
            against=options.against,
            other=evaluate(other.classes.astype(str), truth, second),
            test=mcnemar(truth, predicted, second),
        )
    if options.html:
        with write_whole(options.html) as aside:
            aside.write_text(as_page(report), encoding="utf-8")
    print(printable_json(as_json(report)) if options.json else as_text(report))


def _class_column(model: td.LinearModel, other: td.LinearModel | None, options: argparse.Namespace) -> str:
    """Return the column of classes that a model remembers; two models must agree on it."""
    column = model.class_column
    if column is None:
        raise ParameterError(
            f"{options.model} does not name the column that holds the classes: give --class COLUMN"
        )
    theirs = column if other is None else other.class_column
    if theirs not in (column, None):
        raise ParameterError(
            f"{options.model} was trained with the classes in column {column!r}, and {options.against} with "
            f"those in {theirs!r}: give --class COLUMN"
        )
    return column
