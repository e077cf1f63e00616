"""From labelled trees to a linear model, its settings chosen by cross-validation."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from treedot.array_types import BoolArray, FloatArray
from treedot.encode import SparseSpec
from treedot.errors import ParameterError, SourceError
from treedot.learn.base import TreeInput
from treedot.learn.coordinate_descent import LinearFit, train_linear
from treedot.learn.folds import Fold, encoded_folds, narrowed, split_folds, to_csr
from treedot.learn.fragment_vectorizer import FragmentVectorizer
from treedot.learn.one_vs_rest import one_vs_rest
from treedot.model import LinearModel
from treedot.model.labels import check_labels
from treedot.model.linear_model import best_class, linear_scores
from treedot.parameters import checked_decay, checked_integer, checked_positive, n_threads
from treedot.readers import read_trees
from treedot.threads import thread_map
from treedot.trees import Forest

DECAYS = (0.1, 0.2, 0.4)
COSTS = (1.0, 10.0, 100.0)
N_FEATURES = 2**30  # hardly any two fragments share a column


class Trial(NamedTuple):
    """Settings that were tried, and the share of trees of the folds left out that were right."""

    decay: float | None
    C: float
    accuracy: float


class TreeClassifier(ClassifierMixin, TreeInput, BaseEstimator):
    """A classifier of trees: sparse rows of fragments and a linear support vector machine.

    Scores are ``w · x + b``, one class against the rest, where x is the row of a tree and w, b minimise
    ``½ (‖w‖² + b²) + Σ C max(0, 1 - y (w · x + b))²``, with the squared hinge loss of ``LinearSVC``. Where
    several λ or C are given, those with the best accuracy in cross-validation are taken. Trees are encoded
    once for every λ, and the columns that occur alone get weights.

    For probabilities, ``sklearn.calibration.CalibratedClassifierCV`` takes it as it takes any classifier.

    Parameters
    ----------
    vectorizer : transformer, optional
        What makes rows of trees; by default a ``FragmentVectorizer`` of ``2**30`` columns, in which hardly
        any two fragments collide. It is cloned.
    decay : float, sequence of float, or None
        λ, or those to choose from. None leaves the vectorizer's own.
    C : float or sequence of float
        The cost of errors, or those to choose from: of those equally good, the smallest.
    cv : int
        Folds of the cross-validation. They are stratified by class.
    class_weight : dict or "balanced", optional
        What C is multiplied by for each class, as in ``LinearSVC``.
    tol : float
        Training ends when the duality gap is at most this share of what is minimised.
    max_passes : int
        The most passes over the rows; a ``ConvergenceWarning`` says where they were too few.
    random_state : int
        The seed of the order in which trees are visited.
    n_jobs : int, optional
        Threads; -1 for all cores. The model is the same to the byte.

    Attributes
    ----------
    classes_ : array
        The classes.
    decay_, C_ : float
        The settings that were taken.
    trials_ : list of Trial
        The settings that were tried, with their accuracy; empty where there was nothing to choose.
    vectorizer_ : transformer
        What makes the rows.
    columns_, weights_, intercept_ : arrays
        The columns that have weights, ascending; their weights, one column for each class (one in all for
        two); and the biases.
    gap_ : float
        The largest duality gap of any class, as a share of what is minimised.

    Examples
    --------
    >>> from treedot import TreeClassifier, read_trees
    >>> questions = read_trees("docs/examples/questions.tsv")
    >>> model = TreeClassifier(decay=(0.2, 0.4), C=(1, 10)).fit(questions, questions.columns["label"])
    >>> print(*model.predict(["(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))"]))
    person
    """

    def __init__(
        self,
        *,
        vectorizer: Any = None,
        decay: Any = DECAYS,
        C: Any = COSTS,
        cv: int = 5,
        class_weight: Any = None,
        tol: float = 1e-2,
        max_passes: int = 1000,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.vectorizer = vectorizer
        self.decay = decay
        self.C = C
        self.cv = cv
        self.class_weight = class_weight
        self.tol = tol
        self.max_passes = max_passes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, groups: Any = None, *, progress: Callable[[int, int], object] | None = None
    ) -> Self:
        """Choose the settings, and train with them on all trees.

        Parameters
        ----------
        X : source of trees
            As ``read_trees`` takes it.
        y : sequence
            The class of each tree.
        groups : sequence, optional
            Trees of one group, such as those of one document, are never on both sides of a fold.
        progress : callable, optional
            Called with the number of trials that are done, and of all, for each fold.
        """
        vectorizers, costs = candidates(self)
        trees = read_trees(X)
        check_labels(np.asarray(y, object).ravel().tolist())
        self.classes_, sides = one_vs_rest(y, len(trees))
        counts = np.unique(np.asarray(y), return_counts=True)[1]
        task = _Task(trees, np.asarray(y), sides.T, class_costs(self.class_weight, self.classes_, counts))
        self.trials_, chosen = list[Trial](), 0
        if len(vectorizers) * len(costs) > 1:
            self.trials_ = self._try_all(task, vectorizers, costs, groups, progress)
            chosen = int(np.argmax([trial.accuracy for trial in self.trials_]))
        vectorizer = vectorizers[chosen // len(costs)]
        self.C_, self.decay_ = costs[chosen % len(costs)], _decay_of(vectorizer)
        self.vectorizer_ = vectorizer
        columns, rows = narrowed(to_csr(vectorizer.fit_transform(trees, task.y)))
        fit = self._train(rows, task.positive, task.costs * self.C_, self.n_jobs)
        self.columns_, self.weights_ = columns, fit.weights.astype(np.float32)
        self.intercept_, self.gap_ = fit.bias, float(fit.gap.max())
        if self.gap_ > self.tol:
            warnings.warn(
                f"{fit.passes.max()} passes left a duality gap of {self.gap_:.2g}: raise max_passes or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of every tree for each class, or for the second of two."""
        check_is_fitted(self)
        rows = to_csr(self.vectorizer_.transform(X))
        return linear_scores(rows, self.columns_, self.weights_, self.intercept_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of every tree, that with the largest score."""
        scores = self.decision_function(X)
        return best_class(self.classes_, scores)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of trees whose class is right."""
        return super().score(read_trees(X), y, sample_weight)

    def _try_all(
        self, task: _Task, vectorizers: list[Any], costs: list[float], groups: Any, progress: Any
    ) -> list[Trial]:
        """Return how good every λ with every C is, on the trees of the folds left out."""
        folds = split_folds(task.y, self.cv, groups)
        correct = np.zeros((len(vectorizers), len(costs)), np.int64)
        done, total = 0, correct.size * len(folds)

        def test(fold: Fold, cost: float) -> int:
            fit = self._train(fold.rows, task.positive[fold.train], task.costs * cost, None)
            scores = fold.left_out @ fit.weights + fit.bias
            found = best_class(self.classes_, scores[:, 0] if fit.bias.size == 1 else scores)
            return int(np.count_nonzero(found == task.y[fold.test]))

        for i, vectorizer in enumerate(vectorizers):
            with thread_map(self.n_jobs) as run_all:
                for fold in encoded_folds(vectorizer, task.trees, task.y, folds):
                    for j, right in enumerate(run_all(test, [fold] * len(costs), costs)):
                        correct[i, j] += right
                        done += 1
                        if progress is not None:
                            progress(done, total)
        return [
            Trial(_decay_of(vectorizer), cost, float(correct[i, j]) / task.y.size)
            for i, vectorizer in enumerate(vectorizers)
            for j, cost in enumerate(costs)
        ]

    def _train(self, rows: Any, positive: BoolArray, costs: FloatArray, n_jobs: int | None) -> LinearFit:
        return train_linear(
            rows,
            positive,
            costs,
            tol=checked_positive("tol", self.tol),
            max_passes=checked_integer("max_passes", self.max_passes, at_least=1),
            seed=checked_integer("random_state", self.random_state),
            n_jobs=n_jobs,
        )

    def to_model(self, facts: dict[str, Any] | None = None) -> LinearModel:
        """Return all that a prediction needs; ``facts`` are kept with it, as JSON values."""
        check_is_fitted(self)
        known = {"C": self.C_, "trials": [trial._asdict() for trial in self.trials_], "gap": self.gap_}
        return LinearModel(
            model_spec(self.vectorizer_), self.classes_, self.columns_, self.weights_, self.intercept_,
            {"training": known, **(facts or {})},
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a folder, which appears whole or not at all; see ``LinearModel``."""
        self.to_model().save(path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a folder that ``save`` wrote; one that is damaged is refused."""
        model = LinearModel.load(path)
        spec = model.spec
        try:
            training = model.facts["training"]
            C, gap = checked_positive("C", training["C"]), float(training["gap"])
            trials = [Trial(**trial) for trial in training["trials"]]
        except (KeyError, TypeError, ValueError):
            raise SourceError(
                f"cannot read the model {path}: it does not say how a TreeClassifier was trained; "
                "LinearModel.load needs less"
            ) from None
        vectorizer = FragmentVectorizer(
            n_features=spec.n_features, decay=spec.decay, budget=spec.budget, damping=spec.damping,
            normalize=spec.normalize, random_state=spec.seed, dtype=spec.dtype,
        )  # fmt: skip
        made = cls(vectorizer=vectorizer, decay=spec.decay, C=C)
        made.classes_, made.columns_, made.weights_ = model.classes, model.columns, model.weights
        made.intercept_, made.vectorizer_ = model.bias, vectorizer
        made.decay_, made.C_, made.gap_, made.trials_ = spec.decay, C, gap, trials
        return made


class _Task(NamedTuple):
    """What is to be learned: trees and classes, and the problems of one class against the rest."""

    trees: Forest
    y: np.ndarray
    positive: BoolArray  # (trees, problems)
    costs: FloatArray  # (problems, 2), for C = 1


def candidates(classifier: TreeClassifier) -> tuple[list[Any], list[float]]:
    """Return the vectorizers to choose from, one for every λ, and the C; wrong settings are told."""
    n_threads(classifier.n_jobs)
    costs = _values("C", classifier.C, checked_positive)
    vectorizer, decay = classifier.vectorizer, classifier.decay
    if vectorizer is None:
        made = FragmentVectorizer(n_features=N_FEATURES, n_jobs=classifier.n_jobs)
    elif isinstance(vectorizer, type) or not hasattr(vectorizer, "fit_transform"):
        raise ParameterError(
            f"vectorizer must be one such as FragmentVectorizer(budget=3), not {vectorizer!r}"
        )
    else:
        made = clone(vectorizer)
    if decay is None:
        return [made], costs
    if "decay" not in made.get_params():
        raise ParameterError(f"{type(made).__name__} has no decay: give decay=None")
    decays = _values("decay", decay, lambda name, value: checked_decay(value))
    return [clone(made).set_params(decay=decay) for decay in decays], costs


def model_spec(vectorizer: Any) -> SparseSpec:
    """Return the spec of the rows of a model that is kept; other rows than hashed ones are refused."""
    hashed = isinstance(vectorizer, FragmentVectorizer) and vectorizer.n_features is not None
    if not hashed or vectorizer.rest is not None or vectorizer.idf is not False:
        raise ParameterError(
            "a model that is kept has hashed columns, no rest and no idf, as the vectorizer "
            f"FragmentVectorizer() has: this one is {vectorizer!r}"
        )
    spec: SparseSpec = vectorizer.spec
    return spec


def class_costs(class_weight: Any, classes: np.ndarray, counts: np.ndarray) -> FloatArray:
    """Return what C is multiplied by on the negative and the positive side of each problem.

    ``counts`` says how many trees are of each class.
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


def _decay_of(vectorizer: Any) -> float | None:
    return vectorizer.get_params().get("decay")


def _values(name: str, values: Any, check: Callable[[str, Any], float]) -> list[float]:
    """Return the values to choose from, one or several."""
    several = list(values) if isinstance(values, (list, tuple, np.ndarray)) else [values]
    if not several:
        raise ParameterError(f"{name} must be a number or several to choose from, not none")
    return sorted({check(name, value) for value in several})
