"""Parsing in other processes, which may hang or crash.

A parser is a compiled program that other people wrote, and there are texts of 500 bytes on which it takes
hours. So the system ends a process that works too long on a text, and the next text gets a new one.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import IO, Any, TypeVar

import numpy as np

from treedot.errors import SourceError, TreedotError
from treedot.jit import PACKAGE

R = TypeVar("R")

SERVE = f"from {__name__} import serve; serve()"


class TooSlowError(SourceError):
    """A file takes longer to parse than it may."""


class CrashError(SourceError):
    """A file crashes the parser."""


class _Process:
    """A process that does one task after the other."""

    def __init__(self) -> None:
        found = [os.fspath(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.owner = os.getpid()
        self._running = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE],  # -P: modules of the folder that is read are not imported
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(found)},
        )

    def do(self, task: tuple[Any, ...]) -> Any:
        """Return the result of a task; raise ``EOFError`` or ``OSError`` where the process ends instead."""
        _send(task, self._running.stdin)
        return pickle.load(self._running.stdout)  # type: ignore[arg-type]

    def end(self) -> bool:
        """End the process, whatever it does, and tell whether the system did that before, for its time."""
        self._running.kill()
        self._running.communicate()
        return self._running.returncode == -getattr(signal, "SIGPROF", 0)


_idle: list[_Process] = []  # kept for the next task: starting one takes longer than most files


def do_apart(function: Callable[..., R], *arguments: Any, file: str, max_seconds: float) -> R:
    """Return ``function(*arguments)``, computed in another process; errors of treedot are raised here.

    Where the process crashes, or works longer than it may, the error names the file.
    """
    process = _borrow()
    try:
        result = process.do((function, arguments, max_seconds))
    except (EOFError, OSError, pickle.UnpicklingError):
        if process.end():
            message = (
                f"takes longer than {max_seconds:g} s to parse: split it, or raise the limit in Python with "
                "read_code(max_seconds=…)"
            )
            raise TooSlowError(f"{file}: {message}") from None
        raise CrashError(f"{file}: crashes the parser, and cannot be read") from None
    except BaseException:  # interrupted: an answer to this task must not be taken for that to another
        process.end()
        raise
    _idle.append(process)
    if isinstance(result, TreedotError):
        raise result
    answer: R = result
    return answer


def _borrow() -> _Process:
    while True:
        try:
            process = _idle.pop()
        except IndexError:
            return _Process()
        if process.owner == os.getpid():  # and not one of the process that this one was forked from
            return process


@atexit.register
def _end_all() -> None:
    while _idle:
        process = _idle.pop()
        if process.owner == os.getpid():
            process.end()


def _send(thing: object, stream: IO[bytes] | None) -> None:
    assert stream is not None
    pickle.dump(thing, stream)
    stream.flush()


def serve() -> None:
    """Do the tasks that come in by standard input, until it ends."""
    from treedot.readers.code.units import post_order

    post_order(np.zeros(1, np.int64))  # compiled, which is not to count as a task's time
    tasks, results = sys.stdin.buffer, sys.stdout.buffer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks deals with it
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            function, arguments, seconds = pickle.load(tasks)
            _limit(seconds)
            try:
                result: object = function(*arguments)
            except TreedotError as error:
                result = error
            _limit(0.0)
            _send(result, results)


def _limit(seconds: float) -> None:
    """Have the system end this process after a time of work, where it can; 0 takes that back."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
