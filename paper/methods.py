"""The ways to turn trees into vectors that the experiments compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paper.settings import SIZE
from treedot.trees import Forest
from treedot.vectors import DistributedTreeVectorizer, FragmentVectorizer, dot_products
from treedot.vectors.spec import MAX_FEATURES


class _Rows:
    """What all methods do with their vectors."""

    def gram(self, x: Any, y: Any = None) -> np.ndarray:
        """Return the dot products of all vectors of x with all of y."""
        return dot_products(x, y, n_jobs=-1).astype(float)


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
        return DistributedTreeVectorizer(
            n_components=self.size,
            decay=decay,
            composition=self.name,
            random_state=seed,
            normalize=normalize,
            dtype="float32" if normalize else "float64",
            n_jobs=n_jobs,
        ).transform(forest)


@dataclass(frozen=True)
class Fragments(_Rows):
    """Sparse rows of fragments, so wide that hardly two share a column."""

    name: str
    title: str
    budget: int = 4
    rest: str | None = None
    size: int = MAX_FEATURES

    def rows(self, forest: Forest, decay: float, seed: int, normalize: bool = True, n_jobs: int = -1) -> Any:
        """Return one sparse row per tree; in float64 where the rows are not normalised."""
        return FragmentVectorizer(
            n_features=self.size,
            decay=decay,
            budget=self.budget,
            rest=self.rest,
            random_state=seed,
            normalize=normalize,
            dtype="float32" if normalize else "float64",
            n_jobs=n_jobs,
        ).transform(forest)


Method = Dense | Fragments

PRODUCT = Dense("product", "DTK ⊠")
CONVOLUTION = Dense("convolution", "DTK ⊡")
MIXED = Dense("mixed", "DTK mixed")
BOUNDED = Fragments("bounded", "bounded rows")
WITH_DENSE = Fragments("dense rest", "with dense rest", rest="dense")
WITH_BLOCKS = Fragments("blocks", "with blocks", budget=12, rest="blocks")

DENSE: tuple[Dense, ...] = (PRODUCT, CONVOLUTION, MIXED)
FULL_ROWS: tuple[Fragments, ...] = (WITH_DENSE, WITH_BLOCKS)  # sparse rows of the full kernel
METHODS: tuple[Method, ...] = (*DENSE, *FULL_ROWS)

# One colour for each method, in all drawings.
COLOURS = {
    "TK": "C0",
    "product": "C1",
    "convolution": "C2",
    "mixed": "C3",
    "dense rest": "C4",
    "blocks": "C5",
    "bounded": "C6",
    "FTK": "black",
    "ATK": "C8",
    "FTK+FS": "C9",
}
