"""Linear models of rows of fragments: which vectorizer, which weights, which bias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from treedot.errors import ParameterError
from treedot.learn import FragmentVectorizer
from treedot.trees import Forest

WANTED = "a Pipeline of a FragmentVectorizer and a linear model, such as LinearSVC or DualLinearSVC"


class LinearModel(NamedTuple):
    """A linear function of rows: one score for each class, or one number.

    Attributes
    ----------
    vectorizer : FragmentVectorizer
        Makes the rows.
    weights : array or sparse matrix
        One row for each score, one column for each column of the rows.
    bias : array
        One number for each score.
    classes : list, optional
        In the order of the scores; two classes have one score, which is positive for the second. None for a
        model that predicts numbers.
    """

    vectorizer: FragmentVectorizer
    weights: Any
    bias: np.ndarray
    classes: list[Any] | None

    @classmethod
    def of(cls, model: Any) -> Self:
        """Take a fitted pipeline apart, or raise where it is something else."""
        if isinstance(model, cls):
            return model
        if not isinstance(model, Pipeline):
            raise ParameterError(f"what can be explained is {WANTED}, not {type(model).__name__}")
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
        if len(steps) != 2 or not isinstance(steps[0], FragmentVectorizer):
            named = ", ".join(type(step).__name__ for step in steps)
            raise ParameterError(f"what can be explained is {WANTED}, not one of {named}")
        vectorizer, linear = steps
        check_is_fitted(linear)
        if not (hasattr(linear, "coef_") and hasattr(linear, "intercept_")):
            raise ParameterError(f"{type(linear).__name__} has no weights (coef_, intercept_): take {WANTED}")
        weights = linear.coef_ if linear.coef_.ndim == 2 else linear.coef_[None, :]
        bias = np.broadcast_to(np.atleast_1d(np.asarray(linear.intercept_, float)), weights.shape[:1])
        classes = np.asarray(linear.classes_).tolist() if hasattr(linear, "classes_") else None
        if classes is None and weights.shape[0] != 1:
            raise ParameterError(f"{type(linear).__name__} predicts several numbers: fit one model for each")
        return cls(vectorizer, weights, bias, classes)

    def weights_at(self, columns: np.ndarray) -> np.ndarray:
        """Return the weights of some columns, one row for each score, in float64."""
        if isinstance(self.weights, np.ndarray):
            return self.weights[:, columns].astype(float)
        found = np.zeros((self.weights.shape[0], columns.size))
        matrix = self.weights.tocsr()
        matrix.sum_duplicates()  # and sort columns, which is nothing to do as a rule
        for row, (start, end) in enumerate(zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)):
            known = matrix.indices[start:end]
            rank = np.searchsorted(known, columns)
            there = rank < np.searchsorted(known, columns, side="right")
            found[row, there] = matrix.data[start + rank[there]]
        return found

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
        number = int(self.best(scores)[0]) if wanted is None else _number(wanted, self.classes)
        if self.bias.size == 1:
            return number, 0, 1.0 if number == 1 else -1.0
        return number, number, 1.0


def _number(wanted: Any, classes: Sequence[Any]) -> int:
    if wanted not in classes:
        raise ParameterError(f"there is no class {wanted!r}: choose one of {', '.join(map(repr, classes))}")
    return list(classes).index(wanted)
