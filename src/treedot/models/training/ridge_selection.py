"""Train a ``TreeRegressor``, and try its settings by cross-validation."""

from __future__ import annotations

import warnings
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot._runtime.threads import thread_map
from treedot.errors import ParameterError
from treedot.models.inputs.table import Table
from treedot.models.training.candidates import Candidate
from treedot.models.training.folds import Fold, folds_of
from treedot.models.training.model_selection import Progress
from treedot.models.training.ridge import RidgeFit, train_ridge
from treedot.parameters import checked_integer, checked_positive

LARGEST = 1e30  # of y: weights are stored as float32


class RegressionTask(NamedTuple):
    """Examples with the numbers to predict, and their weights."""

    table: Table
    y: FloatArray
    sample_weight: FloatArray  # (examples,), all positive


class RegressionTrial(NamedTuple):
    """Settings that were tried, and their weighted R² on the test examples of all folds together.

    None stands for a parameter that the vectorizer or kernel determines.
    """

    decay: float | None
    alpha: float
    r2: float
    idf: bool | None = None
    damping: str | None = None
    words: bool = False
    labels: bool = False


class RidgeTrainer(NamedTuple):
    """The settings of ``train_ridge``, which a call runs."""

    tol: float
    max_iter: int

    def __call__(self, rows: Any, y: FloatArray, alphas: list[float], row_weight: FloatArray) -> RidgeFit:
        """Train on CSR rows or on a Gram matrix, for every α."""
        return train_ridge(rows, y, alphas, row_weight=row_weight, tol=self.tol, max_iter=self.max_iter)


def make_ridge_trainer(estimator: Any) -> RidgeTrainer:
    """Return the trainer with an estimator's parameters, after checking them."""
    return RidgeTrainer(
        checked_positive("tol", estimator.tol),
        checked_integer("max_iter", estimator.max_iter, at_least=1),
    )


def warn_of_iterations(fit: RidgeFit) -> None:
    """Warn if training ended before the predictions were as exact as ``tol`` demands."""
    if not fit.converged.all():
        warnings.warn(
            f"conjugate gradients did not converge in {fit.n_iter} iterations: raise max_iter, tol or alpha",
            ConvergenceWarning,
            stacklevel=3,
        )


def checked_targets(y: Any, n_examples: int) -> FloatArray:
    """Return ``y`` as numbers; raise ParameterError unless every example has a finite one.

    Examples
    --------
    >>> checked_targets([1, 2.5], 2)
    array([1. , 2.5])
    >>> checked_targets([1, None], 2)
    Traceback (most recent call last):
    treedot.errors.ParameterError: y must hold numbers: that of example 2 is None
    """
    given = np.asarray(y)
    if given.shape != (n_examples,):
        raise ParameterError(
            f"y must hold one number for each of the {n_examples} trees, not shape {given.shape}"
        )
    numbers = np.zeros(n_examples)
    for k, value in enumerate(given.tolist()):
        if isinstance(value, str | bytes | complex) or value is None:
            raise ParameterError(f"y must hold numbers: that of example {k + 1} is {value!r:.40}")
        try:
            numbers[k] = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ParameterError(f"y must hold numbers: that of example {k + 1} is {value!r:.40}") from None
    bad = np.flatnonzero(~(np.abs(numbers) <= LARGEST))
    if bad.size:
        raise ParameterError(
            f"y must hold finite numbers up to {LARGEST:g}: that of example {bad[0] + 1} is {numbers[bad[0]]}"
        )
    return numbers


def shuffled_folds(
    n_examples: int, n_folds: Any, seed: Any, groups: Array | None = None
) -> list[tuple[IntArray, IntArray]]:
    """Return the training and the test examples of every fold, shuffled.

    A group is never on both sides of a fold.

    Examples
    --------
    >>> [test.tolist() for _, test in shuffled_folds(4, 2, seed=0)]
    [[2, 3], [0, 1]]
    """
    n_folds, seed = checked_integer("cv", n_folds, at_least=2), checked_integer("random_state", seed)
    if n_examples < n_folds:
        raise ParameterError(
            f"cv={n_folds} needs at least {n_folds} trees, but there are {n_examples}: lower cv, or give a "
            "single decay and a single alpha, which need no cross-validation"
        )
    if groups is None:
        return list(KFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(n_examples)))
    if np.unique(groups).size < n_folds:
        raise ParameterError(f"cv={n_folds} needs at least {n_folds} groups: lower cv")
    return list(GroupKFold(n_folds).split(np.zeros(n_examples), groups=groups))


def try_all_alphas(
    candidates: list[Candidate],
    alphas: list[float],
    task: RegressionTask,
    folds: list[tuple[IntArray, IntArray]],
    trainer: RidgeTrainer,
    n_jobs: int | None,
    progress: Progress | None,
) -> list[RegressionTrial]:
    """Return the cross-validated R² of every candidate with every α."""
    errors = np.zeros((len(candidates), len(alphas)))  # weighted sums of squares
    done, total = 0, errors.size * len(folds)

    def test(fold: Fold) -> FloatArray:
        fit = trainer(fold.rows, task.y[fold.train], alphas, task.sample_weight[fold.train])
        wrong = fold.left_out @ fit.weights + fit.bias - task.y[fold.test][:, None]
        squares: FloatArray = task.sample_weight[fold.test] @ wrong**2
        return squares

    encoded = folds_of([candidate.inputs for candidate in candidates], task, folds, n_jobs)
    with thread_map(n_jobs, len(folds)) as run_all:
        while some := list(islice(encoded, len(folds))):  # only these are in memory
            places, parts = zip(*some, strict=True)
            for i, squares in zip(places, run_all(test, parts), strict=True):
                errors[i] += squares
                done += len(alphas)
                if progress is not None:
                    progress(done, total)
    return [
        RegressionTrial(
            alpha=alpha,
            r2=r_squared(float(errors[i, j]), task.y, task.sample_weight),
            **candidate.settings._asdict(),
        )
        for i, candidate in enumerate(candidates)
        for j, alpha in enumerate(alphas)
    ]


def r_squared(squares: float, y: FloatArray, sample_weight: FloatArray) -> float:
    """Return R², given the weighted sum of squared errors; if all y are equal, 1 without errors, else 0."""
    mean = np.average(y, weights=sample_weight)
    whole = float(sample_weight @ (y - mean) ** 2)
    if whole == 0.0:
        return 1.0 if squares == 0.0 else 0.0
    return 1.0 - squares / whole
