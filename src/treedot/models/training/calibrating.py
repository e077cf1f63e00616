"""Fit the calibration of a model to scores of examples that its training has not seen.

Probabilities are p = (1 - ε) softmax(a s + b) + ε / K, for the scores s of an example and K classes, with a
scale a ≥ 0, a bias b for each class, and a doubt ε ≥ 0. They minimise the log loss of the held-out examples,
with a penalty for large biases::

    - Σᵢ wᵢ Σₖ tᵢₖ log pᵢₖ + λ/2 Σₖ bₖ²

Targets t are not 0 and 1, which perfectly separated scores would reach only for a = ∞. As Platt (1999) does
for two classes, they are what the rule of succession says about n examples: 1 - 1 / (n + 2) for the true
class, and the rest is divided among the others. Weights w sum to n, the effective number of examples.

λ follows from the data (MacKay 1992, *Bayesian interpolation*): λ = γ / Σ bₖ², where γ = Σ hₖ / (hₖ + λ) is
the number of biases that the data determine, and h is the curvature of the log loss. If the scores need no
biases, λ becomes large, and the class with the largest score has the largest probability. There is a doubt
only if it lowers the loss by more than ½ log n, as the Bayesian information criterion asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot.models.calibration import Calibration, of_every_class
from treedot.models.inputs.inputs import Inputs
from treedot.models.training.folds import Fold, Task, by_kind, kernel_folds, row_folds, stratified
from treedot.models.training.model_selection import HeldOut

ROUNDS = 10  # updates of λ
ENOUGH = 0.1  # the change of log λ that ends them
LARGEST = 1e6  # λ
START, MOST_DOUBT = 0.01, 0.5  # the doubt
STEEPEST = 1e4  # the scale, if scores have a mean distance of 1 from the best


class ScoredExamples(NamedTuple):
    """The scores of examples by models that were trained without them."""

    scores: FloatArray  # (examples, problems)
    number: IntArray  # the number of the true class
    weight: FloatArray  # all positive


def calibration_folds(y: Array, n_folds: int, groups: Array | None) -> list[tuple[IntArray, IntArray]]:
    """Return up to ``n_folds`` folds; none if no class has two examples."""
    most = int(np.unique(y, return_counts=True)[1].max())
    if groups is not None:
        most = min(most, np.unique(groups).size)
    return stratified(y, min(n_folds, most), groups) if most > 1 else []


def held_out_scores(
    inputs: Inputs,
    task: Task,
    folds: list[tuple[IntArray, IntArray]],
    solve: Callable[[Fold], Any],
    n_jobs: int | None,
) -> Iterator[HeldOut]:
    """Yield the scores of the test examples of every fold; ``solve`` trains on a fold."""
    if not folds:
        return
    make = kernel_folds if by_kind(inputs)[0] else row_folds
    for fold in make(inputs, task, folds, n_jobs):
        fit = solve(fold)
        yield HeldOut(fold.test, fold.left_out @ fit.weights + fit.bias)


def calibrated(task: Task, held_out: Iterable[HeldOut]) -> Calibration | None:
    """Fit the calibration of a task to the scores of its folds.

    Examples whose class is missing in the training of their fold do not count: the model could not know it.
    """
    parts = []
    for test, scores in held_out:
        there = np.isin(task.y[test], np.delete(task.y, test))
        parts.append(HeldOut(test[there], scores[there]))
    if not parts:
        return None
    test, scores = map(np.concatenate, zip(*parts, strict=True))
    return fit_calibration(
        ScoredExamples(scores, task.number[test], task.sample_weight[test]), task.classes.size
    )


def fit_calibration(examples: ScoredExamples, n_classes: int) -> Calibration | None:
    """Fit the calibration to held-out scores; return None if there are none.

    Examples
    --------
    >>> scores = np.array([[-1.0], [1.0], [-1.0], [1.0], [-1.0]])
    >>> found = fit_calibration(ScoredExamples(scores, np.array([0, 1, 0, 1, 1]), np.ones(5)), 2)
    >>> found.probabilities(np.array([-1.0, 1.0])).round(2)
    array([[0.71, 0.29],
           [0.29, 0.71]])
    """
    if not examples.number.size:
        return None
    table = of_every_class(examples.scores.astype(np.float64))
    table = table - table.max(axis=1, keepdims=True)
    unit = float(-table.mean())
    if unit == 0.0:  # no score says anything
        unit = 1.0
    weight = examples.weight / examples.weight.max()
    weight = weight * (weight.sum() / (weight**2).sum())
    problem = _Problem(table / unit, _targets(examples.number, n_classes, weight.sum()), weight)
    scale, doubt, *bias = problem.solved().tolist()
    return Calibration(scale / unit, np.array(bias), doubt)


def _targets(number: IntArray, n_classes: int, n_examples: float) -> FloatArray:
    doubt = 1.0 / (n_examples + 2.0)
    targets = np.full((number.size, n_classes), doubt / (n_classes - 1))
    targets[np.arange(number.size), number] = 1.0 - doubt
    return targets


class _Problem(NamedTuple):
    """The objective, a function of the scale, the doubt and the biases."""

    table: FloatArray  # (examples, classes)
    targets: FloatArray
    weight: FloatArray

    def solved(self) -> FloatArray:
        """Return the parameters."""
        found, penalty = np.append([1.0, 0.0], np.zeros(self.table.shape[1])), 1.0
        for _ in range(ROUNDS):
            found, _ = self._minimum(found, penalty)
            before, penalty = penalty, self._evident_penalty(found, penalty)
            if abs(np.log(penalty / before)) < ENOUGH:
                break
        found, loss = self._minimum(found, penalty)
        doubtful, less = self._minimum(found + np.eye(found.size)[1] * START, penalty, MOST_DOUBT)
        return doubtful if less < loss - np.log(self.weight.sum()) / 2 else found

    def _minimum(
        self, start: FloatArray, penalty: float, most_doubt: float = 0.0
    ) -> tuple[FloatArray, float]:
        """Return the best parameters, and their loss."""
        from scipy.optimize import minimize

        bounds = [(0.0, STEEPEST), (0.0, most_doubt)] + [(None, None)] * (start.size - 2)
        options = {"maxiter": 1000, "ftol": 1e-10, "gtol": 1e-4}
        done = minimize(self._loss, start, (penalty,), "L-BFGS-B", jac=True, bounds=bounds, options=options)
        return done.x, float(done.fun)

    def _loss(self, parameters: FloatArray, penalty: float) -> tuple[float, FloatArray]:
        """Return the objective and its gradient."""
        doubt, bias = parameters[1], parameters[2:]
        logs = self._logs(parameters)
        weighted = self.targets * self.weight[:, None]
        mixed, credited, by_doubt = logs, weighted, 0.0
        if doubt > 0:
            mixed = np.logaddexp(np.log1p(-doubt) + logs, np.log(doubt / bias.size))
            credited = weighted * np.exp(np.log1p(-doubt) + logs - mixed)  # what p owes to the scores
            by_doubt = credited.sum() / (1 - doubt) - (weighted - credited).sum() / doubt
        loss = -float((weighted * mixed).sum()) + penalty / 2 * float((bias**2).sum())
        errors = np.exp(logs) * credited.sum(axis=1, keepdims=True) - credited
        slopes = [(errors * self.table).sum(), by_doubt], errors.sum(axis=0) + penalty * bias
        return loss, np.concatenate(slopes)

    def _logs(self, parameters: FloatArray) -> FloatArray:
        """Return the logarithms of the probabilities without doubt."""
        logits = parameters[0] * self.table + parameters[2:]
        logits -= logits.max(axis=1, keepdims=True)
        logs: FloatArray = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return logs

    def _evident_penalty(self, parameters: FloatArray, penalty: float) -> float:
        p = np.exp(self._logs(parameters))
        curvature = (p * (1.0 - p) * self.weight[:, None]).sum(axis=0)
        determined = float((curvature / (curvature + penalty)).sum())
        squares = float((parameters[2:] ** 2).sum())
        return LARGEST if determined >= LARGEST * squares else determined / squares
