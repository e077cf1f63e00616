"""Engines that call a function for many tasks somewhere else: one thin adapter for each.

An adapter yields every task with what the function returned, or with the error by which its worker was lost.
It raises where there is no hope for any task: a scheduler that is gone, processes that cannot start.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any

from treedot.errors import ParameterError, TreedotError
from treedot.files import remove_unfinished
from treedot.parameters import checked_integer, n_threads
from treedot.scale.clusters import Task, by_dask, by_ray

Engine = Callable[[Callable[..., Any], Iterable[Task]], Iterator[tuple[Task, Any]]]

ATTEMPTS = 2  # to start a process: it may be killed by accident
NO_GUARD = """local processes end while they start. They import the main script, which must be a file and
start its work under a guard:

    if __name__ == "__main__":
        scale.encode(…)

If it has one, see what the processes have printed; or pass a client, such as a ThreadPoolExecutor"""


def check_client(client: Any, workers: int | None) -> None:
    """Raise where there is no engine for a client."""
    if client is None and getattr(multiprocessing.current_process(), "_inheriting", False):
        # A local process imports a script without the guard. Its parent reports that.
        raise SystemExit(1)
    if workers is not None:
        if client is not None:
            raise ParameterError("workers is for local processes: your client has its own")
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
    """Give the engine of a client: local processes for None, a Dask client, the module ray, any executor."""
    check_client(client, workers)
    if client is None:
        with LocalProcesses(n_threads(-1) if workers is None else workers) as pool:
            yield partial(_by_executor, pool)
    elif _is_dask(getattr(client, "_client", client)):  # a client, or the executor of one
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
        except RuntimeError as error:  # it is broken, or was shut down
            yield task, error
    try:
        for future in as_completed(futures):
            task = futures.pop(future)
            try:
                result = future.result()
            except TreedotError:  # not of the task: the engine itself does not work
                raise
            except Exception as error:
                result = error
            yield task, result
    finally:
        for future in futures:
            future.cancel()


class LocalProcesses(ThreadPoolExecutor):
    """Processes of this machine, of which each has a thread here that waits for it.

    Where a process dies, its task alone is lost, and its thread gets another one. (A pool of several
    processes ends them all.)
    """

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self._own = threading.local()
        self._pools: list[ProcessPoolExecutor] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Let a function be called by one of the processes."""
        return super().submit(self._apart, function, *arguments, **named)

    def _apart(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if not hasattr(self._own, "pool"):
            self._own.pool = _started()
            self._pools.append(self._own.pool)
        pool = self._own.pool
        try:
            return pool.submit(function, *arguments, **named).result()
        except BrokenProcessPool:
            del self._own.pool
            self._pools.remove(pool)
            raise

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes when they have done what they are doing."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        for pool in self._pools:
            pool.shutdown(wait)


def _started() -> ProcessPoolExecutor:
    """Return a pool of one process, which has begun to work."""
    context = multiprocessing.get_context("spawn")  # compiled code may have threads already
    for _ in range(ATTEMPTS):
        pool = ProcessPoolExecutor(1, context, initializer=_begin)
        with contextlib.suppress(BrokenProcessPool):
            pool.submit(os.getpid).result()
            return pool
    raise ParameterError(NO_GUARD)


def _begin() -> None:
    """Let a process work with one thread, leave interrupts to its parent, and end with it."""
    import numpy  # noqa: F401 (whose threads are to be found)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(ImportError):
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
    with contextlib.suppress(ImportError):
        import pyarrow

        pyarrow.set_cpu_count(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        remove_unfinished()
        os._exit(1)
