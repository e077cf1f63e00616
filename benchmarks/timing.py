"""How long something takes, and how that grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from treedot.timing import timed


def seconds(work: Callable[[], object], at_least: float = 0.5) -> float:
    """Return the time of one call: the best of several, after one that may compile."""
    work()
    best, spent = np.inf, 0.0
    while spent < at_least:
        _, took = timed(work)
        best, spent = min(best, took), spent + took
    return best


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return b of the best fit cost = a sizeᵇ, in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
