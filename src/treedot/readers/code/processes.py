"""Files of source code read in other processes, which may hang or crash.

A parser is a compiled program that other people wrote, and there are texts on which it takes hours. So the
system ends a process that takes too much time for a file, another is started, and only that file is lost.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import queue
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

import numpy as np

from treedot.errors import TreedotError
from treedot.jit import PACKAGE
from treedot.languages import LANGUAGES
from treedot.readers.code.settings import CodeSettings
from treedot.readers.code.source_files import Outcome, read_units
from treedot.readers.code.units import post_order
from treedot.readers.folders import FoundFile

FILES_AHEAD = 16  # for each process, so that none waits for a slow one
GRACE = 2.0  # how many times the time of a file a process may take before it is ended


def read_in_processes(
    files: Iterator[FoundFile], language: str | None, settings: CodeSettings, n_processes: int
) -> Iterator[Outcome]:
    """Yield what becomes of each file, in their order."""
    post_order(np.zeros(1, np.int64))  # compiled here, once, and not in every process
    idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
    processes = [_Process(language, settings) for _ in range(n_processes)]
    for process in processes:
        idle.put(process)

    def read(file: FoundFile) -> Outcome:
        process = idle.get()
        try:
            return process.read(file)
        finally:
            idle.put(process)

    waiting: deque[Future[Outcome]] = deque()
    with contextlib.ExitStack() as at_end:
        for process in processes:
            at_end.callback(process.end)
        pool = at_end.enter_context(ThreadPoolExecutor(n_processes))
        at_end.callback(pool.shutdown, wait=False, cancel_futures=True)
        ahead = FILES_AHEAD * n_processes
        waiting.extend(pool.submit(read, file) for file in itertools.islice(files, ahead))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(read, file) for file in itertools.islice(files, 1))


class _Process:
    """A process that reads one file after the other; it is started with the first."""

    def __init__(self, language: str | None, settings: CodeSettings) -> None:
        self._task = (dict(LANGUAGES), language, settings)
        self._running: subprocess.Popen[bytes] | None = None

    def read(self, file: FoundFile) -> Outcome:
        """Read a file; where that ends the process, say so of the file."""
        if self._running is None:
            self._running = _start()
            _send(self._task, self._running.stdin)
        try:
            _send(file, self._running.stdin)
            answer: Any = pickle.load(self._running.stdout)  # type: ignore[arg-type]
        except (EOFError, OSError, pickle.UnpicklingError):
            return self._lost(file)
        if isinstance(answer, TreedotError):
            raise answer
        return answer

    def _lost(self, file: FoundFile) -> Outcome:
        assert self._running is not None
        slow = self._running.wait() == -getattr(signal, "SIGPROF", 0)
        self.end()
        reason = "too slow" if slow else "crashes the parser"
        if file.named:
            return Outcome(file.path, error=f"{file.path}: cannot be read: {reason}")
        return Outcome(file.path, skipped=reason)

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None


def _start() -> subprocess.Popen[bytes]:
    found = [os.fspath(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(found)},
    )


def _send(thing: object, stream: IO[bytes] | None) -> None:
    assert stream is not None
    pickle.dump(thing, stream)
    stream.flush()


def serve() -> None:
    """Read the files that come in by standard input, until it ends."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks deals with it
    languages, language, settings = pickle.load(requests)
    LANGUAGES.update(languages)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            file = pickle.load(requests)
            _limit(GRACE * settings.max_seconds)
            try:
                answer: object = read_units(file, language, settings)
            except TreedotError as error:
                answer = error
            _limit(0.0)
            _send(answer, answers)


def _limit(seconds: float) -> None:
    """Have the system end this process after a time of work, where it can; 0 takes that back."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
