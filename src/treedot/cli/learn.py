"""The commands that learn: train a model, predict with it, say how good it is."""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from treedot._pages.printable import printable, printable_json
from treedot._runtime.array_types import FloatArray
from treedot._storage.files import check_target, write_whole
from treedot._version import __version__
from treedot.cli.batch import predict_parts, wants_parts, wants_workers
from treedot.cli.choices import check_options, make_kernel, make_vectorizer
from treedot.cli.pipes import show
from treedot.cli.progress import Counted
from treedot.cli.reading import Skipped, batches
from treedot.errors import ParameterError, SourceError
from treedot.models.classes import class_names, column_values
from treedot.models.evaluation import evaluate as compare
from treedot.models.evaluation import margins, mcnemar
from treedot.models.inputs.table import Columns, finite_numbers, read_table, readable_rows
from treedot.models.linear_model import LinearModel
from treedot.models.model_folder import check_model_target
from treedot.parameters import checked_integer
from treedot.readers.on_bad import OnBad
from treedot.trees import Forest

MISTAKES = 20  # that are listed


def train(options: argparse.Namespace) -> None:
    """Train a model, and write it to a folder."""
    from treedot.models.training.candidates import N_FEATURES
    from treedot.models.tree_classifier import TreeClassifier

    if options.checkpoint is not None or wants_workers(options):
        from treedot.cli.train_files import train_on_files
        from treedot.models.training.training_settings import N_FEATURES as FEWER

        train_on_files(options, _settings(options, FEWER))
        return
    check_model_target(Path(options.output), options.overwrite)
    others = options.number_column is not None or options.text_column is not None
    if others and options.tree_column is None and options.column is not None:
        options.tree_column, options.column = [options.column], None
    columns = Columns.make(options.tree_column, options.number_column, options.text_column)
    classifier = TreeClassifier(**_settings(options, N_FEATURES))
    trees = _forest(options, columns)
    labels = _labels(trees, options.class_column)
    groups = None if options.group is None else _labels(trees, options.group)
    weights = None if options.weight is None else _weights(trees, options.weight)
    with Counted("folds") as progress:
        classifier.fit(trees, labels, weights, groups=groups, progress=progress)
    facts: dict[str, Any] = {
        "data": {
            "trees": len(trees),
            "digest": _digest(trees, labels, columns),
            "label": options.class_column,
        },
        "treedot": __version__,
    }
    if weights is not None:
        facts["data"] |= {"weight": options.weight, "weights": _digest_of(weights)}
    classifier.to_model(facts).save(options.output, overwrite=options.overwrite)
    what = "rows" if columns.are_named else "trees"
    n_classes, n_columns = classifier.classes_.size, classifier.columns_.size
    print(f"{len(trees):,} {what} of {n_classes} classes, with weights for {n_columns:,} columns")
    for trial in classifier.trials_:
        print(f"  decay {trial.decay:g}, C {trial.C:g}: accuracy {trial.accuracy:.3f} in cross-validation")
    show(f"{options.output}: decay {classifier.decay_:g}, C {classifier.C_:g}")


def _settings(options: argparse.Namespace, n_features: int) -> dict[str, Any]:
    """Return the parameters of a ``TreeClassifier`` that the options give."""
    from treedot.models.tree_classifier import COSTS, DECAYS

    passes = {} if options.passes is None else {"max_passes": options.passes}
    return {
        "tree_columns": options.tree_column,
        "number_columns": options.number_column,
        "text_columns": options.text_column,
        "decay": options.decay or DECAYS,
        "C": options.C or COSTS,
        "cv": options.cv,
        "class_weight": "balanced" if options.balanced else None,
        "n_jobs": options.jobs,
        **passes,
        **_vectorizer_or_kernel(options, n_features),
    }


def _vectorizer_or_kernel(options: argparse.Namespace, n_features: int) -> dict[str, Any]:
    """Return what makes rows of trees, as the options ask; its λ is chosen later."""
    vectors = "sparse" if options.vectors is None and options.kernel is None else options.vectors
    chosen = argparse.Namespace(**(vars(options) | {"vectors": vectors, "decay": 0.4, "normalize": None}))
    check_options(argparse.Namespace(**(vars(chosen) | {"jobs": None})))  # training has threads in any case
    if vectors is not None:
        return {"vectorizer": make_vectorizer(chosen, n_features=n_features)}
    chosen.normalize = True  # C fits to kernels of 1 with themselves
    return {"kernel": make_kernel(chosen)}


def predict(options: argparse.Namespace) -> None:
    """Print the class of every tree, and scores where they are asked for."""
    if wants_parts(options):
        predict_parts(options)
        return
    model = LinearModel.load(options.model, device=options.device or "cpu")
    if options.output:
        check_target(Path(options.output), *options.trees)
    _set_column(options, model.reads)
    skipped, row = Skipped(options.skip_bad), 0
    with _output(options.output) as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        shown = printable if file.isatty() else str  # else it is data, which stays as it is
        if options.scores:
            scored = model.classes[1:] if model.classes.size == 2 else model.classes
            writer.writerow(["class", *(shown(str(name)) for name in scored.tolist())])
        for source in options.trees:
            for batch in _examples(source, options, model.reads, skipped):
                scores = model.scores(read_table(batch, model.reads, row), n_jobs=options.jobs)
                row += len(batch)
                labels = model.best(scores).tolist()
                columns = scores.reshape(len(batch), -1) if options.scores else np.zeros((len(batch), 0))
                for label, values in zip(labels, columns.tolist(), strict=True):
                    writer.writerow([shown(str(label)), *(f"{score:.6f}" for score in values)])
    skipped.report()


def evaluate(options: argparse.Namespace) -> None:
    """Print how good a model is, and how it compares with a second one."""
    from treedot.models.evaluation_report import EvaluationReport, Mistake, as_json, as_page, as_text

    model = LinearModel.load(options.model)
    other = LinearModel.load(options.against) if options.against else None
    class_column = options.class_column or _class_column(model, other, options)
    if options.html:
        check_target(Path(options.html), *options.trees)
    theirs = None
    if other is not None and other.reads.trees[0] != model.reads.trees[0]:
        if options.skip_bad:
            raise ParameterError(
                f"{options.against} reads another column, with other bad trees: leave out --skip-bad"
            )
        theirs = _forest(argparse.Namespace(**vars(options)), other.reads)
    trees = _forest(options, model.reads)
    truth = _labels(trees, class_column)
    scores = model.decision_function(trees, n_jobs=options.jobs)
    classes, predicted = model.classes.astype(str), model.best(scores).astype(str)
    found = compare(classes, truth, predicted)
    above = margins(classes, truth, scores)
    wrong = [int(i) for i in np.argsort(-above, kind="stable")[:MISTAKES] if predicted[i] != truth[i]]
    mistakes = [Mistake(i + 1, truth[i], predicted[i], float(above[i]), str(trees[i])) for i in wrong]
    report = EvaluationReport(options.model, found, mistakes)
    if other is not None:
        second = other.predict(trees if theirs is None else theirs, n_jobs=options.jobs).astype(str)
        report = report._replace(
            against=options.against,
            other=compare(other.classes.astype(str), truth, second),
            test=mcnemar(truth, predicted, second),
        )
    if options.html:
        with write_whole(options.html) as aside:
            aside.write_text(as_page(report), encoding="utf-8")
    print(printable_json(as_json(report)) if options.json else as_text(report))


def _class_column(model: LinearModel, other: LinearModel | None, options: argparse.Namespace) -> str:
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


def explain(options: argparse.Namespace) -> None:
    """Print what a model's decision about one tree is made of."""
    from treedot.models.explain.decision import explain as taken_apart

    if options.html is not None:
        check_target(Path(options.html), options.tree)
    number = checked_integer("--number", options.number, at_least=1)
    model = LinearModel.load(options.model)
    _set_column(options, model.reads)
    skipped = Skipped(options.skip_bad)
    forest = Forest.concat(_examples(options.tree, options, model.reads, skipped))
    if number > len(forest):
        raise ParameterError(f"--number {number}: there are {len(forest)} trees in {options.tree}")
    by_name = {str(name): name for name in model.classes.tolist()}
    target = by_name.get(options.target, options.target)
    found = taken_apart(model, forest[[number - 1]], target, find_flip=options.find_flip)
    skipped.report()
    if options.html is not None:
        with write_whole(options.html) as aside:
            aside.write_text(found.to_html(), encoding="utf-8")
    print(found.to_json() if options.json else found.to_text(color=sys.stdout.isatty()))


def _forest(options: argparse.Namespace, columns: Columns) -> Forest:
    """Return all trees; of several tree columns the first, with the others beside it."""
    _set_column(options, columns)
    skipped = Skipped(options.skip_bad)
    sources = [_examples(source, options, columns, skipped) for source in options.trees]
    forest = Forest.concat(itertools.chain.from_iterable(sources))
    skipped.report()
    return forest


def _examples(
    source: str, options: argparse.Namespace, columns: Columns, skipped: Skipped
) -> Iterator[Forest]:
    """Yield the trees of a file; with --skip-bad without rows that have a bad tree in any of the columns."""
    read = found = 0
    for batch in batches(source, options, skipped):
        good = readable_rows(batch.columns, columns, len(batch), OnBad(skipped.callback), source, read)
        read += len(batch)
        found += good.size
        if good.size:
            yield batch if good.size == len(batch) else batch[good]
    if not found:
        raise SourceError(f"{source}: there is no row whose trees can all be read")


def _set_column(options: argparse.Namespace, columns: Columns) -> None:
    """Let the first tree column be read as trees, where columns have names."""
    if columns.are_named:
        if options.column is not None:
            named = ", ".join(map(str, columns.trees))
            raise ParameterError(f"the trees are in the columns {named}: leave out --column")
        options.column = columns.trees[0]


def _labels(trees: Forest, column: str) -> np.ndarray:
    """Return a column as texts; where one is missing, it is an error."""
    return np.array(class_names(trees, column))


def _weights(trees: Forest, column: str) -> FloatArray:
    """Return a column as numbers."""
    return finite_numbers(column_values(trees, column), column)


def _digest_of(numbers: FloatArray) -> str:
    return hashlib.blake2b(numbers.tobytes(), digest_size=16).hexdigest()


def _digest(trees: Forest, labels: np.ndarray, columns: Columns) -> str:
    """Return a short name of the data that a model was trained on."""
    content = hashlib.blake2b(digest_size=16)
    for array in (trees.label, trees.arity, trees.offsets):
        content.update(np.ascontiguousarray(array, np.int64).tobytes())
    others = [name for name in (*columns.trees[1:], *columns.numbers, *columns.texts) if name is not None]
    values = [[name, *map(str, trees.columns[name])] for name in others]
    content.update(json.dumps([list(trees.labels), labels.tolist(), *values]).encode())
    return content.hexdigest()


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[IO[str]]:
    if path is None:
        yield sys.stdout
    else:
        with write_whole(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
            yield file
