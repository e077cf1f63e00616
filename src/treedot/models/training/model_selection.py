"""Train a ``TreeClassifier``, and try its settings by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from treedot._runtime.array_types import Array, BoolArray, FloatArray, IntArray
from treedot._runtime.threads import thread_map
from treedot.models.inputs.inputs import Inputs
from treedot.models.inputs.model_input import ModelInput
from treedot.models.inputs.tree_inputs import KernelInput
from treedot.models.linear_model import best_class
from treedot.models.training.candidates import Candidate
from treedot.models.training.coordinate_descent import LinearFit, train_linear
from treedot.models.training.folds import (
    Examples,
    Fold,
    Task,
    kernel_folds,
    narrowed,
    row_folds,
    side_by_side,
)
from treedot.models.training.kernel_descent import train_kernel
from treedot.parameters import checked_integer, checked_positive

Progress = Callable[[int, int], object]
Solver = Callable[[Any], Any]  # rows or a Gram matrix to a fit with ``weights`` and ``bias``
FEW = 12  # settings that are all tried on all folds
FINALISTS = 3  # settings that are tried on all folds, if there are more
LEAST = 500  # examples that a training of the search gets at least, if there are so many


class Trial(NamedTuple):
    """Settings that were tried, and their weighted accuracy on the test examples of the folds.

    None stands for a parameter that the vectorizer or kernel determines. ``folds`` is the number of folds
    whose test examples count; settings with fewer folds than others were dropped early.
    """

    decay: float | None
    C: float
    accuracy: float
    idf: bool | None = None
    damping: str | None = None
    words: bool = False
    labels: bool = False
    folds: int | None = None


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


class Rung(NamedTuple):
    """A step of successive halving: which folds train on which share of their examples."""

    first: int
    end: int
    share: float
    keep: int  # settings that stay after this rung

    def of(self, folds: list[tuple[IntArray, IntArray]], y: Array) -> list[tuple[IntArray, IntArray]]:
        """Return the folds of this rung, each with its share of training examples of every class."""
        step = 1 / self.share
        cut = []
        for train, test in folds[self.first : self.end]:
            by_class = train[np.argsort(y[train], kind="stable")]
            which = np.arange(0, train.size, step).astype(np.int64)
            cut.append((np.sort(by_class[which]), test))
        return cut


def rungs(n_settings: int, n_folds: int, n_examples: int) -> list[Rung]:
    """Plan successive halving; a few settings are all tried on all folds.

    A third of the settings stay after training on a ninth of the examples of the first fold, and a third of
    these after training on a third of them. The rest is trained on all examples of two folds, and the best
    three are trained on all folds.

    Examples
    --------
    >>> [rung.keep for rung in rungs(64, 5, 5000)]
    [21, 7, 3, 1]
    """
    if n_settings <= FEW:
        return [Rung(0, n_folds, 1.0, 1)]
    n_train = n_examples - n_examples // n_folds
    planned = [
        Rung(0, 1, max(1 / 9, LEAST / n_train), max(n_settings // 3, FINALISTS)),
        Rung(0, 1, max(1 / 3, LEAST / n_train), max(n_settings // 9, FINALISTS)),
    ]
    two = min(2, n_folds)
    return [
        *(rung for rung in planned if rung.share < 1),
        Rung(0, two, 1.0, FINALISTS),
        Rung(two, n_folds, 1.0, 1),
    ]


def select(
    candidates: list[Candidate],
    costs: list[float],
    task: Task,
    folds: list[tuple[IntArray, IntArray]],
    trainer: Trainer,
    n_jobs: int | None,
    progress: Progress | None,
) -> tuple[list[Trial], int]:
    """Try every candidate with every C by successive halving; return the trials, and which is best."""
    search = _Search(candidates, costs, task, trainer)
    plan = rungs(len(search.alive), len(folds), len(task.table))
    sizes = [len(search.alive), *(rung.keep for rung in plan)]
    done, total = 0, sum(n * (rung.end - rung.first) for n, rung in zip(sizes, plan, strict=False))
    for rung in plan:
        if rung.first == 0:  # trainings on fewer examples do not count any more
            search.forget()
        for _ in search.try_alive(rung.of(folds, task.y), n_jobs):
            done += 1
            if progress is not None:
                progress(done, total)
        search.keep(rung.keep)
    (best,) = search.alive
    return search.trials(), best


class _Search:
    """The settings of a search, numbered by candidate and then by C, and their results so far."""

    def __init__(self, candidates: list[Candidate], costs: list[float], task: Task, trainer: Trainer) -> None:
        self._candidates, self._costs, self._task, self._trainer = candidates, costs, task, trainer
        self.alive = list(range(len(candidates) * len(costs)))
        self._correct, self._tested = np.zeros((2, len(self.alive)))  # sums of weights of test examples
        self._folds = np.zeros(len(self.alive), np.int64)

    def forget(self) -> None:
        """Forget the results of all settings that are alive."""
        self._correct[self.alive] = self._tested[self.alive] = self._folds[self.alive] = 0

    def try_alive(self, folds: list[tuple[IntArray, IntArray]], n_jobs: int | None) -> Iterator[int]:
        """Try the settings that are alive on folds; yield their numbers as they are done."""
        by_candidate = groupby(self.alive, lambda number: number // len(self._costs))
        for candidate, numbers in by_candidate:
            own, inputs = list(numbers), self._candidates[candidate].inputs
            make = kernel_folds if self._candidates[candidate].is_kernel else row_folds
            costs = [self._costs[number % len(self._costs)] for number in own]
            with thread_map(n_jobs) as run_all:
                for fold in make(inputs, self._task, folds, n_jobs):
                    results = run_all(self._correct_weight, [fold] * len(own), costs)
                    for number, correct in zip(own, results, strict=True):
                        self._correct[number] += correct
                        self._tested[number] += self._task.sample_weight[fold.test].sum()
                        self._folds[number] += 1
                        yield number

    def _correct_weight(self, fold: Fold, cost: float) -> float:
        """Return the weight of the test examples whose class is predicted correctly."""
        task, own = self._task, self._task.sample_weight[fold.train]
        fit = self._trainer(fold.rows, task.positive[fold.train], task.costs * cost, own)
        scores = fold.left_out @ fit.weights + fit.bias
        found = best_class(task.classes, scores[:, 0] if fit.bias.size == 1 else scores)
        return float(task.sample_weight[fold.test][found == task.y[fold.test]].sum())

    def keep(self, count: int) -> None:
        """Keep the best settings alive; of equally good ones, those with the lowest numbers."""
        accuracy = self._accuracy()
        self.alive = sorted(sorted(self.alive, key=lambda number: -accuracy[number])[:count])

    def _accuracy(self) -> FloatArray:
        return np.minimum(1.0, self._correct / self._tested)

    def trials(self) -> list[Trial]:
        """Return all settings with their results."""
        settings = product((each.settings for each in self._candidates), self._costs)
        return [
            Trial(C=cost, accuracy=float(accuracy), folds=int(folds), **own._asdict())
            for (own, cost), accuracy, folds in zip(settings, self._accuracy(), self._folds, strict=True)
        ]


def train(candidate: Candidate, C: float, task: Task, trainer: Trainer, n_jobs: int | None) -> Trained:
    """Fit the inputs to all examples, then train on their rows or kernels."""

    def solve(rows: Any) -> LinearFit:
        return trainer(rows, task.positive, task.costs * C, task.sample_weight, n_jobs)

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
