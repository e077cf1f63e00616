"""Files appear whole or not at all; nothing of a process that was stopped or killed stays for long."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fuzz import kills
from strategies import random_forest
from treedot._storage.files import write_folder, write_whole
from treedot._storage.growing_array import GrowingArray
from treedot.cli import main
from treedot.errors import SourceError

COMMAND = [sys.executable, "-m", "treedot"]
DENSE = ["--vectors", "dense", "-d", "1024"]
KILLED = ["rows.npz", "dense.npy", "weights"]


def test_the_temporary_file_of_a_killed_process_is_removed_by_the_next(tmp_path):
    code = "import os; from treedot._storage.files import write_whole\nwith write_whole('v.npy'): os.abort()"
    for name in ("v.npy", "v.npy.b"):
        subprocess.run([sys.executable, "-c", code.replace("v.npy", name)], cwd=tmp_path)
    stale = {path.name.rsplit(".", 2)[0] for path in tmp_path.iterdir()}
    assert stale == {".v.npy", ".v.npy.b"}
    with write_whole(tmp_path / "v.npy") as aside:
        aside.write_text("new")
    assert (tmp_path / "v.npy").read_text() == "new"
    left = [path.name for path in tmp_path.iterdir() if path.name != "v.npy"]
    assert len(left) == 1
    assert left[0].startswith(".v.npy.b.")  # of another target


def test_what_another_process_is_writing_stays(tmp_path):
    with write_whole(tmp_path / "a") as first:
        first.write_text("first")
        with write_whole(tmp_path / "a") as second:
            second.write_text("second")
        assert (tmp_path / "a").read_text() == "second"
    assert (tmp_path / "a").read_text() == "first"
    assert os.listdir(tmp_path) == ["a"]


def test_other_files_beside_the_target_stay(tmp_path):
    others = [".a.part", ".a.notes.part", ".a.0123456789abcdef", "a.0123456789abcdef.part"]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".a.0123456789abcdef.part").symlink_to(tmp_path / others[0])
    with write_whole(tmp_path / "a"):
        pass
    assert sorted(os.listdir(tmp_path)) == sorted(["a", ".a.0123456789abcdef.part", *others])


def test_a_full_disk_is_an_error_of_the_target(tmp_path):
    def write(error):
        with write_whole(tmp_path / "v.npy"):
            raise error

    with pytest.raises(SourceError, match=r"^cannot write \S*/v\.npy: No space left on device$"):
        write(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    with pytest.raises(FileNotFoundError):  # something else than the target
        write(FileNotFoundError(errno.ENOENT, "No such file", "trees.mrg"))
    assert not os.listdir(tmp_path)


def test_a_full_disk_is_an_error_of_the_file_as_it_will_be_named(tmp_path):
    full = os.strerror(errno.ENOSPC)
    with (
        pytest.raises(SourceError, match=r"^cannot write \S*/model/weights: No space left on device$"),
        write_folder(tmp_path / "model") as folder,
        write_whole(folder / "weights"),
    ):
        raise OSError(errno.ENOSPC, full)
    with (
        pytest.raises(SourceError, match=r"^cannot write \S*/copy: No space left on device$"),
        write_whole(tmp_path / "copy") as aside,
    ):
        raise OSError(errno.ENOSPC, full, "original", None, str(aside))  # as shutil.copyfile does
    assert not os.listdir(tmp_path)


def test_a_folder_that_takes_no_files_is_an_error_of_the_target(capsys):
    if not os.path.isdir("/proc/self"):
        pytest.skip("needs a folder where not even root can make files")
    assert main(["encode", __file__, "--format", "python", "-o", "/proc/v.npz"]) == 1
    assert capsys.readouterr().err.startswith("treedot: cannot write /proc/v.npz: ")
    with pytest.raises(SourceError, match=r"^cannot write /proc/v\.npz: "):
        GrowingArray(np.int32, Path("/proc/v.npz"))


def test_the_demo_knows_before_its_work_that_its_report_cannot_be_written(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("treedot.cli.tour.page.units", lambda *_: pytest.fail("it worked"))
    (tmp_path / "file").touch()
    for folder in [
        tmp_path / "file",
        tmp_path / "file" / "below",
        *(["/proc"] if os.path.isdir("/proc") else []),
    ]:
        assert main(["demo", "--out", str(folder)]) == 1
        assert capsys.readouterr().err.startswith(f"treedot: cannot write {folder}/index.html: ")
    assert os.listdir(tmp_path) == ["file"]


@pytest.fixture(scope="module")
def many_trees(tmp_path_factory):
    path = tmp_path_factory.mktemp("trees") / "t.mrg"
    path.write_text(("\n".join(map(str, random_forest(0, 200))) + "\n") * 100)
    return str(path)


@pytest.fixture
def _small_disk():
    """Let no file grow beyond 4 MiB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 22, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("_small_disk")
@pytest.mark.parametrize(
    ("name", "options"), [("v.npz", []), ("v.npy", ["--vectors", "dense", "-d", "2048"])]
)
def test_a_disk_that_fills_up_is_one_line_and_leaves_nothing(many_trees, tmp_path, capsys, name, options):
    assert main(["encode", many_trees, "-o", str(tmp_path / name), *options]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"treedot: cannot write {tmp_path / name}: ")
    assert said.count("\n") == 1
    assert not os.listdir(tmp_path)


@pytest.mark.usefixtures("_small_disk")
def test_a_disk_that_fills_up_is_told_of_standard_output_too(many_trees, capsysbinary):
    assert main(["encode", many_trees, "-o", "-", *DENSE]) == 1
    said = b"treedot: cannot write to standard output: File too large\n"
    assert capsysbinary.readouterr() == (b"", said)


@pytest.mark.slow
def test_a_command_that_is_terminated_leaves_nothing_behind(many_trees, tmp_path):
    target = tmp_path / "v.npz"
    process = subprocess.Popen([*COMMAND, "encode", many_trees, many_trees, "-o", str(target)])
    while process.poll() is None and not os.listdir(tmp_path):
        time.sleep(0.01)
    time.sleep(0.2)
    process.terminate()
    assert process.wait(60) == 143
    assert not os.listdir(tmp_path)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert main(["check"]) == 0
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_command_is_terminated_even_where_exceptions_are_lost(tmp_path):
    code = """
import ctypes, os, signal
from treedot.cli import check as command, main
from treedot._runtime.ending import take_signals
from treedot._storage.files import write_whole

def check(options):
    with write_whole("v.npy"):
        ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGTERM))()
        print("it goes on")

command.run = check
take_signals()
main(["check"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (143, b"", b"")
    assert not os.listdir(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_command_stopped_at_any_moment_leaves_an_old_or_a_new_file(capsys, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    ended = kills.main(["--kills", "8", "--seed", "0", "--only", *KILLED])
    said = capsys.readouterr()
    assert ended == 0, said.err
    for name in KILLED:
        assert f"\n{name} " in said.out


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")
def test_a_command_that_is_ended_or_has_no_output_prints_one_line_at_most(capsys):
    ended = kills.main(["--kills", "2", "--seed", "0", "--only", "dups"])
    said = capsys.readouterr()
    assert ended == 0, said.err
    assert "\ndups " in said.out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_what_is_no_plain_file_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SourceError, match="it is not a plain file"), write_whole(pipe) as aside:
        aside.write_text("x")
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
