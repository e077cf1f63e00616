"""Ridge regression by conjugate gradients, for several α at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse import random as random_sparse
from sklearn.linear_model import Ridge

from strategies import examples
from treedot.models.training.ridge import shifted_cg, train_ridge

ALPHAS = [0.05, 1.0, 30.0]


def problem(n_rows, n_columns, seed=0):
    """Return sparse rows, numbers that depend on them, and weights."""
    rng = np.random.default_rng(seed)
    rows = random_sparse(n_rows, n_columns, 0.2, format="csr", random_state=seed)
    y = 5 + rows @ rng.normal(size=n_columns) + rng.normal(size=n_rows)
    return csr_matrix(rows), y, rng.uniform(0.2, 3.0, n_rows)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(40, 200), (200, 40), (60, 60)])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_ridge_for_more_rows_and_for_more_columns(n_rows, n_columns, weighted):
    rows, y, weight = problem(n_rows, n_columns)
    weight = weight if weighted else None
    found = train_ridge(rows, y, ALPHAS, row_weight=weight, tol=1e-12)
    assert found.converged.all()
    for k, alpha in enumerate(ALPHAS):
        wanted = Ridge(alpha=alpha).fit(rows.toarray(), y, weight)
        assert found.weights[:, k] == pytest.approx(wanted.coef_, abs=1e-8)
        assert found.bias[k] == pytest.approx(wanted.intercept_, abs=1e-8)


def test_a_gram_matrix_gives_the_weights_of_the_rows():
    rows, y, weight = problem(50, 30)
    wanted = train_ridge(rows, y, ALPHAS, row_weight=weight, tol=1e-12)
    found = train_ridge((rows @ rows.T).toarray(), y, ALPHAS, row_weight=weight, tol=1e-12)
    assert rows.T @ found.weights == pytest.approx(wanted.weights, abs=1e-8)
    assert found.bias == pytest.approx(wanted.bias, abs=1e-8)


@settings(deadline=None, max_examples=examples(30))
@given(st.integers(2, 30), st.integers(1, 30), st.floats(1e-3, 100.0), st.integers(0, 1000))
def test_training_predictions_are_as_exact_as_tol(n_rows, n_columns, alpha, seed):
    rows, y, weight = problem(n_rows, n_columns, seed)
    for matrix in (rows, rows.T @ rows):  # fewer rows than columns, or as many
        y = y[: matrix.shape[0]] if matrix.shape[0] <= y.size else np.resize(y, matrix.shape[0])
        weight = np.resize(weight, y.size)
        matrix = csr_matrix(matrix)
        exact = train_ridge(matrix, y, [alpha], row_weight=weight, tol=1e-13)
        found = train_ridge(matrix, y, [alpha], row_weight=weight, tol=1e-2)
        error = matrix @ (found.weights - exact.weights) + found.bias - exact.bias
        spread = np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
        assert np.average(error[:, 0] ** 2, weights=weight) <= 1.01e-4 * spread + 1e-18


def test_scale_and_offset_of_the_numbers_do_not_matter():
    rows, y, _ = problem(40, 100)
    small, large = (train_ridge(rows, c * y + d, [1.0], tol=1e-10) for c, d in ((1, 0), (1e12, 7e12)))
    assert large.weights == pytest.approx(1e12 * small.weights, rel=1e-6, abs=1)
    assert large.n_iter == small.n_iter


def test_equal_numbers_need_no_weights():
    rows, y, _ = problem(10, 20)
    found = train_ridge(rows, np.full(y.size, 3.5), ALPHAS)
    assert not found.weights.any()
    assert found.bias.tolist() == [3.5] * 3


def test_an_iteration_too_few_is_reported_for_the_slowest_alpha_only():
    rows, y, _ = problem(60, 100)
    every = train_ridge(rows, y, [1e-3, 1e3], tol=1e-8)
    found = train_ridge(rows, y, [1e-3, 1e3], tol=1e-8, max_iter=every.n_iter - 1)
    assert found.converged.tolist() == [False, True]


def test_shifts_in_any_order_have_their_own_solutions():
    rng = np.random.default_rng(1)
    half = rng.normal(size=(12, 12))
    matrix, right, shifts = half @ half.T, rng.normal(size=12), np.array([5.0, 0.1, 50.0, 0.1])
    found, converged, _ = shifted_cg(matrix.dot, right, shifts, np.full(4, 1e-10), 100)
    assert converged.all()
    for k, shift in enumerate(shifts):
        assert found[:, k] == pytest.approx(np.linalg.solve(matrix + shift * np.eye(12), right), abs=1e-8)
