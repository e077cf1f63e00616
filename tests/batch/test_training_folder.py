"""The folder of a training that may be killed."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest

from strategies import random_forest
from treedot.batch.checkpoint import read_json
from treedot.batch.training_folder import Job, State, sole_folder
from treedot.errors import ParameterError, SourceError
from treedot.models.training import tree_blocks
from treedot.vectors import SparseSpec

REQUEST = {"label": "class", "C": [1.0], "/trees.tsv": [5, 17]}
JOB = Job([], {}, SparseSpec(n_features=32).to_dict(), [0, 1, 2], [], 0, 1, 5, 1)


def labelled():
    forest = random_forest(0, 20, 8)
    forest.columns["class"] = ["a", "b"] * 10
    return [forest]


def opened(path, request=REQUEST, read=labelled, check=lambda facts: None):
    return sole_folder(path, request, "class", read, check)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(tree_blocks, "BLOCK_TREES", 6)
    return tmp_path / "training"


def test_trees_are_read_once(path):
    with opened(path) as folder:
        assert folder.facts.sizes == [6, 6, 6, 2]
    with opened(path, read=None) as folder:
        assert folder.facts.counts == [10, 10]
        assert len(folder.trees.block(3).trees) == 2


def test_there_is_no_folder_before_all_trees_are_read_and_checked(path):
    def ends_early():
        yield from labelled()
        assert os.listdir(path.parent)
        raise SourceError("cannot read")

    def refuse(facts):
        raise ParameterError(f"not with {facts.names}")

    with pytest.raises(SourceError, match="cannot read"), opened(path, read=ends_early):
        pass
    with pytest.raises(ParameterError, match="not with"), opened(path, check=refuse):
        pass
    assert not os.listdir(path.parent)


def test_a_training_that_begins_while_another_one_reads_is_refused(path):
    def second():
        with opened(path):
            pytest.fail("there are two at a time")

    def slowly():
        with ThreadPoolExecutor(1) as pool:
            refused.append(pool.submit(second).exception(60))
        return labelled()

    refused = []
    with opened(path, read=slowly):
        pass
    assert "another training is running in" in str(*refused)


def test_the_state_comes_back_as_it_was_kept(path):
    state = State.begin(32, 3, 4)
    for number, array in enumerate(state):
        array[...] = np.arange(array.size).reshape(array.shape) + number
    with opened(path) as folder:
        folder.write_job(JOB)
        assert not folder.load().weights.any()
        folder.save(state)
    with opened(path) as folder:
        folder.write_job(JOB)
        for found, kept in zip(folder.load(), state, strict=True):
            assert found.tobytes() == kept.tobytes()
            assert found.flags.writeable


def test_what_a_pass_writes_does_not_touch_what_it_reads(path):
    random = np.random.default_rng(0)
    kept = {}
    with opened(path) as folder:
        folder.write_job(JOB)
        state = folder.load()
        assert not folder.read_alpha(state, np.array([3, 0])).any()
        for passes in range(5):
            for group in (np.array([2, 0]), np.array([3, 1])):
                sizes = folder.sizes[group]
                alpha = random.random((sum(sizes), 3)).astype(np.float32)
                folder.write_alpha(state, group, alpha)
                parts = np.split(alpha, sizes[:1])
                kept.update({(passes + 1, b): part for b, part in zip(group, parts, strict=True)})
            for before in {max(1, passes), passes + 1}:
                state.progress[0] = before
                for block in range(4):
                    found = folder.read_alpha(state, np.array([block]))
                    assert found.tobytes() == kept[before, block].tobytes()
        (path / "alpha.1").write_bytes(b"")
        with pytest.raises(SourceError, match=r"alpha.1 is damaged"):
            folder.read_alpha(state, np.array([0]))


def test_another_request_is_refused_and_what_changed_is_named(path):
    with opened(path):
        pass
    other = {"label": "class", "C": [2.0], "/trees.tsv": [5, 18]}
    with pytest.raises(ParameterError, match=r"changed since it began: C, /trees.tsv. Use .* or delete"):
        opened(path, other).__enter__()
    with pytest.raises(ParameterError, match=r"changed since it began: unit\."):
        opened(path, {**REQUEST, "unit": "record"}).__enter__()


def test_a_choice_is_made_once(path):
    first, second = ({"decay": 0.4, "C": C, "trials": []} for C in (1.5, 2.5))
    with opened(path) as folder:
        assert folder.choice(lambda: first) == first
    with opened(path) as folder:
        assert folder.choice(lambda: second) == first


def test_other_folders_and_damaged_ones_are_refused(path):
    path.mkdir()
    with pytest.raises(SourceError, match="holds no training"):
        opened(path).__enter__()
    path.rmdir()
    with opened(path):
        pass
    for name in ("facts.json", "request.json"):
        whole = (path / name).read_text()
        for damaged in (whole[:-5], "[]"):
            (path / name).write_text(damaged)
            with pytest.raises(SourceError, match=rf"{name} is damaged.* delete .* to start again"):
                opened(path).__enter__()
        (path / name).write_text(whole)


def test_two_processes_do_not_train_in_one_folder(path):
    code = f"from treedot._storage.locks import lock\nwith lock({str(path)!r}, 'refuse'): pass"
    with opened(path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "is in use by another process" in done.stderr
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_file_that_cannot_be_opened_is_not_called_damaged(path, monkeypatch):
    with opened(path):
        pass
    denied = OSError(24, "Too many open files")
    monkeypatch.setattr("treedot._storage.files.os.open", mock.Mock(side_effect=denied))
    with pytest.raises(SourceError, match="cannot open") as raised:
        read_json(path / "request.json")
    assert "delete" not in str(raised.value)
