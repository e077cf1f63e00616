"""Linear support vector machines by dual coordinate descent, beside scikit-learn's LinearSVC."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from treedot.models.training.coordinate_descent import train_linear


def random_problem(seed, n_rows, n_columns, n_classes, share=0.2):
    """Return sparse rows, float32 as encoders make them, and classes that depend on them with errors."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n_rows, n_columns)) * (random.random((n_rows, n_columns)) < share)
    y = (x @ random.normal(size=(n_columns, n_classes)) + random.normal(size=n_classes)).argmax(axis=1)
    wrong = random.random(n_rows) < 0.1
    y[wrong] = random.integers(n_classes, size=wrong.sum())
    return csr_matrix(x.astype(np.float32)), y


def sides(y, n_classes):
    """Return which rows are on the positive side of each problem."""
    return y[:, None] == (np.array([1]) if n_classes == 2 else np.arange(n_classes))


def objective(rows, positive, cost, weights, bias):
    """Return P as its definition has it."""
    margins = np.where(positive, 1, -1) * (rows @ weights + bias)
    losses = np.where(positive, cost[:, 1], cost[:, 0]) * np.maximum(0, 1 - margins) ** 2
    return ((weights**2).sum(axis=0) + bias**2) / 2 + losses.sum(axis=0)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("n_rows", "n_columns"), [(120, 30), (60, 200)])
def test_it_converges_to_the_optimum_of_linear_svc(n_rows, n_columns, C, n_classes):
    rows, y = random_problem(n_rows, n_rows, n_columns, n_classes)
    positive, cost = sides(y, n_classes), np.full((1 if n_classes == 2 else n_classes, 2), C)
    found = train_linear(rows, positive, cost, tol=1e-9, max_passes=20_000)
    other = LinearSVC(C=C, tol=1e-10, max_iter=200_000).fit(rows, y)
    assert (found.gap <= 1e-9).all()
    assert np.abs(found.weights.T - other.coef_).max() < 2e-4
    assert found.bias == pytest.approx(other.intercept_, abs=2e-4)
    mine = objective(rows, positive, cost, found.weights, found.bias)
    theirs = objective(rows, positive, cost, other.coef_.T, other.intercept_)
    assert mine == pytest.approx(theirs, rel=1e-7)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sides_may_have_costs_of_their_own_as_class_weights_do(n_classes):
    rows, y = random_problem(3, 100, 40, n_classes)
    weight = {k: 0.5 + k for k in range(n_classes)}
    if n_classes == 2:
        cost = np.array([[weight[0], weight[1]]])
    else:
        cost = np.array([[1.0, weight[k]] for k in range(n_classes)])
    found = train_linear(rows, sides(y, n_classes), cost, tol=1e-9, max_passes=20_000)
    other = LinearSVC(class_weight=weight, tol=1e-10, max_iter=200_000).fit(rows, y)
    assert np.abs(found.weights.T - other.coef_).max() < 2e-4


def test_the_gap_is_that_of_the_objectives_and_bounds_the_distance_from_the_optimum():
    rows, y = random_problem(5, 80, 50, 3)
    positive, cost = sides(y, 3), np.full((3, 2), 2.0)
    best = train_linear(rows, positive, cost, tol=1e-12, max_passes=20_000)
    least = objective(rows, positive, cost, best.weights, best.bias)
    for passes in (1, 5, 20):
        found = train_linear(rows, positive, cost, tol=0.0, max_passes=passes)
        value = objective(rows, positive, cost, found.weights, found.bias)
        assert (found.passes == passes).all()
        assert (value * (1 - found.gap) <= least * (1 + 1e-12)).all()
        assert (value >= least * (1 - 1e-12)).all()


def test_problems_stop_when_they_are_solved():
    rows, y = random_problem(6, 100, 20, 3)
    cost = np.array([[0.01, 0.01], [1.0, 1.0], [100.0, 100.0]])
    found = train_linear(rows, sides(y, 3), cost, tol=1e-3, max_passes=5000)
    assert (found.gap <= 1e-3).all()
    assert found.passes[0] < found.passes[2]


def test_threads_and_other_problems_make_no_difference_to_a_byte():
    rows, y = random_problem(7, 90, 60, 5)
    positive, cost = sides(y, 5), np.full((5, 2), 3.0)
    wanted = train_linear(rows, positive, cost, n_jobs=1)
    for n_jobs in (2, 3, 5, 8):
        found = train_linear(rows, positive, cost, n_jobs=n_jobs)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))
    alone = train_linear(rows, positive[:, [2]], cost[[2]])
    assert alone.weights[:, 0].tobytes() == wanted.weights[:, 2].tobytes()


def test_the_seed_changes_the_way_and_not_the_end():
    rows, y = random_problem(8, 70, 40, 2)
    problem = rows, sides(y, 2), np.ones((1, 2))
    assert (train_linear(*problem, seed=1).weights != train_linear(*problem, seed=2).weights).any()
    one, other = (train_linear(*problem, tol=1e-10, max_passes=20_000, seed=seed) for seed in (1, 2))
    assert one.weights == pytest.approx(other.weights, abs=1e-4)


def test_empty_rows_count_by_the_bias_alone():
    rows = csr_matrix((6, 2), dtype=np.float32)
    positive = np.array([[True]] * 4 + [[False]] * 2)
    found = train_linear(rows, positive, np.ones((1, 2)), tol=1e-9, max_passes=5000)
    assert not found.weights.any()
    assert found.bias == pytest.approx([4 / 13], abs=1e-4)  # b + 2 · 4 (b - 1) + 2 · 2 (b + 1) = 0
