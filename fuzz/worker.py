"""A process that runs cases, so that a crash, a hang or excessive memory ends only this process."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import re
import resource
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Self

from treedot.errors import TreedotError

SECONDS = 60  # for one case
MEMORY = 1 << 30  # bytes
ADDRESSES = 16 << 30  # bytes of address space; memory that is never touched counts, too


class Outcome(NamedTuple):
    """The outcome of a case, with the reason: "accepted", "refused", "too slow" or "failed".

    A parser of source code that works too long is ended, and its text rejected: such texts exist. A crash of
    the parser is a failure, although treedot survives it.
    """

    kind: str
    reason: str = ""


def run_target(target: str, data: bytes, folder: Path) -> Outcome:
    """Run a case in this process."""
    from fuzz.targets import TARGETS
    from treedot.readers.code.processes import CrashError, TooSlowError

    try:
        TARGETS[target].run(data, folder)
    except TooSlowError as error:
        return Outcome("too slow", str(error))
    except CrashError:
        return Outcome("failed", traceback.format_exc())
    except TreedotError as error:
        return Outcome("refused", f"{type(error).__name__}: {error}")
    except Exception:
        return Outcome("failed", traceback.format_exc())
    return Outcome("accepted")


def run_case(target: str, seed: int, number: int, folder: Path) -> Outcome:
    """Make a case and run it."""
    from fuzz.targets import make_case

    return run_target(target, make_case(target, seed, number), folder)


Attempt = Callable[..., Outcome]  # takes the arguments that identify a case, and a writable folder


class Worker:
    """A process that is started for the first case, and again after each failure.

    Parameters
    ----------
    attempt : callable
        Runs a case; the process imports it by its name.
    seconds : float
        The time limit of a case.
    memory : int
        The bytes by which the memory of the process may grow after its first case.
    """

    def __init__(self, attempt: Attempt = run_case, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._attempt, self._seconds, self._memory = attempt, seconds, memory
        self._process: Any = None
        self._connection: Any = None
        self._folder = tempfile.TemporaryDirectory()
        self._log = Path(self._folder.name, "log")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()
        self._folder.cleanup()

    def run(self, *case: Any) -> Outcome:
        """Run a case, given the arguments of ``attempt`` before the last."""
        if self._process is None:
            self._start()
        outcome = self._sent(case)
        if outcome.kind == "failed":
            self._stop()
        return outcome

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        task = (other, self._log, self._attempt, self._memory)
        self._process = context.Process(target=_serve, args=task, daemon=True)
        self._process.start()
        other.close()
        self._connection.recv()  # it is ready; the time starts here

    def _sent(self, case: tuple[Any, ...]) -> Outcome:
        """Send a case; return the answer, or the reason why there is none."""
        try:
            self._connection.send(case)
            if self._connection.poll(self._seconds):
                return Outcome(*self._connection.recv())
            reason = f"no end after {self._seconds} seconds"
            self._process.terminate()  # makes it write its traceback
        except (EOFError, ConnectionError):
            reason = "the process ended"
        self._process.join(10)
        log = self._log.read_text() if self._log.exists() else ""
        return Outcome("failed", f"{reason} (exit code {self._process.exitcode})\n{log}")

    def _stop(self) -> None:
        if self._process is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(connection: Connection, log: Path, attempt: Attempt, memory: int) -> None:
    """Run the cases that arrive, until none comes; log the place of a crash or a hang."""
    with log.open("w") as file:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asking process handles it
        faulthandler.enable(file)
        faulthandler.register(signal.SIGTERM, file, chain=True)
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        warnings.simplefilter("error")
        at_first = 0
        connection.send(None)
        while True:
            try:
                case = connection.recv()
            except EOFError:
                return
            outcome = attempt(*case, log.parent)
            at_first = at_first or _peak()
            if _peak() > at_first + memory:
                outcome = Outcome("failed", f"memory grew from {at_first >> 20} MiB to {_peak() >> 20} MiB")
            connection.send(outcome)


def _peak() -> int:
    """Return the peak memory of this process or of one that it started, in bytes.

    Linux reports it here; ``getrusage`` starts from the memory of the parent process.
    """
    started = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return max(map(_held, ["self", *started]))


def _held(process: str) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:  # it has ended
        return 0
    found = re.search(r"VmHWM:\s*(\d+)", status)
    return int(found[1]) * 1024 if found else 0
