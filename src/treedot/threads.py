"""Threads where there is something to share out, and none where there is not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from treedot.array_types import Array
from treedot.parameters import n_threads

PARTS = 4  # that work is cut into for each thread, since some take longer than others

Span = tuple[int, int]


@dataclass(frozen=True)
class Threads:
    """Some threads, and ``map`` over them."""

    count: int
    map: Callable[..., Iterator[Any]]

    def run(self, work: Callable[[int, int], object], spans: Iterable[Span]) -> None:
        """Call ``work`` with the limits of every span, and wait for all."""
        for _ in self.map(lambda span: work(*span), spans):
            pass

    def spans(self, size: int) -> list[Span]:
        """Cut ``0 … size`` into as many parts as there is use for: one for a single thread."""
        return self.even_spans(np.arange(size + 1))

    def row_spans(self, rows: int, triangular: bool) -> list[Span]:
        """Cut the rows of a matrix into parts; ``triangular`` where every row is longer than the last."""
        before = np.arange(rows + 1)
        return self.even_spans(before * (before + 1) if triangular else before)

    def even_spans(self, work: Array, at_least: float = 0) -> list[Span]:
        """Cut a range into parts of about equally much work, each of ``at_least`` so much.

        ``work[k]`` is how much lies before ``k``, the last one how much there is.
        """
        parts = 1 if self.count == 1 else PARTS * self.count
        if at_least:
            parts = int(min(parts, max(1, (work[-1] - work[0]) // at_least)))
        limits = np.searchsorted(work, np.linspace(work[0], work[-1], parts + 1))
        limits[-1] = work.size - 1
        limits = np.unique(limits)
        return list(zip(limits[:-1].tolist(), limits[1:].tolist(), strict=True))


ONE_THREAD = Threads(1, map)


@contextlib.contextmanager
def open_threads(n_jobs: int | None) -> Iterator[Threads]:
    """Give as many threads as ``n_jobs`` asks for; a single one is the calling thread itself."""
    count = n_threads(n_jobs)
    if count == 1:
        yield ONE_THREAD
    else:
        with ThreadPoolExecutor(count) as pool:
            yield Threads(count, pool.map)


@contextlib.contextmanager
def thread_map(n_jobs: int | None, tasks: int | None = None) -> Iterator[Callable[..., Iterator[Any]]]:
    """Give ``map`` over as many threads as ``n_jobs`` asks for, at most one for each task.

    With one thread it is the plain ``map``: starting a thread takes longer than encoding a tree.
    """
    threads = n_threads(n_jobs)
    with open_threads(1 if tasks is not None and tasks <= 1 else threads) as opened:
        yield opened.map
