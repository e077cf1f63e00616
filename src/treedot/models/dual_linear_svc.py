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
from treedot.models.training.one_vs_rest import one_vs_rest
from treedot.models.training.sample_weight import checked_sample_weight
from treedot.models.training.train import make_trainer, warn_of_gap
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
      memory grows with the number of non-zeros, not with the number of columns.

    Parameters
    ----------
    C : float, default=10.0
        The cost of errors. The default suits rows of norm 1.
    tol : float, default=0.0001
        Training ends when the duality gap is at most this share of the objective. The default gives the
        weights to two decimals, like ``LinearSVC``; 1e-16 gives at least six, for any order of the rows, and
        takes several times as long.
    max_passes : int, default=10000
        The largest number of passes over the examples. If it is too small, for example because rows are not
        scaled, a ``ConvergenceWarning`` is issued.
    random_state : int, default=0
        The seed of the order in which examples are visited.
    n_jobs : int, default=None
        The number of threads for dot products and for training; -1 uses all cores.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes.
    coef_ : array or sparse matrix of shape (n_classes, n_features), or (1, n_features) for two classes
        The weights w. If the training rows are sparse, this is a sparse matrix that holds only the columns
        that occur in training.
    intercept_ : array of shape (n_classes,), or (1,) for two classes
        The biases b.

    See Also
    --------
    TreeClassifier : Classify trees, with λ and C chosen by cross-validation.
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
        """Train one support vector machine per class, or a single one for two classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            The classes.
        sample_weight : array of shape (n_samples,) or float, default=None
            The factor of C for each row; None means 1 for all. A row of weight 2 counts as two copies, and a
            row of weight 0 is ignored: a class whose rows all have weight 0 is missing from ``classes_``.

        Returns
        -------
        DualLinearSVC
            The fitted classifier.

        Raises
        ------
        ParameterError
            If X holds trees, if a weight is negative or not finite, if all weights are 0, or if fewer than
            two classes are left.

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
        """Return the scores of every row, one per class; for two classes, only the score of the second.

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
        else:  # class by class, since scipy would first copy the transposed weights
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
            "expected rows, found trees: use make_pipeline(FragmentVectorizer(), DualLinearSVC())"
        )
    if isinstance(X, Vectors):
        raise ParameterError("expected a matrix, found Vectors: give X.matrix")


def _sparse_weights(coef: np.ndarray, columns: np.ndarray, width: int) -> Any:
    """Return the weights of ``columns`` as a sparse matrix of ``width`` columns."""
    indptr = np.arange(len(coef) + 1) * columns.size
    return csr_matrix((coef.ravel(), np.tile(columns, len(coef)), indptr), shape=(len(coef), width))


def _dense_weights(coef: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that have a weight for any class, and their weights as a dense array."""
    if isinstance(coef, np.ndarray):
        return np.arange(coef.shape[1]), coef
    columns = coef.indices[: coef.indptr[1]]
    shape = coef.shape[0], columns.size
    # fit gives all classes the same columns.
    if coef.nnz == shape[0] * shape[1] and (coef.indices.reshape(shape) == columns).all():
        return columns, coef.data.reshape(shape)
    columns = np.unique(coef.indices)
    return columns, _with_columns(coef, columns).toarray()


def _with_columns(X: Any, columns: np.ndarray) -> Any:
    """Return the rows restricted to ``columns``."""
    if isinstance(X, np.ndarray):
        return X if columns.size == X.shape[1] else X[:, columns]
    return with_columns(X, columns)
