"""Support vector machines on a Gram matrix, all classes at once, by dual coordinate descent.

The problem is the one of ``coordinate_descent``, but only the dot products K of the rows are known. Since
w = Σᵢ αᵢ yᵢ xᵢ, scores are Σᵢ αᵢ yᵢ (K(xᵢ, x) + 1), where the 1 accounts for the bias. The descent updates
the scores of all examples instead of weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, FloatArray, IntArray
from treedot._runtime.hashing import GOLDEN, mix
from treedot._runtime.jit import njit_borrowing
from treedot.models.training.coordinate_descent import (
    PASSES_PER_CHECK,
    LinearFit,
    over_problems,
    row_excess,
    shuffle,
)


class Descent(NamedTuple):
    """The state of the descent for several problems; compiled code changes it in place."""

    positive: BoolArray  # (examples, problems): the sides
    cost: FloatArray  # (problems, 2): of the negative and of the positive side
    row_weight: FloatArray  # (examples,): the factor of the cost of each example
    alpha: FloatArray  # (examples, problems)
    scores: FloatArray  # (problems, examples), since one change adds to the scores of all examples
    dual: FloatArray  # (problems,): D(α), which every change of an α raises


def train_kernel(
    gram: FloatArray,
    positive: BoolArray,
    cost: FloatArray,
    *,
    row_weight: FloatArray | None = None,
    tol: float = 1e-2,
    max_passes: int = 1000,
    seed: int = 0,
    n_jobs: int | None = None,
) -> LinearFit:
    """Train one support vector machine for each problem; the parameters are those of ``train_linear``.

    The result has one weight αᵢ yᵢ per example and problem. An example with a non-zero weight is a support
    vector.

    Examples
    --------
    >>> found = train_kernel(np.eye(2), np.array([[True], [False]]), np.full((1, 2), 1.0), tol=1e-9)
    >>> found.weights.ravel().round(3), found.bias.round(3)
    (array([ 0.667, -0.667]), array([0.]))
    """
    gram = np.ascontiguousarray(gram, np.float64)
    factors = np.ones(len(gram)) if row_weight is None else row_weight

    def descend(sides: BoolArray, costs: FloatArray) -> LinearFit:
        return _descend(gram, sides, costs, factors, tol, max_passes, seed)

    return over_problems(descend, positive, cost, n_jobs)


def _descend(
    gram: FloatArray, positive: BoolArray, cost: FloatArray, row_weight: FloatArray, tol: float,
    max_passes: int, seed: int,
) -> LinearFit:  # fmt: skip
    n, problems = positive.shape
    state = Descent(
        positive,
        np.ascontiguousarray(cost, np.float64),
        np.ascontiguousarray(row_weight, np.float64),
        np.zeros((n, problems)),
        np.zeros((problems, n)),
        np.zeros(problems),
    )
    order, left = np.arange(n), np.ones(problems, bool)
    gap, passes = np.ones(problems), np.zeros(problems, np.int64)
    for done in range(1, max_passes + 1):
        shuffle(order, np.uint64(mix(seed + done * GOLDEN)))
        _pass(gram, order, state, left, tol / n)
        if done % PASSES_PER_CHECK == 0 or done == max_passes:
            gap[left], passes[left] = _relative_gap(state)[left], done
            left &= gap > tol
            if not left.any():
                break
    weights = np.where(positive, state.alpha, -state.alpha)
    bias = np.array([weights[:, k].sum() for k in range(problems)])
    return LinearFit(weights, bias, gap, passes)


@njit_borrowing
def _pass(gram: FloatArray, order: IntArray, state: Descent, left: BoolArray, share: float) -> None:
    """Solve for the α of one example after the other, in the problems where ``left`` is true.

    A change of an α costs a row of the matrix. So an α stays as it is while its example adds at most
    ``share`` of D to the duality gap: if no example adds more than tol / n of D, the gap is at most
    tol · D ≤ tol · P. An α that becomes 0 always changes, since the model keeps all other examples.
    """
    for visit in range(order.size):
        i = order[visit]
        row = gram[i]
        for k in range(left.size):
            if not left[k]:
                continue
            side = 1.0 if state.positive[i, k] else -1.0
            cost, old = state.cost[k, int(state.positive[i, k])] * state.row_weight[i], state.alpha[i, k]
            slack, ridge = 1.0 - side * state.scores[k, i], 0.5 / cost
            slope, curvature = old * ridge - slack, row[i] + 1.0 + ridge
            new = max(old - slope / curvature, 0.0)
            matters = row_excess(old, slack, cost) > share * state.dual[k]
            if new != old and (matters or new == 0.0):
                state.alpha[i, k], change = new, side * (new - old)
                state.dual[k] -= (new - old) * (slope + (new - old) * curvature / 2)
                scores = state.scores[k]
                for j in range(row.size):
                    scores[j] += (row[j] + 1.0) * change


def _relative_gap(state: Descent) -> FloatArray:
    """Return (P - D) / P of every problem, the same whichever problems are solved together."""
    loss, penalty, excess = np.zeros((3, state.alpha.shape[1]))
    _add_up(state, loss, penalty, excess)
    return excess / (loss + penalty)


@njit_borrowing
def _add_up(state: Descent, loss: FloatArray, penalty: FloatArray, excess: FloatArray) -> None:
    n, problems = state.alpha.shape
    for i in range(n):
        for k in range(problems):
            side = 1.0 if state.positive[i, k] else -1.0
            cost, alpha = state.cost[k, int(state.positive[i, k])] * state.row_weight[i], state.alpha[i, k]
            slack = 1.0 - side * state.scores[k, i]
            penalty[k] += alpha * side * state.scores[k, i] / 2
            loss[k] += cost * max(0.0, slack) ** 2
            excess[k] += row_excess(alpha, slack, cost)
