"""Scores of predictions for held-out examples, by which cross-validation chooses settings.

All scores are weighted, and larger is better. They are computed once for all held-out examples together,
since a fold may hold few examples of a rare class. Classes without a held-out example do not count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, BoolArray, FloatArray, IntArray

OF_CLASSES = ("accuracy", "balanced_accuracy", "f1_macro")  # scores of the predicted classes
SMALLEST, LARGEST = 1e-6, 1e3  # temperatures


class Truth(NamedTuple):
    """The true classes of examples, by number, and the weights of the examples."""

    number: IntArray
    weight: FloatArray
    n_classes: int

    def take(self, which: IntArray | BoolArray) -> Truth:
        """Return some of the examples."""
        return Truth(self.number[which], self.weight[which], self.n_classes)


def kept(scoring: str, scores: FloatArray) -> Array:
    """Return what ``scored`` needs of scores, an array (examples, problems)."""
    return predicted_numbers(scores) if scoring in OF_CLASSES and scores.shape[1] > 1 else scores


def predicted_numbers(found: Array) -> Array:
    """Return the numbers of the predicted classes, given the scores, or these numbers."""
    if found.ndim == 1:
        return found
    best: Array = found[:, 0] > 0 if found.shape[1] == 1 else found.argmax(axis=1).astype(np.int32)
    return best


def scored(scoring: str, found: Array, truth: Truth) -> float:
    """Return the score of predictions; ``found`` holds their scores, or what ``kept`` returns of them.

    Examples
    --------
    >>> truth = Truth(np.array([0, 0, 0, 1]), np.ones(4), 2)
    >>> found = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    >>> [round(scored(name, found, truth), 2) for name in (*OF_CLASSES, "average_precision", "neg_log_loss")]
    [0.75, 0.83, 0.73, 1.0, -0.47]
    """
    if scoring in OF_CLASSES:
        return float(of_confusion(scoring, confusion(predicted_numbers(found), truth)))
    if scoring == "average_precision":
        return average_precision(found, truth)
    return -log_loss(found, truth)


def confusion(predicted: Array, truth: Truth) -> FloatArray:
    """Return the weight of the examples of each class (rows) that are predicted as each class (columns)."""
    k = truth.n_classes
    found = np.bincount(truth.number * k + predicted, truth.weight, k * k)
    return found.reshape(k, k).astype(np.float64)


def of_confusion(scoring: str, matrix: FloatArray) -> FloatArray:
    """Return the score of a confusion matrix, or of each of several.

    Macro F1 and balanced accuracy are means over the classes that occur.
    """
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    true, found = matrix.sum(axis=-1), matrix.sum(axis=-2)
    if scoring == "accuracy":
        accuracy: FloatArray = np.minimum(1.0, right.sum(axis=-1) / true.sum(axis=-1))
        return accuracy
    share, there = (right, true) if scoring == "balanced_accuracy" else (2 * right, true + found)
    occurs = there > 0
    shares = np.divide(share, there, out=np.zeros(there.shape), where=occurs)
    mean: FloatArray = shares.sum(axis=-1) / occurs.sum(axis=-1)
    return mean


def average_precision(scores: FloatArray, truth: Truth) -> float:
    """Return the average precision of the second of two classes, or the mean over all classes."""
    from sklearn.metrics import average_precision_score

    targets = np.array([1]) if scores.shape[1] == 1 else np.unique(truth.number)
    columns = scores if scores.shape[1] == 1 else scores[:, targets]
    sides = truth.number[:, None] == targets
    if not sides.any(axis=0).all():
        return 0.0
    each = [
        average_precision_score(side, column, sample_weight=truth.weight)
        for side, column in zip(sides.T, columns.T, strict=True)
    ]
    return float(np.mean(each))


def log_loss(scores: FloatArray, truth: Truth) -> float:
    """Return the least log loss that a temperature t gives to the probabilities softmax(t · scores)."""
    from scipy.optimize import minimize_scalar

    both = np.concatenate([np.zeros_like(scores), scores], axis=1) if scores.shape[1] == 1 else scores
    relative = both - np.take_along_axis(both, truth.number[:, None], axis=1)

    def loss(log: float) -> float:
        scaled = np.exp(log) * relative
        top = scaled.max(axis=1)
        each = top + np.log(np.exp(scaled - top[:, None]).sum(axis=1))
        return float(np.average(each, weights=truth.weight))

    # The loss is convex in t, so it has a single minimum in log t, too.
    bounds = np.log(SMALLEST), np.log(LARGEST)
    return float(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-4}).fun)
