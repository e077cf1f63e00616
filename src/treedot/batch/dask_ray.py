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

from treedot.batch import liveness
from treedot.batch.liveness import Liveness
from treedot.errors import IncompleteError

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
        try:
            future = client.submit(function, *task, pure=False)
        except Exception as error:
            raise IncompleteError(f"the Dask client takes no tasks: {error}; give another client") from error
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
    return IncompleteError(
        f"{what}. Everything that is finished is kept: start Ray, and run the same again to make the rest"
    )


def _ray_head(ray: Any) -> tuple[str, int] | None:
    """Return where the head of the cluster listens; None where it cannot be reached from here directly."""
    try:
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        _connect((host, int(port)))
    except Exception:  # through Ray's client, say, which notices itself that the cluster is lost
        return None
    return host, int(port)


def _connect(address: tuple[str, int]) -> None:
    socket.create_connection(address, timeout=_answer_seconds()).close()


def _ray_workers(ray: Any, head: tuple[str, int] | None) -> int:
    """Return the number of CPUs; the head is first asked for a connection, since Ray would wait for it."""
    if head is not None:
        _connect(head)
    return int(ray.cluster_resources().get("CPU", 0))
