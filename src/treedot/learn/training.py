"""What is learned, how it is trained, and which settings are the best: for ``TreeClassifier``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treedot.array_types import Array, BoolArray, FloatArray, IntArray
from treedot.learn.candidates import Candidate
from treedot.learn.coordinate_descent import LinearFit, train_linear
from treedot.learn.folds import Fold, kernel_folds, narrowed, row_folds, side_by_side
from treedot.learn.kernel_descent import train_kernel
from treedot.model.inputs import Inputs
from treedot.model.linear_model import best_class
from treedot.model.model_input import ModelInput
from treedot.model.table import Table
from treedot.model.tree_inputs import KernelInput
from treedot.threads import thread_map

Progress = Callable[[int, int], object]


class Trial(NamedTuple):
    """Settings that were tried, and the share of examples of the folds left out that were right."""

    decay: float | None
    C: float
    accuracy: float


class Task(NamedTuple):
    """What is to be learned: examples and classes, and the problems of one class against the rest."""

    table: Table
    y: Array
    classes: Array
    positive: BoolArray  # (examples, problems)
    costs: FloatArray  # (problems, 2), for C = 1


class Trained(NamedTuple):
    """Fitted inputs, and the weights of those columns of their rows that have one."""

    inputs: list[ModelInput]
    columns: IntArray
    weights: FloatArray
    fit: LinearFit


class Trainer(NamedTuple):
    """How long to train, and in which order: see ``train_linear``."""

    tol: float
    max_passes: int
    seed: int

    def __call__(
        self, rows: Any, positive: BoolArray, costs: FloatArray, n_jobs: int | None = None
    ) -> LinearFit:
        """Train on CSR rows, or on a Gram matrix."""
        train: Callable[..., LinearFit] = train_linear if hasattr(rows, "indptr") else train_kernel
        return train(
            rows, positive, costs, tol=self.tol, max_passes=self.max_passes, seed=self.seed, n_jobs=n_jobs
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
    """Return how good every candidate with every C is, on the examples of the folds left out."""
    correct = np.zeros((len(candidates), len(costs)), np.int64)
    done, total = 0, correct.size * len(folds)

    def test(fold: Fold, cost: float) -> int:
        fit = trainer(fold.rows, task.positive[fold.train], task.costs * cost)
        scores = fold.left_out @ fit.weights + fit.bias
        found = best_class(task.classes, scores[:, 0] if fit.bias.size == 1 else scores)
        return int(np.count_nonzero(found == task.y[fold.test]))

    for i, candidate in enumerate(candidates):
        make = kernel_folds if candidate.is_kernel else row_folds
        with thread_map(n_jobs) as run_all:
            for fold in make(candidate.inputs, task.table, task.y, folds, n_jobs):
                for j, right in enumerate(run_all(test, [fold] * len(costs), costs)):
                    correct[i, j] += right
                    done += 1
                    if progress is not None:
                        progress(done, total)
    return [
        Trial(candidate.decay, cost, float(correct[i, j]) / task.y.size)
        for i, candidate in enumerate(candidates)
        for j, cost in enumerate(costs)
    ]


def train(candidate: Candidate, C: float, task: Task, trainer: Trainer, n_jobs: int | None) -> Trained:
    """Fit the inputs to all examples, and train on their rows or their kernels."""
    made, rows = zip(*(each.fitted(task.table, task.y, n_jobs) for each in candidate.inputs), strict=True)
    if candidate.is_kernel:
        return _train_on_kernels(made, rows, C, task, trainer, n_jobs)
    columns, narrow = zip(*map(narrowed, rows), strict=True)
    fit = trainer(side_by_side(narrow), task.positive, task.costs * C, n_jobs)
    return Trained(list(made), _numbered(made, columns), fit.weights, fit)


def _train_on_kernels(
    made: Inputs, rows: tuple[Any, ...], C: float, task: Task, trainer: Trainer, n_jobs: int | None
) -> Trained:
    """Train on the sum of the kernels and dot products of all inputs.

    Kernels are then those with the support vectors alone, and all other inputs get weights, ``Σ αᵢ yᵢ xᵢ``.
    """
    products = [
        own if isinstance(each, KernelInput) else _products(own) for each, own in zip(made, rows, strict=True)
    ]
    fit = trainer(np.sum(products, axis=0), task.positive, task.costs * C, n_jobs)
    support = np.flatnonzero(fit.weights.any(axis=1))
    inputs, columns, weights = list[ModelInput](), [], []
    for each, own in zip(made, rows, strict=True):
        if isinstance(each, KernelInput):
            inputs.append(KernelInput(each.column, each.kernel, each.trees[support]))
            columns.append(np.arange(support.size))
            weights.append(fit.weights[support])
        else:
            which, narrow = narrowed(own)
            inputs.append(each)
            columns.append(which)
            weights.append(narrow.T @ fit.weights)
    return Trained(inputs, _numbered(inputs, columns), np.concatenate(weights), fit)


def _products(rows: Any) -> FloatArray:
    _, narrow = narrowed(rows)
    products: FloatArray = (narrow @ narrow.T).toarray()
    return products


def _numbered(inputs: Inputs, columns: Any) -> IntArray:
    """Return columns of several inputs as those of their rows side by side."""
    first = np.cumsum([0, *(each.width for each in inputs)])
    return np.concatenate([own + start for own, start in zip(columns, first[:-1], strict=True)])
