"""What a model has learned: its strongest fragments for and against each class."""

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from strategies import random_forest
from treedot import FragmentVectorizer, Tree, explain_model
from treedot.errors import SourceError
from treedot.models import DualLinearSVC
from treedot.vectors import fragment_vectorizer

FOREST = random_forest(8, 30, 20)
CLASSES = [("one", "two", "three")[k % 3] for k in range(30)]


@pytest.mark.parametrize("width", [2**10, None])
@pytest.mark.parametrize("linear", [LinearSVC(), DualLinearSVC()], ids=lambda model: type(model).__name__)
def test_fragments_are_the_strongest_of_all_that_occur(linear, width):
    model = make_pipeline(FragmentVectorizer(n_features=width), linear).fit(FOREST, CLASSES)
    found = explain_model(model, FOREST[:10], n_fragments=4)
    fragments = {f for several in model[0].column_fragments(FOREST[:10]).values() for f in several}
    assert (found.n_fragments, found.n_trees, found.complete) == (len(fragments), 10, True)
    rows = {f: model[0].transform_fragment(f) for f in fragments}
    for name, coef in zip(model.classes_, model[1].coef_, strict=True):
        weights = {f: float(np.asarray((row @ coef.T).sum())) for f, row in rows.items()}
        for shares, order in ((found.fragments[name].supporting, -1), (found.fragments[name].opposing, 1)):
            wanted = sorted(weights.values(), key=lambda weight: order * weight)[:4]
            assert [share.value for share in shares] == pytest.approx(wanted, rel=1e-5)
            assert [weights[share.fragment] for share in shares] == pytest.approx(wanted, rel=1e-5)


def test_the_first_of_two_classes_has_the_negative_weights():
    model = make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(FOREST, [k % 2 for k in range(30)])
    first, second = explain_model(model, FOREST).fragments.values()
    assert first.supporting[0].fragment == second.opposing[0].fragment
    assert first.supporting[0].value == -second.opposing[0].value


def test_a_model_of_numbers_has_one_list():
    model = make_pipeline(FragmentVectorizer(), Ridge()).fit(FOREST, np.arange(30.0))
    found = explain_model(model, FOREST)
    assert list(found.fragments) == [None]
    assert "<svg" in found._repr_html_()


def test_reading_ends_where_there_are_more_fragments_than_wanted(monkeypatch, tmp_path):
    monkeypatch.setattr(fragment_vectorizer, "BATCH", 5)
    model = make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(FOREST, CLASSES)
    FOREST.write_brackets(tmp_path / "trees.mrg")
    found = explain_model(model, tmp_path / "trees.mrg", max_fragments=50)
    assert found.n_trees == 5
    assert found.n_fragments > 50
    assert not found.complete
    assert str(found).startswith(f"{found.n_fragments} fragments of 5 trees; the limit was reached")


def test_trees_without_fragments_are_refused():
    model = make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(FOREST, CLASSES)
    with pytest.raises(SourceError, match="no column for any fragment"):
        explain_model(model, [Tree("a")])


def test_json_has_every_class():
    model = make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(FOREST, CLASSES)
    found = explain_model(model, FOREST, n_fragments=2)
    read = json.loads(found.to_json())
    assert [entry["target"] for entry in read["classes"]] == list(model.classes_)
    best = found.fragments["one"].supporting[0]
    assert read["classes"][0]["supporting"][0] == {
        "fragment": str(best.fragment), "value": best.value, "column": None,
    }  # fmt: skip


def test_a_model_is_shown_as_text_and_as_a_page():
    model = make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(FOREST, CLASSES)
    found = explain_model(model, FOREST, n_fragments=2)
    assert found.to_text() == str(found)
    assert "<title>What the model has learned</title>" in found.to_html()
