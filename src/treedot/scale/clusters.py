"""The engines of clusters, Dask and Ray, which may lose their workers or their schedulers."""

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

from treedot.errors import IncompleteError
from treedot.scale import liveness
from treedot.scale.liveness import Liveness

Task = tuple[Any, ...]

IN_FLIGHT = 1024  # tasks that Ray has at a time
ANSWER_SECONDS = 5.0  # for an answer of a scheduler


def by_dask(client: Any, function: Callable[..., Any], tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
    """Let the workers of a Dask cluster call a function.

    Where the scheduler goes away, its tasks are cancelled. They are submitted once more if it comes back.
    """
    address = getattr(getattr(client, "scheduler", None), "address", "")
    alive = Liveness(f"the Dask scheduler {address}", partial(_dask_workers, client))
    finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
    running: dict[str, tuple[Any, Task]] = {}
    again: set[Task] = set()

    def submit(task: Task) -> None:
        future = client.submit(function, *task, pure=False)
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
    except IncompleteError:  # nobody is there who could cancel the others
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
    """Return what a task gave, or the error by which it was lost."""
    if future.status == "cancelled":
        return CancelledError("the scheduler has lost it")
    try:
        return future.result(timeout=liveness.SCHEDULER_SECONDS)
    except (CancelledError, asyncio.CancelledError) as error:
        return CancelledError(str(error))
    except Exception as error:
        return error


def by_ray(ray: Any, function: Callable[..., Any], tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
    """Let the workers of a Ray cluster call a function.

    Ray ends the process 60 seconds after the head of the cluster has gone; the error comes before that.
    """
    remote, left = ray.remote(num_cpus=1, max_retries=0)(function), iter(tasks)
    alive = Liveness("the head of the Ray cluster", partial(_ray_workers, ray))
    running = {remote.remote(*task): task for task in islice(left, IN_FLIGHT)}
    while running:
        ready, _ = ray.wait(list(running), num_returns=1, timeout=liveness.LOOK_SECONDS)
        if not ready:
            alive.look()
            continue
        task = running.pop(ready[0])
        try:
            result = ray.get(ready[0])
        except Exception as error:
            if type(error).__name__ == "LocalRayletDiedError":
                raise IncompleteError(
                    "the Ray node of this process has died. Everything that is finished is kept: start Ray "
                    "again, and run the same again to make the rest"
                ) from error
            result = error
        alive.note()
        running.update((remote.remote(*other), other) for other in islice(left, 1))
        yield task, result


def _ray_workers(ray: Any) -> int:
    """Return the number of CPUs; the head is first asked for a connection, since Ray would wait for it."""
    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    socket.create_connection((host, int(port)), timeout=_answer_seconds()).close()
    return int(ray.cluster_resources().get("CPU", 0))
