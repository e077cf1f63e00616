"""The commands that learn, with models that predict numbers."""

import json

import numpy as np
import pytest

from treedot import LinearModel, TreeRegressor, read_trees
from treedot.cli import main

SETTINGS = ["--decay", "0.2", "0.4", "--cv", "3", "-j", "1"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    forest = read_trees("docs/examples/questions.tsv")
    y = forest.sizes + np.random.default_rng(0).normal(size=len(forest))
    path = tmp_path_factory.mktemp("tables") / "sizes.tsv"
    lines = [f"q{k}\t{y[k]:.4f}\t{tree}" for k, tree in enumerate(forest)]
    path.write_text("\n".join(["id\tsize\ttree", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def model(table):
    path = table.with_suffix(".model")
    assert main(["train", str(table), "--class", "size", "-o", str(path), *SETTINGS]) == 0
    return path


def test_a_column_of_many_numbers_trains_the_regression_of_the_estimator(table, model, tmp_path, capsys):
    target = str(tmp_path / "m")
    assert main(["train", str(table), "--class", "size", "-o", target, *SETTINGS, "--alpha", "1", "10"]) == 0
    said = capsys.readouterr()
    assert (
        "column 'size' is numeric with 298 distinct values: training a regression; use --classify" in said.err
    )
    lines = said.out.splitlines()
    assert lines[0].startswith("300 trees, with weights for ")
    assert lines[1].startswith("  decay 0.4, alpha 1: R² 0.")
    assert len(lines) == 6  # four trials, the best first
    assert lines[-1] == f"{target}: decay 0.4, alpha 1"
    forest = read_trees(table)
    y = np.array(forest.columns["size"], float)
    wanted = TreeRegressor(decay=(0.2, 0.4), cv=3).fit(forest, y)
    assert LinearModel.load(model).predict(forest).tolist() == wanted.predict(forest).tolist()


@pytest.mark.parametrize("missing", ["nan", "NaN", "inf"])
def test_many_numbers_with_a_missing_one_are_not_taken_for_classes(tmp_path, capsys, missing):
    table, target = tmp_path / "t.tsv", tmp_path / "m"
    lines = [f"{value}\t(S (A a{value}) (B b{k}))" for k in range(2) for value in [*range(21), missing]]
    table.write_text("\n".join(["y\ttree", *lines]) + "\n")
    assert main(["train", str(table), "--class", "y", "-o", str(target)]) == 1
    assert f"row 22, column 'y': '{missing}' is not a finite number" in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.parametrize(
    ("values", "options", "is_regression"),
    [
        (range(20), [], False),
        (range(21), [], True),
        (range(21), ["--classify", "--C", "1"], False),
        (range(3), ["--regress", "--alpha", "1"], True),
        ([*range(20), "x"], [], False),
        ([*range(20), "inf"], [], False),
    ],
)
def test_the_target_decides_unless_an_option_does(tmp_path, values, options, is_regression):
    table, target = tmp_path / "t.tsv", tmp_path / "m"
    lines = [f"{value}\t(S (A a{value}) (B b{k}))" for k in range(2) for value in values]
    table.write_text("\n".join(["y\ttree", *lines]) + "\n")
    command = [
        "train",
        str(table),
        "--class",
        "y",
        "-o",
        str(target),
        "--cv",
        "2",
        "--decay",
        "0.4",
        *options,
    ]
    assert main(command) == 0
    assert (LinearModel.load(target).classes is None) == is_regression


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--C", "1"], "--C is a setting of classes: remove it, or add --classify"),
        (["--balanced"], "--balanced is a setting of classes"),
        (["--passes", "3"], "--passes is a setting of classes"),
        (["--classify", "--alpha", "1"], "--alpha is a setting of regressions"),
        (["--regress", "--checkpoint", "folder"], "--regress needs all trees in memory"),
    ],
)
def test_settings_of_the_other_kind_are_refused(table, tmp_path, capsys, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    assert main(["train", str(table), "--class", "size", "-o", "m", *options]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_columns_beside_the_fragments_are_settings_of_numbers_too(table, tmp_path, capsys):
    target = str(tmp_path / "m")
    options = ["--words", "choose", "--labels", "yes", "--damping", "sqrt", "log1p", "--decay", "0.4"]
    command = ["train", str(table), "--class", "size", "-o", target, "--cv", "3", *options]
    assert main([*command, "--alpha", "1", "10"]) == 0
    training = LinearModel.load(target).facts["training"]
    assert len(training["trials"]) == 2 * 2 * 2
    assert {trial["labels"] for trial in training["trials"]} == {True} == {training["labels"]}
    said = capsys.readouterr().out.splitlines()
    assert said[6] == "  and 3 more"
    assert said[1].endswith(f"{max(trial['r2'] for trial in training['trials']):.3f} in cross-validation")
    forest = read_trees(table)
    y = np.array(forest.columns["size"], float)
    names = ("decay", "alpha", "words", "labels", "damping")
    wanted = TreeRegressor(**{name: training[name] for name in names}).fit(forest, y)
    assert LinearModel.load(target).predict(forest) == pytest.approx(wanted.predict(forest))


def test_a_value_that_is_no_number_is_named(tmp_path, capsys):
    (tmp_path / "t.tsv").write_text("y\ttree\n1\t(A b)\nmany\t(B b)\n")
    assert (
        main(["train", str(tmp_path / "t.tsv"), "--class", "y", "--regress", "-o", str(tmp_path / "m")]) == 1
    )
    assert "row 2, column 'y': 'many' is not a finite number" in capsys.readouterr().err


def test_predict_prints_and_writes_numbers(table, model, tmp_path, capsys):
    wanted = LinearModel.load(model).predict(read_trees(table))
    assert main(["predict", str(model), str(table)]) == 0
    assert [float(line) for line in capsys.readouterr().out.split()] == pytest.approx(wanted, rel=1e-7)
    assert main(["predict", str(model), str(table), "-o", str(tmp_path / "out.tsv")]) == 0
    head, first, *_ = (tmp_path / "out.tsv").read_text().splitlines()
    assert head == "id\tsize\tpredicted"
    assert first.split("\t")[0] == "q0"
    assert float(first.split("\t")[2]) == pytest.approx(wanted[0], rel=1e-7)
    assert main(["predict", str(model), str(table), "--scores"]) == 1
    assert "predicts numbers, which have no scores: remove --scores" in capsys.readouterr().err


@pytest.mark.slow
def test_batch_predict_writes_numbers(table, model, tmp_path, capsys):
    dataset = pytest.importorskip("pyarrow.dataset")
    assert main(["batch", "predict", str(model), str(table), "-o", f"{tmp_path}/out/", "--workers", "1"]) == 0
    found = dataset.dataset(tmp_path / "out", format="ipc", exclude_invalid_files=True).to_table()
    wanted = LinearModel.load(model).predict(read_trees(table))
    assert found["predicted"].to_pylist() == pytest.approx(wanted.tolist())
    assert main(["batch", "predict", str(model), str(table), "-o", f"{tmp_path}/no/", "--scores"]) == 1
    assert "predicts numbers" in capsys.readouterr().err


def test_evaluate_prints_errors_with_intervals_and_plots_them(table, model, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["evaluate", str(model), str(table), "--html", str(page), "--against", str(model)]) == 0
    text = capsys.readouterr().out
    assert "R² 0." in text
    assert "RMSE" in text
    assert "paired z-test p = 1" in text
    drawn = page.read_text()
    assert drawn.count("<circle") == 300
    assert "Largest errors" in drawn
    assert main(["evaluate", str(model), str(table), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["r2"]["low"] < found["r2"]["value"] < found["r2"]["high"] <= 1
    assert len(found["errors"]) == 20


def test_explain_and_info_take_a_model_of_numbers(model, capsys):
    assert main(["explain", str(model), "(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))"]) == 0
    assert capsys.readouterr().out.startswith("Prediction +")
    assert main(["explain", str(model), "(A b)", "--target", "x"]) == 1
    assert "predicts numbers, not classes" in capsys.readouterr().err
    assert main(["info", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["predicts"] == "numbers"


def test_models_of_numbers_and_of_classes_are_not_compared(table, model, tmp_path, capsys):
    questions, other = "docs/examples/questions.tsv", str(tmp_path / "classes")
    assert main(["train", questions, "--class", "label", "-o", other, "--decay", "0.2", "--C", "1"]) == 0
    assert main(["evaluate", str(model), str(table), "--against", other]) == 1
    assert "do not both predict classes, or numbers" in capsys.readouterr().err
