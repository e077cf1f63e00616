"""Measure the time of a call."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Stopwatch:
    """Measures the time since its creation."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The seconds since its creation, or since the last lap."""
        return time.perf_counter() - self._start

    def lap(self) -> float:
        """Return the seconds since the last lap, and start the next lap."""
        now = time.perf_counter()
        took, self._start = now - self._start, now
        return took


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a call, and the seconds that it took.

    >>> timed(lambda: 6 * 7)[0]
    42
    """
    watch = Stopwatch()
    return work(), watch.seconds
