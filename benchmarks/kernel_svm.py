"""Compare classifiers of exact kernels: ``python -m benchmarks.kernel_svm [--data DIR] [--turns N]``.

Both train one support vector machine per class on the TREC questions, with the same normalised subset tree
kernel and C, in turns in one process. ``TreeClassifier`` minimises the squared hinge loss up to a duality gap
of 1 %; libsvm is scikit-learn's ``SVC(kernel="precomputed")`` with its defaults, which minimises the hinge
loss. Times are seconds of processor time, the best of all turns; the solvers are also timed without the Gram
matrix. Accuracy is that of a cross-validation on the training questions, with McNemar's p against libsvm, and
that of the test set. The third way is a linear support vector machine on the features of landmarks.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from treedot import Forest, KernelTransformer, SubsetTreeKernel, TreeClassifier, read_trees
from treedot.models import DualLinearSVC
from treedot.models.evaluation import mcnemar
from treedot.models.training.kernel_descent import train_kernel
from treedot.models.training.one_vs_rest import one_vs_rest, train_svms

DECAY, COST, FOLDS = 0.4, 10.0, 5
Solver = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Way = Callable[[Forest, np.ndarray, Forest], np.ndarray]


def ours(gram: np.ndarray, sides: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the scores of other examples by our solver, given their kernels with the training examples."""
    fit = train_kernel(gram, sides.T, np.full((len(sides), 2), COST))
    return np.asarray(other @ fit.weights + fit.bias)


def libsvm(gram: np.ndarray, sides: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the scores of other examples by libsvm."""
    found = train_svms(gram, sides, COST, None)
    return np.stack([svm.decision_function(other) for svm in found], axis=1)


SOLVERS: dict[str, Solver] = {"treedot": ours, "libsvm": libsvm}


def spent(work: Callable[[], object]) -> float:
    """Return the seconds of processor time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def solver_times(gram: np.ndarray, y: np.ndarray, turns: int) -> dict[str, float]:
    """Return the time of each solver on the same Gram matrix: the best of several turns."""
    _, sides = one_vs_rest(y, len(gram))
    took: dict[str, list[float]] = {name: [] for name in SOLVERS}
    for _ in range(turns + 1):  # the first may compile
        for name, solve in SOLVERS.items():
            took[name].append(spent(partial(solve, gram, sides, gram[:1])))
    return {name: min(each[1:]) for name, each in took.items()}


def fit_times(trees: Forest, classes: np.ndarray, turns: int) -> dict[str, float]:
    """Return the time of each fit with its Gram matrix: the best of several turns."""
    model = TreeClassifier(kernel=SubsetTreeKernel(normalize=True), decay=DECAY, C=COST)
    _, sides = one_vs_rest(classes, len(trees))

    def reference() -> object:
        return train_svms(SubsetTreeKernel(DECAY, normalize=True).gram(trees), sides, COST, None)

    took: dict[str, list[float]] = {"treedot": [], "libsvm": []}
    for _ in range(turns + 1):
        took["treedot"].append(spent(lambda: model.fit(trees, classes)))
        took["libsvm"].append(spent(reference))
    return {name: min(each[1:]) for name, each in took.items()}


def exact(solve: Solver, trees: Forest, y: np.ndarray, others: Forest) -> np.ndarray:
    """Return the classes of other trees by a solver on the Gram matrix."""
    classes, sides = one_vs_rest(y, len(trees))
    kernel = SubsetTreeKernel(DECAY, normalize=True)
    scores = solve(kernel.gram(trees), sides, kernel.gram(others, trees))
    return np.asarray(classes[scores.argmax(axis=1)])


def by_landmarks(n_landmarks: int, seed: int, trees: Forest, y: np.ndarray, others: Forest) -> np.ndarray:
    """Return the classes of other trees by a linear model on the features of landmarks."""
    kernel = SubsetTreeKernel(DECAY, normalize=True)
    features = KernelTransformer(kernel=kernel, n_landmarks=n_landmarks, random_state=seed)
    return np.asarray(make_pipeline(features, DualLinearSVC(C=COST)).fit(trees, y).predict(others))


def cross_validated(way: Way, trees: Forest, y: np.ndarray) -> np.ndarray:
    """Return the class of every tree that the other folds find."""
    found = np.empty_like(y)
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y):
        found[test] = way(trees[train], y[train], trees[test])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_svm", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--turns", type=int, default=5, metavar="N")
    parser.add_argument("--landmarks", type=int, default=2000, metavar="N")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="choices of landmarks")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("set TREEDOT_DATA, or give --data: this needs the files qc_*.tsv.gz")
    train, test = (read_trees(Path(options.data, f"qc_{part}.tsv.gz"))[:] for part in ("train", "test"))
    y, truth = (np.array(forest.columns["coarse"]) for forest in (train, test))
    solvers = solver_times(SubsetTreeKernel(DECAY, normalize=True).gram(train), y, options.turns)
    fits = fit_times(train, y, options.turns)
    for name in SOLVERS:
        print(f"{name}: solver {solvers[name]:.2f} s, with the Gram matrix {fits[name]:.2f} s")
    print(
        f"treedot takes {solvers['treedot'] / solvers['libsvm']:.2f} of libsvm's time, "
        f"{fits['treedot'] / fits['libsvm']:.2f} with the Gram matrix"
    )
    ways: dict[str, Way] = {name: partial(exact, solve) for name, solve in SOLVERS.items()}
    for seed in range(options.seeds):
        name = f"{options.landmarks} landmarks, seed {seed}"
        ways[name] = partial(by_landmarks, options.landmarks, seed)
    judge = cross_validated(ways["libsvm"], train, y)
    for name, way in ways.items():
        found = cross_validated(way, train, y)
        took = time.process_time()
        right = np.mean(way(train, y, test) == truth)
        took = time.process_time() - took
        p = mcnemar(y, found, judge).p_value
        print(
            f"{name}: accuracy {np.mean(found == y):.4f} by {FOLDS} folds of the training set (McNemar's p "
            f"against libsvm {p:.2g}), {right:.3f} on the test set; {took:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
