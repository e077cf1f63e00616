"""Figures of predicted numbers."""

import math

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from treedot.models.regression_evaluation import compare_errors, evaluate_numbers
from treedot.models.regression_report import RegressionReport, regression_page, regression_text


def sample(rng, n=300):
    truth = rng.normal(size=n)
    return truth, 0.8 * truth + rng.normal(scale=0.5, size=n)


def test_figures_are_those_of_scikit_learn():
    truth, predicted = sample(np.random.default_rng(0))
    found = evaluate_numbers(truth, predicted)
    assert found.r2.value == pytest.approx(r2_score(truth, predicted))
    assert found.mae.value == pytest.approx(mean_absolute_error(truth, predicted))
    assert found.rmse.value == pytest.approx(math.sqrt(mean_squared_error(truth, predicted)))


def test_intervals_cover_the_true_figures_in_most_samples():
    rng = np.random.default_rng(1)
    square = 0.2**2 + 0.5**2  # of the error, which is normal
    wanted = {"r2": 1 - square, "rmse": math.sqrt(square), "mae": math.sqrt(square * 2 / math.pi)}
    covered = dict.fromkeys(wanted, 0)
    for _ in range(400):
        found = evaluate_numbers(*sample(rng))
        for name, value in wanted.items():
            covered[name] += getattr(found, name).low <= value <= getattr(found, name).high
    assert all(0.91 <= count / 400 <= 0.98 for count in covered.values()), covered


def test_equal_numbers_have_no_r2_and_are_still_shown():
    truth = np.full(3, 2.0)
    found = evaluate_numbers(truth, truth)
    assert found.r2 is None
    report = RegressionReport("model", found, [], truth, truth)
    assert "R² undefined" in regression_text(report)
    assert regression_page(report).count("<circle") == 3


def test_the_better_of_two_models_is_significantly_better():
    rng = np.random.default_rng(2)
    truth, good = sample(rng)
    bad = good + rng.normal(size=truth.size)
    found = compare_errors(truth, good, bad)
    assert found.difference.high < 0
    assert found.p_value < 1e-6
    assert compare_errors(truth, bad, good).p_value == found.p_value
