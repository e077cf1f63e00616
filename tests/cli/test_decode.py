"""``treedot decode``."""

import json

import pytest

from treedot import DistributedTreeVectorizer, FragmentVectorizer, read_trees, save_vectors
from treedot.cli import main

TREES = ["(S (NP (DT the) (NN tree)) (VP (VBZ grows)))", "(S (NP (DT a) (NN bird)) (VP (VBZ sings)))"]
OTHER = "(S (NP (DT the) (NN bird)) (VP (VBZ barks)))"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with trees and the vectors of these and another tree, as the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trees.mrg").write_text("\n".join(TREES))
    vectorizer = DistributedTreeVectorizer(n_components=1024, decay=0.2)
    save_vectors("v.npy", vectorizer.transform([*TREES, OTHER, "(A)"]), vectorizer)
    rows = FragmentVectorizer()
    save_vectors("v.npz", rows.transform(TREES), rows)
    return tmp_path


def test_decode_writes_the_trees_and_their_certificates(folder, capsys):
    arguments = ["decode", "v.npy", "--productions", "trees.mrg"]
    assert main([*arguments, "-o", "found.mrg", "--certificates", "c.jsonl"]) == 0
    assert "2 of 4 trees certified, with 9 known productions" in capsys.readouterr().err
    lines = (folder / "found.mrg").read_text().splitlines()
    assert lines[:2] == TREES
    assert len(lines) == 4
    certificates = [json.loads(line) for line in (folder / "c.jsonl").read_text().splitlines()]
    assert [one["is_certified"] for one in certificates] == [True, True, False, False]
    assert certificates[2]["counts"]["(NN bird)"] == 1
    assert certificates[2]["remainder"] > 0.1
    assert certificates[3]["tree"] is None


def test_decode_writes_columns(folder):
    assert main(["decode", "v.npy", "--productions", "trees.mrg", "-o", "found.parquet"]) == 0
    found = read_trees("found.parquet")
    assert list(found.columns["is_certified"]) == [True, True, False, False]
    assert str(found[0]) == TREES[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["v.npz", "--productions", "trees.mrg", "-o", "x.mrg"], "not sparse rows"),
        (["v.npy", "--productions", "trees.mrg", "-o", "x.npy"], "unknown format"),
        (["v.npy", "--productions", "none.mrg", "-o", "x.mrg"], "none.mrg"),
        (["v.npy", "--productions", "trees.mrg", "-o", "trees.mrg"], "trees.mrg"),
        (["trees.mrg", "--productions", "trees.mrg", "-o", "x.mrg"], "cannot read vectors"),
    ],
)
def test_wrong_command_lines_are_refused(folder, capsys, arguments, message):
    assert main(["decode", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert not (folder / "x.mrg").exists()
