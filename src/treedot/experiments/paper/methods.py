"""The ways to turn trees into vectors that the experiments compare."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from treedot.encode import Encoder, Spec
from treedot.experiments.paper.settings import SIZE
from treedot.trees import Forest


@dataclass(frozen=True)
class Dense:
    """Distributed trees: dense vectors of one composition."""

    name: str
    title: str
    size: int = SIZE

    def rows(self, forest: Forest, decay: float, seed: int, normalize: bool = True) -> np.ndarray:
        """Return one vector per tree; in float64 where the vectors are not normalised."""
        dtype = "float32" if normalize else "float64"
        return _encoder(Spec(self.size, decay, self.name, seed, normalize, dtype)).encode(forest, n_jobs=-1)

    def gram(self, x: Any, y: Any = None) -> np.ndarray:
        """Return the dot products of all vectors of x with all of y."""
        product: np.ndarray = x @ (x if y is None else y).T
        return product.astype(float)


@lru_cache(maxsize=2)
def _encoder(spec: Spec) -> Encoder:
    """Keep the label vectors for the next set of trees."""
    return Encoder(spec)


PRODUCT = Dense("product", "DTK ⊠")
CONVOLUTION = Dense("convolution", "DTK ⊡")
MIXED = Dense("mixed", "DTK mixed")

METHODS: tuple[Dense, ...] = (PRODUCT, CONVOLUTION, MIXED)
