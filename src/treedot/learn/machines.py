"""Support vector machines on a Gram matrix, one for each side to be told from the rest."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.svm import SVC

from treedot.parameters import n_threads


def machines(gram: np.ndarray, sides: Iterable[np.ndarray], cost: float, n_jobs: int | None) -> list[SVC]:
    """Train one machine for each side, which says of every example whether it is on it."""
    gram = np.ascontiguousarray(gram, float)

    def train(side: np.ndarray) -> SVC:
        return SVC(C=cost, kernel="precomputed", cache_size=500).fit(gram, side)

    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:  # the machines run outside of Python's lock
        return list(pool.map(train, sides))
