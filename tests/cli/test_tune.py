"""The command ``tune``, and the commands that use a metric."""

import json

import numpy as np
import pytest

from strategies import random_forest
from treedot import TreeIndex, read_code
from treedot.cli import main
from treedot.models import TreeMetric
from treedot.vectors import Metric

SMALL = ["--n-columns", "64", "--shrinkage", "1"]
BODY = """
def {name}(values):
    total = {start}
    for value in values:
        {change}
    return total
"""
CHANGES = ("total += value", "total = max(total, value)", "if value: total += 1", "total.append(value * 2)")


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return a folder with a folder of programs for each task, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    for task, change in enumerate(CHANGES):
        (tmp_path / "src" / f"task{task}").mkdir(parents=True)
        for k in range(3):
            text = BODY.format(name=f"f{k}", start=k, change=change)
            (tmp_path / "src" / f"task{task}" / f"{k}.py").write_text(text)
    return tmp_path


def test_a_metric_is_learned_from_folders_of_code_and_searched_by(code, capsys):
    assert main(["tune", "src", "--group", "folder", "-o", "m", *SMALL]) == 0
    assert capsys.readouterr().out == "12 trees in 4 groups; 64 columns, shrinkage 1; in m\n"
    metric = Metric.load("m")
    assert metric.facts["reading"]["unit"] == "function"
    assert main(["index", "src", "-o", "x.index", "--metric", "m"]) == 0
    assert TreeIndex.open("x.index").metric.fingerprint == metric.fingerprint
    capsys.readouterr()
    assert main(["search", "x.index", "src/task2/1.py", "-k", "3", "--expand", "2", "--format", "json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert {found["file"] for found in answer["found"]} == {f"src/task2/{k}.py" for k in range(3)}
    assert main(["info", "m"]) == 0
    assert "a metric" in capsys.readouterr().out
    assert main(["info", "x.index", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metric"]["groups"] == 4


def test_an_index_reads_names_and_literals_as_its_metric_did(code, capsys):
    main(["tune", "src", "--group", "folder", "-o", "m", *SMALL])
    metric = Metric.load("m")
    metric.facts["reading"]["identifiers"] = "keep"
    metric.save("m", overwrite=True)
    main(["index", "src", "-o", "x.index", "--metric", "m"])
    index = TreeIndex.open("x.index")
    assert index.reading["identifiers"] == "keep"
    kept = read_code("src", identifiers="keep", literals=index.reading["literals"])
    assert sorted(map(str, index.forest(range(12)))) == sorted(map(str, kept))
    assert main(["index", "src", "-o", "x.index", "--update", "--metric", "m"]) == 1
    assert "--min-nodes, --metric" in capsys.readouterr().err


def test_the_command_learns_what_the_estimator_learns_from_a_table(tmp_path, capsys):
    forest = random_forest(1, 40, 12)
    forest.columns["kind"] = [f"k{k % 8}" for k in range(40)]
    forest.save(tmp_path / "trees.parquet")
    table, out = str(tmp_path / "trees.parquet"), str(tmp_path / "m")
    options = ["--n-columns", "64", "128", "--seed", "3"]
    assert main(["tune", table, "--group", "kind", "-o", out, *options]) == 0
    assert capsys.readouterr().out.count("on held-out groups") == 10
    wanted = TreeMetric(n_columns=(64, 128), random_state=3).fit(forest, forest.columns["kind"])
    assert (Metric.load(out).transform(forest) == wanted.transform(forest)).all()
    assert Metric.load(out).fingerprint == wanted.metric_.fingerprint
    assert np.isfinite(wanted.transform(forest)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--group", "x"], "there is no column 'x' for --group; the columns are: file, "),
        (["--group", "folder", "--n-columns", "100"], "--n-columns must be a power of two"),
        (["--group", "file", "--n-columns", "64"], "no group has two members"),
    ],
)
def test_wrong_options_are_refused(code, capsys, options, message):
    assert main(["tune", "src", "-o", "m", *options]) == 1
    assert message in capsys.readouterr().err
    main(["tune", "src", "--group", "folder", "-o", "m", *SMALL])
    assert main(["tune", "src", "--group", "folder", "-o", "m", *SMALL]) == 1
    assert "--overwrite" in capsys.readouterr().err
