"""Compare classifiers of exact kernels: ``python -m benchmarks.kernel_svm [--data DIR] [--turns N]``.

Both train one support vector machine per class on the TREC questions, with the same normalised subset tree
kernel and C, in turns in one process. ``TreeClassifier`` minimises the squared hinge loss up to a duality gap
of 1 %; libsvm is scikit-learn's ``SVC(kernel="precomputed")`` with its defaults, which minimises the hinge
loss. Times are seconds of processor time, the best of all turns; the solvers are also timed without the Gram
matrix. Accuracy is that of a cross-validation on the training questions, with McNemar's p against libsvm, and
that of the test set. Since the losses differ, so may the best C: the solvers are also compared over several C
on the same folds, each at its best C. The third way is a linear support vector machine on the features of
landmarks, which are training trees or subtrees. On the first fold, several numbers of landmarks and other
features are tried, with C = 1 and 10, and some landmarks with every C. Both kinds of landmarks are also
compared on RNA and by the partial tree kernel, on the first fold with C = 10.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from published.tasks import read_task
from scipy.linalg import solve_triangular
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from treedot import (
    Forest,
    FragmentVectorizer,
    KernelTransformer,
    PartialTreeKernel,
    SubsetTreeKernel,
    TreeClassifier,
    read_trees,
)
from treedot.models import DualLinearSVC
from treedot.models.evaluation import mcnemar
from treedot.models.training.kernel_descent import train_kernel
from treedot.models.training.landmarks import choose_landmarks
from treedot.models.training.one_vs_rest import one_vs_rest, train_svms

DECAY, COST, FOLDS = 0.4, 10.0, 5
LANDMARKS, VARIED = (500, 1000, 2000, 3000, 4000), 2000
ELSEWHERE = (("RNA", SubsetTreeKernel, (100, 500)), ("QC coarse", PartialTreeKernel, (300, 1000)))
JITTER = 1e-9  # keeps the Gram matrix of equal landmarks positive definite
COSTS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
Solver = Callable[..., np.ndarray]  # of a Gram matrix, sides, kernels of other examples, and C
Way = Callable[[Forest, np.ndarray, Forest], np.ndarray]


def ours(gram: np.ndarray, sides: np.ndarray, other: np.ndarray, C: float = COST) -> np.ndarray:
    """Return the scores of other examples by our solver, given their kernels with the training examples."""
    fit = train_kernel(gram, sides.T, np.full((len(sides), 2), C))
    return np.asarray(other @ fit.weights + fit.bias)


def libsvm(gram: np.ndarray, sides: np.ndarray, other: np.ndarray, C: float = COST) -> np.ndarray:
    """Return the scores of other examples by libsvm."""
    found = train_svms(gram, sides, C, None)
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
    model = TreeClassifier(kernel=SubsetTreeKernel(normalize=True), decay=DECAY, C=COST, calibrate=False)
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


def by_default(trees: Forest, y: np.ndarray, others: Forest) -> np.ndarray:
    """Return the classes of other trees by a ``TreeClassifier`` that chooses its C on the training trees."""
    model = TreeClassifier(kernel=SubsetTreeKernel(normalize=True), decay=DECAY, class_weight=None)
    return np.asarray(model.fit(trees, y).predict(others))


def by_landmarks(
    features: KernelTransformer, trees: Forest, y: np.ndarray, others: Forest, C: float = COST
) -> np.ndarray:
    """Return the classes of other trees by a linear model on the features of landmarks."""
    return np.asarray(make_pipeline(features, DualLinearSVC(C=C)).fit(trees, y).predict(others))


def print_elsewhere(data: Path) -> None:
    """Print the accuracy of both kinds of landmarks on the first fold of other trees and another kernel."""
    for name, kind, numbers in ELSEWHERE:
        task = read_task(data, name)
        y = np.array(task.classes[0])
        train, test = next(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y))
        for wanted, landmarks in product(numbers, ("examples", "subtrees")):
            kernel = kind(DECAY, normalize=True)
            features = KernelTransformer(kernel=kernel, n_landmarks=wanted, landmarks=landmarks)
            found = by_landmarks(features, task.train[train], y[train], task.train[test])
            print(
                f"{name}, {kind.__name__}, {wanted} {landmarks}: {np.mean(found == y[test]):.4f}", flush=True
            )


def cross_validated(way: Way, trees: Forest, y: np.ndarray) -> np.ndarray:
    """Return the class of every tree that the other folds find."""
    found = np.empty_like(y)
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y):
        found[test] = way(trees[train], y[train], trees[test])
    return found


def by_cost(solve: Solver, gram: np.ndarray, y: np.ndarray) -> dict[float, np.ndarray]:
    """Return, for every C, the class of every tree that the other folds find."""
    found = {C: np.empty_like(y) for C in COSTS}
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y):
        classes, sides = one_vs_rest(y[train], train.size)
        own, other = gram[np.ix_(train, train)], gram[np.ix_(test, train)]
        for C in COSTS:
            found[C][test] = classes[solve(own, sides, other, C).argmax(axis=1)]
    return found


def print_best_costs(gram: np.ndarray, y: np.ndarray) -> None:
    """Print the accuracy of both solvers for every C, and compare them, each at its best C."""
    best = []
    for name, solve in SOLVERS.items():
        found = by_cost(solve, gram, y)
        shares = {C: float(np.mean(predicted == y)) for C, predicted in found.items()}
        print(f"{name} by C:", ", ".join(f"{C:g}: {share:.4f}" for C, share in shares.items()), flush=True)
        best.append(found[max(shares, key=lambda C: shares[C])])
    test = mcnemar(y, *best)
    print(f"each at its best C: {test.only_first} : {test.only_second}, McNemar's p = {test.p_value:.2g}")


def of_landmarks(gram: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    """Return the dot products of the features of all examples, from their kernels."""
    inner = gram[np.ix_(landmarks, landmarks)] + JITTER * np.eye(landmarks.size)
    features = solve_triangular(np.linalg.cholesky(inner), gram[landmarks], lower=True).astype(np.float32)
    return np.asarray(features.T @ features, np.float64)


def spread(gram: np.ndarray, wanted: int, seed: int = 0) -> np.ndarray:
    """Return landmarks chosen by k-means++: the probability is the squared distance to the nearest one."""
    rng = np.random.default_rng(seed)
    squares, found = np.full(len(gram), 2.0), list[int]()
    while len(found) < wanted and squares.sum() > 0:
        found.append(int(rng.choice(len(gram), p=squares / squares.sum())))
        squares = np.minimum(squares, np.maximum(2 - 2 * gram[found[-1]], 0))
    return np.sort(found)


def pivoted(gram: np.ndarray, wanted: int) -> np.ndarray:
    """Return landmarks chosen by the pivots of a Cholesky decomposition: the largest residual comes next."""
    residual, rows, found = gram.diagonal().copy(), np.zeros((wanted, len(gram))), list[int]()
    while len(found) < wanted and residual.max() > JITTER:
        k, pivot = len(found), int(residual.argmax())
        rows[k] = (gram[pivot] - rows[:k, pivot] @ rows[:k]) / np.sqrt(residual[pivot])
        residual = np.maximum(residual - rows[k] ** 2, 0)
        found.append(pivot)
        residual[found] = 0
    return np.sort(found)


def print_landmarks(gram: np.ndarray, trees: Forest, y: np.ndarray) -> None:
    """Print the accuracy on the first fold for several numbers and choices of landmarks."""
    train, test = next(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y))
    classes, sides = one_vs_rest(y[train], train.size)
    rows = FragmentVectorizer(decay=DECAY, damping="linear").transform(trees)
    products = np.asarray((rows @ rows.T).toarray(), np.float64)
    diagonal = np.eye(len(gram))

    def show(name: str, kernel: np.ndarray, costs: Sequence[float] = (1.0, 10.0)) -> None:
        own, other = kernel[np.ix_(train, train)], kernel[np.ix_(test, train)]
        found = [classes[ours(own, sides, other, C).argmax(axis=1)] == y[test] for C in costs]
        print(name, ", ".join(f"{right.mean():.4f}" for right in found), flush=True)

    show("exact kernel", gram)
    show("rows of bounded fragments", products)
    for wanted in LANDMARKS:
        model = KernelTransformer(
            kernel=SubsetTreeKernel(DECAY, normalize=True), n_landmarks=wanted, landmarks="subtrees"
        )
        features = model.fit(trees[train]).transform(trees)
        found = features @ features.T
        show(f"{wanted} subtrees, squared length {found.diagonal().mean():.2f}", found)
        found = of_landmarks(gram, train[choose_landmarks(train.size, wanted, 0)])
        show(f"{wanted} landmarks, squared length {found.diagonal().mean():.2f}", found)
        if wanted == VARIED:
            show(f"  with C = {', '.join(f'{C:g}' for C in COSTS)}", found, COSTS)
            show("  and the residual as a column for each tree", found + diagonal * (1 - found.diagonal()))
            lengths = np.sqrt(found.diagonal())
            show("  scaled to length 1", found / np.outer(lengths, lengths))
            show("  and rows of bounded fragments", found + products)
            chosen = train[spread(gram[np.ix_(train, train)], wanted)]
            show("  chosen by k-means++", of_landmarks(gram, chosen))
            chosen = train[pivoted(gram[np.ix_(train, train)], wanted)]
            show("  chosen by pivots, every C", of_landmarks(gram, chosen), COSTS)


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
    gram = SubsetTreeKernel(DECAY, normalize=True).gram(train)
    solvers = solver_times(gram, y, options.turns)
    fits = fit_times(train, y, options.turns)
    for name in SOLVERS:
        print(f"{name}: solver {solvers[name]:.2f} s, with the Gram matrix {fits[name]:.2f} s")
    print(
        f"treedot takes {solvers['treedot'] / solvers['libsvm']:.2f} of libsvm's time, "
        f"{fits['treedot'] / fits['libsvm']:.2f} with the Gram matrix"
    )
    print_best_costs(gram, y)
    print_landmarks(gram, train, y)
    ways: dict[str, Way] = {name: partial(exact, solve) for name, solve in SOLVERS.items()}
    ways["treedot, C chosen by default"] = by_default
    made = partial(
        KernelTransformer, kernel=SubsetTreeKernel(DECAY, normalize=True), n_landmarks=options.landmarks
    )
    for seed in range(options.seeds):
        ways[f"{options.landmarks} landmarks, seed {seed}"] = partial(by_landmarks, made(random_state=seed))
    for C in (3.0, 5.0, COST, 30.0):
        name = f"{options.landmarks} subtrees, C = {C:g}"
        ways[name] = partial(by_landmarks, made(landmarks="subtrees"), C=C)
    print_elsewhere(Path(options.data))
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
