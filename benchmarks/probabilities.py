"""Compare probabilities with those of scikit-learn: ``python -m benchmarks.probabilities --data DIR``.

``TreeClassifier`` chooses its settings and calibrates its scores. ``CalibratedClassifierCV`` calibrates the
same model with these settings fixed, by its default method, a sigmoid for each class, and by a temperature:
five models, each calibrated on one fold, whose probabilities are averaged. The table gives the log loss, the
Brier score and the expected calibration error on the test set, after the log loss its difference with the
standard error over the test trees; and the processor time of the fit, with its ratio to that without
calibration.

Beside the corpora there is a task of 100 classes with 20 examples each: in which module of Python's standard
library is a function?
"""

from __future__ import annotations

import argparse
import os
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from published.tasks import read_task
from sklearn.calibration import CalibratedClassifierCV

from benchmarks.code import TESTS
from treedot import Forest, TreeClassifier, read_trees
from treedot.models.probability_evaluation import evaluate_probabilities

TASKS = ("QC coarse", "QC fine", "RNA", "glycans", "modules")
SMALL = 300  # examples of a first fit, which is not timed
MODULES, EACH, SMALLEST = 100, 20, 10  # classes, training and test functions of each, nodes of a function


class Examples(NamedTuple):
    """Trees with their classes, for training and for testing."""

    train: Forest
    y_train: Any
    test: Forest
    y_test: Any


def examples(name: str, data: str | None) -> Examples:
    """Return the examples of a task."""
    if name == "modules":
        return modules()
    if data is None:
        raise SystemExit("the corpora are needed: give --data DIR, or set TREEDOT_DATA")
    task = read_task(Path(data), name)
    y_train, y_test = task.classes
    return Examples(task.train, y_train, task.test, y_test)


def modules(seed: int = 0) -> Examples:
    """Return functions of the first modules that have enough, drawn at random; a class is a module."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(library.rglob("*.py"))
    forest = read_trees([file for file in files if not {*TESTS} & {*file.relative_to(library).parts}])
    y = np.array([os.path.relpath(file, library) for file in forest.columns["file"]])
    large = np.flatnonzero(forest.sizes >= SMALLEST)
    names = sorted(name for name, count in Counter(y[large].tolist()).items() if count >= 2 * EACH)
    rng = np.random.default_rng(seed)
    drawn = np.array([rng.permutation(large[y[large] == name])[: 2 * EACH] for name in names[:MODULES]])
    train, test = drawn[:, :EACH].ravel(), drawn[:, EACH:].ravel()
    return Examples(forest[train], y[train], forest[test], y[test])


def compare(name: str, given: Examples, turns: int, settings: dict[str, Any]) -> str:
    """Return a line of the table."""
    few = np.arange(0, len(given.train), max(1, len(given.train) // SMALL))
    _fitted(
        Examples(given.train[few], given.y_train[few], given.test, given.y_test), True, settings
    )  # compiles
    fits = [[_fitted(given, calibrate, settings) for calibrate in (False, True)] for _ in range(turns)]
    model = fits[0][1][0]
    fixed = TreeClassifier(**{**model.get_params(deep=False), **_chosen(model), "calibrate": False})
    methods: dict[str, Callable[[], Any]] = {
        "treedot": lambda: model,
        "sigmoid": lambda: CalibratedClassifierCV(fixed).fit(given.train, given.y_train),
        "temperature": lambda: CalibratedClassifierCV(fixed, method="temperature").fit(
            given.train, given.y_train
        ),
    }
    cells, ours = [name, f"{len(given.train):,}, {len(given.test):,}", f"{model.classes_.size}"], None
    for make in methods.values():
        probabilities = make().predict_proba(given.test)
        predicted = model.classes_[probabilities.argmax(axis=1)]
        found = evaluate_probabilities(model.classes_, given.y_test, predicted, probabilities)
        assert found is not None
        own = np.searchsorted(model.classes_, given.y_test)
        losses = -np.log(np.maximum(probabilities[np.arange(own.size), own], 1e-15))
        ours = losses if ours is None else ours
        by = losses - ours
        more = f" ({by.mean():+.4f} ± {by.std() / by.size**0.5:.4f})" if by.any() else ""
        cells.append(f"{found.log_loss:.4f}{more}; {found.brier:.4f}; {found.calibration_error:.3f}")
    without, with_it = (float(np.median([fit[k][1] for fit in fits])) for k in range(2))
    return f"| {' | '.join(cells)} | {with_it:.1f}, {with_it / without:.2f} |"


def _fitted(given: Examples, calibrate: bool, settings: dict[str, Any]) -> tuple[TreeClassifier, float]:
    model = TreeClassifier(n_jobs=1, calibrate=calibrate, **settings)
    start = time.process_time()
    model.fit(given.train, given.y_train)
    return model, time.process_time() - start


def _chosen(model: TreeClassifier) -> dict[str, Any]:
    """Return the settings that cross-validation chose."""
    names = ("decay", "C", "idf", "damping", "words", "labels")
    weight = {"class_weight": "balanced" if model.balanced_ else None}
    return {name: getattr(model, f"{name}_") for name in names} | weight


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.probabilities", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--turns", type=int, default=1, help="fits with and without (default: 1 of each)")
    parser.add_argument("--fixed", action="store_true", help="decay 0.2 and C 10, without a choice")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(TASKS)} (default: all)")
    options = parser.parse_args(arguments)
    settings = {"decay": 0.2, "C": 10.0} if options.fixed else {}
    print("| task | training, test | classes | treedot | sigmoid | temperature | fit, s; ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in options.tasks or TASKS:
        print(compare(name, examples(name, options.data), options.turns, settings), flush=True)


if __name__ == "__main__":
    main()
