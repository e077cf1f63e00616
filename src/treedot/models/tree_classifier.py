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
from treedot.models.calibration import IfCalibrated, checked_calibration
from treedot.models.classes import check_classes
from treedot.models.inputs.table import Table, check_trees
from treedot.models.inputs.vectorizer_input import to_stored
from treedot.models.linear_model import LinearModel, best_class
from treedot.models.training.calibrating import calibrated, calibration_folds, held_out_scores
from treedot.models.training.candidates import Candidate, candidates, checked_settings
from treedot.models.training.folds import Fold, Task, checked_groups
from treedot.models.training.model_selection import HeldOut, Selection, selected
from treedot.models.training.one_vs_rest import checked_classes, one_vs_rest
from treedot.models.training.sample_weight import checked_sample_weight
from treedot.models.training.train import (
    Penalty,
    Trainer,
    chosen_scoring,
    make_trainer,
    penalties,
    train,
    warn_of_gap,
)
from treedot.models.training.trials import Trial
from treedot.models.tree_estimator import TreeEstimator
from treedot.parameters import SCORINGS, checked_choice, checked_flag, checked_integer, checked_positive

DECAYS = (0.2, 0.4)


class TreeClassifier(ClassifierMixin, TreeEstimator):
    """Classify trees by a linear support vector machine on sparse rows of fragments.

    Scores are ``w · x + b``, one class against the rest, where x is the row of an example and w, b minimise
    ``½ (‖w‖² + b²) + Σ C max(0, 1 - y (w · x + b))²``, with the squared hinge loss of ``LinearSVC``.
    Cross-validation chooses among all settings that have several values: by default λ, C, and whether words,
    labels and inverse document frequencies help. With more than 12 combinations, successive halving drops
    most after training on a part of the examples. With a single ``decay`` and a single ``C``, a parameter
    that is ``"auto"`` is off, and there is no cross-validation. Only the columns that occur get weights.

    An example is a tree, or the row of a table with several trees, numbers and texts. In a table, x is the
    concatenation of one part per column: for a tree, its row at length 1; for a number, its standard score;
    for a text, its words and pairs of words at length 1. So all parts have about the same weight at first.

    Probabilities are estimated from the scores of held-out examples in the cross-validation. If there is
    nothing to choose, ``calibrate=True`` trains folds for them: see ``predict_proba``.

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
        the model keeps the support vectors. Use a normalised kernel, which suits the default C, and at most
        a few thousand trees.
    decay : float, sequence of float, or None, default=(0.2, 0.4)
        The decay λ, or several values to choose from. It is set in nested vectorizers, too. None keeps the
        decay of the vectorizer or kernel.
    idf : bool, sequence of bool, None or "auto", default="auto"
        Whether columns are weighted by their inverse document frequency, or both to choose from. None keeps
        the setting of the vectorizer, which is False by default. ``"auto"`` means ``(False, True)`` if there
        are several ``decay`` or ``C``, and neither a vectorizer nor a kernel is given; otherwise None.
    damping : {"linear", "sqrt", "log1p"}, sequence of these, or None, default=None
        The function of the number of times that a fragment occurs, or several to choose from. None keeps the
        setting of the vectorizer, which is ``"sqrt"`` by default.
    words : bool, sequence of bool or "auto", default="auto"
        Whether the words of the leaves, and the pairs of neighbouring words, become columns beside the
        fragments, or both to choose from. Identifiers are split at underscores and capitals, and case is
        ignored. Each tree's words have a row of length 1 of their own. ``"auto"`` is as for ``idf``, and
        otherwise False.
    labels : bool, sequence of bool or "auto", default="auto"
        Whether the labels of the inner nodes become columns likewise, or both to choose from.
    C : float, sequence of float or "auto", default="auto"
        The cost of errors, or several values to choose from; the smallest of equally good values wins.
        ``"auto"`` means ``(0.01, 0.1, 1.0, 10.0)``, and with a ``kernel`` also 30.
    cv : int, default=5
        The number of folds of the cross-validation, stratified by class; at most the number of examples of
        the smallest class. If that is 1, nothing can be chosen: a warning says so, λ is 0.4 and C is 10 (or
        the nearest values given), and ``idf`` is used if it may be and there are at least 50 examples.
    scoring : str, default="auto"
        The score by which settings are chosen. ``"auto"`` is the log loss for two classes of which one has at
        least ten times the examples of the other, and the accuracy otherwise. The names are scikit-learn's:
        ``"accuracy"``, ``"balanced_accuracy"``, ``"f1_macro"``, ``"average_precision"`` (for more than two
        classes, the mean over the classes) or ``"neg_log_loss"`` (of the probabilities softmax(t · scores),
        with the temperature t that suits the held-out scores best). It is that of all held-out examples
        together. For two classes and one of the first three, the threshold between the classes is chosen,
        too, if one that is chosen on some folds pays on the others.
    class_weight : dict, "balanced", None or "auto", default="auto"
        The factor of C for each class, as in ``LinearSVC``. ``"auto"`` chooses between None and
        ``"balanced"`` if other settings are chosen and the largest class has at least ten times the examples
        of the smallest; otherwise it is None.
    calibrate : bool or "auto", default="auto"
        Whether to fit what ``predict_proba`` needs. ``"auto"`` does so if cross-validation chooses settings,
        where it costs little. If there is nothing to choose, True trains ``cv`` folds for it, and the fit
        takes about ``cv`` times as long.
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
    balanced_ : bool
        Whether the class weights are balanced.
    scoring_ : str
        The score by which settings were chosen.
    selection_ : list of Trial
        The settings that were tried, the best first; empty if there was only one. A ``Trial`` is a named
        tuple of the settings, the score, the number of folds and of training examples it was measured on,
        the processor time in seconds, and whether it was chosen; ``pandas.DataFrame(model.selection_)`` is a
        table of them. The time is None in a model that was loaded.
    threshold_ : float
        What was subtracted from the bias of two classes, 0 unless another threshold paid.
    inputs_ : list of ModelInput
        The inputs that make the rows: one for each tree column, with its ``vectorizer`` or ``kernel``, one
        for all numbers, and one for each text column.
    columns_, weights_, intercept_ : arrays
        The columns that have weights, in ascending order; their weights, one column for each class (a single
        one for two classes); and the biases.
    calibration_ : Calibration or None
        What turns scores into probabilities; None without calibration, or if no class has two examples.
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
        pair_columns: Any = None,
        vectorizer: Any = None,
        kernel: TreeKernel | None = None,
        decay: Any = DECAYS,
        idf: Any = "auto",
        damping: Any = None,
        words: Any = "auto",
        labels: Any = "auto",
        C: Any = "auto",
        cv: int = 5,
        scoring: str = "auto",
        class_weight: Any = "auto",
        calibrate: Any = "auto",
        tol: float = 1e-2,
        max_passes: int = 1000,
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
        self.C = C
        self.cv = cv
        self.scoring = scoring
        self.class_weight = class_weight
        self.calibrate = calibrate
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
            from ``classes_``. Weights also apply to the score of the cross-validation, to
            ``class_weight="balanced"``, and to the means and deviations of numbers. The folds, and
            vectorizers that learn from trees (``idf=True``), count every example once.
        groups : sequence of length n_examples, default=None
            The group of each example, such as its document; a group is never on both sides of a fold.
            This includes the folds that are trained for ``calibrate`` only.
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
        calibrate = self.calibrate == "auto" or checked_flag("calibrate", self.calibrate)
        table = self._table(X, self._columns())
        check_trees(table, self._columns())
        groups = None if groups is None else checked_groups(groups, len(table))
        task, used = self._task(table, y, checked_sample_weight(sample_weight, len(table)))
        groups = None if groups is None else groups[used]
        several = len(choices) * len(costs) > 1
        self.scoring_ = chosen_scoring(self.scoring, task.counts)
        options = penalties(costs, self.class_weight, task.classes, task.counts, several)
        found = Selection([], 0, 0.0, [])
        if several:
            found = selected(
                choices, options, task, trainer, groups, self.cv, self.scoring_, self.n_jobs, progress
            )
        candidate, penalty = choices[found.best // len(options)], options[found.best % len(options)]
        self.calibration_ = None
        held_out = found.held_out
        if self.calibrate is True and not held_out:
            held_out = self._held_out(candidate, penalty, task, groups, trainer)
        if calibrate:
            self.calibration_ = calibrated(task, held_out)
        trained = train(candidate, penalty, task, trainer, self.n_jobs)
        self.classes_, self.selection_, self.threshold_ = task.classes, found.trials, found.threshold
        self.C_, self.balanced_ = penalty.C, penalty.balanced
        self._set_settings(candidate.settings)
        self.inputs_, self.columns_ = trained.inputs, trained.columns
        self.weights_ = trained.weights.astype(np.float32)
        self.intercept_ = trained.fit.bias - found.threshold
        self.gap_ = float(trained.fit.gap.max())
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

    @IfCalibrated
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, for every example.

        Probabilities are ``(1 - ε) softmax(a s + b) + ε / n_classes`` of the scores s. The scale a, the
        biases b and the doubt ε minimise the log loss of held-out examples: each is scored by a model that
        was trained on the other folds. The doubt is 0 and biases are small unless the held-out scores need
        them. So the class that ``predict`` returns nearly always has the largest probability, unless a class
        weight or a chosen threshold prefers another one.

        Parameters
        ----------
        X : source of trees, or table
            As ``fit`` takes it.

        Returns
        -------
        array of shape (n_examples, n_classes)
            The probabilities, in the order of ``classes_``; each row sums to 1.

        Raises
        ------
        ParameterError
            If there were no held-out examples, since no class has two.

        See Also
        --------
        LinearModel.predict_proba : The same without scikit-learn.
        sklearn.calibration.CalibratedClassifierCV : Other methods, for any classifier.

        References
        ----------
        J. C. Platt (1999), *Probabilistic outputs for support vector machines*, Advances in Large Margin
        Classifiers. C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger (2017), *On calibration of modern neural
        networks*, ICML.

        Examples
        --------
        >>> from treedot import TreeClassifier, read_trees
        >>> questions = read_trees("docs/examples/questions.tsv")
        >>> model = TreeClassifier(decay=0.2, C=10, calibrate=True)
        >>> model = model.fit(questions, questions.columns["label"])
        >>> found = model.predict_proba(["(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))"])
        >>> dict(zip(model.classes_.tolist(), found[0].round(2).tolist()))
        {'definition': 0.0, 'number': 0.0, 'person': 0.99, 'place': 0.0, 'time': 0.01}
        """
        check_is_fitted(self)
        return checked_calibration(self.calibration_).probabilities(self.decision_function(X))

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
            "balanced": self.balanced_,
            "threshold": self.threshold_,
            "gap": self.gap_,
            "scoring": self.scoring_,
            "trials": [trial.stored() for trial in self.selection_],
        }
        return LinearModel(
            [to_stored(each) for each in self.inputs_], self.classes_, self.columns_, self.weights_,
            self.intercept_, {"training": known, **(facts or {})}, self.calibration_,
        )  # fmt: skip

    @classmethod
    def _of_model(cls, model: LinearModel, path: str | os.PathLike[str]) -> Self:
        try:
            training = model.facts["training"]
            C, gap = checked_positive("C", training["C"]), float(training["gap"])
            settings = checked_settings(training)
            trials = [Trial.restored(**trial) for trial in training["trials"]]
            balanced = checked_flag("balanced", training.get("balanced", False))
            scoring = checked_choice("scoring", training.get("scoring", "accuracy"), SCORINGS)
            threshold = float(training.get("threshold", 0.0))
        except (KeyError, TypeError, ValueError, OverflowError):
            raise SourceError(
                f"cannot read the model {path}: it lacks the settings of a TreeClassifier; "
                "use LinearModel.load"
            ) from None
        if model.classes is None:
            raise SourceError(f"cannot read the model {path}: it predicts numbers; use TreeRegressor.load")
        weight = {"class_weight": "balanced"} if balanced else {}
        made = cls._with_weights(model, **settings._asdict(), C=C, scoring=scoring, **weight)
        made.classes_, made.selection_, made.threshold_ = model.classes, trials, threshold
        made.scoring_ = scoring
        made.C_, made.balanced_, made.gap_ = C, balanced, gap
        made.calibration_ = model.calibration
        made._set_settings(settings)
        return made

    def _held_out(
        self, candidate: Candidate, penalty: Penalty, task: Task, groups: Any, trainer: Trainer
    ) -> list[HeldOut]:
        """Train the folds for the calibration only, and return the scores of their test examples."""

        def solve(fold: Fold) -> Any:
            weight = task.sample_weight[fold.train]
            return trainer(fold.rows, task.positive[fold.train], penalty.costs, weight, self.n_jobs)

        folds = calibration_folds(task.y, checked_integer("cv", self.cv, at_least=2), groups)
        return list(held_out_scores(candidate.inputs, task, folds, solve, self.n_jobs))

    def _task(self, table: Table, y: Any, sample_weight: FloatArray) -> tuple[Task, IntArray]:
        """Return the training task without examples of weight 0, and the positions of the others."""
        check_classes(np.asarray(y, object).ravel().tolist())
        y, used = checked_classes(y, len(table)), np.flatnonzero(sample_weight)
        if used.size < len(table):
            table, y, sample_weight = table.take(used), y[used], sample_weight[used]
        classes, sides = one_vs_rest(y, len(table))
        return Task(table, y, classes, sample_weight, sides.T), used
