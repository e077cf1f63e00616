"""One class against the rest: problems, costs, and training on a Gram matrix by libsvm."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from treedot._runtime.threads import thread_map
from treedot.errors import ParameterError
from treedot.parameters import checked_positive


def one_vs_rest(y: Any, n_examples: int, at_least: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, and for each problem which examples are on its positive side.

    There is one problem for each class; two classes have a single one, whose positive side is the second.

    Examples
    --------
    >>> one_vs_rest(["b", "a", "c"], 3)[1].astype(int)
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 1]])
    >>> one_vs_rest(["b", "a", "b"], 3)[1].astype(int)
    array([[1, 0, 1]])
    """
    y = checked_classes(y, n_examples)
    check_classification_targets(y)
    classes, number = np.unique(y, return_inverse=True)
    if classes.size < at_least:
        raise ParameterError(f"y must hold at least two classes, not {classes.size} class")
    sides = number == np.arange(classes.size)[:, None]
    return classes, sides[1:] if classes.size == 2 else sides


def checked_classes(y: Any, n_examples: int) -> np.ndarray:
    """Return ``y`` as an array; raise ParameterError unless every example has a class."""
    classes = np.asarray(y)
    if classes.shape != (n_examples,):
        raise ParameterError(
            f"y must hold one class for each of the {n_examples} trees, not shape {classes.shape}"
        )
    return classes


def class_costs(class_weight: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the factors of C on the negative and the positive side of each problem.

    ``counts`` holds the number of examples of each class, or the sums of their weights.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        weights = counts.sum() / (classes.size * counts.astype(np.float64))
    else:
        try:
            weights = compute_class_weight(class_weight, classes=classes, y=classes)
        except (ValueError, TypeError) as error:
            raise ParameterError(f"class_weight: {error}") from None
    for weight in weights:
        checked_positive("class_weight", float(weight))
    if weights.size == 2:
        return np.asarray(weights, np.float64)[None]
    return np.stack([np.ones(weights.size), weights], axis=1)


def train_svms(gram: np.ndarray, sides: np.ndarray, C: float, n_jobs: int | None) -> list[SVC]:
    """Train one support vector machine for each problem."""
    gram = np.ascontiguousarray(gram, float)

    def train(side: np.ndarray) -> SVC:
        return SVC(C=C, kernel="precomputed", cache_size=500).fit(gram, side)

    with thread_map(n_jobs) as run_all:  # libsvm runs outside of Python's lock
        return list(run_all(train, sides))
