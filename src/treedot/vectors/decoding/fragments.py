"""Estimate from vectors how often fragments occur in their trees."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot._runtime.array_types import FloatArray
from treedot.errors import ParameterError
from treedot.trees import Forest
from treedot.vectors.decoding.decoder import check_finite, checked_vectors
from treedot.vectors.dense.reference import fragment_vector
from treedot.vectors.spec import DenseSpec


class FragmentCounts(NamedTuple):
    """Estimated numbers of occurrences, one row per vector and one column per fragment.

    Parameters
    ----------
    counts : array of shape (n_vectors, n_fragments)
        The estimates.
    errors : array of shape (n_vectors, n_fragments)
        Their standard errors.
    """

    counts: FloatArray
    errors: FloatArray


def estimate_counts(
    vectors: Any, fragments: Forest, spec: DenseSpec, norms: npt.ArrayLike | None = None
) -> FragmentCounts:
    """Return the estimated counts of fragments: see ``DistributedTreeVectorizer.contains``."""
    matrix = checked_vectors(vectors, spec).astype(np.float64)
    check_finite(matrix, 0)
    scale = _scales(norms, len(matrix), spec)
    directions, weights = _fragment_vectors(fragments, spec)
    per_unit = weights * np.linalg.norm(directions, axis=1)  # of the vector's length, for one occurrence
    units = directions / np.linalg.norm(directions, axis=1)[:, None]
    noise = np.linalg.norm(matrix, axis=1) * scale / math.sqrt(spec.n_components)
    return FragmentCounts(matrix @ units.T * scale[:, None] / per_unit, noise[:, None] / per_unit)


def _scales(norms: npt.ArrayLike | None, count: int, spec: DenseSpec) -> FloatArray:
    """Return the factors that undo normalisation."""
    if norms is None and spec.normalize:
        raise ParameterError(
            "these vectors are normalised, so their lengths are unknown: pass norms, such as those that "
            "decode "
            "finds, or use normalize=False"
        )
    scale = np.ones(count) if norms is None else np.asarray(norms, np.float64)
    if scale.shape != (count,) or not (np.isfinite(scale) & (scale >= 0)).all():
        raise ParameterError(f"norms must be {count} numbers of at least 0, one per vector")
    if not spec.normalize and norms is not None:
        raise ParameterError("norms have no effect with normalize=False: leave them out")
    return scale


def _fragment_vectors(fragments: Forest, spec: DenseSpec) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of fragments, and the weight of one occurrence of each."""
    if (fragments.sizes < 2).any():
        tree = int((fragments.sizes < 2).argmax())
        raise ParameterError(f"fragment {tree + 1} is a single node: a fragment has at least one production")
    starts = fragments.offsets[:-1]
    productions = np.add.reduceat(fragments.arity > 0, starts) if len(fragments) else np.zeros(0)
    weights = spec.decay ** ((productions - 1) / 2.0)
    if not weights.all():
        raise ParameterError("with decay=0, vectors contain only fragments of one production")
    algebra = spec.algebra()
    rows = [fragment_vector(fragment, algebra) for fragment in fragments]
    return np.array(rows).reshape(len(rows), spec.n_components), weights
