"""The table of what trees are good for, on next to nothing."""

import gzip
import json

import numpy as np
import pytest
from paper.record import Record
from published.__main__ import main

import published
from published import corpora, methods, tasks
from strategies import random_forest

COLUMNS = {
    "tree": str, "text_tree": str, "hypothesis_tree": str, "iupac": "Gal(b1-4)Glc".format,
    "sequence": "ACGU".format,
}  # fmt: skip
CLASSES = ("coarse", "fine", "label", "kingdom", "family")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with a small file for every corpus, each tree of one of two classes."""
    folder = tmp_path_factory.mktemp("corpora")
    trees = list(random_forest(0, 24))
    lines = ["\t".join([*COLUMNS, *CLASSES, "fold"])]
    for k, tree in enumerate(trees):
        cells = [write(tree) for write in COLUMNS.values()]
        lines.append("\t".join([*cells, *[str(3 * (k % 2))] * len(CLASSES), str(k % 10)]))
    content = gzip.compress("\n".join(lines).encode())
    names = [
        "glycans",
        "rna_archive2",
        *(f"{name}_{part}" for name in ("qc", "sst") for part in ("train", "test")),
    ]
    names += [f"rte{k}_{part}" for k in (1, 2, 3, 5) for part in ("dev", "test")]
    for name in names:
        (folder / f"{name}.tsv.gz").write_bytes(content)
    return folder


@pytest.mark.slow
def test_every_method_is_measured_once_and_kept(data, tmp_path, capsys, monkeypatch):
    kept = {name: tasks.TASKS[name] for name in ("QC coarse", "RTE 1")}
    monkeypatch.setattr(corpora, "TASKS", kept)
    command = ["corpora", "--data", str(data), "--out", str(tmp_path)]
    assert main(command) == 0
    page = (tmp_path / "published.md").read_text()
    steps = json.loads((tmp_path / "corpora.json").read_text())["steps"]
    assert len(steps) == 2 + 2 * len(methods.METHODS) - 1  # questions have no overlap
    assert page.count("| QC coarse | 24, 24 | .500 |") == 1
    capsys.readouterr()
    assert main(command) == 0
    assert "step 1" not in capsys.readouterr().out
    assert (tmp_path / "published.md").read_text() == page


@pytest.mark.slow
def test_the_page_shows_what_is_there_before_the_slow_methods(data, tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "TASKS", {"RNA": tasks.TASKS["RNA"]})
    source = corpora.Corpora(data, tmp_path)
    record = published._record("corpora", source, tmp_path)
    plan = corpora.steps(source)
    needed = list(corpora.required(source))
    for key in needed[:-1]:
        record.run(key, plan[key])
    command = ["--page", "--data", str(data), "--out", str(tmp_path)]
    assert main(command) == 0
    assert "## Sentences" not in (tmp_path / "published.md").read_text()
    record.run(needed[-1], plan[needed[-1]])
    assert main(command) == 0
    assert "## Sentences" in (tmp_path / "published.md").read_text()


@pytest.mark.parametrize("name", tasks.TASKS)
def test_every_task_has_trees_and_classes_of_both_parts(data, name):
    task = tasks.read_task(data, name)
    train, test = task.classes
    assert (train.size, test.size) == (len(task.train), len(task.test))
    assert set(train) == set(test)
    assert len(task.tokens(task.test)) == len(task.test)
    assert task.is_paired == name.startswith("RTE")


def test_labels_of_phrases_do_not_tell_the_class(data):
    task = tasks.read_task(data, "SST 5")
    inner = task.train.label[task.train.arity > 0]
    assert np.unique(inner).size == 1


def test_kernels_of_many_trees_take_the_settings_of_the_sparse_rows(data, tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "LARGE", 10)
    plan = corpora.steps(corpora.Corpora(data, tmp_path))
    record = Record(tmp_path / "x.json", {}, "")
    for key in ("RNA", "RNA, sparse", "RNA, exact"):
        record.run(key, plan[key])
    chosen, found = record["RNA, sparse"], record["RNA, exact"]
    assert (found["decay"], found["C"]) == (chosen["decay"], chosen["C"])


def test_corpora_that_are_missing_are_an_error_that_says_where_to_get_them(tmp_path, capsys):
    assert main(["corpora", "--data", str(tmp_path), "--out", str(tmp_path)]) == 1
    assert "paper.prepare" in capsys.readouterr().err
