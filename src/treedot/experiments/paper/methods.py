"""The ways to turn trees into vectors that the experiments compare."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from treedot.encode import Encoder, Spec, StratifiedEncoder, StratifiedSpec, sparse_gram
from treedot.experiments.paper.settings import SIZE
from treedot.trees import Forest


@dataclass(frozen=True)
class Dense:
    """Distributed trees: dense vectors of one composition."""

    name: str
    title: str
    size: int = SIZE

    def rows(
        self, forest: Forest, decay: float, seed: int, normalize: bool = True, n_jobs: int = -1
    ) -> np.ndarray:
        """Return one vector per tree; in float64 where the vectors are not normalised."""
        dtype = "float32" if normalize else "float64"
        return _encoder(Spec(self.size, decay, self.name, seed, normalize, dtype)).encode(
            forest, n_jobs=n_jobs
        )

    def gram(self, x: Any, y: Any = None) -> np.ndarray:
        """Return the dot products of all vectors of x with all of y."""
        product: np.ndarray = x @ (x if y is None else y).T
        return product.astype(float)


@lru_cache(maxsize=2)
def _encoder(spec: Spec) -> Encoder:
    """Keep the label vectors for the next set of trees."""
    return Encoder(spec)


@dataclass(frozen=True)
class Stratified:
    """Sparse stratified rows, so wide that hardly two strata share a column."""

    name: str = "stratified"
    title: str = "stratified"
    budget: int = 10
    size: int = 2**30

    def rows(self, forest: Forest, decay: float, seed: int, normalize: bool = True, n_jobs: int = -1) -> Any:
        """Return one sparse row per tree."""
        dtype = "float32" if normalize else "float64"
        spec = StratifiedSpec(self.size, decay, self.budget, seed, normalize, dtype)
        return _stratified_encoder(spec).encode(forest, n_jobs=n_jobs)

    def gram(self, x: Any, y: Any = None) -> np.ndarray:
        """Return the dot products of all rows of x with all of y."""
        return sparse_gram(x, y, n_jobs=-1)


@lru_cache(maxsize=2)
def _stratified_encoder(spec: StratifiedSpec) -> StratifiedEncoder:
    return StratifiedEncoder(spec)


Method = Dense | Stratified

PRODUCT = Dense("product", "DTK ⊠")
CONVOLUTION = Dense("convolution", "DTK ⊡")
MIXED = Dense("mixed", "DTK mixed")
STRATIFIED = Stratified()
SMALL = Stratified("stratified small", "stratified, budget 7", budget=7)

DENSE: tuple[Dense, ...] = (PRODUCT, CONVOLUTION, MIXED)
METHODS: tuple[Method, ...] = (*DENSE, STRATIFIED)
