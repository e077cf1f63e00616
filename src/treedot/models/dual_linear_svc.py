"""A linear support vector machine for vectors of many dimensions, trained in the dual."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from treedot.errors import ParameterError
from treedot.models.inputs.model_input import with_columns
from treedot.models.linear_model import best_class
from treedot.models.training.folds import narrowed
from treedot.models.training.model_selection import make_trainer, warn_of_gap
from treedot.models.training.one_vs_rest import one_vs_rest
from treedot.models.training.sample_weight import checked_sample_weight
from treedot.parameters import checked_positive
from treedot.vectors.products import dot_products
from treedot.vectors.vectors import Vectors, are_trees


class DualLinearSVC(ClassifierMixin, BaseEstimator):
    """A linear support vector machine for vectors of more dimensions than there are examples.

    For each class against the rest, with sides y = ±1, w and b minimise
    ``½ (‖w‖² + b²) + C Σ max(0, 1 - y (w · x + b))²``, the problem of ``LinearSVC`` and ``TreeClassifier``.
    The dual problem is solved by coordinate descent:

    - Dense vectors of more dimensions than there are examples, such as those of
      ``DistributedTreeVectorizer``: on the matrix of their dot products, which takes ``8 n_samples²`` bytes.
      Training takes a fraction of the time of ``LinearSVC``.
    - All other rows, such as the sparse ones of ``FragmentVectorizer``: on the rows themselves, as in
      ``LinearSVC``, in about the same time. Only the columns that occur in training get weights, so that
      memory follows the non-zeros, whatever the number of columns.

    Parameters
    ----------
    C : float, default=10.0
        The cost of errors. The default suits rows of norm 1.
    tol : float, default=0.0001
        Training ends when the duality gap is at most this share of what is minimised. The default gives two
        decimals of the weights, as ``LinearSVC`` does; 1e-16 gives at least six, whatever the order of the
        rows, and takes several times as long.
    max_passes : int, default=10000
        The largest number of passes over the examples; a ``ConvergenceWarning`` says where it was too small,
        as for rows that are not scaled.
    random_state : int, default=0
        The seed of the order in which examples are visited.
    n_jobs : int, default=None
        Threads for dot products and for training; -1 for all cores.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes.
    coef_ : array or sparse matrix of shape (n_classes, n_features), or (1, n_features) for two classes
        The weights w. For sparse rows a sparse matrix, with weights only for the columns that occur in
        training.
    intercept_ : array of shape (n_classes,), or (1,) for two classes
        The biases b.

    See Also
    --------
    TreeClassifier : Trees to classes, with λ and C by cross-validation.
    sklearn.svm.LinearSVC : The same problem, with a weight for every column.

    References
    ----------
    C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan (2008), *A dual coordinate descent
    method for large-scale linear SVM*, ICML.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treedot import DistributedTreeVectorizer
    >>> from treedot.models import DualLinearSVC
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
    >>> model = make_pipeline(DistributedTreeVectorizer(), DualLinearSVC())
    >>> print(*model.fit(trees, ["S", "S", "T", "T"]).predict(["(T (A e) (C e))"]))
    T
    """

    def __init__(
        self,
        *,
        C: float = 10.0,
        tol: float = 1e-4,
        max_passes: int = 10_000,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_passes = max_passes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train one support vector machine per class; one in all for two classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            The classes.
        sample_weight : array of shape (n_samples,) or float, default=None
            The factor of C of each row; None is 1 for all. A weight of 2 counts as two copies of the row, and
            a weight of 0 as if it were not there: a class all of whose rows have weight 0 is not one of
            ``classes_``.

        Returns
        -------
        DualLinearSVC
            The fitted classifier.

        Raises
        ------
        ParameterError
            If X holds trees; if a weight is negative or not finite, or all are 0; if fewer than two classes
            are left.

        See Also
        --------
        TreeClassifier.fit : Train on trees.
        """
        cost, trainer = checked_positive("C", self.C), make_trainer(self)
        _check_rows(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
        weight = checked_sample_weight(sample_weight, X.shape[0])
        if not weight.all():
            used = np.flatnonzero(weight)
            X, y, weight = X[used], y[used], weight[used]
        self.classes_, sides = one_vs_rest(y, X.shape[0])
        costs = np.full((len(sides), 2), cost)
        if isinstance(X, np.ndarray) and X.shape[0] < X.shape[1]:
            exact = X.astype(np.float64)
            fit = trainer(dot_products(exact, n_jobs=self.n_jobs), sides.T, costs, weight, self.n_jobs)
            self.coef_ = (fit.weights.T @ exact).astype(X.dtype)
        else:
            columns, narrow = narrowed(X)
            fit = trainer(narrow, sides.T, costs, weight, self.n_jobs)
            coef = np.ascontiguousarray(fit.weights.T, X.dtype)
            self.coef_ = coef if isinstance(X, np.ndarray) else _sparse_weights(coef, columns, X.shape[1])
        self.intercept_ = fit.bias
        warn_of_gap(fit, self.tol)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of every row for each class, or for the second of two.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes
            ``w · x + b``.
        """
        check_is_fitted(self)
        _check_rows(X)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))
        columns, coef = _dense_weights(self.coef_)
        X = _with_columns(X, columns)
        scores: np.ndarray
        if isinstance(X, np.ndarray):
            scores = X @ coef.T
        else:  # class by class: scipy would first copy all weights, transposed
            scores = np.stack([X @ weights for weights in coef], axis=1)
        scores = scores.astype(float) + self.intercept_
        return scores.ravel() if self.classes_.size == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest score.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,)
            The class of every row.
        """
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
