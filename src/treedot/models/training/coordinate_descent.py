"""Linear support vector machines for sparse rows, all classes at once, by dual coordinate descent.

The method of Hsieh et al. (2008), *A dual coordinate descent method for large-scale linear SVM*: with sides
y = ±1 and costs C (the cost of a side times the weight of the row), the weights of one class against the rest
minimise ::

    P(w, b) = ½ (‖w‖² + b²) + Σᵢ Cᵢ max(0, 1 - yᵢ (w · xᵢ + b))²

(the squared hinge loss; the bias is one more weight, as in scikit-learn's ``LinearSVC``). They are
``w = Σᵢ αᵢ yᵢ xᵢ`` for the α ≥ 0 that maximise the dual ``D(α) = Σᵢ αᵢ - ½ (‖w‖² + b²) - Σᵢ αᵢ² / (4 Cᵢ)``,
found by solving for one αᵢ after the other. ``P - D``, the *duality gap*, bounds how far P is from its least
value. It is a sum over the rows: with ξᵢ = 1 - yᵢ (w · xᵢ + b), row i adds ::

    Cᵢ max(0, ξᵢ)² + αᵢ² / (4 Cᵢ) - αᵢ ξᵢ = Cᵢ (max(0, ξᵢ) - αᵢ / (2 Cᵢ))² + αᵢ max(0, -ξᵢ) ≥ 0

Added up in the second form, in which nothing cancels, the gap can become far smaller than the rounding of P.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, BoolArray, FloatArray, IntArray, Matrix, Row
from treedot._runtime.hashing import GOLDEN, mix, mix64
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot._runtime.threads import thread_map
from treedot.parameters import n_threads
from treedot.vectors.sparse.rows import sums_of_squares

PASSES_PER_CHECK = 5  # a check of the duality gap takes as long as a pass


class Rows(NamedTuple):
    """The arrays of a CSR matrix."""

    indptr: IntArray
    indices: IntArray
    data: Array


class LinearFit(NamedTuple):
    """The weights and biases of several problems.

    ``gap`` is the duality gap divided by P; ``passes`` is the number of passes over the rows.
    """

    weights: FloatArray  # (columns, problems)
    bias: FloatArray
    gap: FloatArray
    passes: IntArray


class Descent(NamedTuple):
    """The state of the descent for several problems; compiled code changes it in place.

    Weights and α may be of any precision: a step is the difference of the rounded α, so that
    ``w = Σᵢ αᵢ yᵢ xᵢ`` holds for the stored α.
    """

    positive: BoolArray  # (rows, problems): the sides
    cost: FloatArray  # (problems, 2): of the negative and of the positive side
    row_weight: FloatArray  # (rows,): the factor of the cost of each row
    alpha: Matrix  # (rows, problems)
    weights: Matrix  # (columns, problems)
    bias: FloatArray

    def only(self, which: BoolArray) -> Descent:
        """Return the selected problems, with contiguous arrays."""
        return Descent(
            self.positive.compress(which, axis=1),
            self.cost[which],
            self.row_weight,
            self.alpha.compress(which, axis=1),
            self.weights.compress(which, axis=1),
            self.bias[which],
        )


class PassFigures(NamedTuple):
    """Figures that are collected during a pass over the rows; compiled code changes the arrays in place."""

    mean_weights: Matrix  # over all visits; initially the weights
    mean_bias: FloatArray
    loss: FloatArray  # each visited row's contribution to P just before its visit
    excess: FloatArray  # its contribution to P - D
    visited: int  # rows visited before this call
    of_rows: int  # rows of the whole pass


def train_linear(
    matrix: Any,
    positive: BoolArray,
    cost: FloatArray,
    *,
    row_weight: FloatArray | None = None,
    tol: float = 1e-2,
    max_passes: int = 1000,
    seed: int = 0,
    n_jobs: int | None = None,
) -> LinearFit:
    """Train one linear support vector machine for each problem.

    Parameters
    ----------
    matrix : csr_matrix
        The rows. All columns get weights, so every column should be used.
    positive : array of bool, (rows, problems)
        Which rows are on the positive side of each problem.
    cost : array, (problems, 2)
        C of the negative and of the positive side.
    row_weight : array, (rows,), optional
        A positive factor of C for each row; by default 1.
    tol : float
        A problem is solved when its duality gap is at most this share of P.
    max_passes : int
        The largest number of passes over the rows.
    seed : int
        The seed of the order in which rows are visited; every pass has its own order.
    n_jobs : int, optional
        The number of threads, which share the problems; the result does not depend on it.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> rows = csr_matrix([[1.0, 0.0], [0.0, 1.0]])
    >>> found = train_linear(rows, np.array([[True], [False]]), np.full((1, 2), 1.0), tol=1e-9)
    >>> found.weights.ravel().round(3), found.bias.round(3)
    (array([ 0.667, -0.667]), array([0.]))
    """
    rows = Rows(matrix.indptr, matrix.indices, matrix.data)
    factors = np.ones(matrix.shape[0]) if row_weight is None else row_weight

    def descend(sides: BoolArray, costs: FloatArray) -> LinearFit:
        return _descend(rows, matrix.shape[1], sides, costs, factors, tol, max_passes, seed)

    return over_problems(descend, positive, cost, n_jobs)


def over_problems(
    descend: Callable[[BoolArray, FloatArray], LinearFit],
    positive: BoolArray,
    cost: FloatArray,
    n_jobs: int | None,
) -> LinearFit:
    """Distribute the problems over threads; ``descend`` solves those with the given sides and costs."""
    parts = np.array_split(np.arange(len(cost)), min(n_threads(n_jobs), len(cost)))

    def train(part: IntArray) -> LinearFit:
        return descend(np.ascontiguousarray(positive[:, part]), cost[part])

    with thread_map(n_jobs, len(parts)) as run_all:
        fits = list(run_all(train, parts))
    return LinearFit(*(np.concatenate(arrays, axis=-1) for arrays in zip(*fits, strict=True)))


def _descend(
    rows: Rows, width: int, positive: BoolArray, cost: FloatArray, row_weight: FloatArray, tol: float,
    max_passes: int, seed: int,
) -> LinearFit:  # fmt: skip
    n_rows, problems = positive.shape
    state = Descent(
        positive,
        np.ascontiguousarray(cost, np.float64),
        np.ascontiguousarray(row_weight, np.float64),
        np.zeros((n_rows, problems)),
        np.zeros((width, problems)),
        np.zeros(problems),
    )
    solved = LinearFit(
        np.zeros((width, problems)), np.zeros(problems), np.zeros(problems), np.zeros(problems, np.int64)
    )
    squares = sums_of_squares(np.diff(rows.indptr), rows.data)
    order, left = np.arange(n_rows), np.arange(problems)
    for done in range(1, max_passes + 1):
        shuffle(order, np.uint64(mix(seed + done * GOLDEN)))
        visit_rows(rows, squares, order, state)
        if done % PASSES_PER_CHECK == 0 or done == max_passes:
            gap = _relative_gap(rows, state)
            ends = (gap <= tol) | (done == max_passes)
            solved.weights[:, left[ends]], solved.bias[left[ends]] = state.weights[:, ends], state.bias[ends]
            solved.gap[left[ends]], solved.passes[left[ends]] = gap[ends], done
            state, left = state.only(~ends), left[~ends]
            if not left.size:
                break
    return solved


@njit_borrowing
def shuffle(order: IntArray, key: np.uint64) -> None:
    """Shuffle numbers in place, in an order that follows from a key (Fisher and Yates)."""
    for i in range(order.size - 1, 0, -1):
        key = mix64(key + np.uint64(i))
        j = np.int64(key % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]


@njit_inside
def _scores(rows: Rows, i: int, state: Descent, scores: Matrix) -> None:
    """Set ``scores`` to w · xᵢ + b of every problem."""
    for k in range(scores.size):
        scores[k] = state.bias[k]
    for place in range(rows.indptr[i], rows.indptr[i + 1]):
        column, value = rows.indices[place], rows.data[place]
        for k in range(scores.size):
            scores[k] += value * state.weights[column, k]


def visit_rows(
    rows: Rows, squares: FloatArray, order: IntArray, state: Descent, figures: PassFigures | None = None
) -> None:
    """Solve for the α of one row after the other; ``squares`` are the rows' squared lengths."""
    scores, change = np.zeros((2, state.bias.size), state.weights.dtype)
    changed = np.zeros(state.bias.size, np.int64)  # the problems whose α changed, often few
    _visit_rows(rows, squares, order, state, figures, scores, change, changed)


@njit_borrowing
def _visit_rows(
    rows: Rows, squares: FloatArray, order: IntArray, state: Descent, figures: PassFigures | None,
    scores: Row, change: Row, changed: IntArray,
) -> None:  # fmt: skip
    weights, alpha = state.weights, state.alpha
    for visit in range(order.size):
        i, count = order[visit], 0
        _scores(rows, i, state, scores)
        for k in range(scores.size):
            side = 1.0 if state.positive[i, k] else -1.0
            cost, old = state.cost[k, int(state.positive[i, k])] * state.row_weight[i], alpha[i, k]
            ridge, slack = 0.5 / cost, 1.0 - side * scores[k]
            new = alpha.dtype.type(max(old + (slack - old * ridge) / (squares[i] + 1.0 + ridge), 0.0))
            if new != old:
                step = side * new - side * old  # in double precision
                alpha[i, k], change[k] = new, step
                state.bias[k] += step
                changed[count] = k
                count += 1
            if figures is not None:
                loss = cost * max(0.0, slack) ** 2
                figures.loss[k] += loss
                figures.excess[k] += loss + old * (old * ridge / 2 - slack)
        for place in range(rows.indptr[i], rows.indptr[i + 1]):
            column, value = rows.indices[place], rows.data[place]
            for number in range(count):
                k = changed[number]
                weights[column, k] += value * change[k]
        if figures is not None:
            _add_to_means(rows, i, figures, visit, change, changed[:count])


@njit_inside
def _add_to_means(
    rows: Rows, i: int, figures: PassFigures, visit: int, change: Row, changed: IntArray
) -> None:
    """Add a change to the means, weighted by the share of the pass that is left, including this visit."""
    share = change.dtype.type(1.0 - (figures.visited + visit) / figures.of_rows)
    for number in range(changed.size):
        k = changed[number]
        figures.mean_bias[k] += share * change[k]
    for place in range(rows.indptr[i], rows.indptr[i + 1]):
        column, value = rows.indices[place], share * rows.data[place]
        for number in range(changed.size):
            k = changed[number]
            figures.mean_weights[column, k] += value * change[k]


def _relative_gap(rows: Rows, state: Descent) -> FloatArray:
    """Return (P - D) / P of every problem, the same whichever problems are solved together."""
    scores, penalty, loss, excess = np.zeros((4, state.bias.size))
    penalty[:] = state.bias**2 / 2
    _add_up(rows, state, scores, penalty, loss, excess)
    return excess / (loss + penalty)


@njit_borrowing
def _add_up(
    rows: Rows, state: Descent, scores: FloatArray, penalty: FloatArray, loss: FloatArray, excess: FloatArray
) -> None:
    for column in range(len(state.weights)):
        for k in range(scores.size):
            penalty[k] += state.weights[column, k] ** 2 / 2
    for i in range(len(state.alpha)):
        _scores(rows, i, state, scores)
        for k in range(scores.size):
            side = 1.0 if state.positive[i, k] else -1.0
            cost, alpha = state.cost[k, int(state.positive[i, k])] * state.row_weight[i], state.alpha[i, k]
            slack = 1.0 - side * scores[k]
            loss[k] += cost * max(0.0, slack) ** 2
            excess[k] += row_excess(alpha, slack, cost)


@njit_inside
def row_excess(alpha: float, slack: float, cost: float) -> float:
    """Return the contribution of a row to P - D; see the docstring of this module."""
    return cost * (max(0.0, slack) - alpha / (2 * cost)) ** 2 + alpha * max(0.0, -slack)
