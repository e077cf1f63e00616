"""The ways to turn trees into vectors that the experiments compare."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from treedot.encode import Encoder, Spec, StratifiedEncoder, StratifiedSpec
from treedot.encode.postings import products
from treedot.encode.spec import MAX_FEATURES
from treedot.experiments.paper.settings import SIZE
from treedot.trees import Forest


class _Rows:
    """What all methods do with their vectors."""

    def gram(self, x: Any, y: Any = None) -> np.ndarray:
        """Return the dot products of all vectors of x with all of y."""
        return products(x, y, n_jobs=-1).astype(float)


@dataclass(frozen=True)
class Dense(_Rows):
    """Distributed trees: dense vectors of one composition."""

    name: str
    title: str
    size: int = SIZE

    def rows(
        self, forest: Forest, decay: float, seed: int, normalize: bool = True, n_jobs: int = -1
    ) -> np.ndarray:
        """Return one vector per tree; in float64 where the vectors are not normalised."""
        dtype = "float32" if normalize else "float64"
        spec = Spec(self.size, decay, self.name, seed, normalize, dtype)
        found: np.ndarray = _encoder(spec).encode(forest, n_jobs=n_jobs)
        return found


@dataclass(frozen=True)
class Stratified(_Rows):
    """Sparse stratified rows, so wide that hardly two strata share a column."""

    name: str = "stratified"
    title: str = "stratified"
    budget: int = 10
    size: int = MAX_FEATURES

    def rows(self, forest: Forest, decay: float, seed: int, normalize: bool = True, n_jobs: int = -1) -> Any:
        """Return one sparse row per tree."""
        dtype = "float32" if normalize else "float64"
        spec = StratifiedSpec(self.size, decay, self.budget, seed, normalize, dtype)
        return _encoder(spec).encode(forest, n_jobs=n_jobs)


@lru_cache(maxsize=2)
def _encoder(spec: Spec | StratifiedSpec) -> Any:
    """Keep what is known of the labels for the next set of trees."""
    return Encoder(spec) if isinstance(spec, Spec) else StratifiedEncoder(spec)


Method = Dense | Stratified

PRODUCT = Dense("product", "DTK ⊠")
CONVOLUTION = Dense("convolution", "DTK ⊡")
MIXED = Dense("mixed", "DTK mixed")
STRATIFIED = Stratified()
SMALL = Stratified("stratified small", "stratified, budget 7", budget=7)

DENSE: tuple[Dense, ...] = (PRODUCT, CONVOLUTION, MIXED)
METHODS: tuple[Method, ...] = (*DENSE, STRATIFIED)
