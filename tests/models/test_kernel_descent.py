"""Support vector machines on a Gram matrix, beside those on rows and beside their definition."""

import numpy as np
import pytest

from models.test_coordinate_descent import objective, random_problem, sides
from treedot.models.training.coordinate_descent import PASSES_PER_CHECK, train_linear
from treedot.models.training.kernel_descent import train_kernel


def gram_of(rows):
    rows = rows.astype(np.float64)
    return (rows @ rows.T).toarray()


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize(("n_rows", "n_columns"), [(120, 30), (60, 200)])
def test_it_finds_the_optimum_that_rows_have(n_rows, n_columns, C, n_classes):
    rows, y = random_problem(n_rows, n_rows, n_columns, n_classes)
    positive, cost = sides(y, n_classes), np.full((1 if n_classes == 2 else n_classes, 2), C)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, n_rows)
    settings = {"row_weight": weight, "tol": 1e-10, "max_passes": 20_000}
    by_rows = train_linear(rows, positive, cost, **settings)
    found = train_kernel(gram_of(rows), positive, cost, **settings)
    assert (found.gap <= 1e-10).all()
    assert rows.T @ found.weights == pytest.approx(by_rows.weights, abs=1e-4)
    assert found.bias == pytest.approx(by_rows.bias, abs=1e-4)


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_objective_is_within_tol_of_the_optimum(tol, C):
    rows, y = random_problem(5, 150, 60, 3)
    positive, cost = sides(y, 3), np.full((3, 2), C)
    best = train_kernel(gram_of(rows), positive, cost, tol=1e-12, max_passes=100_000)
    found = train_kernel(gram_of(rows), positive, cost, tol=tol, max_passes=100_000)
    least, value = (objective(rows, positive, cost, rows.T @ fit.weights, fit.bias) for fit in (best, found))
    assert (found.gap <= tol).all()
    assert (value * (1 - found.gap) <= least * (1 + 1e-9)).all()
    assert (value >= least * (1 - 1e-9)).all()


def test_problems_stop_at_the_first_check_that_finds_them_solved():
    rows, y = random_problem(6, 100, 40, 3)
    problem = gram_of(rows), sides(y, 3), np.array([[0.01, 0.01], [1.0, 1.0], [100.0, 100.0]])
    found = train_kernel(*problem, tol=1e-3)
    assert found.passes[0] < found.passes[2]
    assert (found.passes % PASSES_PER_CHECK == 0).all()
    for k in np.flatnonzero(found.passes > PASSES_PER_CHECK).tolist():
        before = train_kernel(*problem, tol=1e-3, max_passes=int(found.passes[k]) - PASSES_PER_CHECK)
        assert before.gap[k] > 1e-3


def test_a_loose_fit_keeps_no_more_support_vectors_than_a_tight_one_by_far():
    rows, y = random_problem(7, 200, 20, 3)
    problem = gram_of(rows), sides(y, 3), np.full((3, 2), 1.0)
    loose, tight = (np.count_nonzero(train_kernel(*problem, tol=tol).weights) for tol in (1e-2, 1e-8))
    assert loose <= 1.1 * tight


def test_threads_and_other_problems_make_no_difference_to_a_byte():
    rows, y = random_problem(7, 90, 60, 5)
    gram, positive, cost = gram_of(rows), sides(y, 5), np.full((5, 2), 3.0)
    wanted = train_kernel(gram, positive, cost, n_jobs=1)
    for n_jobs in (2, 3, 8):
        found = train_kernel(gram, positive, cost, n_jobs=n_jobs)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))
    alone = train_kernel(gram, positive[:, [2]], cost[[2]])
    assert alone.weights[:, 0].tobytes() == wanted.weights[:, 2].tobytes()
