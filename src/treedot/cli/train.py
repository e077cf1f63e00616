"""The command ``treedot train``: train a model that predicts classes or numbers."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import treedot as td
from treedot._version import __version__
from treedot.cli.examples import read_examples
from treedot.cli.options import SOURCE_HELP, add_reading
from treedot.cli.pipes import note
from treedot.cli.progress import Progress, report_passes
from treedot.cli.reading import Skipped
from treedot.cli.training import (
    BESIDE,
    add_training,
    resumable,
    show_regression_trials,
    show_streamed,
    show_trials,
    training_settings,
)
from treedot.cli.vector_options import CHOOSE, add_training_rows, check_options, make_kernel, make_vectorizer
from treedot.errors import ParameterError

if TYPE_CHECKING:
    from treedot.models.inputs.table import Columns

MOST_CLASSES = 20  # a column of more distinct numbers is a target of regression
BESIDE_HELP = {
    "idf": "weight columns by their inverse document frequency",
    "words": "learn from the words of the leaves and their pairs, beside the fragments",
    "labels": "learn from the labels of the inner nodes, beside the fragments",
}
OF_CLASSES = ("class_weight", "scoring", "calibrate")  # parameters of a ``TreeClassifier`` only
CHOICES: dict[str, Any] = {"no": False, "yes": True, CHOOSE: (False, True)}
COLUMNS = {
    "tree": "a column of trees (default: the one that --column names)",
    "number": "a column of numbers, which are standardised",
    "text": "a column of texts, which become bags of words and pairs of words",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_training(command, SOURCE_HELP)
    either = command.add_mutually_exclusive_group()
    either.add_argument(
        "--classify",
        action="store_true",
        help="predict classes, even if the column holds more than 20 distinct numbers",
    )
    either.add_argument(
        "--regress", action="store_true", help="predict numbers (a regression), even if fewer are distinct"
    )
    command.add_argument(
        "--alpha",
        type=float,
        nargs="+",
        metavar="α",
        help="of a regression, the penalty of large weights (default: 0.01 0.1 1 10 100)",
    )
    command.add_argument(
        "--group",
        metavar="COLUMN",
        help="column of groups: cross-validation never separates trees of the same group",
    )
    command.add_argument(
        "--weight",
        metavar="COLUMN",
        help="column of weights: a tree of weight 2 counts like two copies, of weight 0 not at all (default: "
        "all 1)",
    )
    command.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="stream the trees, and keep in this folder the state from which an interrupted training "
        "resumes; it is removed when the model is written",
    )
    command.add_argument(
        "--passes",
        type=int,
        metavar="N",
        help="largest number of passes over the trees (default: 1000; with --checkpoint 20)",
    )
    command.add_argument(
        "--calibration",
        action=argparse.BooleanOptionalAction,
        help="store what probabilities need (default: if cross-validation chooses settings; otherwise its "
        "folds are trained for this only)",
    )
    for name, what in BESIDE_HELP.items():
        command.add_argument(
            f"--{name}",
            choices=CHOICES,
            help=f"{what} (default: cross-validation chooses for classes and rows of small fragments, if "
            "there are several values of --decay or --C; otherwise no)",
        )
    columns = command.add_argument_group(
        "examples of several columns",
        "Each option may be given several times. The model stores the names of its columns: predict, "
        "evaluate and explain expect tables with these columns.",
    )
    columns.add_argument(
        "--pair",
        nargs=2,
        metavar=("TEXT", "HYPOTHESIS"),
        help="two columns of trees that are a pair: placeholders link the words that both have, and the "
        "share of the second one's words that the first one has becomes a number beside both trees",
    )
    for kind, what in COLUMNS.items():
        columns.add_argument(f"--{kind}-column", action="append", metavar="COLUMN", help=what)
    add_training_rows(command)
    add_reading(command, jobs=True)


def run(options: argparse.Namespace) -> None:
    """Train a model that predicts classes or numbers.

    Train a linear model on trees with known classes, and write it to a folder. Cross-validation chooses
    --decay and --C, whether words and labels help, and how columns are weighted; an option fixes only its own
    setting. If every value of the column is a number, and more than 20 are distinct, train a ridge regression
    that predicts numbers, and choose among --decay and --alpha; --classify and --regress override this. With
    --checkpoint, trees are streamed: memory does not grow with their number, cross-validation takes a random
    sample of 20,000 trees and chooses --decay, --C and --damping only, and a command that was stopped or
    killed resumes when you run it again. To train with many processes, use treedot batch fit.

    Example: treedot train questions.tsv --class label -o questions.model
    """
    if options.checkpoint is None:
        _train_in_memory(options)
    else:
        _train_streamed(options)


def _train_in_memory(options: argparse.Namespace) -> None:
    from treedot.models.classes import class_names, column_values
    from treedot.models.inputs.table import Columns, finite_numbers
    from treedot.models.model_folder import MODEL
    from treedot.models.training.candidates import N_FEATURES

    MODEL.check_target(Path(options.output), options.overwrite)
    others = options.number_column is not None or options.text_column is not None
    if others and options.pair is None and options.tree_column is None and options.column is not None:
        options.tree_column, options.column = [options.column], None
    columns = Columns.make(options.tree_column, options.number_column, options.text_column, options.pair)
    settings = _settings(options, N_FEATURES)
    trees = read_examples(options.trees, options, columns)
    labels = class_names(trees, options.class_column)
    is_regression = _is_regression(labels, options)
    if not is_regression:
        _check_classes(labels, options.class_column)
    model = _regressor(settings, options) if is_regression else _classifier(settings, options)
    groups = None if options.group is None else class_names(trees, options.group)
    data = {"trees": len(trees), "digest": _digest(trees, labels, columns), "label": options.class_column}
    if not columns.are_named and options.column is not None:
        data["column"] = options.column
    weights = None
    if options.weight is not None:
        weights = finite_numbers(column_values(trees, options.weight), options.weight)
        content = hashlib.blake2b(weights.tobytes(), digest_size=16)
        data |= {"weight": options.weight, "weights": content.hexdigest()}
    y = finite_numbers(labels, options.class_column) if is_regression else labels
    with Progress("folds") as progress:
        model.fit(trees, y, weights, groups=groups, progress=progress)
    facts = {"data": data, "treedot": __version__}
    stored = model.to_model(facts)
    stored.save(options.output, overwrite=options.overwrite)
    what = "rows" if columns.are_named else "trees"
    of = "" if is_regression else f" of {model.classes_.size} classes"
    print(f"{len(trees):,} {what}{of}, with weights for {model.columns_.size:,} columns")
    show_chosen = show_regression_trials if is_regression else show_trials
    show_chosen(stored.facts["training"], options.output)


def _check_classes(labels: list[str], column: str) -> None:
    """Raise ParameterError if there is one class, or if no class has two trees, which could share parts."""
    if len(set(labels)) == 1:
        raise ParameterError(
            f"column {column!r} has the class {labels[0]!r} for all trees, but at least two classes are "
            "needed: name the column of classes with --class"
        )
    if 1 < len(labels) == len(set(labels)):
        raise ParameterError(
            f"column {column!r} has {len(labels):,} classes of one tree each, which teach nothing: "
            "give several trees per class, or name the column of classes with --class"
        )


def _is_regression(labels: list[str], options: argparse.Namespace) -> bool:
    """Whether to predict numbers: if asked to, or if all labels are numbers and many are distinct.

    Among many numbers, a NaN is an error of the regression, not a class.
    """
    if options.classify or options.regress:
        return bool(options.regress)
    numbers = _distinct_numbers(labels)
    if len(numbers) <= MOST_CLASSES:
        if numbers and min(Counter(labels).values()) == 1:
            note(
                f"column {options.class_column!r} is taken for classes: use --regress to predict its numbers"
            )
        return False
    note(
        f"column {options.class_column!r} is numeric with {len(numbers):,} distinct values: training a "
        "regression; use --classify to predict classes"
    )
    return True


def _distinct_numbers(labels: list[str]) -> set[float]:
    """Return the distinct finite numbers that the labels are; none unless all labels are numbers."""
    try:
        return set(filter(math.isfinite, map(float, labels)))
    except ValueError:
        return set()


def _classifier(settings: dict[str, Any], options: argparse.Namespace) -> Any:
    if options.alpha is not None:
        raise ParameterError("--alpha is a setting of regressions: remove it, or add --regress")
    return td.TreeClassifier(**_beside(settings, options), **settings)


def _beside(settings: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the choices of columns that other options of sparse rows must not turn off.

    A ``TreeClassifier`` takes a vectorizer as it is, also one that differs only in its budget or its width.
    """
    has_rest_or_kernel = (options.rest, options.kernel) != (None, None) or options.vectors == "dense"
    is_fixed = all(x is not None and len(x) == 1 for x in (options.decay, options.C))
    if "vectorizer" not in settings or has_rest_or_kernel or is_fixed:
        return {}
    return {name: CHOICES[CHOOSE] for name in BESIDE if name not in settings}


def _regressor(settings: dict[str, Any], options: argparse.Namespace) -> Any:
    """Return a ``TreeRegressor``; raise ParameterError for options that only classes have."""
    for name in ("C", "balanced", "scoring", "passes"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name} is a setting of classes: remove it, or add --classify")
    shared = {name: value for name, value in settings.items() if name not in OF_CLASSES}
    alpha = {} if options.alpha is None else {"alpha": options.alpha}
    return td.TreeRegressor(**shared, **alpha)


def _train_streamed(options: argparse.Namespace) -> None:
    from treedot.batch.checkpoint import check_apart, save_model
    from treedot.batch.streaming import held_training
    from treedot.models.training.training_settings import N_FEATURES

    settings = _settings(options, N_FEATURES)
    target, skipped = Path(options.output), Skipped(options.skip_bad)
    reading = {"format": options.format, "column": options.column, "unit": options.unit}
    with resumable(options) as folder, contextlib.ExitStack() as stack:
        for name in ("group", "weight", "regress", "alpha", *BESIDE):
            if getattr(options, name) not in (None, False):
                raise ParameterError(f"--{name} needs all trees in memory: remove --checkpoint")
        check_apart(target, folder)
        with Progress() as progress:
            report = report_passes(progress)
            training = held_training(
                options.trees, options.class_column, folder, reading, skipped.callback, report, settings
            )
            model = stack.enter_context(training)
        skipped.report()
        model.facts["treedot"] = __version__
        save_model(model, target, folder, options.overwrite)
    show_streamed(model, options.output)


def _settings(options: argparse.Namespace, n_features: int) -> dict[str, Any]:
    """Return the parameters of a ``TreeClassifier`` that the options give."""
    passes = {} if options.passes is None else {"max_passes": options.passes}
    return {
        **{f"{kind}_columns": getattr(options, f"{kind}_column") for kind in COLUMNS},
        "pair_columns": options.pair,
        "n_jobs": options.jobs,
        **training_settings(options),
        "calibrate": "auto" if options.calibration is None else options.calibration,
        **{name: CHOICES[getattr(options, name)] for name in BESIDE if getattr(options, name)},
        **passes,
        **_vectorizer_or_kernel(options, n_features),
    }


def _vectorizer_or_kernel(options: argparse.Namespace, n_features: int) -> dict[str, Any]:
    """Return the vectorizer or kernel that the options describe, if any; the model sets λ and damping."""
    vectors = "sparse" if options.vectors is None and options.kernel is None else options.vectors
    chosen = argparse.Namespace(**vars(options) | {"vectors": vectors, "decay": None})
    check_options(chosen)
    chosen.damping = None  # a setting of the model, like λ
    if vectors is not None:
        made = make_vectorizer(chosen, n_features=n_features)
        usual = td.FragmentVectorizer(n_features=n_features, n_jobs=options.jobs)
        is_given = type(made) is not type(usual) or made.get_params() != usual.get_params()
        return {"vectorizer": made} if is_given else {}
    chosen.normalize = True  # the values of C are meant for trees of norm 1
    return {"kernel": make_kernel(chosen)}


def _digest(trees: td.Forest, labels: list[str], columns: Columns) -> str:
    """Return a digest of the data that a model is trained on."""
    import numpy as np

    content = hashlib.blake2b(digest_size=16)
    for array in (trees.label, trees.arity, trees.offsets):
        content.update(np.ascontiguousarray(array, np.int64).tobytes())
    others = [name for name in (*columns.trees[1:], *columns.numbers, *columns.texts) if name is not None]
    values = [[name, *map(str, trees.columns[name])] for name in others]
    content.update(json.dumps([list(trees.labels), labels, *values]).encode())
    return content.hexdigest()
