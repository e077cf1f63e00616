"""Probabilities from scores: against a plain definition, for odd scores, and in models and folders."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import cross_val_predict, cross_val_score

from treedot import LinearModel, SubsetTreeKernel, TreeClassifier, TreeRegressor, read_trees
from treedot._storage import described_folder
from treedot.errors import ParameterError, SourceError
from treedot.models.probability_evaluation import evaluate_probabilities
from treedot.models.training.calibrating import (
    ScoredExamples,
    _Problem,
    calibrated,
    calibration_folds,
    fit_calibration,
)
from treedot.models.training.folds import Task
from treedot.models.training.model_selection import HeldOut


def held_out(seed, n, n_classes, noise=1.0, shift=0.0):
    """Return scores that point to the true class, with noise and a shift of the first class."""
    rng = np.random.default_rng(seed)
    number = rng.integers(n_classes, size=n)
    scores = rng.normal(size=(n, n_classes)) * noise + np.eye(n_classes)[number]
    scores[:, 0] += shift
    if n_classes == 2:
        scores = scores[:, 1:] - scores[:, :1]
    return ScoredExamples(scores, number, rng.uniform(0.5, 2.0, n))


def plain(given, n_classes, penalty, with_doubt):
    """Return the least loss of the definition, and its probabilities, by a method without gradients."""
    scores, number, weight = given
    table = np.hstack([np.zeros((len(scores), 1)), scores]) if n_classes == 2 else scores
    weight = weight * weight.sum() / (weight**2).sum()
    n = weight.sum()
    targets = np.full((len(scores), n_classes), 1 / (n + 2) / (n_classes - 1))
    targets[np.arange(len(scores)), number] = 1 - 1 / (n + 2)

    def probabilities(x):
        doubt = x[1] if with_doubt else 0.0
        return (1 - doubt) * softmax(x[0] * table + x[2:], axis=1) + doubt / n_classes

    def loss(x):
        likelihood = (weight[:, None] * targets * np.log(probabilities(x))).sum()
        return penalty / 2 * (x[2:] ** 2).sum() - likelihood

    bounds = [(0, None), (0, 0.5), *[(None, None)] * n_classes]
    start = np.array([1.0, 0.01, *[0.0] * n_classes])
    options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-7, "fatol": 1e-10, "adaptive": True}
    found = minimize(loss, start, method="Nelder-Mead", bounds=bounds, options=options)
    return found.fun, probabilities(found.x)


def problem_of(given, n_classes):
    """Return the problem that ``fit_calibration`` solves, by catching it."""
    seen = []

    class Caught(_Problem):
        def solved(self):
            seen.append(self)
            return super().solved()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("treedot.models.training.calibrating._Problem", Caught)
        fit_calibration(given, n_classes)
    return seen[0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("with_doubt", [False, True])
def test_the_minimum_is_that_of_the_plain_definition(n_classes, with_doubt):
    given = held_out(1, 60, n_classes, shift=0.7)
    problem = problem_of(given, n_classes)
    for penalty in (0.1, 3.0):
        start = np.append([1.0, 0.01 if with_doubt else 0.0], np.zeros(n_classes))
        _, loss = problem._minimum(start, penalty, 0.5 if with_doubt else 0.0)
        wanted, _ = plain(given, n_classes, penalty, with_doubt)
        assert loss == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_penalty_agrees_with_the_biases_and_the_result_with_the_penalty(n_classes):
    given = held_out(2, 500, n_classes, shift=1.5)
    found = fit_calibration(given, n_classes)
    table = np.hstack([np.zeros((500, 1)), given.scores]) if n_classes == 2 else given.scores
    p = found.probabilities(given.scores)
    assert found.doubt == 0.0
    assert p == pytest.approx(softmax(found.scale * table + found.bias, axis=1))
    weight = given.weight * given.weight.sum() / (given.weight**2).sum()
    curvature = (p * (1 - p) * weight[:, None]).sum(axis=0)
    penalty = 1.0
    for _ in range(100):
        penalty = (curvature / (curvature + penalty)).sum() / (found.bias**2).sum()
    assert np.abs(p - plain(given, n_classes, penalty, False)[1]).max() < 0.01


def test_a_shift_of_a_class_is_taken_back_and_no_shift_gets_hardly_a_bias():
    shifted = fit_calibration(held_out(3, 3000, 3, shift=1.0), 3)
    assert shifted.bias[0] - shifted.bias[1:].mean() == pytest.approx(-shifted.scale, rel=0.15)
    level = fit_calibration(held_out(3, 3000, 3), 3)
    assert np.abs(level.bias).max() < 0.1


def test_gaussian_scores_get_the_probabilities_of_bayes_rule():
    errors = []
    for seed in range(5):
        given = held_out(seed, 4000, 3)._replace(weight=np.ones(4000))
        found = fit_calibration(given, 3)  # noise of variance 1: the log odds are the scores' differences
        errors.append(found.scale - 1.0)
        assert np.abs(found.probabilities(given.scores) - softmax(given.scores, axis=1)).max() < 0.06
    assert abs(np.mean(errors)) < 0.03


def test_examples_without_information_get_a_doubt():
    given = held_out(4, 2000, 3, noise=0.3)
    rng = np.random.default_rng(0)
    lost = rng.random(2000) < 0.1
    number = np.where(lost, rng.integers(3, size=2000), given.number)
    found = fit_calibration(given._replace(number=number), 3)
    assert found.doubt == pytest.approx(0.1, abs=0.03)
    assert fit_calibration(given, 3).doubt == 0.0


SCORES = st.one_of(
    st.floats(-2, 2),
    st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e-30, 1e30, -1e30, 1e150, -1e150]),
)


@st.composite
def any_held_out(draw):
    n_classes = draw(st.integers(2, 4))
    n = draw(st.integers(1, 12))
    problems = 1 if n_classes == 2 else n_classes
    rows = draw(st.lists(st.lists(SCORES, min_size=problems, max_size=problems), min_size=n, max_size=n))
    number = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    weight = draw(st.lists(st.sampled_from([1.0, 0.5, 1e-100, 1e100]), min_size=n, max_size=n))
    return ScoredExamples(np.array(rows), np.array(number), np.array(weight)), n_classes


@given(any_held_out())
def test_probabilities_are_finite_and_sum_to_one_whatever_the_scores(given):
    scores, n_classes = given
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit_calibration(scores, n_classes)
        p = found.probabilities(scores.scores)
    assert p.shape == (len(scores.scores), n_classes)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert 0 <= found.scale < np.inf
    assert 0 <= found.doubt <= 0.5


@given(any_held_out(), st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_of_two_classes_the_probability_rises_with_the_score(given, scores):
    scored, n_classes = given
    if n_classes == 2:
        p = fit_calibration(scored, 2).probabilities(np.sort(scores))[:, 1]
        assert (np.diff(p) >= 0).all()


@pytest.mark.parametrize("n", [1, 2, 5, 50])
def test_separated_scores_are_as_sure_as_the_rule_of_succession(n):
    scores = np.tile([[1.0], [-1.0]], (n, 1))
    found = fit_calibration(ScoredExamples(scores, np.tile([1, 0], n), np.ones(2 * n)), 2)
    assert found.probabilities(np.array([1.0]))[0, 1] == pytest.approx(1 - 1 / (2 * n + 2), abs=1e-3)


def test_equal_scores_give_the_shares_of_the_classes():
    number = np.repeat([0, 1, 2], [600, 300, 100])
    found = fit_calibration(ScoredExamples(np.zeros((1000, 3)), number, np.ones(1000)), 3)
    assert found.probabilities(np.zeros((1, 3)))[0] == pytest.approx([0.6, 0.3, 0.1], abs=0.01)
    weight = np.where(number == 2, 6.0, 1.0)  # as many as of the first class
    found = fit_calibration(ScoredExamples(np.zeros((1000, 3)), number, weight), 3)
    assert found.probabilities(np.zeros((1, 3)))[0] == pytest.approx([0.4, 0.2, 0.4], abs=0.01)


def test_scores_that_point_the_wrong_way_are_not_used():
    found = fit_calibration(
        ScoredExamples(np.array([[1.0], [-1.0]] * 50), np.array([0, 1] * 50), np.ones(100)), 2
    )
    assert found.scale == 0.0
    assert found.probabilities(np.array([-5.0, 5.0])) == pytest.approx(0.5)


def test_the_unit_of_scores_and_of_weights_makes_no_difference():
    given = held_out(5, 200, 3)
    wanted = fit_calibration(given, 3).probabilities(given.scores)
    for factor in (1e-20, 1e20):
        scaled = given._replace(scores=given.scores * factor, weight=given.weight / factor)
        assert fit_calibration(scaled, 3).probabilities(scaled.scores) == pytest.approx(wanted, abs=1e-9)


def test_an_example_whose_class_its_fold_did_not_train_does_not_count():
    y = np.array(["a", "a", "b", "b", "c"])
    task = Task(None, y, np.array(["a", "b", "c"]), np.ones(5), None)
    scores = np.eye(3)[[0, 0, 1, 1, 0]]
    parts = [HeldOut(np.array([0, 2, 4]), scores[[0, 2, 4]]), HeldOut(np.array([1, 3]), scores[[1, 3]])]
    wanted = fit_calibration(ScoredExamples(scores[[0, 2, 1, 3]], np.array([0, 1, 0, 1]), np.ones(4)), 3)
    found = calibrated(task, parts)
    assert (found.scale, found.doubt) == (wanted.scale, wanted.doubt)
    assert (found.bias == wanted.bias).all()
    assert calibrated(task, []) is None


def test_there_are_as_many_folds_as_can_be():
    y = np.array(["a", "a", "a", "b"])
    assert len(calibration_folds(y, 5, None)) == 3
    assert len(calibration_folds(y, 2, None)) == 2
    assert len(calibration_folds(y, 5, np.array([1, 1, 2, 2]))) == 2
    assert calibration_folds(np.array(["a", "b"]), 5, None) == []
    assert calibration_folds(y, 5, np.array([1, 1, 1, 1])) == []


# Models


@pytest.fixture(scope="module")
def questions():
    return read_trees("docs/examples/questions.tsv")


@pytest.fixture(scope="module")
def searched(questions):
    model = TreeClassifier(decay=(0.2, 0.4), C=10, words=False, labels=False, idf=False)
    return model.fit(questions[::2], questions.columns["label"][::2])


def test_the_search_hands_over_the_scores_that_training_the_folds_again_gives(questions, searched):
    fixed = TreeClassifier(decay=searched.decay_, C=10, calibrate=True)
    fixed.fit(questions[::2], questions.columns["label"][::2])
    wanted, found = fixed.predict_proba(questions[1::2]), searched.predict_proba(questions[1::2])
    assert found == pytest.approx(wanted, abs=1e-5)  # the scores of a search are kept as float32


@pytest.mark.slow
@pytest.mark.parametrize("label", ["time", None])
def test_successive_halving_hands_over_the_scores_of_whole_folds(questions, label):
    trees, y = questions[:90], np.array(questions.columns["label"][:90])
    y = y if label is None else y == label
    model = TreeClassifier(cv=3, C=(1, 10), scoring="f1_macro").fit(trees, y)
    assert len(model.selection_) > 12
    names = ("decay", "idf", "damping", "words", "labels", "C")
    chosen = {name: getattr(model, f"{name}_") for name in names}
    weight = "balanced" if model.balanced_ else None
    fixed = TreeClassifier(**chosen, cv=3, class_weight=weight, calibrate=True).fit(trees, y)
    assert model.predict_proba(questions) == pytest.approx(fixed.predict_proba(questions), abs=1e-4)


def test_a_threshold_moves_the_scores_and_not_the_probabilities():
    given = held_out(7, 100, 2, shift=0.5)
    found = fit_calibration(given, 2)
    moved = found.moved(0.7).probabilities(given.scores[:, 0] - 0.7)
    assert moved == pytest.approx(found.probabilities(given.scores[:, 0]))


def test_probabilities_are_good_and_agree_with_predictions(questions, searched):
    test, y = questions[1::2], np.array(questions.columns["label"][1::2])
    p = searched.predict_proba(test)
    assert p.shape == (150, 5)
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert np.mean(searched.classes_[p.argmax(axis=1)] == searched.predict(test)) > 0.98
    assert log_loss(y, p) < 0.35


def test_scikit_learn_uses_them(questions):
    y = np.array(questions.columns["label"])
    model = TreeClassifier(decay=0.4, C=10, cv=3, calibrate=True)
    p = cross_val_predict(model, questions, y, cv=3, method="predict_proba")
    assert p.shape == (300, 5)
    assert cross_val_score(model, questions, y, cv=3, scoring="neg_log_loss").mean() == pytest.approx(
        -log_loss(y, p), abs=0.05
    )
    two = y == "person"
    assert cross_val_score(model, questions, two, cv=3, scoring="neg_brier_score").min() > -0.05


@pytest.mark.parametrize("calibrate", [False, "auto"])
def test_a_model_that_is_not_calibrated_says_how_to_get_probabilities(questions, tmp_path, calibrate):
    model = TreeClassifier(decay=0.4, C=1, calibrate=calibrate).fit(questions, questions.columns["label"])
    assert not hasattr(model, "predict_proba")
    assert model.calibration_ is None
    with pytest.raises(AttributeError, match=r"TreeClassifier has no predict_proba.* with calibrate=True"):
        model.predict_proba(questions)
    model.save(tmp_path / "m")
    assert "calibration" not in json.loads((tmp_path / "m" / "config.json").read_text())
    with pytest.raises(ParameterError, match=r"no calibration.*train it again with calibrate=True"):
        LinearModel.load(tmp_path / "m").predict_proba(questions)
    assert not hasattr(TreeClassifier.load(tmp_path / "m"), "predict_proba")
    with pytest.raises(ParameterError, match="calibrate must be True or False"):
        TreeClassifier(calibrate="yes").fit(questions, questions.columns["label"])


def test_a_model_of_numbers_has_no_probabilities(questions):
    model = TreeRegressor(decay=0.4, alpha=1.0).fit(questions, questions.sizes).to_model()
    with pytest.raises(ParameterError, match="predicts numbers, which have no probabilities"):
        model.predict_proba(questions)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_calibration_is_kept_in_the_folder(questions, searched, tmp_path, n_classes):
    model = searched
    if n_classes == 2:
        model = TreeClassifier(decay=0.4, C=10, calibrate=True).fit(
            questions, np.array(questions.columns["label"]) == "time"
        )
    model.save(tmp_path / "m")
    wanted = model.predict_proba(questions)
    assert (LinearModel.load(tmp_path / "m").predict_proba(questions, n_jobs=2) == wanted).all()
    assert (TreeClassifier.load(tmp_path / "m").predict_proba(questions) == wanted).all()


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        {"scale": 1.0, "bias": [0.0] * 4, "doubt": 0.0},
        {"scale": -1.0, "bias": [0.0] * 5, "doubt": 0.0},
        {"scale": 1.0, "bias": [0.0] * 5, "doubt": 2.0},
        {"scale": 1.0, "bias": ["x"] * 5, "doubt": 0.0},
        {"scale": float("nan"), "bias": [0.0] * 5, "doubt": 0.0},
    ],
)
def test_a_damaged_calibration_is_refused(searched, tmp_path, wrong):
    searched.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    del config["digest"]
    config["calibration"] = wrong
    config["digest"] = described_folder.digest_of_config(config)
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(SourceError, match="the calibration"):
        LinearModel.load(tmp_path / "m")


@pytest.mark.parametrize("counts", [(1, 3), (2, 2), (1, 2, 4), (4, 1, 1), (2, 1)])
def test_few_examples_of_a_class_are_enough(questions, counts):
    y = np.repeat(np.arange(len(counts)), counts)
    model = TreeClassifier(decay=0.4, C=1, calibrate=True).fit(questions[: y.size], y)
    p = model.predict_proba(questions)
    assert p.shape == (300, len(counts))
    assert np.isfinite(p).all()
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert p.max() < 0.95  # a few examples make nothing certain


@pytest.mark.filterwarnings("ignore:a class has a single tree")
def test_without_a_choice_of_settings_the_message_says_when_there_are_probabilities(questions):
    y = np.where(np.arange(60) == 7, "alone", np.array(questions.columns["label"])[:60])
    model = TreeClassifier()
    assert hasattr(model, "predict_proba")
    model.fit(questions[:60], y)
    with pytest.raises(AttributeError, match="at least two trees of every class"):
        model.predict_proba(questions)
    assert model.set_params(calibrate=True).fit(questions[:60], y).predict_proba(questions).shape == (300, 6)
    assert TreeClassifier.predict_proba.__doc__.startswith("Return the probability of each class")


def test_single_examples_of_every_class_give_scores_only(questions):
    model = TreeClassifier(decay=0.4, C=1, calibrate=True).fit(questions[:3], ["a", "b", "c"])
    assert model.predict(questions).size == 300
    with pytest.raises(ParameterError, match="with at least two trees of some class"):
        model.predict_proba(questions)


def test_weights_of_zero_leave_examples_out_and_weights_shift_the_shares(questions):
    y = np.where(np.arange(300) % 2, "a", "b")  # the trees say nothing
    weight = np.where(np.arange(300) < 100, 0.0, 1.0)
    model = TreeClassifier(decay=0.4, C=0.1, calibrate=True)
    wanted = model.fit(questions[100:], y[100:]).predict_proba(questions)
    assert (model.fit(questions, y, weight).predict_proba(questions) == wanted).all()
    heavy = model.fit(questions, y, np.where(y == "a", 3.0, 1.0)).predict_proba(questions)
    assert heavy[:, 0].mean() == pytest.approx(0.75, abs=0.05)


@pytest.mark.filterwarnings("error")
def test_groups_and_kernels_are_calibrated_too(questions):
    y = np.array(questions.columns["label"])[:60]
    groups = np.arange(60) // 3
    model = TreeClassifier(kernel=SubsetTreeKernel(normalize=True), decay=0.4, C=10, cv=3, calibrate=True)
    p = model.fit(questions[:60], y, groups=groups).predict_proba(questions)
    assert p.sum(axis=1) == pytest.approx(1.0)
    again = model.set_params(n_jobs=2).fit(questions[:60], y, groups=groups).predict_proba(questions)
    assert (again == p).all()


# Evaluation


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 40))
def test_figures_of_probabilities_are_those_of_scikit_learn(seed, n_classes, n):
    rng = np.random.default_rng(seed)
    classes = np.array(list("abcd"))[:n_classes]
    p = rng.dirichlet(np.ones(n_classes), n)
    truth, predicted = rng.choice(classes, n), classes[p.argmax(axis=1)]
    found = evaluate_probabilities(classes, truth, predicted, p)
    assert found.log_loss == pytest.approx(log_loss(truth, p, labels=classes))
    if n_classes == 2:
        wanted = brier_score_loss(truth == "b", p[:, 1])
    else:
        wanted = brier_score_loss(truth, p, labels=classes)
    assert found.brier == pytest.approx(wanted)
    confidence = p.max(axis=1)
    error = 0.0
    for k in range(10):
        inside = (confidence >= k / 10) & (confidence < (k + 1) / 10)
        if inside.any():
            error += abs(confidence[inside].mean() - (truth == predicted)[inside].mean()) * inside.mean()
    assert found.calibration_error == pytest.approx(error)
    assert sum(one.n_trees for one in found.bins) == n


def test_trees_of_unknown_classes_have_no_probability():
    classes = np.array(["a", "b"])
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    found = evaluate_probabilities(classes, np.array(["a", "z", "b"]), np.array(["a", "b", "a"]), p)
    assert found == evaluate_probabilities(classes, np.array(["a", "b"]), np.array(["a", "a"]), p[[0, 2]])
    assert evaluate_probabilities(classes, np.array(["z"]), np.array(["a"]), p[:1]) is None
