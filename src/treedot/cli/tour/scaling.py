"""Measure how time and memory grow with the number of trees: the exact Gram matrix beside vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import treedot as td
from treedot._runtime.timing import timed

SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
PATIENCE = 2.0  # seconds: a longer step is the last of its way
MOST_BYTES = 10**9  # of a result that is made
REPEATED = 0.2  # seconds: shorter steps are repeated, and the fastest counts
REPEATS = 5
WARM = 50  # trees: enough to compile everything, or to load it
BLOCK = 2_000  # trees whose dense vectors are in memory at a time
DECAY = 0.4
COMPONENTS = 8192


class Way(NamedTuple):
    """A way to compare trees; ``work`` takes trees and returns the bytes of its result."""

    kind: str
    name: str
    exponent: int  # of the number of trees, in time and in memory
    work: Callable[[td.Forest], int]
    whole: bool  # whether its result is in memory as a whole


class Growth(NamedTuple):
    """The measured times and sizes of one way; ``sizes`` is all numbers of trees that were asked for."""

    way: Way
    sizes: Sequence[int]
    seconds: list[float]
    memory: list[int]

    @property
    def trees(self) -> Sequence[int]:
        """The numbers of trees that were measured."""
        return self.sizes[: len(self.seconds)]

    @property
    def is_complete(self) -> bool:
        """Whether all numbers of trees were measured."""
        return len(self.seconds) == len(self.sizes)

    def is_affordable(self, size: int) -> bool:
        """Return whether to measure a larger number of trees, by the last time and the expected memory."""
        if not self.seconds:
            return True
        expected = self.memory[-1] * (size / self.trees[-1]) ** self.way.exponent
        return self.seconds[-1] <= PATIENCE and (expected <= MOST_BYTES or not self.way.whole)

    def beyond(self, values: Sequence[float]) -> list[tuple[float, float]]:
        """Return what to expect of larger numbers of trees, from the last measured value."""
        last = self.trees[-1]
        return [(n, values[-1] * (n / last) ** self.way.exponent) for n in self.sizes[len(self.seconds) :]]

    def at_most(self, values: Sequence[float]) -> float:
        """Return the value at the largest number of trees, expected where it was not measured."""
        return ([values[-1]] + [value for _, value in self.beyond(values)])[-1]

    @property
    def slope(self) -> float | None:
        """The exponent of growth in time, fitted to the larger half of the points; None for one point."""
        n = len(self.seconds)
        if n < 2:
            return None
        larger = slice(min(n // 2, n - 2), n)
        return float(np.polyfit(np.log(self.trees[larger]), np.log(self.seconds[larger]), 1)[0])


def growths(forest: td.Forest, report: Callable[[], object]) -> list[Growth]:
    """Measure every way on more and more of the trees; call ``report`` after each step."""
    sizes = [size for size in SIZES if size < len(forest)] + [min(len(forest), SIZES[-1])]
    found = []
    for way in WAYS:
        way.work(forest[:WARM])
        growth = Growth(way, sizes, [], [])
        for size in sizes:
            if growth.is_affordable(size):
                seconds, memory = _fastest(way, forest, size)
                growth.seconds.append(seconds)
                growth.memory.append(memory)
            report()
        found.append(growth)
    return found


def crossing(slow: Growth, other: Growth) -> float | None:
    """Return the number of trees from which ``slow`` takes longer than ``other``, None if it never does.

    Only measured times count. The number is interpolated between the last two sizes whose order changes.
    """
    both = min(len(slow.seconds), len(other.seconds))
    ahead = [math.log(slow.seconds[k] / other.seconds[k]) for k in range(both)]
    for k in range(both - 1, 0, -1):
        if ahead[k - 1] < 0 <= ahead[k]:
            share = -ahead[k - 1] / (ahead[k] - ahead[k - 1])
            return float(slow.trees[k - 1] * (slow.trees[k] / slow.trees[k - 1]) ** share)
    return None


def _fastest(way: Way, forest: td.Forest, size: int) -> tuple[float, int]:
    """Return the time of the fastest of some repetitions, and the bytes of the result."""
    times: list[float] = []
    while not times or (sum(times) < REPEATED and len(times) < REPEATS):
        memory, seconds = timed(
            lambda: way.work(forest[:size])
        )  # a part is new: it keeps nothing between calls
        times.append(seconds)
    return min(times), memory


def _gram(forest: td.Forest) -> int:
    return int(td.SubsetTreeKernel(decay=DECAY, normalize=True).gram(forest, n_jobs=-1).nbytes)


def _dense(forest: td.Forest) -> int:
    """Encode block by block, as into a file: all vectors at once might not fit into memory."""
    vectorizer = td.DistributedTreeVectorizer(n_components=COMPONENTS, decay=DECAY, n_jobs=-1)
    blocks = range(0, len(forest), BLOCK)
    return sum(int(vectorizer.transform(forest[start : start + BLOCK]).nbytes) for start in blocks)


def _sparse(forest: td.Forest) -> int:
    rows: Any = td.FragmentVectorizer(decay=DECAY, n_jobs=-1).transform(forest)
    return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)


WAYS = (
    Way("exact", "exact Gram matrix", 2, _gram, True),
    Way("dense", "dense vectors", 1, _dense, False),
    Way("sparse", "sparse rows", 1, _sparse, True),
)
