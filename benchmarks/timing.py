"""Measure time, and how it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np


def seconds(
    work: Callable[[], object], at_least: float = 0.5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the time of one call: the best of several, after one that may compile."""
    work()
    best, spent = np.inf, 0.0
    while spent < at_least:
        start = clock()
        work()
        took = clock() - start
        best, spent = min(best, took), spent + took
    return best


def cpu_seconds(work: Callable[[], object], at_least: float = 0.15) -> float:
    """Return the processor time of one call, which hardly depends on other processes."""
    return seconds(work, at_least, time.process_time)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return the exponent b of the best fit cost = a sizeᵇ, in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
