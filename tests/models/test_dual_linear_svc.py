"""Linear support vector machines that are trained on dot products."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from treedot import FragmentVectorizer
from treedot.models import DualLinearSVC

TREES = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_columns", [20, 100])  # fewer and more than the examples
def test_it_solves_the_problem_of_linear_svc(sparse, n_classes, n_columns):
    random = np.random.default_rng(1)
    x = random.normal(size=(60, n_columns)) * (random.random((60, n_columns)) < 0.2)
    y = random.integers(n_classes, size=60)
    rows = csr_matrix(x) if sparse else x
    model = DualLinearSVC(C=2.0, tol=1e-16, n_jobs=2).fit(rows[:40], y[:40])
    other = LinearSVC(C=2.0, dual=False, tol=1e-10).fit(x[:40], y[:40])
    coef = model.coef_.toarray() if sparse else model.coef_
    assert coef == pytest.approx(other.coef_, abs=1e-6)
    assert model.intercept_ == pytest.approx(other.intercept_, abs=1e-6)
    scores = model.decision_function(rows[40:]).reshape(20, -1)
    wanted = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    assert (model.predict(rows[40:]) == wanted).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_kept_for_the_columns_of_the_examples_alone(n_classes):
    random = np.random.default_rng(2)
    small = np.round(random.normal(size=(60, 100)) * (random.random((60, 100)) < 0.2), 3)
    y = random.integers(n_classes, size=60)
    spread = np.sort(random.choice(2**30, 100, replace=False))  # the same rows among very many columns
    found = csr_matrix(small)
    wide = csr_matrix((found.data, spread[found.indices], found.indptr), shape=(60, 2**30))
    model = DualLinearSVC(tol=1e-16).fit(wide[:30], y[:30])
    occur = np.flatnonzero(small[:30].any(axis=0))
    assert model.coef_.shape == (1 if n_classes == 2 else 3, 2**30)
    assert set(model.coef_.indices.tolist()) == set(spread[occur].tolist())
    assert model.coef_.nnz == len(model.intercept_) * occur.size
    narrow = DualLinearSVC(tol=1e-16).fit(small[:30], y[:30])
    assert narrow.coef_.shape == (len(model.intercept_), 100)
    assert model.decision_function(wide[30:]) == pytest.approx(narrow.decision_function(small[30:]))
    assert (model.predict(wide[30:]) == narrow.predict(small[30:])).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_may_be_pruned(n_classes):
    random = np.random.default_rng(5)
    rows = csr_matrix(random.normal(size=(40, 30)) * (random.random((40, 30)) < 0.2))
    wide = csr_matrix((rows.data, rows.indices * 2**25, rows.indptr), shape=(40, 2**30))
    model = DualLinearSVC().fit(wide, np.arange(40) % n_classes)
    model.coef_.data[np.abs(model.coef_.data) < 0.3] = 0
    wanted = model.decision_function(wide)
    before = model.coef_.nnz
    model.coef_.eliminate_zeros()
    assert 0 < model.coef_.nnz < before
    assert model.decision_function(wide) == pytest.approx(wanted)


def test_dense_and_sparse_rows_may_take_turns():
    random = np.random.default_rng(3)
    x = random.normal(size=(40, 30)) * (random.random((40, 30)) < 0.1)
    y = np.arange(40) % 3
    for train, test in ((x, csr_matrix(x)), (csr_matrix(x), x)):
        model = DualLinearSVC(tol=1e-16).fit(train[:25], y[:25])
        assert model.decision_function(test) == pytest.approx(model.decision_function(train))


@pytest.mark.parametrize("n_features", [2**14, 2**30])
def test_rows_and_svm_make_a_pipeline(n_features):
    model = make_pipeline(FragmentVectorizer(n_features=n_features), DualLinearSVC())
    assert model.fit(TREES, ["S", "S", "T", "T"]).predict(["(T (A e) (C e))"]).tolist() == ["T"]
