"""``TreeRegressor``: predict numbers from trees, with settings chosen by cross-validation."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from treedot._runtime.array_types import FloatArray
from treedot.errors import ParameterError, SourceError
from treedot.kernels.tree_kernel import TreeKernel
from treedot.models.inputs.table import check_trees
from treedot.models.inputs.vectorizer_input import to_stored
from treedot.models.linear_model import LinearModel
from treedot.models.training.candidates import checked_settings, input_candidates, setting_values
from treedot.models.training.folds import checked_groups
from treedot.models.training.ridge import RidgeFit
from treedot.models.training.ridge_selection import (
    RegressionTask,
    RegressionTrial,
    checked_targets,
    make_ridge_trainer,
    shuffled_folds,
    try_all_alphas,
    warn_of_iterations,
)
from treedot.models.training.sample_weight import checked_sample_weight
from treedot.models.training.train import train_inputs
from treedot.models.tree_estimator import TreeEstimator
from treedot.parameters import checked_integer, checked_positive

DECAYS = (0.1, 0.2, 0.4)
ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0)


class TreeRegressor(RegressorMixin, TreeEstimator):
    """Predict numbers from trees by ridge regression on sparse rows of fragments.

    Predictions are ``w · x + b``, where x is the row of an example and w, b minimise
    ``Σ (y - w · x - b)² + α ‖w‖²``, as in scikit-learn's ``Ridge``. If several λ or α are given,
    cross-validation chooses those with the largest R². Trees are encoded once for every λ, one run of
    conjugate gradients solves for all α, and only the columns that occur get weights.

    An example is a tree, or the row of a table with several trees, numbers and texts, as in
    ``TreeClassifier``. Rows of trees have length 1 by default, so a model sees which fragments a tree has,
    but hardly how many. To predict numbers that grow with the tree, such as its size, use
    ``vectorizer=FragmentVectorizer(n_features=2**30, normalize=False, damping="linear")``.

    Parameters
    ----------
    tree_columns, number_columns, text_columns : list of str, default=None
        The columns of a table that make up an example; by default, an example is a tree. If only number or
        text columns are named, the trees are read from the column ``tree``.
    pair_columns : list of two str, default=None
        Two more tree columns that are a pair, such as a text and a hypothesis. Placeholders replace the words
        that both trees of a pair have, and the lexical overlap of the pair becomes a number beside the trees
        (``PairTransformer`` describes both).
    vectorizer : transformer, default=None
        Turns trees into rows; by default a ``FragmentVectorizer`` with ``2**30`` columns, in which fragments
        hardly ever collide. Every tree column gets its own clone. It may be a ``Pipeline``; or, if X is a
        data frame and no columns are named above, a ``ColumnTransformer``.
    kernel : TreeKernel, default=None
        An exact kernel to use instead of a vectorizer, such as ``SubsetTreeKernel(normalize=True)``. The same
        problem is solved on the Gram matrix (for several columns, on the sum of their Gram matrices), and
        the model keeps all training trees. Use at most a few thousand.
    decay : float, sequence of float, or None, default=(0.1, 0.2, 0.4)
        The decay λ, or several values to choose from. It is set in nested vectorizers, too. None keeps the
        decay of the vectorizer or kernel.
    idf : bool, sequence of bool or None, default=None
        Whether columns are weighted by their inverse document frequency, or both to choose from. None keeps
        the setting of the vectorizer, which is False by default.
    damping : {"linear", "sqrt", "log1p"}, sequence of these, or None, default=None
        The function of the number of times that a fragment occurs, or several to choose from. None keeps the
        setting of the vectorizer, which is ``"sqrt"`` by default.
    words : bool or sequence of bool, default=False
        Whether the words of the leaves, and the pairs of neighbouring words, become columns beside the
        fragments, or both to choose from. Identifiers are split at underscores and capitals, and case is
        ignored. Each tree's words have a row of length 1 of their own.
    labels : bool or sequence of bool, default=False
        Whether the labels of the inner nodes become columns likewise, or both to choose from.
    alpha : float or sequence of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        The strength α of the penalty, or several values to choose from; the largest of equally good values
        wins.
    cv : int, default=5
        The number of folds of the cross-validation. Examples are shuffled first, so that the order of a file
        does not matter.
    tol : float, default=0.0001
        Training ends when the predictions for the training examples are exact up to this share of the
        standard deviation of y, as a root mean square.
    max_iter : int, default=1000
        The largest number of iterations. If it is too small, a ``ConvergenceWarning`` is issued.
    random_state : int, default=0
        The seed of the shuffle that divides examples into folds; folds of groups are not shuffled.
    n_jobs : int, default=None
        The number of threads; -1 uses all cores. The model does not depend on it.

    Attributes
    ----------
    decay_, idf_, damping_, words_, labels_, alpha_ : float, bool, str, bool, bool, float
        The chosen settings; None for a parameter that the vectorizer or kernel determines.
    selection_ : list of RegressionTrial
        The settings that were tried, with their R² on the test examples of all folds together; empty if there
        was only one.
    inputs_ : list of ModelInput
        The inputs that make the rows: one for each tree column, with its ``vectorizer`` or ``kernel``, one
        for all numbers, and one for each text column.
    columns_, weights_, intercept_ : arrays
        The columns that have weights, in ascending order; their weights, of shape (n_columns, 1); and the
        bias, of shape (1,).
    n_iter_ : int
        The number of iterations of the last training.

    See Also
    --------
    TreeClassifier : Predicts classes from the same rows.
    LinearModel : The trained model without scikit-learn.
    sklearn.linear_model.Ridge : Solves the same problem on rows.

    References
    ----------
    A. E. Hoerl and R. W. Kennard (1970), *Ridge regression: biased estimation for nonorthogonal problems*,
    Technometrics 12.

    B. Jegerlehner (1996), *Krylov space solvers for shifted linear systems*, arXiv:hep-lat/9612014.

    Examples
    --------
    How many words has a sentence? Each word is the only child of its tag.

    >>> from treedot import FragmentVectorizer, TreeRegressor, read_trees
    >>> questions = read_trees("docs/examples/questions.tsv")
    >>> words = [str(tree).count(" ") - str(tree).count(" (") for tree in questions]
    >>> counts = FragmentVectorizer(n_features=2**30, normalize=False, damping="linear")
    >>> model = TreeRegressor(vectorizer=counts).fit(questions[:200], words[:200])
    >>> print(f"{model.score(questions[200:], words[200:]):.2f}")
    1.00
    """

    def __init__(
        self,
        *,
        tree_columns: Any = None,
        number_columns: Any = None,
        text_columns: Any = None,
        pair_columns: Any = None,
        vectorizer: Any = None,
        kernel: TreeKernel | None = None,
        decay: Any = DECAYS,
        idf: Any = None,
        damping: Any = None,
        words: Any = False,
        labels: Any = False,
        alpha: Any = ALPHAS,
        cv: int = 5,
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.tree_columns = tree_columns
        self.number_columns = number_columns
        self.text_columns = text_columns
        self.pair_columns = pair_columns
        self.vectorizer = vectorizer
        self.kernel = kernel
        self.decay = decay
        self.idf = idf
        self.damping = damping
        self.words = words
        self.labels = labels
        self.alpha = alpha
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Self:
        """Choose the settings, then train with them on all examples.

        Parameters
        ----------
        X : source of trees, or table
            As ``read_trees`` takes it; with named columns, a frame, an Arrow table, a dictionary of columns,
            a ``Forest`` with columns or a file.
        y : sequence of float of length n_examples
            The number to predict for each example.
        sample_weight : sequence of float of length n_examples, or float, default=None
            The factor of the squared error of each example; None means 1 for all. An example of weight 2
            counts as two copies, and an example of weight 0 is ignored. Weights also apply to the R² of the
            cross-validation and to the means and deviations of numbers. The folds, and vectorizers that learn
            from trees (``idf=True``), count every example once.
        groups : sequence of length n_examples, default=None
            The group of each example, such as its document; a group is never on both sides of a fold. With a
            single ``decay`` and a single ``alpha`` there are no folds, and groups have no effect.
        progress : callable, default=None
            Called with the number of finished trials and the total, counting every fold.

        Returns
        -------
        TreeRegressor
            The fitted regressor.

        Raises
        ------
        ParameterError
            If a setting is invalid, if ``y``, ``sample_weight`` or ``groups`` has the wrong length, if a
            number of ``y`` is missing or not finite, if a weight is negative or not finite, or if all weights
            are 0.
        SourceError
            If X cannot be read.

        See Also
        --------
        sklearn.linear_model.Ridge : Solves the same problem on rows.
        """
        choices, alphas = input_candidates(self), setting_values("alpha", self.alpha, checked_positive)
        trainer = make_ridge_trainer(self)
        table = self._table(X, self._columns())
        check_trees(table, self._columns())
        groups = None if groups is None else checked_groups(groups, len(table))
        y, weight = checked_targets(y, len(table)), checked_sample_weight(sample_weight, len(table))
        used = np.flatnonzero(weight)
        task = RegressionTask(table, y, weight)
        if used.size < len(table):
            task = RegressionTask(table.take(used), y[used], weight[used])
        self.selection_, chosen = list[RegressionTrial](), 0
        if len(choices) * len(alphas) > 1:
            own = None if groups is None else groups[used]
            folds = shuffled_folds(used.size, self.cv, self.random_state, own)
            self.selection_ = try_all_alphas(choices, alphas, task, folds, trainer, self.n_jobs, progress)
            order = range(len(self.selection_))
            chosen = max(order, key=lambda k: (self.selection_[k].r2, self.selection_[k].alpha))
        candidate, self.alpha_ = choices[chosen // len(alphas)], alphas[chosen % len(alphas)]

        def solve(rows: Any) -> RidgeFit:
            return trainer(rows, task.y, [self.alpha_], task.sample_weight)

        trained = train_inputs(candidate, task, solve, self.n_jobs)
        self._set_settings(candidate.settings)
        self.inputs_, self.columns_ = trained.inputs, trained.columns
        self.weights_, self.intercept_ = trained.weights.astype(np.float32), trained.fit.bias
        self.n_iter_ = trained.fit.n_iter
        warn_of_iterations(trained.fit)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted number of every example.

        Parameters
        ----------
        X : source of trees, or table
            As ``fit`` takes it.

        Returns
        -------
        array of shape (n_examples,)
            ``w · x + b``.
        """
        return self._scores(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², the share of the variance of y that the predictions explain.

        Parameters
        ----------
        X : source of trees, or table
            As ``fit`` takes it.
        y : sequence of float of length n_examples
            The true numbers.
        sample_weight : sequence of float of length n_examples, default=None
            The weight of each example.

        Returns
        -------
        float
            R²: at most 1, and 0 for a constant prediction of the mean.
        """
        return float(super().score(X, y, sample_weight))

    def to_model(self, facts: dict[str, Any] | None = None) -> LinearModel:
        """Return everything that a prediction needs, without scikit-learn.

        Parameters
        ----------
        facts : dict of str to object, default=None
            JSON values to store with the model.

        Returns
        -------
        LinearModel
            The trained model, which predicts numbers: its ``classes`` are None.
        """
        check_is_fitted(self)
        known = {
            "alpha": self.alpha_,
            **self._settings._asdict(),
            "iterations": self.n_iter_,
            "trials": [trial._asdict() for trial in self.selection_],
        }
        return LinearModel(
            [to_stored(each) for each in self.inputs_], None, self.columns_, self.weights_, self.intercept_,
            {"training": known, **(facts or {})},
        )  # fmt: skip

    @classmethod
    def _of_model(cls, model: LinearModel, path: str | os.PathLike[str]) -> Self:
        try:
            training = model.facts["training"]
            alpha, settings = checked_positive("alpha", training["alpha"]), checked_settings(training)
            n_iter = checked_integer("iterations", training["iterations"], at_least=0)
            trials = [_checked_trial(**trial) for trial in training["trials"]]
        except (KeyError, TypeError, ValueError, OverflowError):
            raise SourceError(
                f"cannot read the model {path}: it lacks the settings of a TreeRegressor; "
                "use LinearModel.load"
            ) from None
        if model.classes is not None:
            raise SourceError(f"cannot read the model {path}: it predicts classes; use TreeClassifier.load")
        made = cls._with_weights(model, **settings._asdict(), alpha=alpha)
        made.alpha_, made.n_iter_, made.selection_ = alpha, n_iter, trials
        made._set_settings(settings)
        return made


def _checked_trial(alpha: Any, r2: Any, **stored: Any) -> RegressionTrial:
    if stored.keys() - RegressionTrial._fields:
        raise ParameterError("a trial has unknown entries")
    settings = checked_settings(stored)._asdict()
    return RegressionTrial(alpha=checked_positive("alpha", alpha), r2=float(r2), **settings)
