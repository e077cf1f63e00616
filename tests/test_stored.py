"""Files that earlier versions wrote are read, and give the same results."""

import importlib.util
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import treedot as td
from treedot.cli import main

pytest.importorskip("pyarrow")

HERE = Path(__file__).parent / "stored"
_spec = importlib.util.spec_from_file_location("stored_make", HERE / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)


@pytest.fixture(params=sorted(path.name for path in HERE.iterdir() if (path / "expected.json").exists()))
def stored(request, tmp_path, monkeypatch):
    """Go to a copy of the files that a version wrote."""
    folder = shutil.copytree(HERE / request.param, tmp_path / "stored")
    os.utime(folder / "trees.tsv", ns=(make.MODIFIED, make.MODIFIED))
    monkeypatch.chdir(folder)
    return json.loads(Path("expected.json").read_text())


@pytest.fixture
def forest():
    return td.read_trees(make.trees()[0])


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_forests(stored, suffix):
    loaded = td.Forest.load(f"trees.{suffix}")
    texts, classes = make.trees()
    assert [str(tree) for tree in loaded] == texts
    assert loaded.columns["kind"] == classes
    assert loaded.columns["number"] == list(range(len(texts)))


@pytest.mark.parametrize(
    ("file", "name"), [("rows.npz", "rows"), ("dense.npy", "dense"), ("dense.parquet", "dense")]
)
def test_vectors(stored, file, name):
    np.testing.assert_allclose(td.dot_products(td.load_vectors(file)), stored[name], rtol=1e-6, atol=1e-6)


def test_vectors_of_today_may_be_compared_with_stored_ones(stored, forest):
    vectorizer = td.FragmentVectorizer.load("rows.vectorizer")
    td.save_vectors("today.npz", vectorizer.transform(forest[:8]), vectorizer)
    products = td.dot_products(td.load_vectors("today.npz"), td.load_vectors("rows.npz"))
    np.testing.assert_allclose(products, stored["rows"], rtol=1e-6, atol=1e-6)


def test_index(stored, forest):
    rows, values = td.TreeIndex.open("trees.index").search(forest[:3], 4)
    assert rows.tolist() == stored["found"]
    np.testing.assert_allclose(values, stored["values"], rtol=1e-6)


@pytest.mark.parametrize(("model", "name"), [("model", "scores"), ("dense_model", "dense scores")])
def test_models(stored, forest, model, name):
    scores = td.LinearModel.load(model).decision_function(forest[:8])
    np.testing.assert_allclose(scores, stored[name], rtol=1e-5, atol=1e-6)


def test_a_checkpoint_is_resumed(stored):
    assert make.train("checkpoint").weights.tolist() == stored["trained"]


def test_parts_of_a_folder(stored):
    assert len(td.load_vectors("parts")) == len(make.trees()[0])


def test_baseline(stored, capsys):
    assert main(["dups", "code", "--baseline", "baseline.json", "--fail-on-new"]) == 0
    Path("code/three.py").write_text(make.CODE.format(name="three"))
    assert main(["dups", "code", "--baseline", "baseline.json", "--fail-on-new"]) == 1
    assert "three" in capsys.readouterr().out
