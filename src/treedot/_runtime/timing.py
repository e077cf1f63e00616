"""Measure how long a call takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Stopwatch:
    """Measures time from when it is made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The time since it was made, or since the last lap."""
        return time.perf_counter() - self._start

    def lap(self) -> float:
        """Return the time since the last lap, and begin the next."""
        now = time.perf_counter()
        took, self._start = now - self._start, now
        return took


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return what a call returns, and the seconds that it took.

    >>> timed(lambda: 6 * 7)[0]
    42
    """
    watch = Stopwatch()
    return work(), watch.seconds
