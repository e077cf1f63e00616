"""Processes that do the work of requests, so that a request can neither hang nor break the server.

The system ends a process that uses too much processor time or memory, and one that does not answer in time is
killed; a new one takes its place. The server itself only passes requests on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

from treedot._runtime.processes import LostProcessError, Process

R = TypeVar("R")
MEMORY = 3 << 30  # bytes of data of a process, reserved or used; mapped files do not count
WAITING = 256  # requests that wait for a process, at most


class Limits(NamedTuple):
    """The processor time that a function may take, and the time until its process is killed, in seconds."""

    seconds: float = 10.0
    patience: float = 30.0


class TooSlowError(Exception):
    """The work of a request took too long and was stopped."""


class CrashError(Exception):
    """The work of a request ended its process."""


class BusyError(Exception):
    """Too many requests wait already."""


class Workers:
    """Runs functions in a few processes, which start when they are needed.

    Parameters
    ----------
    count : int
        The number of processes.
    limits : Limits, default=Limits()
        The limits for one function.
    """

    def __init__(self, count: int, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._idle: list[Process] = []
        self._free = asyncio.Semaphore(count)
        self._waiting = 0
        self._threads = ThreadPoolExecutor(2 * count)  # half of them to end processes

    async def do(
        self,
        function: Callable[..., R],
        *arguments: Any,
        before: Callable[[], object] | None = None,
        limits: Limits | None = None,
    ) -> R:
        """Return ``function(*arguments)``, computed in another process.

        ``before`` is called first, in the same process; it does not count as time of the function.
        Raises TooSlowError, CrashError or BusyError if there is no result.
        """
        if self._waiting >= WAITING:
            raise BusyError
        self._waiting += 1
        try:
            async with self._free:
                return await self._do(partial(function, *arguments), before, limits or self._limits)
        finally:
            self._waiting -= 1

    async def _do(self, function: Callable[[], R], before: Callable[[], object] | None, limits: Limits) -> R:
        process = self._idle.pop() if self._idle else await self._apart(_new_process)
        try:
            async with asyncio.timeout(limits.patience):
                if before is not None:
                    await self._apart(process.do, before)
                result: R = await self._apart(_do, process, function, limits.seconds)
        except TimeoutError:
            await self._apart(process.end)
            raise TooSlowError from None
        except LostProcessError as error:
            if error.code == -getattr(signal, "SIGPROF", 0):
                raise TooSlowError from None
            raise CrashError from error
        except BaseException:  # a late answer must not be taken for that of the next request
            process.end()
            raise
        self._idle.append(process)
        return result

    async def _apart(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def end(self) -> None:
        """End all processes."""
        while self._idle:
            self._idle.pop().end()
        self._threads.shutdown(wait=False)


def _new_process() -> Process:
    # Modules in the working directory must not be imported.
    return Process(filter(None, [os.environ.get("PYTHONPATH")]), begin=_begin)


def _do(process: Process, function: Callable[[], R], seconds: float) -> R:
    result: R = process.do(function, max_seconds=seconds)
    return result


def _begin() -> None:
    """Limit the memory of a new process, where the system can, and let it parse source code itself."""
    from treedot.readers.code.processes import parse_here

    parse_here()
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
