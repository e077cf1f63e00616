"""Linear models of rows of fragments: which vectorizer, which weights, which bias."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from treedot.errors import ParameterError
from treedot.learn import FragmentVectorizer
from treedot.trees import Forest

WANTED = "a TreeClassifier, or a Pipeline of a FragmentVectorizer and a linear model, such as LinearSVC"
FITTED = ("vectorizer_", "columns_", "weights_", "intercept_", "classes_")  # of one estimator that is both


class LinearFunction(NamedTuple):
    """A linear function of rows: one score for each class, or one number.

    Attributes
    ----------
    vectorizer : FragmentVectorizer
        Makes the rows.
    weights_at : callable
        From an array of columns to their weights, one row for each score.
    bias : array
        One number for each score.
    classes : list, optional
        In the order of the scores; two classes have one score, which is positive for the second. None for a
        model that predicts numbers.
    """

    vectorizer: FragmentVectorizer
    weights_at: Callable[[np.ndarray], np.ndarray]
    bias: np.ndarray
    classes: list[Any] | None

    @classmethod
    def of(cls, model: Any) -> Self:
        """Take a fitted model of trees apart, or raise where it is something else."""
        if all(hasattr(model, name) for name in FITTED):
            vectorizer, columns, weights, bias, classes = (getattr(model, name) for name in FITTED)
            return cls(_checked(vectorizer), partial(_listed, columns, weights.T), bias, classes.tolist())
        if not isinstance(model, Pipeline):
            raise ParameterError(f"what can be explained is {WANTED}, not {type(model).__name__}")
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
        if len(steps) != 2:
            named = ", ".join(type(step).__name__ for step in steps)
            raise ParameterError(f"what can be explained is {WANTED}, not one of {named}")
        return cls._of_steps(_checked(steps[0]), steps[1])

    @classmethod
    def _of_steps(cls, vectorizer: FragmentVectorizer, linear: Any) -> Self:
        name = type(linear).__name__
        check_is_fitted(linear)
        if not (hasattr(linear, "coef_") and hasattr(linear, "intercept_")):
            raise ParameterError(f"{name} has no weights (coef_, intercept_): take {WANTED}")
        coef = linear.coef_ if issparse(linear.coef_) else np.atleast_2d(linear.coef_)
        classes = np.asarray(linear.classes_).tolist() if hasattr(linear, "classes_") else None
        wanted = 1 if classes is None or len(classes) == 2 else len(classes)
        if coef.shape[0] != wanted or (
            wanted > 1 and isinstance(linear, (SVC, NuSVC))
        ):  # class against class
            raise ParameterError(f"{name} has no row of weights for each class: take {WANTED}")
        bias = np.broadcast_to(np.asarray(linear.intercept_, float), coef.shape[:1])
        return cls(vectorizer, partial(_sparse if issparse(coef) else _dense, coef), bias, classes)

    def scores(self, forest: Forest) -> np.ndarray:
        """Return the scores of every tree; for two classes, of the second alone."""
        rows = self.vectorizer.transform(forest)
        columns, number = np.unique(rows.indices, return_inverse=True)  # the weights of all may be gigabytes
        narrow = csr_matrix((rows.data.astype(float), number, rows.indptr), (len(forest), columns.size))
        return np.asarray(narrow @ self.weights_at(columns).T) + self.bias

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Return the number of the class that wins for each row of scores."""
        return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)

    def target(self, wanted: Any, scores: np.ndarray) -> tuple[int, int, float]:
        """Return a class, the row of its weights and their sign; by default the class that wins."""
        if self.classes is None:
            if wanted is not None:
                raise ParameterError("this model predicts numbers, not classes: leave out the target")
            return 0, 0, 1.0
        if wanted is not None and wanted not in self.classes:
            choices = ", ".join(map(repr, self.classes))
            raise ParameterError(f"there is no class {wanted!r}: choose one of {choices}")
        number = int(self.best(scores)[0]) if wanted is None else self.classes.index(wanted)
        if self.bias.size == 1:
            return number, 0, 1.0 if number == 1 else -1.0
        return number, number, 1.0


def _checked(vectorizer: Any) -> FragmentVectorizer:
    if not isinstance(vectorizer, FragmentVectorizer):
        raise ParameterError(
            "a model is explained by its fragments, so its rows must be those of a FragmentVectorizer, "
            f"not of {type(vectorizer).__name__}"
        )
    return vectorizer


def _dense(coef: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return np.asarray(coef[:, columns], float)


def _sparse(coef: Any, columns: np.ndarray) -> np.ndarray:
    coef = coef.tocsr()
    if not coef.has_canonical_format:
        coef = coef.copy()
        coef.sum_duplicates()  # and sort columns
    rows = [slice(*coef.indptr[k : k + 2]) for k in range(coef.shape[0])]
    return np.concatenate([_listed(coef.indices[row], coef.data[None, row], columns) for row in rows])


def _listed(known: np.ndarray, weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the weights of columns where they are known for some, in ascending order, and else 0."""
    rank = np.searchsorted(known, columns)
    there = rank < np.searchsorted(known, columns, side="right")
    found = np.zeros((weights.shape[0], columns.size))
    found[:, there] = weights[:, rank[there]]
    return found
