"""Measure properties 2.1 to 2.6 of the ideal composition (the paper's Definition 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from treedot._runtime.array_types import FloatArray
from treedot.vectors.dense.compositions import Algebra


@dataclass(frozen=True)
class Spread:
    """Mean and variance over samples, for 1, 2, … composed vectors."""

    mean: FloatArray
    variance: FloatArray


def basic_vectors(algebra: Algebra, name: str, count: int) -> FloatArray:
    """Return ``count`` independent label vectors."""
    return algebra.label_vectors([f"{name} {k}" for k in range(count)])


def commuted_cosines(algebra: Algebra, most_between: int) -> FloatArray:
    """2.1: |cos| of a ⋄ c1 ⋄ … ⋄ cj ⋄ b and the same with a and b swapped, for j = 0 … most."""
    a, b, *between = basic_vectors(algebra, "commute", most_between + 2)
    return np.array(
        [
            abs(_cosine(algebra.fold([a, *between[:j], b]), algebra.fold([b, *between[:j], a])))
            for j in range(most_between + 1)
        ]
    )


def reassociated_cosine(algebra: Algebra) -> float:
    """2.2: |cos| of a ⋄ (b ⋄ c) and (a ⋄ b) ⋄ c."""
    a, b, c = basic_vectors(algebra, "associate", 3)
    compose = algebra.compose
    return abs(_cosine(compose(a, compose(b, c)), compose(compose(a, b), c)))


def bilinearity_error(algebra: Algebra) -> float:
    """2.3: the largest relative deviation from linearity in either operand."""
    a, b, c = basic_vectors(algebra, "linear", 3)
    compose = algebra.compose
    pairs = [
        (compose(a + b, c), compose(a, c) + compose(b, c)),
        (compose(c, a + b), compose(c, a) + compose(c, b)),
        (compose(0.3 * a, b), 0.3 * compose(a, b)),
        (compose(a, 0.3 * b), 0.3 * compose(a, b)),
    ]
    return max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in pairs)


def norms(algebra: Algebra, most: int, samples: int) -> Spread:
    """2.4: norm of the composition of 1 … ``most`` basic vectors (Fig. 2a)."""
    first = basic_vectors(algebra, "norm", samples)
    grown = [first, *_grown(algebra, first, "norm", most - 1)]
    return _spread([np.linalg.norm(t, axis=-1) for t in grown])


def similarities(algebra: Algebra, most: int, samples: int) -> Spread:
    """2.5: dot product of a basic vector with a composition of 1 … ``most`` others."""
    a, first = basic_vectors(algebra, "alone", samples), basic_vectors(algebra, "others", samples)
    grown = [first, *_grown(algebra, first, "others", most - 1)]
    return _spread([(a * t).sum(axis=-1) for t in grown])


def one_changed(algebra: Algebra, most: int, samples: int, last: bool = False) -> Spread:
    """2.6: dot product of two compositions that share all vectors but the first (Fig. 2b) or the last.

    Entry ``k`` is for ``k + 1`` shared vectors.
    """
    a, b = basic_vectors(algebra, "a", samples), basic_vectors(algebra, "b", samples)
    if last is algebra.folds_left:  # the vector that changes is the last to be composed
        first = basic_vectors(algebra, "shared", samples)
        shared = [first, *_grown(algebra, first, "shared", most - 1)]
        both = [[_extend(algebra, t, x) for t in shared] for x in (a, b)]
    else:
        both = [list(_grown(algebra, x, "shared", most)) for x in (a, b)]
    return _spread([(x * y).sum(axis=-1) for x, y in zip(*both, strict=True)])


def _extend(algebra: Algebra, t: FloatArray, vector: FloatArray) -> FloatArray:
    """Compose one more vector, at the end where the algebra's fold leaves off."""
    return algebra.compose(t, vector) if algebra.folds_left else algebra.compose(vector, t)


def _grown(algebra: Algebra, start: FloatArray, name: str, steps: int) -> Iterator[FloatArray]:
    for k in range(steps):
        start = _extend(algebra, start, basic_vectors(algebra, f"{name} {k}", len(start)))
        yield start


def _spread(values: list[FloatArray]) -> Spread:
    return Spread(np.array([v.mean() for v in values]), np.array([v.var(ddof=1) for v in values]))


def _cosine(x: FloatArray, y: FloatArray) -> float:
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))
