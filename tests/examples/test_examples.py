"""Every example runs to its end and leaves its page; those of corpora on a small part of them."""

import importlib
import os
import sysconfig
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
CORPORA = {
    "entailment": ("pair.html", "rte3_dev.tsv.gz"),
    "glycans": ("glycan.html", "glycans.tsv.gz"),
    "questions": ("question.html", "qc_train.tsv.gz"),
    "sentiment": ("sentence.html", "sst_train.tsv.gz"),
}
EVERY = {"entailment": "20", "glycans": "200", "questions": "50", "sentiment": "100"}  # so few of them
LONGEST = 60  # lines: an example is read at a glance


def run(name, *arguments):
    importlib.import_module(f"examples.{name}").main(list(arguments))


@pytest.mark.corpus
@pytest.mark.parametrize("name", CORPORA)
def test_an_example_of_a_corpus_ends_in_a_page(name, tmp_path, capsys):
    page, file = CORPORA[name]
    if not Path(os.environ.get("TREEDOT_DATA", "nowhere"), file).exists():
        pytest.skip("TREEDOT_DATA does not point to the corpora")
    run(name, "--every", EVERY[name], "--out", str(tmp_path))
    assert "<svg" in (tmp_path / page).read_text(encoding="utf-8")
    assert capsys.readouterr().out.count("\n") > 10


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


def test_every_example_is_tried_here_is_short_and_says_what_one_learns():
    assert {path.stem for path in FOLDER.glob("*.py")} == {"methods", "sizes", *CORPORA}
    for path in FOLDER.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= LONGEST
        assert "\nYou learn: " in text.split('"""')[1]
