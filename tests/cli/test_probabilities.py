"""Probabilities on the command line: predict --proba, evaluate and explain."""

import csv
import json

import numpy as np
import pytest

from treedot import LinearModel, explain, read_trees
from treedot.cli import main
from treedot.models.evaluation_report import EvaluationReport, as_json, as_page, as_text
from treedot.models.probability_evaluation import evaluate_probabilities

QUESTIONS = "docs/examples/questions.tsv"
SETTINGS = ["--class", "label", "--decay", "0.4", "--C", "10", "--cv", "3"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    target = tmp_path_factory.mktemp("models") / "questions"
    assert main(["train", QUESTIONS, "-o", str(target), *SETTINGS, "--calibration"]) == 0
    return target


@pytest.fixture(scope="module")
def uncalibrated(tmp_path_factory):
    target = tmp_path_factory.mktemp("models") / "scores"
    assert main(["train", QUESTIONS, "-o", str(target), *SETTINGS]) == 0
    return target


def test_predict_gives_the_probability_of_the_prediction_and_of_every_class(model, tmp_path, capsys):
    target = tmp_path / "p.csv"
    assert main(["predict", str(model), QUESTIONS, "--proba", "--scores", "-o", str(target)]) == 0
    with target.open(newline="") as file:
        rows = list(csv.DictReader(file))
    loaded, forest = LinearModel.load(model), read_trees(QUESTIONS)
    wanted = loaded.predict_proba(forest)
    classes = loaded.classes.tolist()
    assert list(rows[0]) == [
        "label", "predicted", *(f"score_{name}" for name in classes),
        "probability", *(f"probability_{name}" for name in classes),
    ]  # fmt: skip
    found = np.array([[float(row[f"probability_{name}"]) for name in classes] for row in rows])
    assert found == pytest.approx(wanted, abs=1e-6)
    assert all(row["probability"] == row[f"probability_{row['predicted']}"] for row in rows)
    capsys.readouterr()
    assert main(["predict", str(model), QUESTIONS, "--proba"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split("\t")[:2] == ["predicted", "probability"]
    assert printed[1].split("\t")[:2] == [rows[0]["predicted"], rows[0]["probability"]]


def test_two_classes_both_have_a_probability(tmp_path, capsys):
    forest = read_trees(QUESTIONS)
    lines = [
        "kind\ttree",
        *(f"{name == 'time'}\t{t}" for t, name in zip(forest, forest.columns["label"], strict=True)),
    ]
    source = tmp_path / "two.tsv"
    source.write_text("\n".join(lines) + "\n")
    target = tmp_path / "m"
    assert (
        main(["train", str(source), "--class", "kind", "-o", str(target), *SETTINGS[2:], "--calibration"])
        == 0
    )
    capsys.readouterr()
    assert main(["predict", str(target), str(source), "--proba"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["predicted", "probability", "probability_False", "probability_True"]
    for row in rows[1:]:
        assert float(row[2]) + float(row[3]) == pytest.approx(1, abs=2e-6)
        assert row[1] == (row[3] if row[0] == "True" else row[2])


def test_a_model_without_calibration_says_what_to_do(uncalibrated, capsys):
    assert main(["predict", str(uncalibrated), QUESTIONS, "--proba"]) == 1
    told = capsys.readouterr()
    assert "has no calibration" in told.err
    assert "or remove --proba" in told.err
    assert told.out == ""
    assert main(["evaluate", str(uncalibrated), QUESTIONS, "--json"]) == 0
    assert "probabilities" not in json.loads(capsys.readouterr().out)
    assert main(["explain", str(uncalibrated), QUESTIONS, "--no-flip"]) == 0
    assert "probability" not in capsys.readouterr().out


def test_evaluate_reports_the_quality_of_probabilities_in_every_form(model, tmp_path, capsys):
    page = tmp_path / "r.html"
    assert main(["evaluate", str(model), QUESTIONS, "--html", str(page)]) == 0
    text = capsys.readouterr().out
    assert main(["evaluate", str(model), QUESTIONS, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["probabilities"]
    loaded, forest = LinearModel.load(model), read_trees(QUESTIONS)
    truth = np.array(forest.columns["label"])
    wanted = evaluate_probabilities(
        loaded.classes, truth, loaded.predict(forest), loaded.predict_proba(forest)
    )
    assert found["log_loss"] == pytest.approx(wanted.log_loss)
    assert found["bins"][-1]["n_trees"] == wanted.bins[-1].n_trees
    line = f"probabilities: log loss {wanted.log_loss:.4f}, Brier score {wanted.brier:.4f}, "
    assert line in text
    assert line in page.read_text()
    assert page.read_text().count('<line class="whisker"') == len(wanted.bins)


def test_the_page_of_a_model_with_and_without_probabilities(model):
    truth, p = np.array(["a", "b", "z"]), np.array([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]])
    from treedot.models.evaluation import evaluate

    classes = np.array(["a", "b"])
    report = EvaluationReport("m", evaluate(classes, truth, np.array(["a", "b", "a"])), [])
    assert "probabilities" not in as_json(report)
    assert "Are the probabilities right?" not in as_page(report)
    quality = evaluate_probabilities(classes, truth, np.array(["a", "b", "a"]), p)
    report = report._replace(probabilities=quality)
    assert "on 2 trees, without those of unknown classes" in as_text(report)
    assert "Are the probabilities right?" in as_page(report)


def test_explain_shows_the_probability_of_the_class(model, capsys):
    loaded, forest = LinearModel.load(model), read_trees(QUESTIONS)
    wanted = loaded.predict_proba(forest[:1])[0]
    for name, probability in zip(loaded.classes.tolist(), wanted.tolist(), strict=True):
        found = explain(loaded, forest[:1], name, find_flip=False)
        assert found.probability == pytest.approx(probability, abs=1e-6)
        assert f"Class {name}, probability {probability:.3f}, score" in found.to_text()
        assert json.loads(found.to_json())["probability"] == found.probability
    assert main(["explain", str(model), QUESTIONS, "--no-flip"]) == 0
    assert f"probability {wanted.max():.3f}" in capsys.readouterr().out
