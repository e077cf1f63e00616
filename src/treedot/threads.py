"""Threads where there is something to share out, and none where there is not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from treedot.parameters import n_threads


@contextlib.contextmanager
def thread_map(n_jobs: int | None, tasks: int | None = None) -> Iterator[Callable[..., Iterator[Any]]]:
    """Give ``map`` over as many threads as ``n_jobs`` asks for, at most one for each task.

    With one thread it is the plain ``map``: starting a thread takes longer than encoding a tree.
    """
    threads = n_threads(n_jobs)
    if min(threads, threads if tasks is None else tasks) <= 1:
        yield map
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield pool.map
