"""Classifiers of examples with several trees, numbers and texts."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, hstack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    LinearModel,
    SubsetTreeKernel,
    TreeClassifier,
    explain,
    explain_model,
    read_trees,
)
from treedot.errors import ParameterError, RangeError, SourceError
from treedot.kernels import BoundedTreeKernel
from treedot.models.inputs.model_input import with_columns
from treedot.models.inputs.table import Table
from treedot.models.inputs.text_input import TextInput

N = 60
RNG = np.random.default_rng(0)
NAMES = {
    "tree_columns": ["text", "hypothesis"],
    "number_columns": ["overlap", "length"],
    "text_columns": ["note"],
}
FRAME = pd.DataFrame(
    {
        "text": list(map(str, random_forest(1, N, 16))),
        "hypothesis": list(map(str, random_forest(2, N, 10))),
        "overlap": RNG.random(N),
        "length": RNG.integers(5, 500, N),
        "note": [f"number {k % 7} and {'even' if k % 2 else 'odd'}" for k in range(N)],
    }
)
SUM = FRAME["overlap"] + FRAME["text"].str.len() / 200 + (FRAME["hypothesis"].str.count("N1") > 1)
CLASSES = np.array(["low", "high"])[(SUM.median() < SUM).astype(int)]
THREE = np.array(["a", "b", "c"])[pd.qcut(SUM, 3, labels=False)]


def rows(name):
    return FragmentVectorizer(n_features=2**14, decay=0.3).transform(FRAME[name])


def test_the_rows_of_all_columns_stand_side_by_side():
    exact = {"decay": 0.3, "C": 2.0, "tol": 1e-8, "max_passes": 50_000}
    vectorizer = FragmentVectorizer(n_features=2**14)
    model = TreeClassifier(**NAMES, vectorizer=vectorizer, **exact).fit(FRAME, THREE)
    numbers = StandardScaler().fit_transform(FRAME[["overlap", "length"]])
    _, texts = TextInput("note").fitted(Table({"note": list(FRAME["note"])}))
    texts = with_columns(texts, np.unique(texts.indices))
    X = hstack([rows("text"), rows("hypothesis"), csr_matrix(numbers), texts]).tocsr()
    wanted = LinearSVC(C=2.0, tol=1e-9, max_iter=200_000).fit(X, THREE)
    np.testing.assert_allclose(model.decision_function(FRAME), wanted.decision_function(X), atol=2e-3)
    assert [each.reads.trees for each in model.inputs_] == [("text",), ("hypothesis",), (), ()]


def test_every_column_counts_alike_to_begin_with():
    model = TreeClassifier(**NAMES, decay=0.3, C=1).fit(FRAME, CLASSES)
    table = model._table(FRAME, model._columns())
    for each in model.inputs_:
        squares = np.asarray(csr_matrix(each.transform(table)).power(2).sum(axis=1)).ravel()
        assert squares.mean() == pytest.approx(each.width if each.is_dense else 1.0)


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"vectorizer": FragmentVectorizer(n_features=None, idf=True)},
        {"vectorizer": FragmentVectorizer(n_features=None, budget=2)},
        {"vectorizer": FragmentVectorizer(n_features=2**12, idf=True)},
        {"vectorizer": FragmentVectorizer(n_features=2**12, rest="dense", rest_size=256)},
        {"vectorizer": FragmentVectorizer(n_features=2**12, rest="blocks", budget=12)},
        {"vectorizer": DistributedTreeVectorizer(n_components=256)},
        {"vectorizer": DistributedTreeVectorizer(n_components=256, kernel="partial", mu=0.5, gaps="span")},
        {"vectorizer": DistributedTreeVectorizer(n_components=256, kernel="smoothed", similarity={"a": [1]})},
        {"kernel": SubsetTreeKernel(normalize=True, leaves=True)},
        {"kernel": BoundedTreeKernel(normalize=True, budget=3)},
    ],
)
@pytest.mark.parametrize("names", [{}, NAMES])
def test_every_kind_of_model_is_kept_in_a_folder(setting, names, tmp_path):
    X = FRAME if names else FRAME["text"]
    settings = {"idf": None, "words": False, "labels": False, "decay": (0.2, 0.4), "C": (1, 10), "cv": 3}
    model = TreeClassifier(**names, **setting, **settings).fit(X, THREE)
    assert len(model.selection_) == 4
    model.save(tmp_path / "m")
    light, again = LinearModel.load(tmp_path / "m"), TreeClassifier.load(tmp_path / "m")
    wanted = model.decision_function(X)
    assert (light.decision_function(X) == wanted).all()
    assert (again.decision_function(X) == wanted).all()
    assert (again.decay_, again.C_) == (model.decay_, model.C_)
    assert again.selection_ == [trial._replace(seconds=None) for trial in model.selection_]
    again.save(tmp_path / "again")
    for name in ("config.json", "weights.safetensors"):
        assert (tmp_path / "m" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    refitted = again.fit(X, THREE)
    assert (refitted.decision_function(X) == wanted).all()


def test_a_kernel_and_its_rows_make_the_same_model():
    exact = {"decay": 0.3, "C": 5.0, "tol": 1e-9, "max_passes": 50_000}
    vectorizer = FragmentVectorizer(n_features=None, damping="linear", dtype="float64")
    for names, X in (({}, FRAME["text"]), (NAMES, FRAME)):
        by_rows = TreeClassifier(**names, vectorizer=vectorizer, **exact).fit(X, THREE)
        by_kernel = TreeClassifier(**names, kernel=BoundedTreeKernel(normalize=True), **exact).fit(X, THREE)
        np.testing.assert_allclose(by_kernel.decision_function(X), by_rows.decision_function(X), atol=1e-4)
        assert by_kernel.gap_ <= 1e-9


def test_the_settings_of_kernels_are_chosen_as_those_of_rows():
    settings = {"decay": (0.2, 0.6), "C": (0.1, 1, 10), "cv": 3, "tol": 1e-6, "max_passes": 20_000}
    vectorizer = FragmentVectorizer(n_features=None, damping="linear", dtype="float64")
    by_rows = TreeClassifier(**NAMES, vectorizer=vectorizer, **settings).fit(FRAME, THREE)
    by_kernel = TreeClassifier(**NAMES, kernel=BoundedTreeKernel(normalize=True), **settings)
    assert [trial.stored() for trial in by_kernel.fit(FRAME, THREE).selection_] == [
        trial.stored() for trial in by_rows.selection_
    ]


def test_only_support_vectors_are_kept():
    questions = read_trees("docs/examples/questions.tsv")
    y = np.array(questions.columns["label"]) == "person"
    model = TreeClassifier(kernel=SubsetTreeKernel(normalize=True), decay=0.4, C=100).fit(questions, y)
    (only,) = model.inputs_
    assert 0 < len(only.trees) < len(questions)
    assert model.weights_.all()
    assert model.score(questions, y) == 1.0


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_model_of_a_kernel_is_the_same_whatever_the_threads(n_jobs):
    kernel = SubsetTreeKernel(normalize=True)
    one = TreeClassifier(kernel=kernel, decay=0.4, C=10).fit(FRAME["text"], THREE)
    other = TreeClassifier(kernel=kernel, decay=0.4, C=10, n_jobs=n_jobs).fit(FRAME["text"], THREE)
    assert (one.weights_ == other.weights_).all()
    assert (one.intercept_ == other.intercept_).all()


def test_column_transformers_and_pipelines_are_vectorizers():
    columns = ColumnTransformer(
        [
            ("text", FragmentVectorizer(n_features=2**12), "text"),
            ("other", FragmentVectorizer(n_features=2**12), "hypothesis"),
            ("numbers", StandardScaler(), ["overlap", "length"]),
        ]
    )
    model = TreeClassifier(vectorizer=columns, decay=(0.2, 0.4), C=(1, 10), cv=3).fit(FRAME, CLASSES)
    made = model.inputs_[0].vectorizer.get_params()
    assert made["text__decay"] == made["other__decay"] == model.decay_
    assert model.score(FRAME, CLASSES) > 0.9
    assert cross_val_score(model.set_params(decay=None, C=1), FRAME, CLASSES, cv=3).mean() > 0.5
    with pytest.raises(ParameterError, match="cannot store a model with a ColumnTransformer"):
        model.to_model()
    short = make_pipeline(FragmentVectorizer(n_features=2**12), TruncatedSVD(5, random_state=0))
    dense = TreeClassifier(vectorizer=short, decay=0.4, C=1).fit(FRAME["text"], CLASSES)
    assert dense.weights_.shape == (5, 1)
    with pytest.raises(ParameterError, match="TruncatedSVD has no decay: use decay=None"):
        TreeClassifier(vectorizer=TruncatedSVD(5)).fit(FRAME["text"], CLASSES)


def test_scikit_learn_splits_frames_of_examples():
    model = TreeClassifier(**NAMES, decay=0.3, C=1)
    search = GridSearchCV(model, {"C": [0.1, 1]}, cv=3).fit(FRAME, CLASSES)
    assert search.best_params_["C"] in (0.1, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": SubsetTreeKernel(), "vectorizer": FragmentVectorizer()}, "a vectorizer or a kernel"),
        ({"kernel": SubsetTreeKernel}, "kernel must be an object"),
        ({"tree_columns": "text"}, "tree_columns must be a list"),
        ({"tree_columns": ["text", "premise"]}, "no column 'premise'"),
        ({"tree_columns": ["note"]}, "row 1, column 'note'"),
        ({"tree_columns": ["text"], "number_columns": ["note"]}, "row 1, column 'note': .* is not a finite"),
        ({"tree_columns": ["text"], "text_columns": ["length"]}, "row 1, column 'length': expected a text"),
        ({"number_columns": ["length"]}, "no column 'tree'"),
    ],
)
def test_what_cannot_be_learned_from_is_told(options, message):
    with pytest.raises((ParameterError, SourceError), match=message):
        TreeClassifier(**options).fit(FRAME, CLASSES)


def test_numbers_that_are_too_large_are_told_and_constant_ones_weigh_nothing():
    columns = {"tree_columns": ["text"], "number_columns": ["n"], "decay": 0.3, "C": 1}
    with pytest.raises(ParameterError, match="the numbers in column 'n' are too large"):
        TreeClassifier(**columns).fit(FRAME.assign(n=RNG.choice([-1e308, 1e308], N)), CLASSES)
    model = TreeClassifier(**columns).fit(FRAME.assign(n=3.0), CLASSES)
    assert model.weights_[-1] == 0


def test_a_table_that_lacks_a_column_is_refused_by_the_trained_model():
    model = TreeClassifier(**NAMES, decay=0.3, C=1).fit(FRAME, CLASSES)
    for predict in (model.predict, model.to_model().predict):
        with pytest.raises(ParameterError, match="no column 'overlap'; the columns are 'text', 'hypothesis'"):
            predict(FRAME.drop(columns="overlap"))


@pytest.mark.slow
@pytest.mark.parametrize("y", [CLASSES, THREE])
def test_the_parts_of_an_explanation_sum_to_the_decision_value(y):
    vectorizer = FragmentVectorizer(n_features=2**12, rest="dense", rest_size=256)
    for setting in ({}, {"vectorizer": vectorizer}):
        model = TreeClassifier(**NAMES, **setting, decay=0.3, C=10).fit(FRAME, y)
        scores = model.decision_function(FRAME)
        for k in range(0, N, 7):
            example = FRAME.iloc[k].to_dict()
            found = explain(model, example)
            wanted = np.abs(scores[k]) if scores.ndim == 1 else scores[k].max()
            parts = [*found.trees[0].node_values, *found.trees[1].node_values, *found.others.values()]
            size = np.abs(parts).sum() + abs(found.bias)
            assert abs(sum(parts) + found.bias - found.score) <= 1e-6 * size
            assert found.score == pytest.approx(wanted, abs=1e-5)
            assert {"overlap", "length", "note"} <= found.others.keys()
            assert [one.column for one in found.trees] == ["text", "hypothesis"]
            assert found.to_json() == explain(model, FRAME.iloc[[k]]).to_json()
            assert sum(value for _, value in found.parts) == pytest.approx(found.score)


def test_explanations_say_which_tree_they_speak_of():
    model = TreeClassifier(**NAMES, decay=0.3, C=10).fit(FRAME, CLASSES)
    found = [explain(model, FRAME.iloc[[k]]) for k in range(N)]
    assert {share.column for one in found for share in one.supporting} == {"text", "hypothesis"}
    flipped = next(one for one in found if one.flip is not None)
    assert f" in {flipped.flip.column}, the decision would be" in flipped.to_text()
    assert "\n\nhypothesis:\n" in flipped.to_text()
    assert "<h2>hypothesis</h2>" in flipped.to_html()
    learned = explain_model(model, FRAME, n_fragments=5)
    assert {share.column for share in learned.fragments["low"].supporting} <= {"text", "hypothesis"}
    assert learned.n_trees == 2 * N
    with pytest.raises(ParameterError, match="expected one example, found 60"):
        explain(model, FRAME)


def test_a_flip_changes_the_decision_with_all_else_as_it_is():
    model = TreeClassifier(**NAMES, decay=0.3, C=10).fit(FRAME, THREE)
    for k in range(0, N, 3):
        row = FRAME.iloc[k].to_dict()
        flip = explain(model, row).flip
        if flip is not None:
            changed = row[flip.column].replace(str(flip.subtree), flip.subtree.label, 1)
            if row[flip.column].count(str(flip.subtree)) == 1:
                after = {name: [value] for name, value in (row | {flip.column: changed}).items()}
                assert model.predict(after)[0] == flip.decision


class Broken(BaseEstimator, TransformerMixin):
    """Makes rows of numbers that a test sets."""

    def __init__(self, value=np.nan):
        self.value = value

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.full((len(X), 2), self.value)


def test_rows_that_are_not_finite_are_refused():
    with pytest.raises(ParameterError, match="Broken returned NaN"):
        TreeClassifier(vectorizer=Broken(), decay=None, C=1).fit(FRAME["text"], CLASSES)
    model = TreeClassifier(**NAMES, decay=0.3, C=1).fit(FRAME, CLASSES)
    far = FRAME[:2].assign(overlap=[0.5, 1e308])
    model.inputs_[2].scale[0] = 1e-10
    with pytest.raises(RangeError, match="the scores of example 2 are too large"):
        model.predict(far)


@pytest.mark.slow
def test_every_kind_of_model_is_loaded_without_scikit_learn(tmp_path):
    TreeClassifier(**NAMES, kernel=SubsetTreeKernel(normalize=True), decay=0.3, C=1).fit(FRAME, CLASSES).save(
        tmp_path / "kernel"
    )
    dense = DistributedTreeVectorizer(n_components=256)
    TreeClassifier(**NAMES, vectorizer=dense, decay=0.3, C=1).fit(FRAME, CLASSES).save(tmp_path / "dense")
    FRAME.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    code = f"""
import sys
from treedot import LinearModel
for kind in ("kernel", "dense"):
    print(len(LinearModel.load(f"{tmp_path}/{{kind}}").predict("{tmp_path}/t.tsv")))
assert "sklearn" not in sys.modules and "pandas" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{N}\n{N}\n", "")
