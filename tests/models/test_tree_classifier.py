"""A classifier of trees whose settings are chosen by cross-validation."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
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
from treedot.models.inputs.table import Table
from treedot.models.inputs.vectorizer_input import VectorizerInput
from treedot.models.training import folds

PLAIN = {"idf": None, "words": False, "labels": False, "class_weight": None}  # nothing else to choose


@pytest.fixture(scope="module")
def questions():
    forest = read_trees("docs/examples/questions.tsv")
    return forest, np.array(forest.columns["label"])


def test_it_is_linear_svc_on_rows_of_fragments(questions):
    trees, y = questions
    exact = {"C": 5.0, "tol": 1e-7, "max_passes": 20_000}
    pipeline = make_pipeline(
        FragmentVectorizer(n_features=2**16, decay=0.3), LinearSVC(C=5.0, tol=1e-9, max_iter=100_000)
    )
    narrow = TreeClassifier(vectorizer=pipeline[0], decay=None, **exact).fit(trees, y)
    model = TreeClassifier(decay=0.3, **exact).fit(trees, y)
    wanted = pipeline.fit(trees, y).decision_function(trees)
    assert np.abs(narrow.decision_function(trees) - wanted).max() < 1e-3
    assert (model.predict(trees) == pipeline.predict(trees)).all()
    assert model.gap_ <= 1e-7
    assert model.selection_ == []


def test_the_settings_with_the_best_accuracy_in_cross_validation_are_taken(questions):
    trees, y = questions
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.2, "noise", y)
    model = TreeClassifier(decay=(0.4, 0.1), C=(0.01, 1, 10), cv=3, **PLAIN).fit(trees, y)
    assert {(trial.decay, trial.C) for trial in model.selection_} == {
        (decay, C) for decay in (0.1, 0.4) for C in (0.01, 1.0, 10.0)
    }
    for trial in model.selection_:
        one = TreeClassifier(decay=trial.decay, C=trial.C)
        splits = list(StratifiedKFold(3).split(y, y))
        right = [
            np.count_nonzero(one.fit(trees[train], y[train]).predict(trees[test]) == y[test])
            for train, test in splits
        ]
        assert trial.score == sum(right) / len(y)
        assert (trial.folds, trial.examples) == (3, splits[0][0].size)
    best = max(model.selection_, key=lambda trial: trial.score)
    assert best.chosen
    assert best == model.selection_[0]
    assert [trial.chosen for trial in model.selection_] == [True] + [False] * 5
    assert (model.decay_, model.C_) == (best.decay, best.C)


def test_trees_are_encoded_once_for_every_decay(questions, monkeypatch):
    trees, y = questions
    calls = []
    transform = FragmentVectorizer.transform
    monkeypatch.setattr(
        FragmentVectorizer, "transform", lambda self, X: calls.append(self.decay) or transform(self, X)
    )
    TreeClassifier(decay=(0.1, 0.4), C=(1, 10), cv=3, **PLAIN).fit(trees, y)
    assert calls[:2] == [0.1, 0.4]
    assert len(calls) == 3  # and once for the model


def test_what_a_vectorizer_learns_it_learns_from_the_trees_of_a_fold_alone(questions):
    trees, y = questions
    vectorizer = FragmentVectorizer(n_features=None, idf=True)
    inputs, weight = [VectorizerInput(None, vectorizer)], np.ones(len(y))
    task = folds.Task(Table({None: trees}), y, np.unique(y), weight, np.zeros((len(y), 0)))
    made = list(folds.row_folds(inputs, task, folds.split_folds(y, 4)))
    for fold in made:
        alone = FragmentVectorizer(n_features=None, idf=True).fit(trees[fold.train])
        assert fold.rows.sum() == pytest.approx(alone.transform(trees[fold.train]).sum())
        assert fold.left_out.sum() == pytest.approx(alone.transform(trees[fold.test]).sum(), rel=1e-5)
    model = TreeClassifier(vectorizer=vectorizer, decay=(0.2, 0.4), C=1).fit(trees, y)
    assert model.score(trees, y) > 0.9


def test_trees_of_a_group_are_never_on_both_sides():
    y = np.array(["a", "b"] * 20)
    groups = np.repeat(np.arange(10), 4)
    for train, test in folds.split_folds(y, 5, groups):
        assert not set(groups[train]) & set(groups[test])
    trees = random_forest(1, 40, 8)
    assert TreeClassifier(decay=0.4, C=(1, 10)).fit(trees, y, groups=groups).selection_
    with pytest.raises(ParameterError, match="cv=5 needs at least 5 groups"):
        TreeClassifier().fit(trees, y, groups=np.zeros(40))
    with pytest.raises(ParameterError, match="one group for each of the 40 trees"):
        TreeClassifier().fit(trees, y, groups=[1, 2])


def test_class_weights_shift_the_decision_to_rare_classes():
    trees = random_forest(2, 60, 6)
    y = np.array(["common"] * 54 + ["rare"] * 6)
    plain = TreeClassifier(decay=0.4, C=0.01).fit(trees, y)
    assert (plain.predict(trees) == "common").all()
    for weight in ("balanced", {"rare": 9.0}):
        model = TreeClassifier(decay=0.4, C=0.01, class_weight=weight).fit(trees, y)
        assert np.mean(model.decision_function(trees)) > np.mean(plain.decision_function(trees))


@pytest.mark.slow
def test_dense_vectors_and_rows_with_a_rest_are_options(questions):
    trees, y = questions
    for vectorizer in (
        DistributedTreeVectorizer(n_components=1024),
        DistributedTreeVectorizer(n_components=1024, kernel="partial", mu=0.3, gaps="span", max_length=3),
        FragmentVectorizer(n_features=4096, rest="dense", rest_size=256),
    ):
        model = TreeClassifier(vectorizer=vectorizer, C=10).fit(trees[:100], y[:100])
        assert model.score(trees[100:], y[100:]) > 0.8


def test_it_works_with_scikit_learns_calibration_and_cross_validation(questions):
    trees, y = questions
    model = TreeClassifier(decay=0.4, C=10)
    assert cross_val_score(model, trees, y, cv=3).mean() > 0.8
    sure = CalibratedClassifierCV(model, cv=3).fit(trees, y).predict_proba(trees)
    assert sure.sum(axis=1) == pytest.approx(1)


def test_progress_is_told_for_every_fold(questions):
    trees, y = questions
    told = []
    model = TreeClassifier(decay=(0.2, 0.4), C=(1, 10), cv=3, **PLAIN)
    model.fit(trees, y, progress=lambda done, total: told.append((done, total)))
    assert told == [(k + 1, 12) for k in range(12)]


def test_too_few_passes_are_told(questions):
    with pytest.warns(ConvergenceWarning, match=r"the duality gap is still .* after 1 passes"):
        TreeClassifier(decay=0.4, C=100, max_passes=1).fit(*questions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decay": 2}, "from 0 to 1, not 2"),
        ({"decay": []}, "decay must be one value or a non-empty sequence"),
        ({"C": 0}, "C must be a number above 0"),
        ({"C": ("a",)}, "C must be a number above 0"),
        ({"cv": 1}, "cv must be at least 2"),
        ({"scoring": "f1"}, "scoring must be one of 'accuracy', 'balanced_accuracy'"),
        ({"tol": 0}, "tol must be a number above 0"),
        ({"max_passes": 0}, "max_passes must be at least 1"),
        ({"class_weight": "even"}, "class_weight: "),
        ({"class_weight": {"person": -1}}, "class_weight must be a number above 0"),
        ({"vectorizer": FragmentVectorizer}, "vectorizer must be one such as FragmentVectorizer"),
        ({"vectorizer": SubsetTreeKernel()}, "vectorizer must be one such as FragmentVectorizer"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
    ],
)
def test_wrong_settings_are_told_before_any_work(questions, options, message):
    with pytest.raises(ParameterError, match=message):
        TreeClassifier(**options).fit(*questions)
