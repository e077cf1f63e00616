"""A signal ends the program at any moment with its exit code, at most one line, and nothing left behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from treedot._runtime.ending import Advice, interruption

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="these signals are those of POSIX"),
]

INTERRUPTED = b"treedot: interrupted\n"


def run(code, *arguments, **how):
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, capture_output=True, start_new_session=True, timeout=120, **how)


@pytest.mark.parametrize("module", ["treedot.cli", "argparse", "numpy", "treedot.trees"])
@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, b"")])
def test_a_signal_during_an_import_is_one_line_at_most(module, number, said):
    done = run(
        f"""
        import os, sys
        from treedot.__main__ import main

        class Signals:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}:
                    os.kill(os.getpid(), {int(number)})

        sys.modules.pop("argparse", None)
        sys.meta_path.insert(0, Signals())
        sys.argv = ["treedot", "info", "missing.mrg"]
        sys.exit(main())
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", said)


def test_a_signal_ends_compiled_code_in_the_main_thread():
    done = run(
        """
        import hashlib, os, signal, threading
        from treedot._runtime.ending import take_signals

        take_signals()
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
        hashlib.pbkdf2_hmac("sha1", b"", b"", 2**31 - 1)  # takes ten minutes, without the lock of Python
        """
    )
    assert (done.returncode, done.stderr) == (130, INTERRUPTED)


def test_a_signal_after_the_work_does_not_disturb_the_exit():
    done = run(
        """
        import atexit, os, signal, sys
        from treedot.__main__ import main

        for number in (signal.SIGINT, signal.SIGTERM):
            atexit.register(os.kill, os.getpid(), number)
        sys.argv = ["treedot", "--version"]
        sys.exit(main())
        """
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_two_signals_at_once_are_one_line():
    done = run(
        """
        import os, signal
        from treedot._runtime.ending import before_end, take_signals

        before_end(lambda: os.kill(os.getpid(), signal.SIGINT))
        take_signals()
        os.kill(os.getpid(), signal.SIGINT)
        """
    )
    assert (done.returncode, done.stderr) == (130, INTERRUPTED)


def test_a_signal_that_is_ignored_stays_so():
    done = run(
        """
        import os, signal
        from treedot._runtime.ending import take_signals

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a shell, or under nohup
        take_signals()
        os.kill(os.getpid(), signal.SIGINT)
        print("it works on")
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"it works on\n", b"")


WORKERS = """
import os, signal, sys, time
from treedot._runtime.ending import take_signals
from treedot.batch.engines import LocalProcesses

take_signals()
pool = LocalProcesses(2)
work = [pool.submit(time.sleep, 600) for _ in range(2)]
while len(pool.processes) < 2:
    time.sleep(0.001)
print(*(process.pid for process in pool.processes), flush=True)
time.sleep(float(sys.argv[2]))
os.killpg(0, int(sys.argv[1]))
time.sleep(600)
"""


@pytest.mark.parametrize("seconds", ["0", "1"])  # while workers start, and while they work
@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, b"")])
def test_workers_end_in_silence_with_the_process_that_gets_a_signal(number, said, seconds):
    done = run(WORKERS, str(int(number)), seconds)
    assert (done.returncode, done.stderr) == (128 + number, said)
    for worker in map(int, done.stdout.split()):
        assert not runs(worker)


@pytest.mark.parametrize("seconds", [0, 1])
def test_workers_end_in_silence_when_their_parent_is_killed(seconds):
    program = [sys.executable, "-c", WORKERS, "0", "600"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        workers = [int(pid) for pid in process.stdout.readline().split()]
        time.sleep(seconds)
        process.kill()
        assert process.stderr.read() == b""  # which ends when the last worker has
    assert len(workers) == 2
    for _ in range(1000):  # a process closes its files somewhat before it is gone
        if not any(map(runs, workers)):
            return
        time.sleep(0.01)
    pytest.fail("a worker still runs")


def runs(process):
    """Whether a process runs, and has not only to be collected."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_advice_is_part_of_the_line_while_it_holds():
    with Advice(lambda: "the same command resumes"):
        pass
    assert interruption() == "interrupted"
    with pytest.raises(KeyboardInterrupt), Advice(lambda: "the same command resumes"):
        raise KeyboardInterrupt
    assert interruption() == "interrupted; the same command resumes"
    assert interruption() == "interrupted"
