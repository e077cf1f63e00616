"""Evaluate probabilities: log loss, Brier score, and how far confidence and accuracy differ."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray
from treedot.models.evaluation import places_of, wilson

BINS = 10  # of equal width


class ReliabilityBin(NamedTuple):
    """The trees whose predicted class has a probability in a range.

    ``interval`` is Wilson's 95 % interval of the accuracy.
    """

    low: float
    high: float
    n_trees: int
    confidence: float  # the mean probability of the predicted class
    accuracy: float
    interval: tuple[float, float]


class ProbabilityEvaluation(NamedTuple):
    """The quality of probabilities, over the trees of classes that the model knows.

    ``log_loss`` is the mean of the negative logarithm of the true class's probability. ``brier`` is the mean
    squared error of the probabilities, summed over the classes (of two classes, that of one).
    ``calibration_error`` is the mean distance of confidence and accuracy over ``bins``, weighted by their
    numbers of trees: the expected calibration error.
    """

    n_trees: int
    log_loss: float
    brier: float
    calibration_error: float
    bins: list[ReliabilityBin]  # those that hold trees


def evaluate_probabilities(
    classes: Array, truth: Array, predicted: Array, probabilities: FloatArray
) -> ProbabilityEvaluation | None:
    """Compare probabilities, a column for each class, with the truth; None if no true class is known.

    Examples
    --------
    >>> classes, truth = np.array(["a", "b"]), np.array(["a", "b", "b", "b"])
    >>> found = evaluate_probabilities(classes, truth, truth, np.array([[0.75, 0.25]] + [[0.25, 0.75]] * 3))
    >>> print(f"{found.log_loss:.3f} {found.brier:.4f} {found.calibration_error:.2f}")
    0.288 0.0625 0.25
    """
    known = np.isin(truth, classes)
    if not known.any():
        return None
    truth, predicted, probabilities = truth[known], predicted[known], probabilities[known]
    each, own = np.arange(truth.size), places_of(classes, truth)
    errors = probabilities.copy()
    errors[each, own] -= 1.0
    squares = (errors**2).sum(axis=1).mean() / (2.0 if classes.size == 2 else 1.0)
    least = np.finfo(np.float64).eps  # as in scikit-learn's log_loss
    bins = _bins(probabilities[each, places_of(classes, predicted)], predicted == truth)
    return ProbabilityEvaluation(
        truth.size,
        float(-np.log(np.clip(probabilities[each, own], least, 1 - least)).mean()),
        float(squares),
        sum(abs(one.confidence - one.accuracy) * one.n_trees for one in bins) / truth.size,
        bins,
    )


def _bins(confidence: FloatArray, right: Array) -> list[ReliabilityBin]:
    number = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins = []
    for k in np.unique(number).tolist():
        inside = number == k
        n, n_right = int(inside.sum()), int(right[inside].sum())
        mean = float(confidence[inside].mean())
        bins.append(ReliabilityBin(k / BINS, (k + 1) / BINS, n, mean, n_right / n, wilson(n_right, n)))
    return bins
