"""The table of what trees are good for, on next to nothing."""

import gzip

import numpy as np
import pytest

from benchmarks import learn, methods, tasks
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


def test_every_method_is_measured_once_and_kept(data, tmp_path, capsys):
    command = ["--data", str(data), "--cache", str(tmp_path), "--only", "QC coarse", "RTE 1"]
    learn.main(command)
    first = capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 2 * len(methods.METHODS) - 1  # questions have no overlap
    learn.main(command)
    assert capsys.readouterr().out == first
    assert first.count("| QC coarse | 24 | 24 | 24 | .500 ") == 1
    assert len(first.splitlines()) == 10


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


def test_kernels_of_many_trees_take_the_settings_of_the_sparse_rows(data, monkeypatch):
    monkeypatch.setattr(learn, "LARGE", 10)
    task = tasks.read_task(data, "RNA")
    chosen, found = (learn.measured(task, method, None) for method in ("sparse", "exact"))
    assert (found.decay, found.C) == (chosen.decay, chosen.C)
