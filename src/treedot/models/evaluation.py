"""Evaluate predictions: accuracy and its interval, figures per class, confusion matrix, McNemar's test."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray

Z = 1.959964  # the normal quantile of a two-sided 95 % interval


class ClassFigures(NamedTuple):
    """Precision, recall and F1 of one class; ``support`` is the number of trees of the class.

    ``recall_interval`` is Wilson's 95 % interval of the recall.
    """

    name: str
    precision: float
    recall: float
    f1: float
    support: int
    recall_interval: tuple[float, float]


class Evaluation(NamedTuple):
    """The quality of predictions.

    ``confusion[i, j]`` is the number of trees of class i that were predicted as class j. ``interval`` is
    Wilson's 95 % interval of the accuracy, ``macro_f1_interval`` the normal approximation for the mean of the
    classes' F1. ``unknown`` maps each class that the model does not know to its
    number of trees; these classes come last in ``classes``, and their trees count as wrong.
    """

    n_trees: int
    accuracy: float
    interval: tuple[float, float]
    macro_f1: float
    macro_f1_interval: tuple[float, float]
    classes: list[ClassFigures]
    confusion: IntArray
    unknown: dict[str, int]


class McNemar(NamedTuple):
    """McNemar's test of two models: how many trees only one of them has right, and the p-value."""

    only_first: int
    only_second: int
    p_value: float


def evaluate(classes: Array, truth: Array, predicted: Array) -> Evaluation:
    """Compare predictions with the truth, which may hold classes that are not in ``classes``.

    Examples
    --------
    >>> found = evaluate(np.array(["a", "b"]), np.array(["a", "a", "b"]), np.array(["a", "b", "b"]))
    >>> print(f"{found.accuracy:.3f}", found.confusion.tolist())
    0.667 [[1, 1], [0, 1]]
    """
    names, counts = np.unique(truth[~np.isin(truth, classes)], return_counts=True)
    classes = np.concatenate([classes, names])
    places = places_of(classes, truth) * classes.size + places_of(classes, predicted)
    confusion = np.bincount(places, minlength=classes.size**2).reshape(classes.size, classes.size)
    right, there, found = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    figures = [
        ClassFigures(str(name), _share(r, f), _share(r, t), _share(2 * r, t + f), t, wilson(r, t))
        for name, r, t, f in zip(
            classes.tolist(), right.tolist(), there.tolist(), found.tolist(), strict=True
        )
    ]
    return Evaluation(
        truth.size,
        _share(int(right.sum()), truth.size),
        wilson(int(right.sum()), truth.size),
        sum(figure.f1 for figure in figures) / len(figures),
        _macro_f1_interval(confusion),
        figures,
        confusion,
        dict(zip(map(str, names.tolist()), counts.tolist(), strict=True)),
    )


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of the share ``right / n``.

    Examples
    --------
    >>> "%.3f to %.3f" % wilson(454, 500)
    '0.879 to 0.930'
    """
    if n == 0:
        return 0.0, 1.0
    share, z = right / n, Z * Z / n
    middle, half = share + z / 2, Z * math.sqrt(share * (1 - share) / n + z / (4 * n))
    return max(0.0, (middle - half) / (1 + z)), min(1.0, (middle + half) / (1 + z))


def _macro_f1_interval(confusion: IntArray) -> tuple[float, float]:
    """Return the 95 % interval of the macro F1 by the delta method (Takahashi et al. 2022).

    F1 of class k is 2 pₖₖ / dₖ, with dₖ = pₖ. + p.ₖ; a tree of class i that is predicted as j adds
    (2 [i = j] / dᵢ - F1ᵢ / dᵢ - F1ⱼ / dⱼ) / n_classes to the mean.
    """
    n = int(confusion.sum())
    if n == 0:
        return 0.0, 1.0
    shares = confusion / n
    sums = shares.sum(axis=0) + shares.sum(axis=1)
    f1 = np.divide(2 * np.diag(shares), sums, out=np.zeros(sums.size), where=sums > 0)
    inverse = np.divide(1.0, sums, out=np.zeros(sums.size), where=sums > 0)
    influence = (np.diag(2 * inverse) - (f1 * inverse)[:, None] - f1 * inverse) / f1.size
    mean, half = float(f1.mean()), Z * math.sqrt(float((shares * influence**2).sum()) / n)
    return max(0.0, mean - half), min(1.0, mean + half)


def mcnemar(truth: Array, first: Array, second: Array) -> McNemar:
    """Return McNemar's exact two-sided test of two predictions for the same trees.

    The p-value is that of a fair coin, tossed for every tree that exactly one of the two has right.

    Examples
    --------
    >>> mcnemar(np.array([1] * 9), np.array([1] * 9), np.array([0] * 8 + [1]))
    McNemar(only_first=8, only_second=0, p_value=0.0078125)
    """
    from scipy.stats import binomtest

    right, other = first == truth, second == truth
    a, b = int(np.count_nonzero(right & ~other)), int(np.count_nonzero(other & ~right))
    return McNemar(a, b, float(binomtest(a, a + b).pvalue) if a + b else 1.0)


def margins(classes: Array, truth: Array, scores: FloatArray) -> FloatArray:
    """Return the best score minus the score of the true class for every tree; 0 if the prediction is right.

    If the model does not know the true class, the second best score takes its place.
    """
    table = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    if not truth.size:
        return np.zeros(0)
    known, ordered = np.isin(truth, classes), np.sort(table, axis=1)
    own = ordered[:, -2]
    own[known] = table[known, places_of(classes, truth[known])]
    above: FloatArray = ordered[:, -1] - own
    return above


def places_of(classes: Array, names: Array) -> IntArray:
    """Return the position of each name in ``classes``."""
    order = np.argsort(classes, kind="stable")
    numbers: IntArray = order[np.searchsorted(classes, names, sorter=order)]
    return numbers


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
