"""The command ``treedot evaluate``: measure the accuracy of a model."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import treedot as td
from treedot._pages.printable import printable_json
from treedot._storage.files import check_target, write_whole
from treedot.cli.examples import read_examples
from treedot.cli.options import MODEL_HELP, SOURCE_HELP, add_class, add_reading
from treedot.errors import ParameterError

MISTAKES = 20  # listed in the report

if TYPE_CHECKING:
    Models = tuple[td.LinearModel, td.LinearModel | None]
    Shown = tuple[
        Callable[[], dict[str, Any]], Callable[[], str], Callable[[], str]
    ]  # JSON values, text, page


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    command.add_argument("trees", nargs="+", metavar="TREES", help=SOURCE_HELP)
    add_class(command, required=False, default=" (default: the column that the model was trained with)")
    command.add_argument("--against", metavar="MODEL", help="a second model to compare with")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument("--html", metavar="FILE", help="also write an HTML report")
    add_reading(command, jobs=True)


def run(options: argparse.Namespace) -> None:
    """Measure the accuracy of a model.

    Print the accuracy with its 95 % interval, precision, recall and F1 of every class, the confusion matrix,
    and the log loss, Brier score and expected calibration error of the probabilities. The HTML report also
    has a reliability diagram and the most confident mistakes. Of a model that predicts numbers, print R², the
    mean absolute error (MAE) and the root mean squared error (RMSE) with 95 % intervals, and the largest
    errors. With --against, also test whether two models differ significantly (McNemar's exact test; for
    numbers, a paired z-test).

    Example: treedot evaluate questions.model test.tsv --html report.html
    """
    model = td.LinearModel.load(options.model)
    other = td.LinearModel.load(options.against) if options.against else None
    if other is not None and (model.classes is None) != (other.classes is None):
        raise ParameterError(f"{options.model} and {options.against} do not both predict classes, or numbers")
    class_column = options.class_column or _class_column(model, other, options)
    if options.html:
        check_target(Path(options.html), *options.trees)
    theirs = None
    if other is not None and _reads_another_column(other, model):
        if options.skip_bad:
            raise ParameterError(
                f"{options.against} reads another column, which may have other bad trees: remove --skip-bad"
            )
        theirs = read_examples(
            options.trees,
            argparse.Namespace(**vars(options), remembered_column=other.tree_column),
            other.reads,
        )
    options.remembered_column = model.tree_column
    trees = read_examples(options.trees, options, model.reads)
    theirs = trees if theirs is None else theirs
    work = _evaluate_classes if model.classes is not None else _evaluate_numbers
    values, text, page = work(options, (model, other), (trees, theirs), class_column)
    if options.html:
        with write_whole(options.html) as aside:
            aside.write_text(page(), encoding="utf-8")
    print(printable_json(values()) if options.json else text())


def _evaluate_classes(
    options: argparse.Namespace, models: Models, examples: tuple[td.Forest, td.Forest], column: str
) -> Shown:
    """Return the evaluation of a model of classes as JSON values, as text and as a page."""
    import numpy as np

    from treedot.models.classes import class_names
    from treedot.models.evaluation import evaluate, margins, mcnemar
    from treedot.models.evaluation_report import EvaluationReport, Mistake, as_json, as_page, as_text
    from treedot.models.probability_evaluation import evaluate_probabilities

    (model, other), (trees, theirs) = models, examples
    assert model.classes is not None
    truth = np.array(class_names(trees, column))
    scores = model.decision_function(trees, n_jobs=options.jobs)
    classes, predicted = model.classes.astype(str), model.best(scores).astype(str)
    found = evaluate(classes, truth, predicted)
    above = margins(classes, truth, scores)
    wrong = [int(i) for i in np.argsort(-above, kind="stable")[:MISTAKES] if predicted[i] != truth[i]]
    mistakes = [Mistake(i + 1, truth[i], predicted[i], float(above[i]), str(trees[i])) for i in wrong]
    report = EvaluationReport(options.model, found, mistakes)
    if model.calibration is not None:
        quality = evaluate_probabilities(classes, truth, predicted, model.probabilities(scores))
        report = report._replace(probabilities=quality)
    if other is not None and other.classes is not None:
        second = other.predict(theirs, n_jobs=options.jobs).astype(str)
        report = report._replace(
            against=options.against,
            other=evaluate(other.classes.astype(str), truth, second),
            test=mcnemar(truth, predicted, second),
        )
    return partial(as_json, report), partial(as_text, report), partial(as_page, report)


def _evaluate_numbers(
    options: argparse.Namespace, models: Models, examples: tuple[td.Forest, td.Forest], column: str
) -> Shown:
    """Return the evaluation of a model of numbers as JSON values, as text and as a page."""
    import numpy as np

    from treedot.models.classes import column_values
    from treedot.models.inputs.table import finite_numbers
    from treedot.models.regression_evaluation import compare_errors, evaluate_numbers
    from treedot.models.regression_report import (
        NumberError,
        RegressionReport,
        regression_json,
        regression_page,
        regression_text,
    )

    (model, other), (trees, theirs) = models, examples
    truth = finite_numbers(column_values(trees, column), column)
    predicted = model.predict(trees, n_jobs=options.jobs)
    worst = np.argsort(-np.abs(predicted - truth), kind="stable")[:MISTAKES].tolist()
    errors = [NumberError(i + 1, float(truth[i]), float(predicted[i]), str(trees[i])) for i in worst]
    found = evaluate_numbers(truth, predicted)
    report = RegressionReport(options.model, found, errors, truth, predicted)
    if other is not None:
        second = other.predict(theirs, n_jobs=options.jobs)
        report = report._replace(
            against=options.against,
            other=evaluate_numbers(truth, second),
            test=compare_errors(truth, predicted, second),
        )
    shown = regression_json, regression_text, regression_page
    return tuple(partial(each, report) for each in shown)  # type: ignore[return-value]


def _reads_another_column(other: td.LinearModel, model: td.LinearModel) -> bool:
    return other.reads.trees[0] != model.reads.trees[0] or other.tree_column not in (None, model.tree_column)


def _class_column(model: td.LinearModel, other: td.LinearModel | None, options: argparse.Namespace) -> str:
    """Return the column of classes that a model was trained with; two models must have the same."""
    column = model.class_column
    if column is None:
        raise ParameterError(f"{options.model} does not name its column of classes: give --class COLUMN")
    theirs = column if other is None else other.class_column
    if theirs not in (column, None):
        raise ParameterError(
            f"{options.model} was trained on the classes in column {column!r}, {options.against} on "
            f"column {theirs!r}: give --class COLUMN"
        )
    return column
