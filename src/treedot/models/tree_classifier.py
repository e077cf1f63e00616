"""``TreeClassifier``: train a linear model of trees, with settings chosen by cross-validation."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from treedot._runtime.array_types import FloatArray, IntArray
from treedot.errors import SourceError
from treedot.kernels.tree_kernel import TreeKernel
from treedot.models.classes import check_classes
from treedot.models.inputs.table import Table, check_trees
from treedot.models.inputs.vectorizer_input import to_stored
from treedot.models.linear_model import LinearModel, best_class
from treedot.models.training.candidates import Settings, candidates, checked_settings
from treedot.models.training.folds import Task, checked_groups, split_folds
from treedot.models.training.model_selection import Trial, make_trainer, select, train, warn_of_gap
from treedot.models.training.one_vs_rest import checked_classes, class_costs, one_vs_rest
from treedot.models.training.sample_weight import checked_sample_weight
from treedot.models.tree_estimator import TreeEstimator
from treedot.parameters import checked_integer, checked_positive, checked_share

DECAYS = (0.1, 0.2, 0.4)
COSTS = (1.0, 10.0, 100.0)


class TreeClassifier(ClassifierMixin, TreeEstimator):
    """Classify trees by a linear support vector machine on sparse rows of fragments.

    Scores are ``w · x + b``, one class against the rest, where x is the row of an example and w, b minimise
    ``½ (‖w‖² + b²) + Σ C max(0, 1 - y (w · x + b))²``, with the squared hinge loss of ``LinearSVC``. If
    several λ or C are given, cross-validation chooses those with the best accuracy. Trees are encoded once
    for every λ, and only the columns that occur get weights.

    An example is a tree, or the row of a table with several trees, numbers and texts. In a table, x is the
    concatenation of one part per column: for a tree, its row at length 1; for a number, its standard score;
    for a text, its words and pairs of words at length 1. So all parts have about the same weight at first.

    For probabilities, use ``sklearn.calibration.CalibratedClassifierCV``.

    Parameters
    ----------
    tree_columns, number_columns, text_columns : list of str, default=None
        The columns of a table that make up an example; by default, an example is a tree. If only number or
        text columns are named, the trees are read from the column ``tree``.
    vectorizer : transformer, default=None
        Turns trees into rows; by default a ``FragmentVectorizer`` with ``2**30`` columns, in which fragments
        hardly ever collide. Every tree column gets its own clone. It may be a ``Pipeline``; or, if X is a
        data frame and no columns are named above, a ``ColumnTransformer``.
    kernel : TreeKernel, default=None
        An exact kernel to use instead of a vectorizer, such as ``SubsetTreeKernel(normalize=True)``. The same
        problem is solved on the Gram matrix (for several columns, on the sum of their Gram matrices), and
        the model keeps the support vectors. Use a normalised kernel, which suits the default C, and at most
        a few thousand trees.
    decay : float, sequence of float, or None, default=(0.1, 0.2, 0.4)
        The decay λ, or several values to choose from. It is set in nested vectorizers, too. None keeps the
        decay of the vectorizer or kernel.
    idf : bool, sequence of bool, or None, default=None
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
    C : float or sequence of float, default=(1.0, 10.0, 100.0)
        The cost of errors, or several values to choose from; the smallest of equally good values wins.
    cv : int, default=5
        The number of folds of the cross-validation, stratified by class.
    class_weight : dict or "balanced", default=None
        The factor of C for each class, as in ``LinearSVC``.
    tol : float, default=0.01
        Training ends when the duality gap is at most this share of the objective.
    max_passes : int, default=1000
        The largest number of passes over the rows. If it is too small, a ``ConvergenceWarning`` is issued.
    random_state : int, default=0
        The seed of the order in which examples are visited.
    n_jobs : int, default=None
        The number of threads; -1 uses all cores. The model does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes.
    decay_, idf_, damping_, words_, labels_, C_ : float, bool, str, bool, bool, float
        The chosen settings; None for a parameter that the vectorizer or kernel determines.
    trials_ : list of Trial
        The settings that were tried, with their accuracy; empty if there was only one.
    inputs_ : list of ModelInput
        The inputs that make the rows: one for each tree column, with its ``vectorizer`` or ``kernel``, one
        for all numbers, and one for each text column.
    columns_, weights_, intercept_ : arrays
        The columns that have weights, in ascending order; their weights, one column for each class (a single
        one for two classes); and the biases.
    gap_ : float
        The largest duality gap of any class, as a share of the objective.

    See Also
    --------
    LinearModel : The trained model without scikit-learn.
    train_files : Train on more trees than memory holds.
    DualLinearSVC : The same problem on rows, in a pipeline.

    References
    ----------
    C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan (2008), *A dual coordinate descent
    method for large-scale linear SVM*, ICML.

    Examples
    --------
    >>> from treedot import TreeClassifier, read_trees
    >>> questions = read_trees("docs/examples/questions.tsv")
    >>> model = TreeClassifier(decay=(0.2, 0.4), C=(1, 10)).fit(questions, questions.columns["label"])
    >>> print(*model.predict(["(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))"]))
    person

    Two trees and a number:

    >>> pairs = {
    ...     "text": ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a))", "(T (C c))"],
    ...     "hypothesis": ["(S (A a))", "(S (B c))", "(S (B b))", "(S (A a))"],
    ...     "overlap": [1.0, 1.0, 0.0, 0.1],
    ... }
    >>> model = TreeClassifier(
    ...     tree_columns=["text", "hypothesis"], number_columns=["overlap"], decay=0.4, C=1
    ... )
    >>> print(*model.fit(pairs, ["yes", "yes", "no", "no"]).predict(pairs))
    yes yes no no
    """

    def __init__(
        self,
        *,
        tree_columns: Any = None,
        number_columns: Any = None,
        text_columns: Any = None,
        vectorizer: Any = None,
        kernel: TreeKernel | None = None,
        decay: Any = DECAYS,
        idf: Any = None,
        damping: Any = None,
        words: Any = False,
        labels: Any = False,
        C: Any = COSTS,
        cv: int = 5,
        class_weight: Any = None,
        tol: float = 1e-2,
        max_passes: int = 1000,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.tree_columns = tree_columns
        self.number_columns = number_columns
        self.text_columns = text_columns
        self.vectorizer = vectorizer
        self.kernel = kernel
        self.decay = decay
        self.idf = idf
        self.damping = damping
        self.words = words
        self.labels = labels
        self.C = C
        self.cv = cv
        self.class_weight = class_weight
        self.tol = tol
        self.max_passes = max_passes
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
        y : sequence of length n_examples
            The class of each example.
        sample_weight : sequence of float of length n_examples, or float, default=None
            The factor of C for each example; None means 1 for all. An example of weight 2 counts as two
            copies, and an example of weight 0 is ignored: a class whose examples all have weight 0 is missing
            from ``classes_``. Weights also apply to the accuracy of the cross-validation, to
            ``class_weight="balanced"``, and to the means and deviations of numbers. The folds, and
            vectorizers that learn from trees (``idf=True``), count every example once.
        groups : sequence of length n_examples, default=None
            The group of each example, such as its document; a group is never on both sides of a fold. With a
            single ``decay`` and a single ``C`` there are no folds, and groups have no effect.
        progress : callable, default=None
            Called with the number of finished trials and the total, counting every fold.

        Returns
        -------
        TreeClassifier
            The fitted classifier.

        Raises
        ------
        ParameterError
            If a setting is invalid, if ``y``, ``sample_weight`` or ``groups`` has the wrong length, if a
            weight is negative or not finite, if all weights are 0, or if fewer than two classes are left.
        SourceError
            If X cannot be read.

        See Also
        --------
        train_files : Train on more trees than memory holds.
        sklearn.svm.LinearSVC : Solves the same problem on rows.
        """
        (choices, costs), trainer = candidates(self), make_trainer(self)
        table = self._table(X, self._columns())
        check_trees(table, self._columns())
        groups = None if groups is None else checked_groups(groups, len(table))
        task, used = self._task(table, y, checked_sample_weight(sample_weight, len(table)))
        self.trials_, chosen = list[Trial](), 0
        if len(choices) * len(costs) > 1:
            folds = split_folds(task.y, self.cv, None if groups is None else groups[used])
            self.trials_, chosen = select(choices, costs, task, folds, trainer, self.n_jobs, progress)
        candidate, self.C_ = choices[chosen // len(costs)], costs[chosen % len(costs)]
        trained = train(candidate, self.C_, task, trainer, self.n_jobs)
        self.classes_ = task.classes
        self._set_settings(candidate.settings)
        self.inputs_, self.columns_ = trained.inputs, trained.columns
        self.weights_ = trained.weights.astype(np.float32)
        self.intercept_, self.gap_ = trained.fit.bias, float(trained.fit.gap.max())
        warn_of_gap(trained.fit, self.tol)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores of every example, one per class; for two classes, only the score of the second.

        Parameters
        ----------
        X : source of trees, or table
            As ``fit`` takes it.

        Returns
        -------
        array of shape (n_examples, n_classes), or (n_examples,) for two classes
            ``w · x + b``.
        """
        return self._scores(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest score, for every example.

        Parameters
        ----------
        X : source of trees, or table
            As ``fit`` takes it.

        Returns
        -------
        array of shape (n_examples,)
            The predicted classes.
        """
        scores = self.decision_function(X)
        return best_class(self.classes_, scores)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of examples whose class is predicted correctly.

        Parameters
        ----------
        X : source of trees, or table
            As ``fit`` takes it.
        y : sequence of length n_examples
            The true classes.
        sample_weight : sequence of float of length n_examples, default=None
            The weight of each example.

        Returns
        -------
        float
            The accuracy, from 0 to 1.
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
            The trained model.
        """
        check_is_fitted(self)
        known = {
            "C": self.C_,
            **self._settings._asdict(),
            "gap": self.gap_,
            "trials": [trial._asdict() for trial in self.trials_],
        }
        return LinearModel(
            [to_stored(each) for each in self.inputs_], self.classes_, self.columns_, self.weights_,
            self.intercept_, {"training": known, **(facts or {})},
        )  # fmt: skip

    @classmethod
    def _of_model(cls, model: LinearModel, path: str | os.PathLike[str]) -> Self:
        try:
            training = model.facts["training"]
            C, gap = checked_positive("C", training["C"]), float(training["gap"])
            settings = checked_settings(training)
            trials = [_checked_trial(**trial) for trial in training["trials"]]
        except (KeyError, TypeError, ValueError, OverflowError):
            raise SourceError(
                f"cannot read the model {path}: it lacks the settings of a TreeClassifier; "
                "use LinearModel.load"
            ) from None
        if model.classes is None:
            raise SourceError(f"cannot read the model {path}: it predicts numbers; use TreeRegressor.load")
        made = cls._with_weights(model, **settings._asdict(), C=C)
        made.classes_ = model.classes
        made.C_, made.gap_, made.trials_ = C, gap, trials
        made._set_settings(settings)
        return made

    def _set_settings(self, settings: Settings) -> None:
        self.decay_, self.idf_, self.damping_, self.words_, self.labels_ = settings

    @property
    def _settings(self) -> Settings:
        return Settings(self.decay_, self.idf_, self.damping_, self.words_, self.labels_)

    def _task(self, table: Table, y: Any, sample_weight: FloatArray) -> tuple[Task, IntArray]:
        """Return the training task without examples of weight 0, and the positions of the others."""
        check_classes(np.asarray(y, object).ravel().tolist())
        y, used = checked_classes(y, len(table)), np.flatnonzero(sample_weight)
        if used.size < len(table):
            table, y, sample_weight = table.take(used), y[used], sample_weight[used]
        classes, sides = one_vs_rest(y, len(table))
        counts = np.bincount(np.unique(y, return_inverse=True)[1], sample_weight)
        costs = class_costs(self.class_weight, classes, counts)
        return Task(table, y, classes, sample_weight, sides.T, costs), used


def _checked_trial(C: Any, accuracy: Any, folds: Any = None, **settings: Any) -> Trial:
    folds = None if folds is None else checked_integer("folds", folds, at_least=1)
    figures = {"C": checked_positive("C", C), "accuracy": checked_share("accuracy", accuracy), "folds": folds}
    return Trial(**figures, **checked_settings(settings)._asdict())
