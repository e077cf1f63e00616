"""The support vector machine of ``TreeClassifier``, trained on a Gram matrix instead of rows.

One class against the rest, the squared hinge loss, the bias as one more weight, dual coordinate descent until
the duality gap is at most 1 %: what differs between two columns of the table is what trees become, and
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from treedot.jit import njit
from treedot.learn.folds import split_folds
from treedot.learn.one_vs_rest import one_vs_rest
from treedot.learn.tree_classifier import COSTS, DECAYS, Trial
from treedot.model.linear_model import best_class
from treedot.threads import thread_map

TOLERANCE, MAX_PASSES, FOLDS = 1e-2, 1000, 5


class Chosen(NamedTuple):
    """Settings with the best accuracy in cross-validation, and what they predict."""

    predicted: np.ndarray
    decay: float
    C: float


def choose_and_predict(
    gram: Callable[[float], np.ndarray], across: Callable[[float], np.ndarray], y: np.ndarray
) -> Chosen:
    """Choose λ and C by cross-validation on ``gram(λ)``; predict from ``across(λ)``, tests in rows."""
    trials = [
        Trial(decay, cost, accuracy)
        for decay in DECAYS
        for cost, accuracy in zip(COSTS, _accuracies(gram(decay), y), strict=True)
    ]
    best = max(trials, key=lambda trial: trial.accuracy)  # the first of equally good ones
    assert best.decay is not None
    return Chosen(_predicted(gram(best.decay), across(best.decay), y, best.C), best.decay, best.C)


def _accuracies(gram: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the accuracy of every C on the trees of the folds left out."""
    right = np.zeros(len(COSTS))
    for train, test in split_folds(y, FOLDS):
        inner, outer = gram[np.ix_(train, train)], gram[np.ix_(test, train)]
        for k, cost in enumerate(COSTS):
            right[k] += np.count_nonzero(_predicted(inner, outer, y[train], cost) == y[test])
    return (right / y.size).tolist()


def _predicted(gram: np.ndarray, across: np.ndarray, y: np.ndarray, cost: float) -> np.ndarray:
    classes, sides = one_vs_rest(y, len(gram))
    with thread_map(-1) as run_all:
        found = run_all(lambda side: train_gram(gram, np.where(side, 1.0, -1.0), cost, TOLERANCE), sides)
        scores = np.stack([across @ weights + weights.sum() for weights in found], axis=1)
    return best_class(classes, scores[:, 0] if classes.size == 2 else scores)


@njit
def train_gram(gram: np.ndarray, side: np.ndarray, cost: float, tol: float) -> np.ndarray:
    """Return y α of every example for the sides y = ±1; their sum is the bias."""
    n, ridge = side.size, 0.5 / cost
    alpha, scores = np.zeros(n), np.zeros(n)
    np.random.seed(0)
    for _ in range(MAX_PASSES):
        for i in np.random.permutation(n):
            slope = side[i] * scores[i] - 1.0 + alpha[i] * ridge
            new = max(alpha[i] - slope / (gram[i, i] + 1.0 + ridge), 0.0)
            change = side[i] * (new - alpha[i])
            if change != 0.0:
                alpha[i] = new
                for j in range(n):
                    scores[j] += change * (gram[i, j] + 1.0)
        penalty = (alpha * side * scores).sum() / 2
        loss = cost * (np.maximum(0.0, 1.0 - side * scores) ** 2).sum()
        gain = alpha.sum() - (alpha**2).sum() * ridge / 2
        if loss + 2 * penalty - gain <= tol * (loss + penalty):
            break
    return alpha * side
