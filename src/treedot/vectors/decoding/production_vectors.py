"""The vectors of productions, which stay in memory for the next vectors to decode."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import Matrix
from treedot.trees import Forest
from treedot.vectors.dense.encoder import DenseEncoder

LIMIT = 1 << 29  # bytes
ENCODED = 2048  # productions encoded together, beyond the limit


class ProductionVectors:
    """The vectors of productions; those beyond the first ``LIMIT`` bytes are made again for each use.

    Parameters
    ----------
    forest : Forest
        The productions.
    encoder : DenseEncoder
        What encodes them, to float32.
    n_jobs : int, default=None
        Threads that encode.
    """

    def __init__(self, forest: Forest, encoder: DenseEncoder, n_jobs: int | None = None) -> None:
        self.spec = encoder.spec
        self._forest, self._encoder = forest, encoder
        kept = LIMIT // (4 * encoder.spec.n_components)
        self._kept = encoder.encode(forest[:kept], n_jobs=n_jobs)

    def products(self, vectors: Matrix, n_jobs: int | None = None) -> Matrix:
        """Return the dot products of all productions with vectors, one row per production."""
        kept, total = len(self._kept), len(self._forest)
        products = np.empty((total, len(vectors)), np.float32)
        products[:kept] = self._kept @ vectors.T
        for start in range(kept, total, ENCODED):
            some = self._encoder.encode(self._forest[start : start + ENCODED], n_jobs=n_jobs)
            products[start : start + ENCODED] = some @ vectors.T
        return products
