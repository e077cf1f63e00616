"""Train a ``TreeClassifier``, and try its settings by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from treedot._runtime.array_types import BoolArray, FloatArray, IntArray
from treedot._runtime.threads import thread_map
from treedot.models.inputs.inputs import Inputs
from treedot.models.inputs.model_input import ModelInput
from treedot.models.inputs.tree_inputs import KernelInput
from treedot.models.linear_model import best_class
from treedot.models.training.candidates import Candidate
from treedot.models.training.coordinate_descent import LinearFit, train_linear
from treedot.models.training.folds import Fold, Task, kernel_folds, narrowed, row_folds, side_by_side
from treedot.models.training.kernel_descent import train_kernel
from treedot.parameters import checked_integer, checked_positive

Progress = Callable[[int, int], object]


class Trial(NamedTuple):
    """Settings that were tried, and their weighted accuracy on the test examples of all folds.

    None stands for a parameter that the vectorizer or kernel determines.
    """

    decay: float | None
    C: float
    accuracy: float
    idf: bool | None = None
    damping: str | None = None
    words: bool = False
    labels: bool = False


class Trained(NamedTuple):
    """Fitted inputs, the columns of their rows that have weights, and these weights."""

    inputs: list[ModelInput]
    columns: IntArray
    weights: FloatArray
    fit: LinearFit


class Trainer(NamedTuple):
    """The settings of ``train_linear`` and ``train_kernel``, which a call runs."""

    tol: float
    max_passes: int
    seed: int

    def __call__(
        self,
        rows: Any,
        positive: BoolArray,
        costs: FloatArray,
        row_weight: FloatArray,
        n_jobs: int | None = None,
    ) -> LinearFit:
        """Train on CSR rows or on a Gram matrix."""
        train: Callable[..., LinearFit] = train_linear if hasattr(rows, "indptr") else train_kernel
        return train(
            rows, positive, costs, row_weight=row_weight, tol=self.tol, max_passes=self.max_passes,
            seed=self.seed, n_jobs=n_jobs,
        )  # fmt: skip


def make_trainer(estimator: Any) -> Trainer:
    """Return the trainer with an estimator's parameters, after checking them."""
    return Trainer(
        checked_positive("tol", estimator.tol),
        checked_integer("max_passes", estimator.max_passes, at_least=1),
        checked_integer("random_state", estimator.random_state),
    )


def warn_of_gap(fit: LinearFit, tol: float) -> None:
    """Warn if training ended with a duality gap above ``tol``."""
    gap = float(fit.gap.max())
    if gap > tol:
        warnings.warn(
            f"the duality gap is still {gap:.2g} after {fit.passes.max()} passes: raise max_passes or tol",
            ConvergenceWarning,
            stacklevel=3,
        )


def try_all(
    candidates: list[Candidate],
    costs: list[float],
    task: Task,
    folds: list[tuple[IntArray, IntArray]],
    trainer: Trainer,
    n_jobs: int | None,
    progress: Progress | None,
) -> list[Trial]:
    """Return the cross-validated accuracy of every candidate with every C."""
    correct = np.zeros((len(candidates), len(costs)))  # the sum of their weights
    done, total = 0, correct.size * len(folds)

    def test(fold: Fold, cost: float) -> float:
        own = task.sample_weight[fold.train]
        fit = trainer(fold.rows, task.positive[fold.train], task.costs * cost, own)
        scores = fold.left_out @ fit.weights + fit.bias
        found = best_class(task.classes, scores[:, 0] if fit.bias.size == 1 else scores)
        return float(task.sample_weight[fold.test][found == task.y[fold.test]].sum())

    for i, candidate in enumerate(candidates):
        make = kernel_folds if candidate.is_kernel else row_folds
        with thread_map(n_jobs) as run_all:
            for fold in make(candidate.inputs, task, folds, n_jobs):
                for j, right in enumerate(run_all(test, [fold] * len(costs), costs)):
                    correct[i, j] += right
                    done += 1
                    if progress is not None:
                        progress(done, total)
    total_weight = float(task.sample_weight.sum())
    return [
        Trial(C=cost, accuracy=min(1.0, float(correct[i, j]) / total_weight), **candidate.settings._asdict())
        for i, candidate in enumerate(candidates)
        for j, cost in enumerate(costs)
    ]


def train(candidate: Candidate, C: float, task: Task, trainer: Trainer, n_jobs: int | None) -> Trained:
    """Fit the inputs to all examples, then train on their rows or kernels."""
    fitted = (each.fitted(task.table, task.y, n_jobs, task.sample_weight) for each in candidate.inputs)
    made, rows = zip(*fitted, strict=True)
    if candidate.is_kernel:
        return _train_on_kernels(made, rows, C, task, trainer, n_jobs)
    columns, narrow = zip(*map(narrowed, rows), strict=True)
    fit = trainer(side_by_side(narrow), task.positive, task.costs * C, task.sample_weight, n_jobs)
    return Trained(list(made), _numbered(made, columns), fit.weights, fit)


def _train_on_kernels(
    made: Inputs, rows: tuple[Any, ...], C: float, task: Task, trainer: Trainer, n_jobs: int | None
) -> Trained:
    """Train on the sum of the kernels and dot products of all inputs.

    Kernel inputs keep only the support vectors; all other inputs get the weights ``Σ αᵢ yᵢ xᵢ``.
    """
    narrow = [
        None if isinstance(each, KernelInput) else narrowed(own) for each, own in zip(made, rows, strict=True)
    ]
    products = [
        own if part is None else (part[1] @ part[1].T).toarray()
        for own, part in zip(rows, narrow, strict=True)
    ]
    fit = trainer(np.sum(products, axis=0), task.positive, task.costs * C, task.sample_weight, n_jobs)
    support = np.flatnonzero(fit.weights.any(axis=1))
    inputs, columns, weights = list[ModelInput](), [], []
    for each, part in zip(made, narrow, strict=True):
        if isinstance(each, KernelInput):
            each = KernelInput(each.column, each.kernel, each.trees[support])
        inputs.append(each)
        columns.append(np.arange(support.size) if part is None else part[0])
        weights.append(fit.weights[support] if part is None else part[1].T @ fit.weights)
    return Trained(inputs, _numbered(inputs, columns), np.concatenate(weights), fit)


def _numbered(inputs: Inputs, columns: Any) -> IntArray:
    """Return the columns of several inputs as columns of the concatenated rows."""
    first = np.cumsum([0, *(each.width for each in inputs)])
    return np.concatenate([own + start for own, start in zip(columns, first[:-1], strict=True)])
