"""The engines for the clusters Dask and Ray, which may lose their workers or their schedulers."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from itertools import islice
from typing import Any

from treedot.batch import liveness
from treedot.batch.liveness import Liveness
from treedot.errors import IncompleteError

Task = tuple[Any, ...]

IN_FLIGHT = 1024  # most tasks submitted to Ray at a time
ANSWER_SECONDS = 5.0  # timeout for an answer of the scheduler


def by_dask(client: Any, function: Callable[..., Any], tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
    """Call a function on the workers of a Dask cluster.

    If the scheduler disappears, its tasks are cancelled. They are submitted once more when it returns.
    """
    address = getattr(getattr(client, "scheduler", None), "address", "")
    alive = Liveness(f"the Dask scheduler {address}", partial(_dask_workers, client))
    finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
    running: dict[str, tuple[Any, Task]] = {}
    again: set[Task] = set()

    def submit(task: Task) -> None:
        try:
            future = client.submit(function, *task, pure=False)
        except Exception as error:
            message = f"the Dask client does not accept tasks: {error}; pass another client"
            raise IncompleteError(message) from error
        running[future.key] = future, task
        future.add_done_callback(finished.put)

    try:
        for task in tasks:
            submit(task)
        while running:
            try:
                future = finished.get(timeout=liveness.LOOK_SECONDS)
            except queue.Empty:
                alive.look()
                continue
            _, task = running.pop(future.key)
            result = _dask_result(future)
            if isinstance(result, CancelledError) and task not in again:
                while not alive.look():
                    time.sleep(liveness.LOOK_SECONDS)
                again.add(task)
                submit(task)
            else:
                alive.note()
                yield task, result
    except IncompleteError:  # nothing is left that could cancel the other tasks
        running.clear()
        raise
    finally:
        if running and client.status == "running":
            with contextlib.suppress(Exception):
                client.cancel([future for future, _ in running.values()])


def _dask_workers(client: Any) -> int:
    if client.status == "closed":
        raise ConnectionError("the client is closed")
    return len(client.sync(client.scheduler.ncores, callback_timeout=_answer_seconds()))


def _answer_seconds() -> float:
    return min(ANSWER_SECONDS, liveness.SCHEDULER_SECONDS)


def _dask_result(future: Any) -> Any:
    """Return the result of a task, or the error that lost it."""
    if future.status == "cancelled":
        return CancelledError("the scheduler lost the task")
    try:
        return future.result(timeout=liveness.SCHEDULER_SECONDS)
    except (CancelledError, asyncio.CancelledError) as error:
        return CancelledError(str(error))
    except Exception as error:
        return error


def by_ray(ray: Any, function: Callable[..., Any], tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
    """Call a function on the workers of a Ray cluster.

    Ray ends this process 60 seconds after the cluster's head disappears; the error is raised before that.
    """
    remote, left = ray.remote(num_cpus=1, max_retries=0)(function), iter(tasks)
    alive = Liveness("the head of the Ray cluster", partial(_ray_workers, ray, _ray_head(ray)))
    running = {remote.remote(*task): task for task in islice(left, IN_FLIGHT)}
    while running:
        try:
            ready, _ = ray.wait(list(running), num_returns=1, timeout=liveness.LOOK_SECONDS)
        except Exception as error:
            raise _ray_lost(f"the Ray cluster is lost ({error})") from error
        if not ready:
            alive.look()
            continue
        task = running.pop(ready[0])
        try:
            result = ray.get(ready[0])
        except Exception as error:
            if type(error).__name__ == "LocalRayletDiedError":
                raise _ray_lost("the Ray node of this process has died") from error
            result = error
        alive.note()
        running.update((remote.remote(*other), other) for other in islice(left, 1))
        yield task, result


def _ray_lost(what: str) -> IncompleteError:
    return IncompleteError(f"{what}. Finished parts are kept: start Ray, and repeat the call to resume")


def _ray_head(ray: Any) -> tuple[str, int] | None:
    """Return the address of the cluster's head; None if this process cannot connect to it directly."""
    try:
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        _connect((host, int(port)))
    except Exception:  # for example with Ray's client, which detects a lost cluster itself
        return None
    return host, int(port)


def _connect(address: tuple[str, int]) -> None:
    socket.create_connection(address, timeout=_answer_seconds()).close()


def _ray_workers(ray: Any, head: tuple[str, int] | None) -> int:
    """Return the number of CPUs; connect to the head first, since Ray would wait for it without limit."""
    if head is not None:
        _connect(head)
    return int(ray.cluster_resources().get("CPU", 0))
