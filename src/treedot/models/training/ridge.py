"""Ridge regression by conjugate gradients, for several α at once.

Given rows x, numbers y and weights s, ridge regression minimises ``Σ s (y - w · x - b)² + α ‖w‖²``. The bias
b is not penalised, so both sides are centred: with X̃ = √S (X - 1 mᵀ) and ỹ = √S (y - ȳ), where m and ȳ are
the weighted means, the weights solve one of two systems,

    primal: (X̃ᵀX̃ + α I) w = X̃ᵀỹ        dual: (X̃X̃ᵀ + α I) a = ỹ,  w = X̃ᵀa

of which the smaller is solved; on a Gram matrix, always the dual. X̃ stays implicit: in the dual, where ỹ is
orthogonal to √s, centring is a projection. Systems that differ only in α have the same Krylov space, so one
sequence of products with X serves all of them (Jegerlehner 1996, *Krylov space solvers for shifted linear
systems*).

Iterations for an α end when the predictions for the training rows are exact up to ``tol`` deviations of y, as
a root mean square. If r is the residual, the error of the predictions is X̃X̃ᵀ (X̃X̃ᵀ + α I)⁻¹ r in the dual,
at most ‖r‖, and X̃ (X̃ᵀX̃ + α I)⁻¹ r in the primal, at most ‖r‖ / (2 √α).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, FloatArray

Operator = Callable[[FloatArray], FloatArray]


class RidgeFit(NamedTuple):
    """Weights and biases, one column for each α; on a Gram matrix, the weights of the training rows."""

    weights: FloatArray  # (columns, α)
    bias: FloatArray  # (α,)
    converged: BoolArray  # (α,)
    n_iter: int


def train_ridge(
    matrix: Any,
    y: FloatArray,
    alphas: Sequence[float],
    *,
    row_weight: FloatArray | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> RidgeFit:
    """Solve ridge regression for every α.

    Parameters
    ----------
    matrix : csr_matrix, or array
        The rows; an array is a Gram matrix.
    y : array, (rows,)
        The numbers to predict.
    alphas : sequence of float
        The strengths α of the penalty, all above 0.
    row_weight : array, (rows,), optional
        A positive weight for each row; by default 1.
    tol : float
        The error of the training predictions, in deviations of y, at which iterations end.
    max_iter : int
        The largest number of iterations.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> found = train_ridge(csr_matrix([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]), [1.0, 2.0])
    >>> found.weights.round(3).tolist(), found.bias.round(3).tolist()
    ([[1.333, 1.0]], [1.667, 2.0])
    """
    weight = np.ones(y.size) if row_weight is None else row_weight
    share = weight / weight.sum()
    mean = float(y[0] + share @ (y - y[0]))  # exact if all numbers are equal
    scale = float(np.abs(y - mean).max(initial=0.0))
    if scale == 0.0:
        width = matrix.shape[1]
        return RidgeFit(
            np.zeros((width, len(alphas))), np.full(len(alphas), mean), np.ones(len(alphas), bool), 0
        )
    centred = (y - mean) / scale
    is_gram = not hasattr(matrix, "indptr")
    rows = matrix if is_gram else matrix.astype(np.float64)
    chosen = _dual if is_gram or rows.shape[0] <= rows.shape[1] else _primal
    system = chosen(rows, centred, weight, np.asarray(alphas, float), tol)
    solution, converged, n_iter = shifted_cg(*system, max_iter)
    if chosen is _dual:
        solution *= np.sqrt(weight)[:, None]
        solution = solution if is_gram else rows.T @ solution
    solution *= scale
    return RidgeFit(solution, mean - share @ (rows @ solution), converged, n_iter)


def _dual(
    rows: Any, y: FloatArray, weight: FloatArray, alphas: FloatArray, tol: float
) -> tuple[Operator, FloatArray, FloatArray, FloatArray]:
    """Return X̃X̃ᵀ, ỹ, every α and the norm of the residual at which its iterations end."""
    root = np.sqrt(weight)
    unit = root / np.linalg.norm(root)
    gram = rows.dot if isinstance(rows, np.ndarray) else _gram_product(rows)

    def product(vector: FloatArray) -> FloatArray:
        outer = root * gram(root * vector)
        projected: FloatArray = outer - unit * (unit @ outer)
        return projected

    right = root * y
    return product, right, alphas, np.full(alphas.size, tol * np.linalg.norm(right))


def _gram_product(rows: Any) -> Operator:
    """Return the product with XXᵀ; columns with a single entry, often most, only add to its diagonal."""
    counts = np.bincount(rows.indices, minlength=rows.shape[1])
    alone = counts[rows.indices] == 1
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    diagonal = np.bincount(row[alone], rows.data[alone] ** 2, minlength=rows.shape[0])
    shared = rows[:, counts > 1]
    columns = shared.T.tocsr()
    return lambda vector: shared @ (columns @ vector) + diagonal * vector


def _primal(
    rows: Any, y: FloatArray, weight: FloatArray, alphas: FloatArray, tol: float
) -> tuple[Operator, FloatArray, FloatArray, FloatArray]:
    """Return X̃ᵀX̃, X̃ᵀỹ, every α and the norm of the residual at which its iterations end."""
    share, columns = weight / weight.sum(), rows.T.tocsr()

    def product(vector: FloatArray) -> FloatArray:
        found = rows @ vector
        result: FloatArray = columns @ (weight * (found - share @ found))
        return result

    ends = 2.0 * np.sqrt(alphas) * (tol * np.linalg.norm(np.sqrt(weight) * y))
    return product, columns @ (weight * y), alphas, ends


def shifted_cg(
    product: Operator, right: FloatArray, shifts: FloatArray, ends: FloatArray, max_iter: int
) -> tuple[FloatArray, BoolArray, int]:
    """Solve ``(A + σ I) x = b`` for every shift σ, by one sequence of products with A.

    Returns the solutions as columns, which of them converged to a residual of at most the norm in ``ends``,
    and the number of products. The residuals of all systems are multiples of the residual r of the system
    with the smallest shift, which converges last.

    Examples
    --------
    >>> matrix, right = np.diag([1.0, 2.0]), np.array([1.0, 1.0])
    >>> shifted_cg(matrix.dot, right, np.array([1.0, 2.0]), np.full(2, 1e-9), 10)[0].round(3).tolist()
    [[0.5, 0.333], [0.333, 0.25]]
    """
    least = float(shifts.min())
    beyond = shifts - least
    residual, direction = right.copy(), right.copy()
    found = np.zeros((shifts.size, right.size))
    directions = np.repeat(right[None], shifts.size, axis=0)
    factor, factor_before = np.ones(shifts.size), np.ones(shifts.size)  # residuals, as multiples of r
    square, step_before, turn_before = float(residual @ residual), 1.0, 0.0
    left = np.flatnonzero(np.sqrt(square) > ends)
    n_iter = 0
    while left.size and n_iter < max_iter:
        n_iter += 1
        image = product(direction) + least * direction
        step = square / float(direction @ image)
        residual -= step * image
        square, square_before = float(residual @ residual), square
        turn = square / square_before
        old, older = factor[left], factor_before[left]
        new = old * older * step_before
        new /= step * turn_before * (older - old) + older * step_before * (1.0 + beyond[left] * step)
        for k, share, own in zip(left, new / old, new, strict=True):
            found[k] += (step * share) * directions[k]
            directions[k] *= turn * share**2
            directions[k] += own * residual
        factor_before[left], factor[left] = old, new
        direction = residual + turn * direction
        step_before, turn_before = step, turn
        left = left[np.abs(new) * np.sqrt(square) > ends[left]]
    converged = np.ones(shifts.size, bool)
    converged[left] = False
    return np.ascontiguousarray(found.T), converged, n_iter
