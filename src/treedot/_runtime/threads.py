"""Share work among threads; no thread is started for one thread or one task."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from treedot._runtime.array_types import Array, IntArray
from treedot.parameters import n_threads

PARTS = 8  # parts of the work per thread, since some take longer than others
SHARED_PARTS = 64  # the same if compiled code takes the parts, in ``share``

PAUSE = 2e-5  # seconds that a thread sleeps while it waits for others
NEXT = -1  # instead of the number of a span: take the next one

Span = tuple[int, int]
T = TypeVar("T")


class Steps(NamedTuple):
    """Adjacent spans in steps, for compiled code that threads run."""

    limits: IntArray
    before: IntArray  # for every span, the number of spans in earlier steps
    taken: IntArray  # counters of the spans that are taken, and of those that are done
    done: IntArray


@dataclass(frozen=True)
class Threads:
    """A pool of threads with ``map``; a single thread is the calling one."""

    count: int
    map: Callable[..., Iterator[Any]]

    def run(self, work: Callable[[int, int], object], spans: Sequence[Span]) -> None:
        """Call ``work`` with the limits of every span, in order, in any free thread.

        After an error nothing new is started, and the error of the first failed span is raised, whatever the
        number of threads.
        """
        if self.count == 1 or len(spans) <= 1:
            for span in spans:
                work(*span)
            return
        waiting = enumerate(spans)
        failed: dict[int, Exception] = {}

        def pull(_: int) -> None:
            for number, span in waiting:
                try:
                    work(*span)
                except Exception as error:
                    failed[number] = error
                    _exhaust(waiting)

        try:
            _exhaust(self.map(pull, range(min(self.count, len(spans)))))
        finally:
            _exhaust(waiting)  # if the call was interrupted
        if failed:
            raise failed[min(failed)]

    def share(self, work: Callable[[IntArray, IntArray], object], spans: Sequence[Span]) -> None:
        """Call ``work`` in every thread with the limits of adjacent spans and a counter of spans taken.

        This is for compiled code that takes spans by ``next_number`` and never fails.
        """
        limits, taken = _limits(spans), np.zeros(1, np.int64)
        self.run(lambda *_: work(limits, taken), [(k, k + 1) for k in range(min(self.count, len(spans)))])

    def share_steps(self, work: Callable[[Steps, int], int], steps: Iterable[Sequence[Span]]) -> None:
        """Call ``work`` in every thread, as ``share`` does; a step begins when all spans before it are done.

        ``work`` takes spans by ``next_number``, from ``Steps.taken``, waits for ``Steps.before`` of each by
        ``reaches``, and counts those that are done. If it waits for too long, it returns the number of the
        span that it took, and is called again with this number; otherwise it returns the number of spans.
        """
        spans, before = list[Span](), list[int]()
        for step in steps:
            before += [len(spans)] * len(step)
            spans += step
        taken, done = np.zeros((2, 1), np.int64)
        shared = Steps(_limits(spans), np.array(before, np.int64), taken, done)

        def run(first: int, last: int) -> None:
            span = NEXT
            while (span := work(shared, span)) < len(spans):
                time.sleep(PAUSE)

        self.run(run, [(k, k + 1) for k in range(min(self.count, len(spans)))])

    def in_order(self, work: Callable[[Any], Any], items: Iterable[Any], ahead: int = 2) -> Iterator[Any]:
        """Yield the results of ``work`` for every item, in order; ``ahead`` items per thread are in work."""
        waiting: deque[Iterator[Any]] = deque()
        for item in items:
            waiting.append(self.map(work, [item]))
            if len(waiting) > ahead * self.count:
                yield next(waiting.popleft())
        while waiting:
            yield next(waiting.popleft())

    def spans(self, size: int) -> list[Span]:
        """Cut ``0 … size`` into a suitable number of parts: one for a single thread."""
        return self.even_spans(np.arange(size + 1))

    def row_spans(self, rows: int, triangular: bool, per_thread: int = PARTS) -> list[Span]:
        """Cut the rows of a matrix into parts; ``triangular`` if every row is longer than the one before."""
        before = np.arange(rows + 1)
        return self.even_spans(before * (before + 1) if triangular else before, per_thread=per_thread)

    def even_spans(
        self, work: Array, at_least: int = 1, at_most: int | None = None, per_thread: int = PARTS
    ) -> list[Span]:
        """Cut a range into parts of about equal work, between ``at_least`` and ``at_most`` each.

        ``work[k]`` is the work before ``k``, and the last element the total. A part that cannot be cut may
        exceed ``at_most``. Otherwise there are at most ``per_thread`` parts per thread, and one part for a
        single thread.
        """
        total = int(work[-1] - work[0])
        parts = 1 if self.count == 1 else max(1, min(per_thread * self.count, total // at_least))
        if at_most is not None:
            parts = max(parts, -(-total // at_most))
        if parts == 1:
            return [(0, work.size - 1)] if work.size > 1 else []
        limits = np.searchsorted(work, np.linspace(work[0], work[-1], parts + 1))
        limits[-1] = work.size - 1
        limits = np.unique(limits)
        return list(zip(limits[:-1].tolist(), limits[1:].tolist(), strict=True))


ONE_THREAD = Threads(1, map)


@contextlib.contextmanager
def open_threads(n_jobs: int | None, tasks: int | None = None) -> Iterator[Threads]:
    """Open the threads that ``n_jobs`` asks for; only one if there is a single task.

    Starting a thread takes longer than encoding a tree.
    """
    count = n_threads(n_jobs)
    if count == 1 or (tasks is not None and tasks <= 1):
        yield ONE_THREAD
    else:
        with ThreadPoolExecutor(count) as pool:
            try:
                yield Threads(count, pool.map)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)  # if the block was left early


@contextlib.contextmanager
def thread_map(n_jobs: int | None, tasks: int | None = None) -> Iterator[Callable[..., Iterator[Any]]]:
    """Return ``map`` over the threads that ``n_jobs`` asks for; the built-in one for a single task."""
    with open_threads(n_jobs, tasks) as threads:
        yield threads.map


def one_ahead(make: Callable[..., T], spans: Sequence[Span]) -> Iterator[T]:
    """Yield the result of ``make`` for every span; the next one is made while the current one is in use."""
    with ThreadPoolExecutor(1) as maker:
        waiting = [maker.submit(make, *span) for span in spans[:1]]
        for k in range(len(spans)):
            made = waiting.pop().result()
            waiting = [maker.submit(make, *span) for span in spans[k + 1 : k + 2]]
            yield made


def _limits(spans: Sequence[Span]) -> IntArray:
    """Return the limits of adjacent spans."""
    return np.array([*(first for first, _ in spans[:1]), *(last for _, last in spans)], np.int64)


def _exhaust(iterator: Iterator[Any]) -> None:
    deque(iterator, maxlen=0)
