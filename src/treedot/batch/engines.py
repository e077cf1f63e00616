"""Engines that run a function for many tasks elsewhere, each by a thin adapter.

An adapter yields every task with the result of the function, or with the error that lost its worker. It
raises if no task can succeed any more because the scheduler is gone.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any

from treedot._runtime.processes import LostProcessError, Process
from treedot.batch.dask_ray import Task, by_dask, by_ray
from treedot.errors import ParameterError
from treedot.parameters import checked_integer, n_threads

Engine = Callable[[Callable[..., Any], Iterable[Task]], Iterator[tuple[Task, Any]]]


def check_client(client: Any, workers: int | None) -> None:
    """Raise if there is no engine for a client."""
    if workers is not None:
        if client is not None:
            raise ParameterError("workers is for local processes only: your client has its own")
        checked_integer("workers", workers, at_least=1)
    if client is not None and not (isinstance(client, Executor) or _is_dask(client) or _is_ray(client)):
        raise ParameterError(
            "client must be None, a Dask client, the module ray or a concurrent.futures.Executor, not "
            f"{type(client).__name__}"
        )


def _is_dask(client: Any) -> bool:
    return hasattr(client, "get_executor")


def _is_ray(client: Any) -> bool:
    return all(hasattr(client, name) for name in ("remote", "wait", "get"))


@contextlib.contextmanager
def opened(client: Any, workers: int | None) -> Iterator[Engine]:
    """Yield the engine of a client: local processes for None, a Dask client, the module ray, any executor."""
    check_client(client, workers)
    if client is None:
        with LocalProcesses(n_threads(-1) if workers is None else workers) as pool:
            yield partial(_by_executor, pool)
    elif _is_dask(getattr(client, "_client", client)):  # a client, or the executor of a client
        yield partial(by_dask, getattr(client, "_client", client))
    elif isinstance(client, Executor):
        yield partial(_by_executor, client)
    else:
        yield partial(by_ray, client)


def _by_executor(
    executor: Executor, function: Callable[..., Any], tasks: Iterable[Task]
) -> Iterator[tuple[Task, Any]]:
    futures = {}
    for task in tasks:
        try:
            futures[executor.submit(function, *task)] = task
        except RuntimeError as error:  # the executor is broken or was shut down
            yield task, error
    try:
        for future in as_completed(futures):
            task = futures.pop(future)
            try:
                result = future.result()
            except Exception as error:
                result = error
            yield task, result
    finally:
        for future in futures:
            future.cancel()


class LocalProcesses(ThreadPoolExecutor):
    """A pool of processes on this machine; a thread here waits for each of them.

    If a process dies, only its task is lost, and its thread starts another process.
    """

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self._own = threading.local()
        self.processes: list[Process] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Schedule a function call in one of the processes."""
        return super().submit(self._apart, function, *arguments, **named)

    def _apart(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if not hasattr(self._own, "process"):
            self._own.process = Process((folder or os.getcwd() for folder in sys.path), begin=_begin)
            self.processes.append(self._own.process)
        process = self._own.process
        try:
            return process.do(function, *arguments, **named)
        except LostProcessError:
            del self._own.process
            self.processes.remove(process)
            raise

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes after their current tasks; without ``wait``, at the exit of this process."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for process in self.processes:
                process.end()
            self.processes.clear()


def _begin() -> None:
    """Limit a worker process to one thread."""
    import numpy  # noqa: F401 (whose threads are to be found)

    with contextlib.suppress(ImportError):
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
    with contextlib.suppress(ImportError):
        import pyarrow

        pyarrow.set_cpu_count(1)
