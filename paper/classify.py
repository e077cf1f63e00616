"""SVMs on Gram matrices, and whether two of them differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treedot.models.linear_model import best_class
from treedot.models.training.one_vs_rest import one_vs_rest, train_svms
from treedot.vectors.products import dot_products


def classified(gram: np.ndarray, y: np.ndarray, test: np.ndarray, cost: float) -> np.ndarray:
    """Train one SVM per class on a Gram matrix; return the class with the largest score.

    ``test`` holds the kernels of the test trees with the training trees.
    """
    classes, sides = one_vs_rest(y, len(gram))
    test = np.ascontiguousarray(test, float)
    scores = np.stack([svm.decision_function(test) for svm in train_svms(gram, sides, cost, n_jobs=-1)], 1)
    return best_class(classes, scores[:, 0] if classes.size == 2 else scores)


def folded(rows: Any, y: np.ndarray, cost: float) -> Callable[[Any], np.ndarray]:
    """Train on the dot products of rows, as on a kernel; return a function from rows to classes.

    The support vectors are folded into one weight per column.
    """
    classes, sides = one_vs_rest(y, rows.shape[0])
    svms = train_svms(dot_products(rows, n_jobs=-1), sides, cost, n_jobs=-1)
    weights = [np.ravel(svm.dual_coef_[0] @ rows[svm.support_]) for svm in svms]
    bias = np.array([float(svm.intercept_[0]) for svm in svms])

    def classify(test: Any) -> np.ndarray:
        scores = np.stack([test @ weight for weight in weights], 1) + bias
        return best_class(classes, scores[:, 0] if classes.size == 2 else scores)

    return classify


def choose_cost(
    grams: Sequence[np.ndarray], classes: Sequence[np.ndarray], costs: Sequence[float], folds: int
) -> dict[str, float]:
    """Return the cross-validated accuracy of every C, averaged over the data sets given, and the best C."""
    from sklearn.model_selection import StratifiedKFold

    found: dict[str, float] = {}
    for cost in costs:
        right = []
        for gram, own in zip(grams, classes, strict=True):
            for train, held in StratifiedKFold(folds, shuffle=True, random_state=0).split(gram, own):
                guess = classified(gram[np.ix_(train, train)], own[train], gram[np.ix_(held, train)], cost)
                right.append(np.mean(guess == own[held]))
        found[str(cost)] = float(np.mean(right))
    found["best"] = float(max(costs, key=lambda cost: found[str(cost)]))
    return found


def as_bits(correct: np.ndarray) -> str:
    """Return which answers were right as a string of 0 and 1."""
    return "".join("01"[int(right)] for right in correct)


def from_bits(bits: str) -> np.ndarray:
    """Return what ``as_bits`` was given."""
    return np.frombuffer(bits.encode(), np.uint8) == ord("1")


def mcnemar(a: str, b: str) -> float:
    """Return the exact two-sided p-value of McNemar's test, that two classifiers err equally often."""
    from scipy.stats import binomtest

    x, y = from_bits(a), from_bits(b)
    only_a, only_b = int(np.sum(x & ~y)), int(np.sum(y & ~x))
    return float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0


def t_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the p-value of Student's two-sample t-test, as the paper uses it over its four data sets."""
    from scipy.stats import t

    freedom = len(a) + len(b) - 2
    pooled = (np.var(a) * len(a) + np.var(b) * len(b)) / freedom
    error = math.sqrt(pooled * (1 / len(a) + 1 / len(b)))
    difference = abs(float(np.mean(a) - np.mean(b)))
    if error < 1e-12:  # all values of each side are equal
        return 1.0 if difference < 1e-12 else 0.0
    return float(2 * t.sf(difference / error, freedom))
