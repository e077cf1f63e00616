import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from treedot import LinearModel, TreeClassifier, TreeRegressor, explain
from treedot.serve.example_questions import questions
from treedot.serve.explaining import Explained
from treedot.serve.fields import EXPLAIN, read_fields

QUESTION = "(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "questions.model"
    forest = questions()[:100]
    TreeClassifier(decay=0.2, C=1).fit(forest, forest.columns["label"]).save(path)
    return path


@pytest.fixture(scope="module")
def explained(folder, start):
    with start(model=str(folder)) as client:
        yield client


def test_scores_and_values_are_those_of_the_model(folder):
    model = LinearModel.load(folder)
    found = Explained.of(model, read_fields(EXPLAIN, {"tree": QUESTION}))
    assert found.scores[0].name == model.predict([QUESTION])[0]
    scores = dict(zip(model.classes.tolist(), model.decision_function([QUESTION])[0], strict=True))
    assert {one.name: one.score for one in found.scores} == pytest.approx(scores)
    assert found.why.node_values.tolist() == explain(model, QUESTION).node_values.tolist()


@pytest.mark.parametrize("classes", [["x", "y"], [0, 1]])
def test_two_classes_have_opposite_scores(classes):
    trees = ["(S (A a))", "(S (B b))"] * 5
    fitted = TreeClassifier(decay=0.2, C=1).fit(trees, classes * 5)
    found = Explained.of(_stored(fitted), read_fields(EXPLAIN, {"tree": "(S (B b))"}))
    assert found.scores[0].name == str(classes[1])
    assert found.scores[0].score == -found.scores[1].score > 0


def _stored(fitted):
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(f"{folder}/model")
        return LinearModel.load(f"{folder}/model")


def test_a_predicted_number_is_explained():
    fitted = TreeRegressor(decay=0.2, alpha=0.1).fit(["(S (A a))", "(S (B b))"] * 5, [1.0, 3.0] * 5)
    found = Explained.of(_stored(fitted), read_fields(EXPLAIN, {"tree": "(S (B b))"}))
    assert found.scores == []
    assert found.why.score == pytest.approx(fitted.predict(["(S (B b))"])[0], rel=1e-4)


def test_the_interface_and_the_page_explain(explained):
    found = explained.post("/api/explain", json={"tree": QUESTION, "target": "place"}).json()
    assert found["explanation"]["target"] == "place"
    assert found["scores"][0]["name"] == "person"
    page = explained.get("/explain", params={"tree": QUESTION}).text
    assert "The model decides for person" in page
    assert "Questions for the example model" not in page
    assert page.count('class="for"') > 2
    assert explained.get("/api/status").json()["model"]["classes"] == sorted(
        one["name"] for one in found["scores"]
    )


def test_an_unknown_class_is_reported(explained):
    found = explained.post("/api/explain", json={"tree": QUESTION, "target": "thing"})
    assert found.status_code == 400
    assert "person" in found.json()["error"]


def test_a_model_that_is_replaced_is_used_whole(tmp_path, start):
    path = tmp_path / "questions.model"
    trees = ["(S (A a))", "(S (B b))"] * 5

    def save(classes):
        TreeClassifier(decay=0.2, C=1).fit(trees, classes * 5).save(path, overwrite=True)

    save(["x", "y"])
    with start(model=str(path)) as client:

        def classes():
            return client.get("/api/status").json()["model"]["classes"]

        assert classes() == ["x", "y"]
        save(["u", "v"])
        assert classes() == ["u", "v"]
        for damaged in path.iterdir():
            damaged.write_bytes(b"damaged")
        os.utime(path)
        assert [classes() for _ in range(4)] == [["u", "v"]] * 4
        shutil.rmtree(path)
        assert classes() == ["u", "v"]
        save(["x", "y"])
        assert classes() == ["x", "y"]


@pytest.mark.slow
def test_every_explanation_is_by_the_old_model_or_the_new_one(tmp_path, start):
    path = tmp_path / "questions.model"
    trees = ["(S (A a))", "(S (B b))"] * 5
    fitted = [TreeClassifier(decay=0.2, C=1).fit(trees, names * 5) for names in (["x", "y"], ["u", "v"])]
    fitted[0].save(path)
    with start(model=str(path)) as client:

        def explained(_):
            return client.post("/api/explain", json={"tree": "(S (B b))"}).json()

        expected = [explained(None)]
        fitted[1].save(path, overwrite=True)
        expected.append(explained(None))
        assert [one["scores"][0]["name"] for one in expected] == ["y", "v"]
        with ThreadPoolExecutor(3) as pool:
            for number in range(12):
                running = [pool.submit(explained, None) for _ in range(6)]
                fitted[number % 2].save(path, overwrite=True)
                assert all(one.result() in expected for one in running)
                assert explained(None) == expected[number % 2]


def test_without_a_model_that_of_the_examples_decides(site):
    found = site.post("/api/explain", json={"tree": QUESTION}).json()
    assert found["scores"][0]["name"] == "person"
    assert sum(one["probability"] for one in found["scores"]) == pytest.approx(1)
    assert "Questions for the example model" in site.get("/explain").text
