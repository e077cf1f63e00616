"""Choose the threshold between two classes by held-out scores."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot.models.training.scoring import OF_CLASSES, Truth, confusion, of_confusion


def chosen_threshold(scoring: str, scores: FloatArray, truth: Truth, fold: IntArray) -> float:
    """Return the threshold between two classes with the best score, or 0 where it does not pay.

    ``scores`` and ``fold`` hold the score and the fold of each held-out example. Whether a threshold pays is
    tested by examples that it was not chosen from: that of the other folds has to beat 0 in every fold on
    average, by more than the standard error of its gain.

    Examples
    --------
    >>> truth = Truth(np.array([0, 0, 1, 1] * 5), np.ones(20), 2)
    >>> scores = np.array([-3.0, -2.0, -1.0, 1.0] * 5)
    >>> chosen_threshold("balanced_accuracy", scores, truth, np.repeat(np.arange(5), 4))
    -1.5
    """
    if scoring not in OF_CLASSES:
        return 0.0
    gains = []
    for k in np.unique(fold):
        own = fold == k
        threshold = best_threshold(scoring, scores[~own], truth.take(~own))
        here = truth.take(own)
        after, before = (
            of_confusion(scoring, confusion(scores[own] > limit, here)) for limit in (threshold, 0.0)
        )
        gains.append(float(after - before))
    if np.mean(gains) <= np.std(gains, ddof=1) / np.sqrt(len(gains)):
        return 0.0
    return best_threshold(scoring, scores, truth)


def best_threshold(scoring: str, scores: FloatArray, truth: Truth) -> float:
    """Return the threshold with the best score: 0, or halfway between two scores; the nearest to 0 of equals.

    Examples
    --------
    >>> truth = Truth(np.array([0, 1, 0, 1]), np.ones(4), 2)
    >>> best_threshold("accuracy", np.array([1.0, 2.0, 0.5, 4.0]), truth)
    1.5
    """
    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    below = np.zeros((2, scores.size + 1))  # the weight of each class among the first k examples
    for k in range(2):
        below[k, 1:] = np.cumsum(np.where(truth.number[order] == k, truth.weight[order], 0.0))
    gaps = np.flatnonzero(np.diff(ranked) > 0) + 1
    limits = np.append((ranked[gaps - 1] + ranked[gaps]) / 2, 0.0)
    under = below[:, np.append(gaps, np.searchsorted(ranked, 0.0, side="right"))]
    matrices = np.stack([under, below[:, -1:] - under], axis=-1).transpose(1, 0, 2)
    values = of_confusion(scoring, matrices)
    best = np.flatnonzero(values >= values.max())
    return float(limits[best][np.abs(limits[best]).argmin()])
