"""Every example runs to its end and leaves its page: on a sample, and on a small part of its corpus."""

import ast
import email
import importlib
import importlib.util
import json
import os
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from paper.prepare.molecules import glycan_tree

from components import component
from sample import data_folder
from treedot import read_trees

FOLDER = Path(__file__).parents[2] / "examples"
CORPORA = {
    "entailment": ("pair.html", "rte3_dev.tsv.gz"),
    "glycans": ("glycan.html", "glycans.tsv.gz"),
    "questions": ("question.html", "qc_train.tsv.gz"),
    "rare": ("rare.html", "qc_train.tsv.gz"),
    "sentiment": ("sentence.html", "sst_train.tsv.gz"),
}
FEW = {"entailment": "20", "glycans": "200", "questions": "50", "rare": "5", "sentiment": "100"}  # every n-th
HELPERS = {"sample", "stores"}  # what examples import
LONGEST = 64  # lines: an example is read at a glance


def run(name, *arguments):
    importlib.import_module(f"examples.{name}").main(list(arguments))


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize("name", CORPORA)
def test_an_example_of_a_corpus_ends_in_a_page(name, tmp_path, capsys):
    page, file = CORPORA[name]
    if not Path(os.environ.get("TREEDOT_DATA", "nowhere"), file).exists():
        pytest.skip("TREEDOT_DATA does not point to the corpora")
    run(name, "--every", FEW[name], "--out", str(tmp_path))
    assert "<svg" in (tmp_path / page).read_text(encoding="utf-8")
    assert capsys.readouterr().out.count("\n") > 10


@pytest.mark.parametrize("name", CORPORA)
def test_an_example_without_data_runs_on_a_sample_and_says_so(name, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("TREEDOT_DATA", raising=False)
    run(name, "--every", "3", "--out", str(tmp_path))
    page, file = CORPORA[name]
    assert "<svg" in (tmp_path / page).read_text(encoding="utf-8")
    assert (tmp_path / "sample" / file).exists()
    first, second, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("SAMPLE: no --data, so all figures below are of small invented tables")
    assert "docs/reproduce.md" in second
    assert len(others) > 10


def test_the_sample_has_the_columns_that_the_examples_read(tmp_path, capsys):
    names = ("qc_train", "qc_test", "glycans", "sst_train", "sst_test", "rte3_dev", "rte3_test")
    folder = data_folder(None, tmp_path, *names)
    capsys.readouterr()
    train, test = (read_trees(folder / f"qc_{part}.tsv.gz") for part in ("train", "test"))
    assert (len(train), len(test)) == (200, 100)
    glycans = read_trees(folder / "glycans.tsv.gz")
    assert [glycan_tree(name) for name in glycans.columns["iupac"]] == list(glycans)
    assert {tree.label for tree in read_trees(folder / "sst_train.tsv.gz")} == set("01234")
    pairs = read_trees(folder / "rte3_dev.tsv.gz", column="text_tree")
    assert {*pairs.columns} >= {"text", "hypothesis", "label", "hypothesis_tree"}
    assert 0.4 < np.mean([label == "YES" for label in pairs.columns["label"]]) < 0.7
    assert data_folder(tmp_path / "given", tmp_path) == tmp_path / "given"
    assert not capsys.readouterr().out


@pytest.mark.slow
def test_the_example_of_code_knows_what_a_comparison_is_called(tmp_path, capsys):
    source = Path(sysconfig.get_paths()["stdlib"], "unittest")
    run("methods", "--source", str(source), "--out", str(tmp_path))
    assert "Class __eq__" in capsys.readouterr().out
    assert "<svg" in (tmp_path / "method.html").read_text(encoding="utf-8")


def test_the_example_of_numbers_learns_what_a_formula_costs(tmp_path, capsys):
    run("sizes", "--out", str(tmp_path))
    said = capsys.readouterr().out
    assert float(said.split()[1].rstrip(",")) > 0.9
    assert "Prediction +" in said
    assert "<svg" in (tmp_path / "formula.html").read_text(encoding="utf-8")


def test_the_example_of_parsers_compares_the_objects_of_what_is_installed(tmp_path, capsys):
    run("parsers", "--out", str(tmp_path))
    rows, said = capsys.readouterr().out.split("\n\n", 1)
    found = {row.split()[0].partition(".")[0]: row.split()[2] for row in rows.splitlines()}
    parsers = {"spacy", "stanza", "nltk", "lxml"}
    assert found.keys() == {"ast", *(name for name in parsers if importlib.util.find_spec(name))}
    assert all(0.2 < float(value) < 0.95 for value in found.values())
    assert "kernel" in said
    assert "<svg" in (tmp_path / "pair.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["qc", "sst"])
def test_the_example_of_networks_compares_them_and_explains_a_decision(task, tmp_path, capsys, monkeypatch):
    component("torch")
    monkeypatch.delenv("TREEDOT_DATA", raising=False)
    run("neural", "--task", task, "--out", str(tmp_path))
    said = capsys.readouterr().out
    right = [
        float(line.split(": ")[1]) for line in said.splitlines() if line.startswith(("network on", "TreeC"))
    ]
    assert len(right) == 4
    assert min(right) > 0.6
    assert "if the node's children are removed" in said
    assert "<svg" in (tmp_path / "network.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("agg")
    plt = importlib.import_module("matplotlib.pyplot")
    drawn = []
    monkeypatch.chdir(FOLDER)
    cells = json.loads((FOLDER / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: drawn.append(plt.gcf()) or plt.close())
    names = {}
    shown = [value for source in sources if (value := run_cell(source, names)) is not None]
    assert [value.count("<svg") > 1 for value in shown] == [True, True]
    assert len(drawn) == 2
    printed = capsys.readouterr().out
    assert "0.94 of 200 test questions are right" in printed
    assert "groups of near-duplicates. The first three:\n1. " in printed


def test_the_notebook_is_stored_without_outputs():
    cells = json.loads((FOLDER / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def run_cell(source, names):
    """Run a cell as a notebook does; return the HTML that it would show for its last line, if any."""
    parsed = ast.parse(source)
    last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
    exec(compile(parsed, "cell", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
    return None if value is None else value._repr_html_()


@pytest.mark.slow
def test_the_example_of_databases_searches_those_that_are_installed(tmp_path, capsys, monkeypatch):
    component("databases")
    monkeypatch.delenv("PGHOST", raising=False)
    run("database", "--source", email.__path__[0], "--n-components", "256", "--out", str(tmp_path))
    said = capsys.readouterr().out
    assert said.count("recall") == 2 * (2 + 2 + 4)
    assert said.count("exact, 10 rows: recall 1.000") >= 2
    assert said.count("refused: cannot compare vectors with different settings: seed 0 and 1") == 2 * 3
    assert "PostgreSQL is left out" in said


def test_the_example_of_databases_says_which_are_missing(tmp_path, capsys, monkeypatch):
    for module in ("usearch.index", "lancedb", "psycopg"):
        monkeypatch.setitem(sys.modules, module, None)
    run("database", "--source", email.__path__[0], "--n-components", "256", "--out", str(tmp_path))
    first, *others = capsys.readouterr().out.splitlines()
    assert "td.nearest" in first
    assert [line.partition(" is left out")[0] for line in others] == ["usearch", "LanceDB", "PostgreSQL"]


def test_every_example_is_tried_here_is_short_and_says_what_one_learns():
    scripts = {path.stem: path for path in FOLDER.glob("*.py") if path.stem not in HELPERS}
    assert scripts.keys() == {"database", "methods", "neural", "parsers", "sizes", *CORPORA}
    for path in scripts.values():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= LONGEST
        assert "\nYou learn: " in text.split('"""')[1]
