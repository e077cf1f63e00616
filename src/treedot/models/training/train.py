"""Train a ``TreeClassifier`` with chosen settings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from treedot._runtime.array_types import BoolArray, FloatArray, IntArray
from treedot.models.inputs.inputs import Inputs
from treedot.models.inputs.model_input import ModelInput
from treedot.models.inputs.tree_inputs import KernelInput
from treedot.models.training.candidates import Candidate, is_auto
from treedot.models.training.coordinate_descent import LinearFit, train_linear
from treedot.models.training.folds import Examples, Task, narrowed, side_by_side
from treedot.models.training.kernel_descent import train_kernel
from treedot.models.training.one_vs_rest import class_costs
from treedot.parameters import SCORINGS, checked_choice, checked_integer, checked_positive

Solver = Callable[[Any], Any]  # rows or a Gram matrix to a fit with ``weights`` and ``bias``
PLAIN_C = 10.0  # without selection
IMBALANCED = 10  # times as many examples of the largest class as of the smallest


class Penalty(NamedTuple):
    """The cost of errors: C, whether it is balanced between classes, and both sides' of each problem."""

    C: float
    balanced: bool
    costs: FloatArray  # (problems, 2)


def penalties(
    costs: list[float], class_weight: Any, classes: np.ndarray, counts: FloatArray, is_choice: bool
) -> list[Penalty]:
    """Return the penalties to choose from, in ascending order of C.

    Where settings are chosen, the class weight ``"auto"`` adds balanced costs if classes differ much in size.
    """
    weights = [class_weight]
    if is_auto(class_weight):
        weights = [None, "balanced"] if is_choice and is_imbalanced(counts) else [None]
    return [
        Penalty(C, isinstance(weight, str), C * class_costs(weight, classes, counts))
        for C in costs
        for weight in weights
    ]


def is_imbalanced(counts: FloatArray) -> bool:
    """Return whether the largest class has many times the examples of the smallest."""
    return bool(counts.max() >= IMBALANCED * counts.min())


def chosen_scoring(scoring: Any, counts: FloatArray) -> str:
    """Return the score to choose settings by.

    For a rare class against another one, ``"auto"`` is the log loss: a model that never predicts the rare
    class is nearly as accurate as any.
    """
    if not is_auto(scoring):
        return str(checked_choice("scoring", scoring, SCORINGS))
    return "neg_log_loss" if counts.size == 2 and is_imbalanced(counts) else "accuracy"


def plain_penalty(penalties: list[Penalty]) -> int:
    """Return the penalty to take where there are too few examples to choose by: C is 10, or the nearest."""
    order = range(len(penalties))
    return min(order, key=lambda k: (abs(math.log(penalties[k].C / PLAIN_C)), penalties[k].balanced))


class Trained(NamedTuple):
    """Fitted inputs, the columns of their rows that have weights, and these weights."""

    inputs: list[ModelInput]
    columns: IntArray
    weights: FloatArray
    fit: Any  # of the solver


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


def train(
    candidate: Candidate, penalty: Penalty, task: Task, trainer: Trainer, n_jobs: int | None
) -> Trained:
    """Fit the inputs to all examples, then train on their rows or kernels."""

    def solve(rows: Any) -> LinearFit:
        return trainer(rows, task.positive, penalty.costs, task.sample_weight, n_jobs)

    return train_inputs(candidate, task, solve, n_jobs)


def train_inputs(candidate: Candidate, task: Examples, solve: Solver, n_jobs: int | None) -> Trained:
    """Fit the inputs to all examples, then give their rows, or their Gram matrix, to ``solve``."""
    fitted = (each.fitted(task.table, task.y, n_jobs, task.sample_weight) for each in candidate.inputs)
    made, rows = zip(*fitted, strict=True)
    if candidate.is_kernel:
        return _train_on_kernels(made, rows, solve)
    columns, narrow = zip(*map(narrowed, rows), strict=True)
    fit = solve(side_by_side(narrow))
    return Trained(list(made), _numbered(made, columns), fit.weights, fit)


def _train_on_kernels(made: Inputs, rows: tuple[Any, ...], solve: Solver) -> Trained:
    """Train on the sum of the kernels and dot products of all inputs.

    Kernel inputs keep only the support vectors; all other inputs get the weights ``Σ aᵢ xᵢ``, where a are the
    weights of the examples that ``solve`` finds.
    """
    narrow = [
        None if isinstance(each, KernelInput) else narrowed(own) for each, own in zip(made, rows, strict=True)
    ]
    products = [
        own if part is None else (part[1] @ part[1].T).toarray()
        for own, part in zip(rows, narrow, strict=True)
    ]
    fit = solve(reduce(np.add, products))
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
