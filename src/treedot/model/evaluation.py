"""How good predictions are: accuracy with its interval, each class, the confusion matrix, and McNemar."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from treedot.array_types import Array, FloatArray, IntArray
from treedot.errors import ParameterError

Z = 1.959964  # of 95 % of a normal distribution


class ClassFigures(NamedTuple):
    """How well one class is told: of those predicted the share that is right, of those there the share found.

    ``f1`` is their harmonic mean, and ``support`` how many trees are of the class.
    """

    name: str
    precision: float
    recall: float
    f1: float
    support: int


class Evaluation(NamedTuple):
    """How good predictions are.

    ``confusion[i, j]`` trees of class i were taken for class j. ``interval`` is Wilson's, of 95 %.
    """

    n_trees: int
    accuracy: float
    interval: tuple[float, float]
    macro_f1: float
    classes: list[ClassFigures]
    confusion: IntArray


class McNemar(NamedTuple):
    """Two models on the same trees: how many one alone has right, and how likely so uneven a split is."""

    only_first: int
    only_second: int
    p_value: float


def evaluate(classes: Array, truth: Array, predicted: Array) -> Evaluation:
    """Compare predictions with the truth; all of both must be among the classes.

    Examples
    --------
    >>> found = evaluate(np.array(["a", "b"]), np.array(["a", "a", "b"]), np.array(["a", "b", "b"]))
    >>> print(f"{found.accuracy:.3f}", found.confusion.tolist())
    0.667 [[1, 1], [0, 1]]
    """
    places = _numbers(classes, truth) * classes.size + _numbers(classes, predicted)
    confusion = np.bincount(places, minlength=classes.size**2).reshape(classes.size, classes.size)
    right, there, found = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    figures = [
        ClassFigures(str(name), _share(r, f), _share(r, t), _share(2 * r, t + f), t)
        for name, r, t, f in zip(
            classes.tolist(), right.tolist(), there.tolist(), found.tolist(), strict=True
        )
    ]
    return Evaluation(
        truth.size,
        _share(int(right.sum()), truth.size),
        wilson(int(right.sum()), truth.size),
        sum(figure.f1 for figure in figures) / len(figures),
        figures,
        confusion,
    )


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % for a share.

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


def mcnemar(truth: Array, first: Array, second: Array) -> McNemar:
    """Return whether one of two predictions is right more often than chance, by the exact two-sided test.

    Where exactly one is right, chance is a coin: the p-value is that of the binomial distribution.

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
    """Return by how much the best score is above that of the true class: 0 where the prediction is right."""
    table = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    own = table[np.arange(truth.size), _numbers(classes, truth)]
    above: FloatArray = table.max(axis=1) - own if truth.size else np.zeros(0)
    return above


def _numbers(classes: Array, labels: Array) -> IntArray:
    """Return which of the classes each label is."""
    order = np.argsort(classes, kind="stable")
    where = np.minimum(np.searchsorted(classes, labels, sorter=order), classes.size - 1)
    numbers: IntArray = order[where]
    unknown = np.flatnonzero(classes[numbers] != labels)
    if unknown.size:
        names = ", ".join(map(str, classes[:10].tolist())) + (", …" if classes.size > 10 else "")
        raise ParameterError(
            f"{unknown.size} trees are of classes that the model does not know, tree {unknown[0] + 1} of "
            f"{str(labels[unknown[0]])!r}: it knows {names}"
        )
    return numbers


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
