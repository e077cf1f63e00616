"""Changes of one index by several processes and threads: none is lost, and searches never wait."""

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fuzz import writers
from strategies import random_forest
from treedot import TreeIndex
from treedot.errors import ParameterError, SourceError


@pytest.fixture
def small(tmp_path):
    forest = random_forest(0, 170, 15)
    return TreeIndex.build(forest, tmp_path / "small.index"), forest


def test_an_index_that_another_process_has_changed_takes_additions_and_updates(small):
    index, _ = small
    other = TreeIndex.open(index.path)
    other.add(["(A b)"])
    index.add(["(C d)"])
    assert [str(tree) for tree in index.forest([170, 171])] == ["(A b)", "(C d)"]
    other.update(["(E f)"], files=["e"])
    assert [str(tree) for tree in other.forest([170, 171, 172])] == ["(A b)", "(C d)", "(E f)"]


def test_row_numbers_of_an_index_that_another_process_has_changed_are_refused(small):
    index, _ = small
    TreeIndex.open(index.path).remove([0])
    for _ in range(2):  # also when it is tried again
        with pytest.raises(SourceError, match=r"changed by another process.*open it again"):
            index.remove([0])
    assert len(index) == 170  # the old file stays with those who have it open
    index.add(["(A b)"])
    assert len(index) == 170
    with pytest.raises(SourceError, match=r"changed by another process.*open it again"):
        index.remove([0])  # numbers from before it was read again
    with index.locked():
        last = str(index.forest([1])[0])
        index.remove([0])
    index.remove([169 - 1])
    assert len(index) == len(TreeIndex.open(index.path)) == 168
    assert str(index.forest([0])[0]) == last


def test_row_numbers_that_another_thread_made_ambiguous_are_refused(small):
    index, _ = small
    held, go_on = threading.Event(), threading.Event()

    def change():
        with index.locked():
            held.set()
            go_on.wait(60)
            index.remove([5])

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(change)
        held.wait(60)
        second = pool.submit(index.remove, [5])
        time.sleep(0.1)
        go_on.set()
        first.result(60)
        with pytest.raises(SourceError, match="changed by another process"):
            second.result(60)
    assert len(TreeIndex.open(index.path)) == 169


@pytest.mark.slow
@pytest.mark.skipif(writers.FORK is None, reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_no_change_of_concurrent_processes_and_threads_is_lost(capfd):
    ended = writers.main(["--rounds", "4", "--seed", "3"])
    assert ended == 0, capfd.readouterr().err


def test_an_index_that_appears_meanwhile_is_not_replaced(tmp_path):
    def trees():
        yield "(A b)"
        TreeIndex.build(["(C d)"], tmp_path / "x")  # this thread may, and the file is then another

    with pytest.raises(ParameterError, match="exists"):
        TreeIndex.build(trees(), tmp_path / "x")
    assert str(TreeIndex.open(tmp_path / "x").forest([0])[0]) == "(C d)"


def test_trees_that_change_their_own_index_are_refused(small):
    index, _ = small

    def trees():
        yield "(A b)"
        TreeIndex.open(index.path).add(["(C d)"])

    with pytest.raises(SourceError, match="changed by another process meanwhile"):
        index.add(trees())
    assert len(TreeIndex.open(index.path)) == 171


def test_a_search_takes_no_lock_and_writes_nothing(small, monkeypatch):
    index, forest = small
    before = os.listdir(index.path.parent)
    monkeypatch.setattr("treedot.search.index.tree_index.lock", lambda *_: pytest.fail("it took a lock"))
    found = TreeIndex.open(index.path)
    found.search(forest[:2], 3)
    found.forest([0, 1])
    assert os.listdir(index.path.parent) == before


def test_a_lock_that_cannot_be_had_is_an_error_of_the_change(small, monkeypatch):
    index, forest = small
    before = index.path.read_bytes()

    def unsupported(*_):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", unsupported)
    with pytest.raises(SourceError, match=r"^cannot lock \S*small\.index: Operation not supported .*locks"):
        index.add(["(A b)"])
    assert index.path.read_bytes() == before
    assert os.listdir(index.path.parent) == ["small.index"]
    TreeIndex.open(index.path).search(forest[:2], 3)
