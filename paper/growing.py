"""Real trees of growing size, and what one comparison of them costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paper.corpora import Corpora
from treedot.trees import Forest

TOTALS = (20, 40, 80, 160, 320, 640, 1280)  # nodes of two trees together
LEAST_SECONDS = 0.05


@dataclass(frozen=True)
class Group:
    """Trees of about one size, and pairs of different ones among them."""

    forest: Forest
    first: np.ndarray
    second: np.ndarray

    @property
    def total(self) -> float:
        """Nodes of two trees together, on average over the pairs."""
        sizes = self.forest.sizes
        return float(np.mean(sizes[self.first] + sizes[self.second]))


def growing(corpora: Corpora, n_pairs: int) -> list[Group]:
    """Return groups of trees from questions, texts and hypotheses, up to the largest that there are."""
    sets = [pairs for both in corpora.entailment.values() for pairs in both]
    pool = Forest.concat([corpora.train, *(p.texts for p in sets), *(p.hypotheses for p in sets)])
    random = np.random.default_rng(0)
    by_size = np.argsort(pool.sizes, kind="stable")
    groups = []
    for total in (*TOTALS, None):
        if total is None:
            near = by_size[-10:]
        else:
            near = np.flatnonzero(np.abs(pool.sizes - total / 2) <= 0.1 * total / 2)
        if len(near) >= 2:
            forest = pool[random.permutation(near)[:50]]
            first = random.integers(len(forest), size=n_pairs)
            second = (first + random.integers(1, len(forest), size=n_pairs)) % len(forest)
            groups.append(Group(forest, first, second))
    return groups


def seconds_each(work: Callable[[], object], items: int, repeats: int = 3) -> float:
    """Return the seconds per item of some work: the best of several turns, each long enough to be timed."""
    work()  # compiled, cached, warm
    turns, passed = 1, _clocked(work, 1)
    if passed < LEAST_SECONDS:
        turns = int(LEAST_SECONDS / max(passed, 1e-6)) + 1
    return min(_clocked(work, turns) for _ in range(repeats)) / turns / items


def _clocked(work: Callable[[], object], turns: int) -> float:
    start = time.perf_counter()
    for _ in range(turns):
        work()
    return time.perf_counter() - start


def exponent(sizes: list[float], costs: list[float]) -> float:
    """Return b of the best fit cost = a sizeᵇ, in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
