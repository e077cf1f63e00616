"""Real trees of growing size, and what one comparison of them costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paper.corpora import Corpora
from treedot.trees import Forest

TOTALS = (20, 40, 80, 160, 320, 640, 1280)  # nodes of two trees together


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
    """Return groups of trees of about one size each, up to the largest that there are."""
    pool = corpora.growing
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
