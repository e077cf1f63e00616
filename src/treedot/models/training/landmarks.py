"""Nyström features: landmarks among the training examples, and the inverse root of their Gram matrix.

The method of Williams & Seeger (2001): with landmarks L, an example x has the features
``K(x, L) K(L, L)^(-1/2)``. The dot product of two examples is then ``K(x, L) K(L, L)⁻¹ K(L, z)``, the kernel
of their projections onto the space of the landmarks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.hashing import mix
from treedot.models.training.coordinate_descent import shuffle

CUTOFF = 1e-12  # the share of the largest eigenvalue up to which an eigenvalue counts as 0


def choose_landmarks(n_examples: int, wanted: int, seed: int) -> IntArray:
    """Return the positions of landmarks in ascending order: the first of all positions after a shuffle.

    Examples
    --------
    >>> choose_landmarks(10, 4, seed=0), choose_landmarks(3, 4, seed=0)
    (array([0, 1, 7, 8]), array([0, 1, 2]))
    """
    order = np.arange(n_examples)
    shuffle(order, np.uint64(mix(seed)))
    return np.sort(order[:wanted])


def inverse_root(gram: FloatArray) -> FloatArray:
    """Return the inverse square root of a positive semi-definite matrix, without its null space.

    Examples
    --------
    >>> inverse_root(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    values, vectors = np.linalg.eigh(gram)
    kept = values > CUTOFF * values.max(initial=0.0)
    own = vectors[:, kept]
    root: FloatArray = (own / np.sqrt(values[kept])) @ own.T
    return root


def n_examples(examples: Any) -> int:
    """Return the number of examples in what a kernel reads: trees, a table, or a matrix."""
    if isinstance(examples, Mapping):
        return n_examples(next(iter(examples.values())))
    return int(examples.shape[0]) if hasattr(examples, "shape") else len(examples)


def take_examples(examples: Any, which: IntArray) -> Any:
    """Return the examples at some positions, in the same form.

    Examples
    --------
    >>> take_examples({"a": ["x", "y", "z"], "b": np.array([1, 2, 3])}, np.array([0, 2]))
    {'a': ['x', 'z'], 'b': array([1, 3])}
    """
    if isinstance(examples, Mapping):
        return {name: take_examples(column, which) for name, column in examples.items()}
    if hasattr(examples, "iloc"):
        return examples.iloc[which]
    if isinstance(examples, (list, tuple)):
        return [examples[i] for i in which.tolist()]
    return examples.take(which) if hasattr(examples, "to_pylist") else examples[which]
