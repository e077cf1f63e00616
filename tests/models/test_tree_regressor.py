"""A regressor of trees whose settings are chosen by cross-validation."""

import json

import numpy as np
import pytest
from scipy.sparse import hstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    LinearModel,
    SubsetTreeKernel,
    TreeClassifier,
    TreeRegressor,
    explain,
    explain_model,
    read_trees,
)
from treedot._storage.described_folder import digest_of_config
from treedot.errors import ParameterError, SourceError
from treedot.models.inputs.table import Table
from treedot.models.inputs.term_input import TermInput
from treedot.models.inputs.vectorizer_input import VectorizerInput
from treedot.models.training.folds import narrowed

ONE = {"decay": 0.3, "alpha": 0.5}


@pytest.fixture(scope="module")
def questions():
    forest = read_trees("docs/examples/questions.tsv")[:120]
    noise = np.random.default_rng(0).normal(size=len(forest))
    return forest, forest.sizes + noise


@pytest.fixture(scope="module")
def table(questions):
    trees, y = questions
    rng = np.random.default_rng(1)
    columns = {
        "first": [str(tree) for tree in trees],
        "second": [str(tree) for tree in reversed(list(trees))],
        "weight": rng.normal(size=len(trees)),
        "text": ["long words" if size > 17 else "short ones" for size in y],
    }
    return columns, y + 3 * columns["weight"]


COLUMNS = {"tree_columns": ["first", "second"], "number_columns": ["weight"], "text_columns": ["text"]}


def test_it_is_ridge_on_rows_of_fragments(questions):
    trees, y = questions
    rows = FragmentVectorizer(n_features=2**16, decay=0.3)
    wanted = make_pipeline(rows, Ridge(alpha=0.5, tol=1e-10)).fit(trees, y)
    model = TreeRegressor(vectorizer=rows, decay=None, alpha=0.5, tol=1e-8).fit(trees, y)
    assert model.predict(trees) == pytest.approx(wanted.predict(trees), abs=1e-4)
    assert model.selection_ == []
    assert (model.decay_, model.alpha_) == (0.3, 0.5)


def test_the_settings_with_the_largest_r2_in_cross_validation_are_taken(questions):
    trees, y = questions
    model = TreeRegressor(decay=(0.4, 0.1), alpha=(10, 0.01, 1), cv=3).fit(trees, y)
    assert [(trial.decay, trial.alpha) for trial in model.selection_] == [
        (decay, alpha) for decay in (0.1, 0.4) for alpha in (0.01, 1.0, 10.0)
    ]
    for trial in model.selection_:
        predicted = np.zeros(y.size)
        for train, test in KFold(3, shuffle=True, random_state=0).split(y):
            one = TreeRegressor(decay=trial.decay, alpha=trial.alpha).fit(trees[train], y[train])
            predicted[test] = one.predict(trees[test])
        assert trial.r2 == pytest.approx(r2_score(y, predicted), abs=1e-3)
    best = max(model.selection_, key=lambda trial: trial.r2)
    assert (model.decay_, model.alpha_) == (best.decay, best.alpha)


def test_words_labels_and_weights_are_columns_beside_the_fragments(questions):
    trees, y = questions
    settings = {"words": True, "labels": True, "idf": True, "damping": "log1p"}
    model = TreeRegressor(**ONE, **settings, tol=1e-8).fit(trees, y)
    inputs = [
        VectorizerInput(None, FragmentVectorizer(n_features=2**30, decay=0.3, idf=True, damping="log1p")),
        TermInput(None, "words", idf=True),
        TermInput(None, "labels", idf=True),
    ]
    rows = hstack([narrowed(each.fitted(Table({None: trees}))[1])[1] for each in inputs])
    wanted = Ridge(alpha=ONE["alpha"], tol=1e-10).fit(rows, y)
    assert model.predict(trees) == pytest.approx(wanted.predict(rows), abs=1e-3)
    found = explain(model, trees[3])
    assert found.node_values.sum() + found.bias == pytest.approx(found.score, abs=1e-5)
    assert any(share.fragment.is_leaf for share in found.supporting + found.opposing)


def test_columns_and_damping_are_chosen_as_those_of_single_settings(questions, tmp_path):
    trees, y = questions
    several = dict.fromkeys(("words", "labels", "idf"), (False, True))
    model = TreeRegressor(**several, damping=("sqrt", "log1p"), **ONE, cv=3).fit(trees, y)
    assert len(model.selection_) == 16
    for trial in model.selection_[::5]:
        fixed = {name: getattr(trial, name) for name in (*several, "damping")}
        one = TreeRegressor(**fixed, decay=0.3, alpha=(0.5, 0.6), cv=3).fit(trees, y)
        assert one.selection_[0]._replace(r2=trial.r2) == trial
        assert one.selection_[0].r2 == pytest.approx(trial.r2, abs=1e-6)
    best = max(model.selection_, key=lambda trial: trial.r2)
    assert model._settings == best[:1] + best[3:]
    model.save(tmp_path / "model")
    again = TreeRegressor.load(tmp_path / "model")
    assert (again.selection_, again._settings) == (model.selection_, model._settings)
    assert again.predict(trees).tolist() == model.predict(trees).tolist()
    assert again.fit(trees, y).predict(trees) == pytest.approx(model.predict(trees), abs=1e-3)


def test_integer_weights_count_as_copies_and_weight_0_as_nothing(questions):
    trees, y = questions
    weight = np.arange(y.size) % 3
    copies = np.repeat(np.arange(y.size), weight)
    found = TreeRegressor(**ONE, tol=1e-9).fit(trees, y, weight)
    wanted = TreeRegressor(**ONE, tol=1e-9).fit(trees[copies], y[copies])
    assert found.predict(trees) == pytest.approx(wanted.predict(trees), abs=1e-5)
    assert found.columns_.tolist() == wanted.columns_.tolist()


def test_cross_validation_trains_and_scores_by_weight(questions):
    trees, y = questions
    weight = np.random.default_rng(2).uniform(0.1, 4.0, y.size)
    model = TreeRegressor(decay=0.3, alpha=(0.1, 10), cv=3).fit(trees, y, weight)
    predicted = np.zeros(y.size)
    for train, test in KFold(3, shuffle=True, random_state=0).split(y):
        one = TreeRegressor(decay=0.3, alpha=0.1).fit(trees[train], y[train], weight[train])
        predicted[test] = one.predict(trees[test])
    assert model.selection_[0].r2 == pytest.approx(r2_score(y, predicted, sample_weight=weight), abs=1e-3)


def test_trees_of_a_group_are_never_on_both_sides(questions):
    trees, _ = questions
    groups = np.arange(len(trees)) // 2  # of two copies of a tree with the same random number
    y = np.random.default_rng(3).normal(size=len(trees))[groups]
    pairs = trees[groups]
    settings = {"decay": 0.3, "alpha": (0.01, 0.02), "cv": 3}
    alone = TreeRegressor(**settings).fit(pairs, y)
    grouped = TreeRegressor(**settings).fit(pairs, y, groups=groups)
    assert alone.selection_[0].r2 > 0.3 > grouped.selection_[0].r2
    with pytest.raises(ParameterError, match="cv=3 needs at least 3 groups"):
        TreeRegressor(**settings).fit(pairs, y, groups=groups % 2)


def test_several_trees_numbers_and_texts_make_an_example(table):
    columns, y = table
    model = TreeRegressor(**COLUMNS, decay=(0.2, 0.4), alpha=(0.1, 1.0), cv=3).fit(columns, y)
    assert model.score(columns, y) > 0.9
    assert len(model.inputs_) == 4


@pytest.mark.parametrize(
    "settings",
    [
        {"vectorizer": FragmentVectorizer(n_features=None, idf=True)},
        {"vectorizer": DistributedTreeVectorizer(n_components=512)},
        {"kernel": SubsetTreeKernel(normalize=True)},
    ],
    ids=["idf", "dense", "kernel"],
)
def test_other_rows_and_kernels_are_trained_saved_and_loaded(questions, settings, tmp_path):
    trees, y = questions
    model = TreeRegressor(**settings, decay=(0.2, 0.4), alpha=(0.1, 1.0), cv=3).fit(trees, y)
    assert model.score(trees, y) > 0.8
    model.save(tmp_path / "model")
    assert LinearModel.load(tmp_path / "model").predict(trees) == pytest.approx(model.predict(trees))


def test_a_kernel_and_a_number_are_trained_together(table):
    columns, y = table
    kernel = SubsetTreeKernel(normalize=True)
    settings = {"tree_columns": ["first"], "number_columns": ["weight"], "alpha": 0.1, "tol": 1e-8}
    model = TreeRegressor(kernel=kernel, decay=0.4, **settings).fit(columns, y)
    assert model.score(columns, y) > 0.9


def test_a_model_is_the_same_after_loading(table, tmp_path):
    columns, y = table
    model = TreeRegressor(**COLUMNS, decay=(0.2, 0.4), alpha=(0.1, 1.0), cv=3).fit(columns, y)
    model.save(tmp_path / "model")
    light, again = LinearModel.load(tmp_path / "model"), TreeRegressor.load(tmp_path / "model")
    assert light.classes is None
    assert repr(light).startswith("<LinearModel of numbers: ")
    for loaded in (light, again):
        assert loaded.predict(columns).tobytes() == model.predict(columns).tobytes()
    assert (again.decay_, again.alpha_, again.selection_) == (model.decay_, model.alpha_, model.selection_)
    assert again.n_iter_ == model.n_iter_
    again.fit(columns, y)
    assert again.predict(columns) == pytest.approx(model.predict(columns), abs=1e-3)


def test_models_of_numbers_and_of_classes_are_not_mixed_up(questions, tmp_path):
    trees, y = questions
    TreeRegressor(**ONE).fit(trees, y).save(tmp_path / "numbers")
    TreeClassifier(decay=0.3, C=1).fit(trees, y > 17).save(tmp_path / "classes")
    with pytest.raises(SourceError, match="lacks the settings of a TreeClassifier"):
        TreeClassifier.load(tmp_path / "numbers")
    with pytest.raises(SourceError, match="lacks the settings of a TreeRegressor"):
        TreeRegressor.load(tmp_path / "classes")
    versions = [json.loads((tmp_path / name / "config.json").read_text()) for name in ("numbers", "classes")]
    assert [(config["version"], "classes" in config) for config in versions] == [(3, False), (2, True)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": ["a", "b"]}, "has classes, but its version is that of models that predict numbers"),
        ({"version": 2}, "lacks one of inputs, classes"),
        ({"version": 4}, "has version 4, but this treedot reads 2 and 3: train again, or update treedot"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(questions, tmp_path, change, message):
    trees, y = questions
    TreeRegressor(**ONE).fit(trees, y).save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text()) | change
    del config["digest"]
    path.write_text(json.dumps(config | {"digest": digest_of_config(config)}))
    with pytest.raises(SourceError, match=message):
        LinearModel.load(tmp_path / "model")


def test_explanations_sum_to_the_prediction(questions, table):
    trees, y = questions
    model = TreeRegressor(**ONE).fit(trees, y)
    for explained in (model, model.to_model()):
        found = explain(explained, trees[3])
        assert found.target is None
        assert found.flip is None
        assert not found.flip_sought
        assert found.node_values.sum() + found.bias == pytest.approx(found.score, abs=1e-5)
        assert found.score == pytest.approx(model.predict(trees[[3]])[0], abs=1e-4)
        assert str(found).startswith("Prediction ")
    columns, numbers = table
    several = TreeRegressor(**COLUMNS, **ONE).fit(columns, numbers)
    row = {name: values[5] for name, values in columns.items()}
    found = explain(several, row)
    assert {"weight", "text"} <= found.others.keys()
    assert sum(value for _, value in found.parts) == pytest.approx(found.score, abs=1e-5)
    assert found.score == pytest.approx(several.predict(columns)[5], abs=1e-4)


def test_explain_model_lists_what_raises_and_lowers_the_number(questions):
    trees, y = questions
    learned = explain_model(TreeRegressor(**ONE).fit(trees, y), trees, n_fragments=3)
    assert list(learned.fragments) == [None]
    assert learned.fragments[None].supporting[0].value > 0 > learned.fragments[None].opposing[0].value
    assert "None" not in str(learned)
    with pytest.raises(ParameterError, match="predicts numbers, not classes"):
        explain(TreeRegressor(**ONE).fit(trees, y), trees[0], "person")


def test_it_works_with_scikit_learns_cross_validation(questions):
    trees, y = questions
    assert cross_val_score(TreeRegressor(**ONE), trees, y, cv=3).mean() > 0.5


def test_progress_counts_every_fold_of_every_setting(questions):
    trees, y = questions
    calls = []
    model = TreeRegressor(decay=(0.2, 0.4), alpha=(0.1, 1.0), cv=3)
    model.fit(trees, y, progress=lambda *call: calls.append(call))
    assert calls == [(done, 12) for done in range(2, 13, 2)]


def test_too_few_iterations_are_reported(questions):
    trees, y = questions
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
        TreeRegressor(decay=0.3, alpha=0.001, max_iter=2).fit(trees, y)


def test_equal_numbers_are_learned(questions):
    trees, _ = questions
    model = TreeRegressor(decay=(0.2, 0.4)).fit(trees, [2.5] * len(trees))
    assert (model.predict(trees) == 2.5).all()
    assert model.alpha_ == 100.0  # the largest of equally good ones


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha must be a number above 0"),
        ({"alpha": []}, "alpha must be one value or a non-empty sequence"),
        ({"decay": 2.0}, "decay"),
        ({"tol": 0}, "tol must be a number above 0"),
        ({"max_iter": 0}, "max_iter"),
        ({"cv": 1}, "cv"),
        ({"cv": 500}, "cv=500 needs at least 500 trees, but there are 120"),
        ({"random_state": "x"}, "random_state"),
        ({"words": "auto"}, "words must be True or False"),
        ({"damping": "cubic"}, "damping must be one of"),
        ({"kernel": SubsetTreeKernel(), "idf": True}, "SubsetTreeKernel has no idf"),
        ({"vectorizer": FragmentVectorizer(), "kernel": SubsetTreeKernel()}, "not both"),
    ],
)
def test_wrong_settings_are_refused(questions, options, message):
    with pytest.raises(ParameterError, match=message):
        TreeRegressor(**options).fit(*questions)
