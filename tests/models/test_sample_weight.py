"""Weights of examples: copies, rows that are not there, and what is refused."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    SubsetTreeKernel,
    TreeClassifier,
    read_trees,
)
from treedot.errors import ParameterError
from treedot.models import DualLinearSVC

EXACT = {"tol": 1e-14, "max_passes": 50_000}
TREES = {
    "rows": {"vectorizer": FragmentVectorizer(n_features=2**16), "decay": 0.4},
    "a dictionary": {"vectorizer": FragmentVectorizer(n_features=None), "decay": 0.4},
    "vectors": {"vectorizer": DistributedTreeVectorizer(n_components=256), "decay": 0.2},
    "kernel": {"kernel": SubsetTreeKernel(normalize=True), "decay": 0.3},
    "balanced": {"class_weight": "balanced", "decay": 0.4},
}


@pytest.fixture(scope="module")
def forest():
    return random_forest(7, 40, 9)


def classes_and_weights(n_classes, n=40):
    random = np.random.default_rng(n_classes)
    return np.array(["a", "b", "c"])[random.integers(n_classes, size=n)], random.integers(4, size=n)


def repeated(y, weight):
    return np.repeat(np.arange(y.size), weight)


def assert_same_model(one, other, trees):
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.columns_.tolist() == other.columns_.tolist()
    assert one.weights_ == pytest.approx(other.weights_, abs=1e-6)
    assert one.intercept_ == pytest.approx(other.intercept_, abs=1e-6)
    assert one.decision_function(trees) == pytest.approx(other.decision_function(trees), abs=2e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", sorted(set(TREES) - {"kernel"}))
def test_integer_weights_give_the_coefficients_of_repeated_trees(forest, kind, n_classes):
    y, weight = classes_and_weights(n_classes)
    copies = repeated(y, weight)
    model = TreeClassifier(C=2.0, **TREES[kind], **EXACT)
    weighted = model.fit(forest, y, weight)
    again = TreeClassifier(C=2.0, **TREES[kind], **EXACT).fit(forest[copies], y[copies])
    assert_same_model(weighted, again, forest)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_integer_weights_of_a_kernel_score_as_repeated_trees(forest, n_classes):
    y, weight = classes_and_weights(n_classes)
    copies = repeated(y, weight)
    weighted = TreeClassifier(C=2.0, **TREES["kernel"], **EXACT).fit(forest, y, weight)
    again = TreeClassifier(C=2.0, **TREES["kernel"], **EXACT).fit(forest[copies], y[copies])
    assert weighted.decision_function(forest) == pytest.approx(again.decision_function(forest), abs=2e-6)
    assert weighted.intercept_ == pytest.approx(again.intercept_, abs=1e-6)


@pytest.mark.parametrize("kind", TREES)
def test_a_weight_of_0_is_a_tree_that_is_not_there(forest, kind):
    y, weight = classes_and_weights(3)
    weight = weight > 0
    model = TreeClassifier(C=2.0, **TREES[kind]).fit(forest, y, weight)
    without = TreeClassifier(C=2.0, **TREES[kind]).fit(forest[weight], y[weight])
    assert model.weights_.tobytes() == without.weights_.tobytes()
    assert model.columns_.tobytes() == without.columns_.tobytes()
    assert model.intercept_.tobytes() == without.intercept_.tobytes()


def test_numbers_are_standardised_by_weight():
    y, weight = classes_and_weights(2, 20)
    copies = repeated(y, weight)
    random = np.random.default_rng(5)
    table = {"tree": [str(tree) for tree in random_forest(3, 20, 5)], "n": random.normal(5, 3, 20).tolist()}
    more = {name: [values[i] for i in copies] for name, values in table.items()}
    settings = {"number_columns": ["n"], "decay": 0.4, "C": 1.0, **EXACT}
    weighted = TreeClassifier(**settings).fit(table, y, weight)
    again = TreeClassifier(**settings).fit(more, y[copies])
    assert weighted.inputs_[1].mean == pytest.approx(again.inputs_[1].mean, rel=1e-12)
    assert weighted.inputs_[1].scale == pytest.approx(again.inputs_[1].scale, rel=1e-12)
    assert_same_model(weighted, again, table)


def test_a_class_without_weight_is_not_a_class(forest):
    y = np.array(["a", "b", "c", "d"] * 10)
    model = TreeClassifier(decay=0.4, C=1.0, cv=2).fit(forest, y, y != "d")
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.weights_.shape[1] == 3
    rows = csr_matrix(np.random.default_rng(0).normal(size=(40, 8)))
    assert DualLinearSVC().fit(rows, y, sample_weight=y != "d").classes_.tolist() == ["a", "b", "c"]


def test_cross_validation_trains_and_scores_by_weight(forest):
    y, _ = classes_and_weights(2)
    weight = np.random.default_rng(3).random(40) * 5
    model = TreeClassifier(
        decay=(0.2, 0.4), C=(0.1, 10), cv=3, words=False, labels=False, idf=None, class_weight=None
    ).fit(forest, y, weight)
    for trial in model.selection_:
        right = 0.0
        for train, test in StratifiedKFold(3).split(y, y):
            one = TreeClassifier(decay=trial.decay, C=trial.C).fit(forest[train], y[train], weight[train])
            right += weight[test][one.predict(forest[test]) == y[test]].sum()
        assert trial.score == pytest.approx(right / weight.sum())


def timeless(model):
    return [trial.stored() for trial in model.selection_]


def test_groups_follow_the_trees_that_have_weight(forest):
    y, weight = classes_and_weights(2)
    groups = np.repeat(np.arange(10), 4)
    settings = {"decay": (0.2, 0.4), "C": 1.0, "cv": 3}
    weighted = TreeClassifier(**settings).fit(forest, y, weight > 0, groups=groups)
    used = weight > 0
    without = TreeClassifier(**settings).fit(forest[used], y[used], groups=groups[used])
    assert timeless(weighted) == timeless(without)


def test_fractions_weigh_as_in_linear_svc(forest):
    y, _ = classes_and_weights(3)
    weight = np.random.default_rng(1).random(40) * 3
    vectorizer = FragmentVectorizer(n_features=2**12)
    other = LinearSVC(C=2.0, tol=1e-10, max_iter=200_000)
    other.fit(vectorizer.transform(forest), y, sample_weight=weight)
    model = TreeClassifier(vectorizer=vectorizer, decay=None, C=2.0, tol=1e-10, max_passes=20_000)
    model.fit(forest, y, weight)
    assert np.abs(model.weights_.T - other.coef_[:, model.columns_]).max() < 2e-4


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_integer_weights_give_the_coefficients_of_repeated_rows(sparse, n_classes):
    random = np.random.default_rng(4)
    x = random.normal(size=(40, 60)) * (random.random((40, 60)) < 0.3)
    y, weight = classes_and_weights(n_classes)
    copies = repeated(y, weight)
    rows = csr_matrix(x) if sparse else x
    weighted = DualLinearSVC(C=2.0, tol=1e-16).fit(rows, y, weight)
    again = DualLinearSVC(C=2.0, tol=1e-16).fit(rows[copies], y[copies])
    one, other = (m.coef_.toarray() if sparse else m.coef_ for m in (weighted, again))
    assert one == pytest.approx(other, abs=1e-6)
    assert weighted.intercept_ == pytest.approx(again.intercept_, abs=1e-6)
    without = DualLinearSVC(C=2.0, tol=1e-16).fit(rows[weight > 0], y[weight > 0])
    masked = DualLinearSVC(C=2.0, tol=1e-16).fit(rows, y, weight > 0)
    assert masked.decision_function(rows).tobytes() == without.decision_function(rows).tobytes()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([1.0] * 39, "one weight for each of the 40"),
        (np.ones((40, 1)), "one weight for each of the 40"),
        ([1.0] * 39 + [-1.0], "not be negative: that of example 40"),
        ([1.0] * 39 + [np.nan], "finite: that of example 40"),
        ([np.inf] + [1.0] * 39, "finite: that of example 1 "),
        ([1e-200] + [1.0] * 39, "from 1e-100 to 1e\\+100"),
        (np.zeros(40), "zero for every example"),
        (0.0, "zero for every example"),
        (["a"] * 40, "give groups by name"),
        (["1"] * 40, "give groups by name"),
        (np.array(["1"] * 40, object), "give groups by name"),
        ([None] * 40, "finite: that of example 1 "),
        ([{}] * 40, "must hold numbers"),
        (np.arange(40) % 2 == 0, "at least two classes"),
    ],
)
def test_weights_that_make_no_sense_are_refused(forest, wrong, message):
    y = np.array(["a", "b"] * 20)
    with pytest.raises(ParameterError, match=message):
        TreeClassifier(decay=0.4, C=1.0).fit(forest, y, wrong)
    with pytest.raises(ParameterError, match=message):
        DualLinearSVC().fit(np.eye(40), y, wrong)


def test_one_number_is_the_weight_of_all(forest):
    y, _ = classes_and_weights(2)
    model = TreeClassifier(decay=0.4, C=1.0).fit(forest, y, 2.0)
    assert model.weights_.tobytes() == TreeClassifier(decay=0.4, C=2.0).fit(forest, y).weights_.tobytes()


def test_the_third_argument_is_never_taken_for_groups(forest):
    y = np.array(["a", "b"] * 20)
    with pytest.raises(ParameterError, match="give groups by name"):
        TreeClassifier(decay=0.4, C=1.0).fit(forest, y, np.repeat(["x", "y", "z", "u"], 10))
    with pytest.raises(ParameterError, match="one group for each of the 40 trees"):
        TreeClassifier(decay=0.4, C=1.0).fit(forest, y, groups=[1, 2])


def test_calibration_hands_weights_on():
    questions = read_trees("docs/examples/questions.tsv")
    y = np.array(questions.columns["label"])
    weight = np.where(y == y[0], 5.0, 1.0)
    model = CalibratedClassifierCV(TreeClassifier(decay=0.4, C=1.0), cv=2)
    plain, weighted = (
        model.fit(questions, y, sample_weight=w).predict_proba(questions) for w in (None, weight)
    )
    column = model.classes_.tolist().index(y[0])
    assert weighted[:, column].mean() > plain[:, column].mean()
