"""Support vector machines on a Gram matrix, one for each side to be told from the rest."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sklearn.svm import SVC

from treedot.threads import thread_map


def machines(gram: np.ndarray, sides: Iterable[np.ndarray], cost: float, n_jobs: int | None) -> list[SVC]:
    """Train one machine for each side, which says of every example whether it is on it."""
    gram = np.ascontiguousarray(gram, float)

    def train(side: np.ndarray) -> SVC:
        return SVC(C=cost, kernel="precomputed", cache_size=500).fit(gram, side)

    with thread_map(n_jobs) as run_all:  # the machines run outside of Python's lock
        return list(run_all(train, sides))
