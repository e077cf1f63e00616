"""Evaluate predicted numbers: R², MAE and RMSE with their intervals, and the comparison of two models.

The intervals are normal approximations (delta method): each figure is a smooth function of means over the
trees, so its standard error follows from what each tree adds to these means.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray
from treedot.models.evaluation import Z


class Estimate(NamedTuple):
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


class RegressionEvaluation(NamedTuple):
    """The quality of predicted numbers; ``r2`` is None if all true numbers are equal."""

    n_trees: int
    r2: Estimate | None
    mae: Estimate
    rmse: Estimate


class PairedTest(NamedTuple):
    """The mean difference of the squared errors of two models, and the p-value of the paired z-test."""

    difference: Estimate
    p_value: float


def evaluate_numbers(truth: FloatArray, predicted: FloatArray) -> RegressionEvaluation:
    """Compare predicted numbers with the true ones.

    Examples
    --------
    >>> found = evaluate_numbers(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 5.0]))
    >>> round(found.r2.value, 3), found.mae.value, found.rmse.value
    (0.8, 0.25, 0.5)
    """
    error = predicted - truth
    squares = error**2
    mean_square = _mean(squares)
    low, high = max(0.0, mean_square.low), max(0.0, mean_square.high)
    rmse = Estimate(math.sqrt(mean_square.value), math.sqrt(low), math.sqrt(high))
    mae = _mean(np.abs(error))
    return RegressionEvaluation(truth.size, _r2(truth, squares), mae._replace(low=max(0.0, mae.low)), rmse)


def compare_errors(truth: FloatArray, first: FloatArray, second: FloatArray) -> PairedTest:
    """Return the paired z-test of the squared errors of two predictions for the same trees.

    Examples
    --------
    >>> truth = np.zeros(4)
    >>> compare_errors(truth, truth + 1, truth + 1).p_value
    1.0
    """
    found = _mean((first - truth) ** 2 - (second - truth) ** 2)
    half = (found.high - found.low) / 2
    if half == 0.0:
        return PairedTest(found, 1.0 if found.value == 0.0 else 0.0)
    return PairedTest(found, math.erfc(abs(found.value) / (half / Z) / math.sqrt(2)))


def _r2(truth: FloatArray, squares: FloatArray) -> Estimate | None:
    """Return R² = 1 - E[e²] / V, where V is the variance of the truth."""
    spread = (truth - truth.mean()) ** 2
    variance = float(spread.mean())
    if variance == 0.0:
        return None
    share = float(squares.mean()) / variance
    influence = (share * spread - squares) / variance  # of each tree, with a mean of 0
    half = Z * float(influence.std()) / math.sqrt(truth.size)
    return Estimate(1.0 - share, 1.0 - share - half, min(1.0, 1.0 - share + half))


def _mean(values: FloatArray) -> Estimate:
    value, half = float(values.mean()), Z * float(values.std()) / math.sqrt(values.size)
    return Estimate(value, value - half, value + half)
