"""One lock with three modes: one holder at a time, released by death, and no file left over."""

import errno
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from treedot._storage.locks import lock, remove_locks
from treedot.errors import SourceError

KILLED = "import os; from treedot._storage.locks import lock\nwith lock('x'): os.kill(os.getpid(), 9)"


def count_up(path, times):
    for _ in range(times):
        with lock(path):
            number = int(path.read_text())
            path.write_text("")  # what a second holder would read
            path.write_text(str(number + 1))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_one_process_at_a_time_has_it_though_each_removes_its_file(tmp_path):
    path = tmp_path / "x"
    path.write_text("0")
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=count_up, args=(path, 100)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert path.read_text() == "400"
    assert os.listdir(tmp_path) == ["x"]


def test_one_thread_at_a_time_has_it(tmp_path):
    path = tmp_path / "x"
    path.write_text("0")
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(count_up, path, 50) for _ in range(4)]:
            done.result()
    assert path.read_text() == "200"
    assert os.listdir(tmp_path) == ["x"]


def test_the_lock_of_a_process_that_died_is_free_and_its_file_goes_with_the_next(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path)
    assert os.listdir(tmp_path) == [".x.lock"]
    with lock(tmp_path / "x", "refuse"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_that_another_holds_is_refused_at_once_where_that_is_asked(tmp_path):
    code = (
        f"from treedot._storage.locks import lock\nwith lock({str(tmp_path / 'x')!r}, 'refuse'): print('in')"
    )
    with lock(tmp_path / "x", "refuse"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert f"{tmp_path / 'x'} is in use by another process" in done.stderr
        assert done.stdout == ""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("in\n", "")


def test_a_thread_may_take_a_lock_again_however_its_path_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with lock("x"):
        with lock(tmp_path / "x"):
            pass
        assert os.listdir() == [".x.lock"]
    assert os.listdir() == []


def test_the_first_is_alone_and_those_that_waited_go_on_together(tmp_path):
    inside, first, second = [], threading.Event(), threading.Barrier(2)

    def wait(begun, go_on):
        with lock(tmp_path / "x", "first"):
            begun()
            inside.append(go_on())

    with ThreadPoolExecutor(3) as pool:
        started = threading.Event()
        one = pool.submit(wait, started.set, lambda: first.wait(60))
        started.wait(60)
        others = [pool.submit(wait, lambda: None, lambda: second.wait(60)) for _ in range(2)]
        time.sleep(0.05)
        assert inside == []
        first.set()
        for future in (one, *others):
            future.result(60)
    assert inside[0] is True
    assert sorted(inside[1:]) == [0, 1]  # both were inside at the same time
    assert os.listdir(tmp_path) == []


def test_on_a_file_system_without_locks_only_the_first_goes_on(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", unsupported)
    for mode in ("wait", "refuse"):
        refused = pytest.raises(SourceError, match=r"cannot lock .*: Function not implemented")
        with refused, lock(tmp_path / "x", mode):
            pass
    with lock(tmp_path / "x", "first"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_in_a_folder_that_is_missing_makes_none(tmp_path):
    with pytest.raises(SourceError, match="does not exist"), lock(tmp_path / "no" / "x"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_link_in_the_place_of_a_lock_file_is_refused(tmp_path):
    (tmp_path / ".x.lock").symlink_to("other")
    with pytest.raises(SourceError, match=r"cannot lock .*\.x\.lock"), lock(tmp_path / "x"):
        pass
    assert os.listdir(tmp_path) == [".x.lock"]


def test_a_process_that_is_terminated_removes_the_locks_it_holds_and_no_others(tmp_path):
    with lock(tmp_path / "x"), lock(tmp_path / "y"):
        (tmp_path / ".y.lock").unlink()
        (tmp_path / ".y.lock").touch()  # as by another process
        remove_locks()
        assert os.listdir(tmp_path) == [".y.lock"]
    assert os.listdir(tmp_path) == [".y.lock"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_does_not_keep_the_lock_of_a_parent_that_died(tmp_path):
    code = (
        "import os, time; from treedot._storage.locks import lock\n"
        "with lock('x'):\n"
        "    if os.fork() == 0:\n"
        "        print('forked', flush=True); time.sleep(60)\n"
        "    else:\n"
        "        time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        assert parent.stdout.readline() == b"forked\n"
        try:
            parent.kill()
            parent.wait()
            with lock(tmp_path / "x", "refuse"):
                pass
        finally:
            os.killpg(parent.pid, 9)
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_commands_that_only_read_do_not_load_filelock(tmp_path):
    (tmp_path / "t.mrg").write_text("(A b)")
    code = (
        "import sys; from treedot.cli import main; main(['info', 't.mrg']); print('filelock' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.endswith("\nFalse\n"), done


def test_a_command_that_is_terminated_leaves_no_lock_file(tmp_path):
    code = """
import os, signal, sys
from treedot.cli import check as command, main
from treedot._storage.locks import lock

def check(options):
    with lock("x"):
        os.kill(os.getpid(), signal.SIGTERM)

command.run = check
sys.argv[1:] = ["check"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path)
    assert done.returncode == 143
    assert os.listdir(tmp_path) == []


def test_the_root_of_a_file_system_is_refused():
    with pytest.raises(SourceError, match="the root of a file system"), lock("/"):
        pass
