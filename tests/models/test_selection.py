"""How cross-validation chooses settings: folds, scores, thresholds, balanced weights, halving."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from strategies import random_forest
from treedot import FragmentVectorizer, SubsetTreeKernel, TreeClassifier, read_trees
from treedot.models.inputs.table import Table
from treedot.models.training.candidates import candidates, input_candidates
from treedot.models.training.folds import SharedRows, Task, row_folds, split_folds
from treedot.models.training.scoring import OF_CLASSES, Truth, kept, log_loss, scored
from treedot.models.training.thresholds import best_threshold, chosen_threshold
from treedot.models.training.trials import Trial
from treedot.parameters import DAMPINGS, SCORINGS

QUESTIONS = read_trees("docs/examples/questions.tsv")
CLASSES = np.array(QUESTIONS.columns["label"])
SEEDS = st.integers(0, 2**32 - 1)


def held_out(seed, n_classes):
    """Return scores and their truth; every class occurs."""
    random = np.random.default_rng(seed)
    number = np.concatenate([np.arange(n_classes), random.integers(n_classes, size=20)])
    problems = 1 if n_classes == 2 else n_classes
    scores = random.normal(size=(number.size, problems)).round(1)
    return scores, Truth(number, random.integers(1, 4, number.size).astype(float), n_classes)


@settings(max_examples=20)
@given(seed=SEEDS, n_classes=st.integers(2, 4))
def test_scores_are_those_of_scikit_learn(seed, n_classes):
    scores, (y, weight, _) = held_out(seed, n_classes)
    truth = Truth(y, weight, n_classes)
    predicted = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    sides = y == 1 if n_classes == 2 else y[:, None] == np.arange(n_classes)
    wanted = {
        "accuracy": metrics.accuracy_score(y, predicted, sample_weight=weight),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted, sample_weight=weight),
        "f1_macro": metrics.f1_score(y, predicted, average="macro", sample_weight=weight),
        "average_precision": metrics.average_precision_score(sides, scores.squeeze(), sample_weight=weight),
    }
    for name, value in wanted.items():
        assert scored(name, kept(name, scores), truth) == pytest.approx(value)


@settings(max_examples=20)
@given(seed=SEEDS, n_classes=st.integers(2, 4))
def test_log_loss_is_that_of_the_best_temperature(seed, n_classes):
    scores, truth = held_out(seed, n_classes)
    found = log_loss(scores, truth)
    both = np.hstack([np.zeros_like(scores), scores]) if n_classes == 2 else scores
    for temperature in (0.01, 0.1, 0.5, 1.0, 2.0, 5.0):
        shares = np.exp(temperature * both)
        shares /= shares.sum(axis=1, keepdims=True)
        labels = np.arange(n_classes)
        loss = metrics.log_loss(truth.number, shares, labels=labels, sample_weight=truth.weight)
        assert found <= loss + 1e-4
    assert found <= np.log(n_classes) + 1e-4


@given(seed=SEEDS, scoring=st.sampled_from(OF_CLASSES))
def test_the_best_threshold_is_the_best_of_all(seed, scoring):
    scores, truth = held_out(seed, 2)

    def value(threshold):
        return scored(scoring, scores - threshold, truth)

    limits = np.unique(scores)
    every = [0.0, *(limits[:-1] + limits[1:]) / 2]
    best = best_threshold(scoring, scores[:, 0], truth)
    assert value(best) == pytest.approx(max(map(value, every)))
    assert abs(best) == min(abs(each) for each in every if value(each) >= value(best) - 1e-12)


def test_a_threshold_has_to_pay_on_examples_that_it_was_not_chosen_from():
    fold = np.repeat(np.arange(5), 40)
    moved = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        truth = Truth(random.integers(2, size=200), np.ones(200), 2)
        noise = random.normal(size=200)
        moved += chosen_threshold("accuracy", truth.number - 0.5 + noise, truth, fold) != 0
        shifted = chosen_threshold("accuracy", truth.number * 2 - 3 + noise / 3, truth, fold)
        assert -3 < shifted < -1
        assert chosen_threshold("average_precision", truth.number * 2 - 3 + noise, truth, fold) == 0
    assert moved <= 8


def test_there_are_at_most_as_many_folds_as_examples_of_the_smallest_class():
    y = np.array(["a"] * 20 + ["b"] * 3)
    assert len(split_folds(y, 5)) == 3
    assert len(split_folds(y, 2)) == 2
    trees = random_forest(1, 23, 8)
    assert {trial.folds for trial in TreeClassifier(decay=0.4, C=(1, 10)).fit(trees, y).selection_} >= {3}


def test_a_class_of_one_tree_leaves_nothing_to_choose_by():
    y = np.where(np.arange(60) == 7, "alone", CLASSES[:60])
    with pytest.warns(UserWarning, match="a class has a single tree.* taking decay 0.4, C 10") as told:
        model = TreeClassifier().fit(QUESTIONS[:60], y)
    assert len(told) == 1
    assert (model.decay_, model.C_, model.idf_, model.words_, model.balanced_) == (
        0.4,
        10,
        True,
        False,
        False,
    )
    assert model.selection_ == []
    with pytest.warns(UserWarning, match="taking decay 0.3, C 1"):
        few = TreeClassifier(decay=(0.1, 0.3), C=(0.1, 1)).fit(QUESTIONS[:40], y[:40])
    assert few.idf_ is False
    with pytest.warns(UserWarning, match="a class has a single tree"):
        assert TreeClassifier(damping=DAMPINGS).fit(QUESTIONS[:40], y[:40]).damping_ == "sqrt"


@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_setting_with_the_best_score_is_chosen(scoring):
    y = np.where(np.random.default_rng(0).random(90) < 0.2, "person", CLASSES[:90])
    weight = np.random.default_rng(1).integers(1, 4, 90)
    options = {"decay": (0.1, 0.4), "C": (0.01, 10), "cv": 3, "words": False, "labels": False, "idf": None}
    model = TreeClassifier(**options, class_weight=None, scoring=scoring)
    model.fit(QUESTIONS[:90], y, weight)
    assert model.selection_[0].score == max(trial.score for trial in model.selection_)
    for trial in model.selection_:
        one = TreeClassifier(decay=trial.decay, C=trial.C)
        found, truth = np.zeros((90, model.classes_.size)), np.searchsorted(model.classes_, y)
        for train, test in split_folds(y, 3):
            found[test] = one.fit(QUESTIONS[train], y[train], weight[train]).decision_function(
                QUESTIONS[test]
            )
        wanted = Truth(truth, weight.astype(float), model.classes_.size)
        assert trial.score == pytest.approx(scored(scoring, kept(scoring, found), wanted))


def test_rare_classes_may_get_balanced_weights_and_a_threshold():
    many, few = np.flatnonzero(CLASSES != "place")[:200], np.flatnonzero(CLASSES == "place")[:10]
    chosen = np.concatenate([many, few])
    y = CLASSES[chosen] == "place"
    model = TreeClassifier(decay=0.4, C=(0.1, 1), words=False, labels=False, idf=None)
    model.fit(QUESTIONS[chosen], y)
    assert sorted((trial.C, trial.balanced) for trial in model.selection_) == [
        (C, balanced) for C in (0.1, 1) for balanced in (False, True)
    ]
    never = TreeClassifier(decay=0.4, C=(0.1, 1), class_weight=None, scoring="balanced_accuracy")
    never.fit(QUESTIONS[chosen], y)
    assert not any(trial.balanced for trial in never.selection_)
    assert never.threshold_ < 0
    same = TreeClassifier(
        decay=0.4, C=never.C_, words=never.words_, labels=never.labels_, idf=never.idf_, class_weight=None
    ).fit(QUESTIONS[chosen], y)
    np.testing.assert_allclose(
        never.decision_function(QUESTIONS), same.decision_function(QUESTIONS) - never.threshold_
    )


def test_what_is_left_to_the_estimator():
    def tried(**options):
        model = TreeClassifier(**options)
        return {(each.settings.idf, each.settings.words) for each in input_candidates(model)}

    assert len(tried()) == len(tried(decay=0.4)) == len(tried(C=10)) == 4
    assert len(tried(tree_columns=["a", "b"], number_columns=["n"], text_columns=["t"])) == 4
    kernel = SubsetTreeKernel(normalize=True)
    assert candidates(TreeClassifier())[1] == [0.01, 0.1, 1, 10]
    assert candidates(TreeClassifier(kernel=kernel))[1] == [0.01, 0.1, 1, 10, 30]
    assert candidates(TreeClassifier(kernel=kernel, C=(3, 1)))[1] == [1, 3]
    for options in (
        {"decay": 0.4, "C": 10},
        {"vectorizer": FragmentVectorizer(idf=True)},
        {"kernel": SubsetTreeKernel(normalize=True)},
    ):
        assert tried(**options) == {(None, False)}


def test_inputs_that_candidates_share_have_the_rows_of_their_own():
    y = CLASSES[:60]
    model = TreeClassifier(decay=(0.2, 0.4))
    candidates = input_candidates(model)
    task = task_of(QUESTIONS[:60], y)
    folds = split_folds(y, 3)
    rows = SharedRows(task, folds)
    for candidate in candidates:
        for number, alone in enumerate(row_folds(candidate.inputs, task, folds)):
            shared = rows.fold(candidate.inputs, number)
            assert (shared.rows != alone.rows).nnz == 0
            assert (shared.left_out != alone.left_out).nnz == 0
    assert len({id(each) for candidate in candidates for each in candidate.inputs}) == 2 * 2 + 2 * 2


def task_of(trees, y):
    return Task(Table({None: trees}), y, np.unique(y), np.ones(y.size), np.zeros((y.size, 0), bool))


def test_the_selection_is_a_table(tmp_path):
    model = TreeClassifier(decay=(0.2, 0.4), C=(1, 10), n_jobs=2).fit(QUESTIONS, CLASSES)
    table = pd.DataFrame(model.selection_)
    assert list(table.columns) == list(Trial._fields)
    assert table.chosen.sum() == 1
    assert table.chosen[0]
    assert (table.seconds > 0).all()
    assert (table.folds[:2] == 5).all()
    assert table.examples.max() == 240
    model.save(tmp_path / "model")
    alone = TreeClassifier(decay=(0.2, 0.4), C=(1, 10)).fit(QUESTIONS, CLASSES)
    alone.save(tmp_path / "alone")
    for name in ("config.json", "weights.safetensors"):
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
    assert TreeClassifier.load(tmp_path / "model").selection_ == [
        trial._replace(seconds=None) for trial in model.selection_
    ]


def test_trials_of_older_models_are_read():
    old = {"decay": 0.4, "C": 1.0, "accuracy": 0.5, "idf": None, "damping": None, "words": False, "folds": 5}
    assert Trial.restored(**old) == Trial(0.4, 1.0, 0.5, folds=5)
    for damage in ({"accuracy": "x"}, {"accuracy": float("nan")}, {"C": -1}, {"more": 1}, {"folds": 0}):
        with pytest.raises((ValueError, TypeError)):
            Trial.restored(**{**old, **damage})


@pytest.mark.parametrize(
    ("counts", "scoring"), [((40, 4), "neg_log_loss"), ((40, 5), "accuracy"), ((40, 4, 4), "accuracy")]
)
def test_settings_for_a_rare_class_are_chosen_by_the_log_loss(counts, scoring):
    y = np.repeat(np.arange(len(counts)), counts)
    trees = [f"(S (A a{k % 7}) (B b{label}))" for k, label in enumerate(y.tolist())]
    model = TreeClassifier(decay=0.4, C=(0.1, 1), words=False, labels=False, idf=False).fit(trees, y)
    assert model.scoring_ == scoring
    assert all((trial.score <= 0) == (scoring == "neg_log_loss") for trial in model.selection_)
    assert model.set_params(scoring="accuracy").fit(trees, y).scoring_ == "accuracy"
