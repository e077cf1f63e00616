"""Train a ``TreeClassifier``, and try its settings by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
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
from treedot.models.training.folds import Fold, Task, kernel_folds, narrowed, row_folds, side_by_side
from treedot.models.training.kernel_descent import train_kernel
from treedot.parameters import checked_integer, checked_positive

Progress = Callable[[int, int], object]
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


class Rung(NamedTuple):
    """A step of successive halving: which folds train on which share of their examples."""

    first: int
    end: int
    share: float
    keep: int  # settings that go on to the next rung

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
    """Try every candidate with every C by successive halving; return the trials, and the best one's number."""
    settings = [(i, j) for i in range(len(candidates)) for j in range(len(costs))]
    plan = rungs(len(settings), len(folds), len(task.table))
    sizes = [len(settings), *(rung.keep for rung in plan)]
    total = sum(n * (rung.end - rung.first) for n, rung in zip(sizes, plan, strict=False))
    right, seen = np.zeros((2, len(candidates), len(costs)))  # sums of weights
    folds_of = np.zeros(right.shape, np.int64)
    alive, done, whole = settings, 0, 1.0

    def test(fold: Fold, cost: float) -> float:
        own = task.sample_weight[fold.train]
        fit = trainer(fold.rows, task.positive[fold.train], task.costs * cost, own)
        scores = fold.left_out @ fit.weights + fit.bias
        found = best_class(task.classes, scores[:, 0] if fit.bias.size == 1 else scores)
        return float(task.sample_weight[fold.test][found == task.y[fold.test]].sum())

    for rung in plan:
        if whole < 1 or rung.share < 1:  # only trainings on all examples are added up
            for i, j in alive:
                right[i, j] = seen[i, j] = folds_of[i, j] = 0
        whole = rung.share
        for i in sorted({i for i, _ in alive}):
            own = [costs[j] for k, j in alive if k == i]
            make = kernel_folds if candidates[i].is_kernel else row_folds
            with thread_map(n_jobs) as run_all:
                for fold in make(candidates[i].inputs, task, rung.of(folds, task.y), n_jobs):
                    weight = float(task.sample_weight[fold.test].sum())
                    for cost, correct in zip(own, run_all(test, [fold] * len(own), own), strict=True):
                        j = costs.index(cost)
                        right[i, j] += correct
                        seen[i, j] += weight
                        folds_of[i, j] += 1
                        done += 1
                        if progress is not None:
                            progress(done, total)
        score = np.divide(right, seen, where=seen > 0, out=np.zeros_like(right))
        alive = sorted(alive, key=lambda pair: (-score[pair], settings.index(pair)))[: rung.keep]
        alive.sort()
    trials = [
        Trial(
            C=costs[j],
            accuracy=min(1.0, float(score[i, j])),
            folds=int(folds_of[i, j]),
            **candidates[i].settings._asdict(),
        )
        for i, j in settings
    ]
    return trials, settings.index(alive[0])


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
