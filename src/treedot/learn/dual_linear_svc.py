"""A linear support vector machine that is trained on dot products, for rows of many columns."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from treedot.errors import ParameterError
from treedot.learn.one_vs_rest import one_vs_rest, train_svms
from treedot.model.linear_model import best_class
from treedot.model.model_input import with_columns
from treedot.parameters import checked_positive
from treedot.vectors.products import dot_products
from treedot.vectors.vectors import Vectors, are_trees


class DualLinearSVC(ClassifierMixin, BaseEstimator):
    """A linear support vector machine for fewer examples than dimensions.

    It solves the dual problem on the dot products of the examples, one class against the rest, and turns the
    solution into weights, ``w = Σ αᵢ yᵢ xᵢ`` over the support vectors: a prediction costs one pass over a
    row, like ``LinearSVC``'s, while training on thousands of tree vectors is many times faster. The decision
    function is ``w · x + b``. Of sparse rows, only the columns that occur in training
    get weights, so that memory follows the non-zeros, whatever the number of columns.

    Parameters
    ----------
    C : float
        The cost of errors. The default suits rows of norm 1.
    n_jobs : int, optional
        Threads for dot products and for training; -1 for all cores.

    Attributes
    ----------
    classes_ : array
        The classes.
    coef_ : array or sparse matrix
        The weights w, one row for each class (one in all for two classes); of sparse rows a sparse matrix,
        with weights for the columns that occur in training alone.
    intercept_ : array
        The biases b, one for each row of ``coef_``.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treedot import FragmentVectorizer, DualLinearSVC
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
    >>> model = make_pipeline(FragmentVectorizer(), DualLinearSVC())
    >>> print(*model.fit(trees, ["S", "S", "T", "T"]).predict(["(T (A e) (C e))"]))
    T
    """

    def __init__(self, *, C: float = 10.0, n_jobs: int | None = None) -> None:
        self.C = C
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Train one support vector machine per class; one in all for two classes."""
        cost = checked_positive("C", self.C)
        _check_rows(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
        self.classes_, sides = one_vs_rest(y, X.shape[0])
        trained = train_svms(dot_products(X, n_jobs=self.n_jobs), sides, cost, self.n_jobs)
        columns, narrow = _used_columns(X)
        weights = [svm.dual_coef_[0] @ narrow[svm.support_] for svm in trained]
        coef = np.array([np.asarray(weight, X.dtype).ravel() for weight in weights])
        self.coef_ = coef if isinstance(X, np.ndarray) else _sparse_weights(coef, columns, X.shape[1])
        self.intercept_ = np.array([float(svm.intercept_[0]) for svm in trained])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of every row for each class, or for the second of two."""
        check_is_fitted(self)
        _check_rows(X)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))
        columns, coef = _dense_weights(self.coef_)
        X = _with_columns(X, columns)
        if isinstance(X, np.ndarray):
            scores = X @ coef.T
        else:  # class by class: scipy would first copy all weights, transposed
            scores = np.stack([X @ weights for weights in coef], axis=1)
        scores = scores.astype(float) + self.intercept_
        return scores.ravel() if self.classes_.size == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest score."""
        scores = self.decision_function(X)
        return best_class(self.classes_, scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _check_rows(X: Any) -> None:
    if are_trees(X):
        raise ParameterError(
            "these are trees, not rows: make_pipeline(FragmentVectorizer(), DualLinearSVC()) takes trees"
        )
    if isinstance(X, Vectors):
        raise ParameterError("give the matrix of these Vectors: X.matrix")


def _used_columns(X: Any) -> tuple[np.ndarray, Any]:
    """Return which columns of rows are in use (all, of dense ones), and the rows with these alone."""
    if isinstance(X, np.ndarray):
        return np.arange(X.shape[1]), X
    columns = np.unique(X.indices)
    return columns, _with_columns(X, columns)


def _sparse_weights(coef: np.ndarray, columns: np.ndarray, width: int) -> Any:
    """Return weights of some columns as a sparse matrix over all."""
    indptr = np.arange(len(coef) + 1) * columns.size
    return csr_matrix((coef.ravel(), np.tile(columns, len(coef)), indptr), shape=(len(coef), width))


def _dense_weights(coef: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that have weights for any class, and the weights of these."""
    if isinstance(coef, np.ndarray):
        return np.arange(coef.shape[1]), coef
    columns = coef.indices[: coef.indptr[1]]
    shape = coef.shape[0], columns.size
    if coef.nnz == shape[0] * shape[1] and (coef.indices.reshape(shape) == columns).all():  # as fit left them
        return columns, coef.data.reshape(shape)
    columns = np.unique(coef.indices)
    return columns, _with_columns(coef, columns).toarray()


def _with_columns(X: Any, columns: np.ndarray) -> Any:
    """Return rows with some of their columns alone."""
    if isinstance(X, np.ndarray):
        return X if columns.size == X.shape[1] else X[:, columns]
    return with_columns(X, columns)
