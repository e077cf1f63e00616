"""Compare ``TreeRegressor`` with scikit-learn's ``Ridge``: ``python -m benchmarks.regression [--data DIR]``.

Both encode the same trees into the same rows, choose λ and α from the same values by the same folds, and
train on all rows. The targets are the number of words and the depth of the TREC questions, each on rows of
length 1 and on rows of counts, and the sentiment of sentences (SST, 0 to 4, from trees without the labels of
phrases); without a folder of corpora, only the first two, of the questions in docs/examples. Both sides run
in turns; the time is that of the processor, the least of all turns.

``--beside`` compares fragments only with a choice of words, labels and inverse document frequencies beside
them, on rows of length 1: R² in the cross-validation and on the test trees, with its 95 % interval, and the
paired z-test of the squared errors.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from published.tasks import read_task
from scipy.sparse import csr_matrix
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold

from treedot import Forest, FragmentVectorizer, TreeRegressor, read_trees
from treedot.models.inputs.model_input import with_columns
from treedot.models.regression_evaluation import compare_errors, evaluate_numbers
from treedot.models.training.folds import narrowed
from treedot.models.tree_regressor import ALPHAS, DECAYS

EXAMPLES = Path(__file__).parents[1] / "docs/examples/questions.tsv"
TURNS = 3
FOLDS = 5
CHOICES: dict[str, Any] = dict.fromkeys(("words", "labels", "idf"), (False, True))
ROWS = {
    "length 1": FragmentVectorizer(n_features=2**30),
    "counts": FragmentVectorizer(n_features=2**30, normalize=False, damping="linear"),
}


class Target(NamedTuple):
    """Trees to train on and to test with, and their numbers."""

    name: str
    train: Forest
    test: Forest
    y_train: np.ndarray
    y_test: np.ndarray
    rows: Sequence[str]


class Result(NamedTuple):
    """R² on the test trees, the settings that were chosen, and seconds of processor time."""

    r2: float
    settings: str
    seconds: float


def targets(data: str | None) -> Iterator[Target]:
    """Yield the targets of the corpora that there are."""
    if data is None:
        forest = read_trees(EXAMPLES)
        train, test = forest[:200], forest[200:]
    else:
        train, test = (read_trees(Path(data, f"qc_{part}.tsv.gz")) for part in ("train", "test"))
    for name, measure in (("words", n_words), ("depth", depth)):
        yield Target(name, train, test, measure(train), measure(test), list(ROWS))
    if data is not None:
        task = read_task(Path(data), "SST 5")
        train_y, test_y = (classes.astype(float) for classes in task.classes)
        yield Target("sentiment", task.train, task.test, train_y, test_y, ["length 1"])


def n_words(forest: Forest) -> np.ndarray:
    """Return the number of leaves of every tree."""
    return np.add.reduceat(forest.arity == 0, forest.offsets[:-1]).astype(float)


def depth(forest: Forest) -> np.ndarray:
    """Return the depth of every tree, in nodes."""
    return np.array([tree.depth for tree in forest], float)


def ours(target: Target, rows: str) -> Result:
    """Train a ``TreeRegressor``."""
    start = time.process_time()
    model = TreeRegressor(vectorizer=ROWS[rows], cv=FOLDS).fit(target.train, target.y_train)
    took = time.process_time() - start
    return Result(model.score(target.test, target.y_test), f"λ {model.decay_:g}, α {model.alpha_:g}", took)


def ridge(target: Target, rows: str) -> Result:
    """Train ``Ridge`` on the same rows, with the best λ and α of ``GridSearchCV``."""
    start = time.process_time()
    best: Any = None
    for decay in DECAYS:
        vectorizer = FragmentVectorizer(**ROWS[rows].get_params() | {"decay": decay})
        columns, matrix = narrowed(vectorizer.transform(target.train))
        folds = KFold(FOLDS, shuffle=True, random_state=0)
        search = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=folds, scoring="r2", refit=False)
        search.fit(matrix, target.y_train)
        if best is None or search.best_score_ > best[0]:
            best = search.best_score_, search.best_params_["alpha"], decay, vectorizer, columns, matrix
    _, alpha, decay, vectorizer, columns, matrix = best
    model = Ridge(alpha=alpha).fit(matrix, target.y_train)
    took = time.process_time() - start
    tested: csr_matrix = with_columns(vectorizer.transform(target.test), columns)
    return Result(model.score(tested, target.y_test), f"λ {decay:g}, α {alpha:g}", took)


def compare(target: Target, rows: str, turns: int) -> str:
    """Return a line of the table: both sides in turns, after one turn that may compile."""
    sides: list[Callable[[Target, str], Result]] = [ours, ridge]
    found = [[side(target, rows) for side in sides] for _ in range(turns + 1)][1:]
    own, theirs = (min(results, key=lambda one: one.seconds) for results in zip(*found, strict=True))
    return (
        f"| {target.name} | {rows} | {len(target.train):,}, {len(target.test):,} | {own.r2:.4f} | "
        f"{theirs.r2:.4f} | {own.r2 - theirs.r2:+.4f} | {own.settings} | {theirs.settings} | "
        f"{own.seconds:.2f} | {theirs.seconds:.2f} | {own.seconds / theirs.seconds:.2f} |"
    )


def beside(target: Target) -> list[str]:
    """Return lines for fragments only, for a choice of columns beside them, and for the test of both."""
    lines, predicted = [], []
    for name, settings in (("fragments", {}), ("beside", CHOICES)):
        start = time.process_time()
        model = TreeRegressor(cv=FOLDS, **settings).fit(target.train, target.y_train)
        took = time.process_time() - start
        predicted.append(model.predict(target.test))
        folds, found = (
            max(trial.r2 for trial in model.selection_),
            evaluate_numbers(target.y_test, predicted[-1]),
        )
        assert found.r2 is not None
        chosen = [f"λ {model.decay_:g}, α {model.alpha_:g}", *(c for c in CHOICES if getattr(model, f"{c}_"))]
        low, high = f"{found.r2.low:.3f}", f"{found.r2.high:.3f}"
        cells = [target.name, name, f"{folds:.4f}", f"{found.r2.value:.4f} ({low} to {high})", f"{took:.1f}"]
        lines.append(f"| {' | '.join([*cells, ', '.join(chosen)])} |")
    test = compare_errors(target.y_test, *predicted)
    return [*lines, f"squared errors lower by {test.difference.value:.4f}, p = {test.p_value:.2g}"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help="runs of each side")
    parser.add_argument("--beside", action="store_true", help="compare columns beside the fragments")
    options = parser.parse_args(arguments)
    if options.beside:
        print("| target | columns | R², folds | R², test | s | chosen |")
        for target in targets(options.data):
            print(*beside(target), sep="\n", flush=True)
        return
    print(
        "| target | rows | training, test | R² | Ridge | difference | chosen | by Ridge | s | Ridge | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for target in targets(options.data):
        for rows in target.rows:
            print(compare(target, rows, options.turns), flush=True)


if __name__ == "__main__":
    sys.exit(main())
