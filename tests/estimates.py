"""How tests judge vectors: against their definition, and their dot products against exact kernels."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from treedot.vectors.fidelity import error_over_floor


def far(x: np.ndarray, y: np.ndarray) -> float:
    """Return the largest difference relative to the largest element."""
    return float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-300))


def assert_same_large_vector(whole: np.ndarray, short: np.ndarray, expected: np.ndarray) -> None:
    """Check a large tree's vector in float64, and in float32 with length 1, against its definition."""
    assert far(whole, expected) < 1e-11
    unit = expected / np.abs(expected).max()  # whose squares are not too large
    assert far(short, unit / np.linalg.norm(unit)) < 1e-4


def assert_unbiased(exact: np.ndarray, vectors: Iterable[np.ndarray], most: float) -> None:
    """Check that the mean error of all pairs is 0 within 3 standard errors, which are small.

    Vectors are of several seeds, over which the standard error is taken: pairs of one seed share trees and
    shuffles.
    """
    pairs = np.triu_indices(len(exact), 1)
    scale = np.sqrt(np.outer(np.diagonal(exact), np.diagonal(exact)))
    means = [((x.astype(float) @ x.T.astype(float) - exact) / scale)[pairs].mean() for x in vectors]
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    assert abs(np.mean(means)) <= 3 * error
    assert error <= most


def pooled_error(exact: np.ndarray, vectors: Iterable[np.ndarray], size: int) -> float:
    """Return the error over the floor, of vectors of several seeds."""
    squares = [error_over_floor(exact, x.astype(float) @ x.T.astype(float), size) ** 2 for x in vectors]
    return float(np.sqrt(np.mean(squares)))
