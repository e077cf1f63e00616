"""``Process``: a Python process that calls functions for this one, and ends with it.

Each process is a new Python that reads tasks from its standard input and writes results to its standard
output, as pickles with their lengths. Signals that a terminal sends to all processes at once are handled only
by this process; the others block them from the start. When this process ends for any reason, their standard
input ends, and the thread that waits for tasks ends them.

This module imports little, since a new process imports it first.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from treedot._runtime.ending import SIGNALS, before_end, clean_up, open_closed_streams

PACKAGE = os.fspath(Path(__file__).parents[2])
LENGTH = 8  # bytes
GRACE = 0.5  # seconds before processes that do not end by themselves are killed
SERVE = f"from {__name__} import serve; serve()"

_alive: set[Process] = set()


class LostProcessError(RuntimeError):
    """A process ended before it answered; ``code`` is its exit code, or minus the signal that killed it."""

    def __init__(self, code: int) -> None:
        self.code = code
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
        super().__init__(f"a process ended {how}")


class Process:
    """A process that runs one task after another.

    Parameters
    ----------
    search_path : iterable of str
        Folders that it searches first for modules; treedot's own folder is added.
    begin : callable, optional
        A module-level function to call before the first task.
    """

    def __init__(self, search_path: Iterable[str], begin: Callable[[], object] | None = None) -> None:
        self.owner = os.getpid()
        self._begin = begin
        with _blocked_signals():
            self._running = subprocess.Popen(
                [sys.executable, "-P", "-c", SERVE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([*search_path, PACKAGE])},
            )
            _alive.add(self)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._running.pid

    def do(
        self, function: Callable[..., Any], *arguments: Any, max_seconds: float = 0.0, **named: Any
    ) -> Any:
        """Call a function in the process; return its result or raise its error.

        The system ends the process if it uses more than ``max_seconds`` of processor time; 0 means no limit.
        """
        task = pickle.dumps(_Task(self._begin, function, arguments, named, max_seconds))
        self._begin = None
        try:
            _send(task, self._running.stdin)
            answer = _receive(self._running.stdout)
        except (EOFError, OSError):
            raise LostProcessError(self.end()) from None
        returned, result = pickle.loads(answer)
        if returned:
            return result
        raise result

    def end(self) -> int:
        """End the process, whatever it is doing; return its exit code, or minus the signal that killed it."""
        _alive.discard(self)
        _close(self._running.stdin)
        try:
            self._running.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()
        _close(self._running.stdout)
        return self._running.returncode


@contextlib.contextmanager
def _blocked_signals() -> Iterator[None]:
    """Block signals in this thread, and so in the processes that it starts meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@before_end
@atexit.register
def end_all() -> None:
    """End all processes that this one started, together.

    A signal may interrupt any of the methods above, so this uses none of their locks and streams.
    """
    mine = [process for process in list(_alive) if process.owner == os.getpid()]
    for process in mine:
        _alive.discard(process)
        _close(process._running.stdin)
    left = {process.pid for process in mine}
    deadline = time.monotonic() + GRACE
    while left and time.monotonic() < deadline:
        left = {pid for pid in left if not _has_ended(pid)}
        time.sleep(0.002)
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            os.waitpid(pid, 0)
    for process in mine:
        _close(process._running.stdout)
        process._running.returncode = 0  # otherwise ``Popen`` would warn that it still runs


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, getattr(os, "WNOHANG", 0))[0] == pid
    except OSError:  # another thread has waited for it
        return True


class _Task(NamedTuple):
    begin: Callable[[], object] | None
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    max_seconds: float


def _send(data: bytes, stream: IO[bytes] | None) -> None:
    assert stream is not None
    left = memoryview(len(data).to_bytes(LENGTH, "little") + data)
    while left:
        left = left[stream.write(left) :]


def _receive(stream: IO[bytes] | None) -> bytearray:
    """Return the next message; raise ``EOFError`` at the end of the stream."""
    length = int.from_bytes(_exactly(LENGTH, stream), "little")
    return _exactly(length, stream)


def _exactly(size: int, stream: IO[bytes] | None) -> bytearray:
    assert stream is not None
    data = bytearray(size)
    left = memoryview(data)
    while left:
        count = stream.readinto(left)  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        left = left[count:]
    return data


def _close(stream: IO[bytes] | None) -> None:
    with contextlib.suppress(OSError):
        if stream is not None:
            stream.close()


def serve() -> None:
    """Run the tasks from standard input, until it ends."""
    open_closed_streams()
    tasks, results = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # output of a task is not a result
    waiting: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
    threading.Thread(target=_wait_for_tasks, args=(tasks, waiting), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        while True:
            _send(_answer(waiting.get()), results)
    os._exit(0)


def _wait_for_tasks(stream: IO[bytes], waiting: queue.SimpleQueue[bytearray]) -> None:
    try:
        while True:
            waiting.put(_receive(stream))
    except (EOFError, OSError):
        clean_up()
        os._exit(0)


def _answer(message: bytearray) -> bytes:
    """Run a task; return whether it succeeded, and its result or error, pickled."""
    try:
        task: _Task = pickle.loads(message)
        if task.begin is not None:
            task.begin()
        _limit(task.max_seconds)
        answer = True, task.function(*task.arguments, **task.named)
        _limit(0.0)
        return pickle.dumps(answer)
    except Exception as error:  # raised in the calling process
        _limit(0.0)
        return _pickled_error(error)


def _pickled_error(error: Exception) -> bytes:
    try:
        answer = pickle.dumps((False, error))
        pickle.loads(answer)  # some classes can be pickled but not unpickled
    except Exception:  # pickling can run any code
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return answer


def _limit(seconds: float) -> None:
    """Let the system end this process after some processor time, if it can; 0 removes the limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
