"""Nyström features: landmarks, and the inverse root of their Gram matrix.

The method of Williams & Seeger (2001): with landmarks L, an example x has the features
``K(x, L) K(L, L)^(-1/2)``. The dot product of two examples is then ``K(x, L) K(L, L)⁻¹ K(L, z)``, the kernel
of their projections onto the space of the landmarks. That needs no landmark to be an example: for kernels of
trees, subtrees that occur in many trees may serve.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from treedot._runtime.array_types import BoolArray, FloatArray, IntArray
from treedot._runtime.hashing import mix
from treedot._runtime.ragged import places_of
from treedot.errors import ParameterError
from treedot.kernels.kernel import Kernel
from treedot.models.training.coordinate_descent import shuffle
from treedot.trees.forest import Forest, used_labels

AT_A_TIME = 1024  # subtrees whose kernels with themselves are computed together, at least
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


def frequent_subtrees(kernel: Kernel, trees: Any, wanted: int, n_jobs: int | None = None) -> Forest:
    """Return the distinct subtrees with the most occurrences.

    Of equally frequent ones, the first in post-order are taken. Subtrees that only occur as a child of the
    same larger subtree add little to it and are left out. So are those whose kernel with themselves is 0,
    such as leaves under the subset tree kernel.

    Examples
    --------
    >>> from treedot import SubsetTreeKernel, read_trees
    >>> trees = read_trees(["(S (A a) (B b))", "(S (A a) (B c))"])
    >>> print(*frequent_subtrees(SubsetTreeKernel(), trees, 3), sep="; ")
    (A a); (S (A a) (B b)); (S (A a) (B c))
    """
    if not isinstance(trees, Forest):
        raise ParameterError('landmarks="subtrees" needs a kernel of trees, not of a table or of vectors')
    often = np.where(_in_varied_places(trees), np.bincount(trees.subtree), 0)
    order = np.argsort(-often, kind="stable")[: np.count_nonzero(often)]
    nodes = trees.distinct_subtrees[order]
    found, step = nodes[:0], max(wanted, AT_A_TIME)
    for start in range(0, nodes.size, step):
        some = nodes[start : start + step]
        own = kernel.diagonal(_subtrees_at(trees, some), n_jobs=n_jobs)
        found = np.append(found, some[np.flatnonzero(own)])
        if found.size >= wanted:
            break
    return _subtrees_at(trees, found[:wanted])


def _in_varied_places(forest: Forest) -> BoolArray:
    """Return whether each distinct subtree is a whole tree, or a child of different subtrees."""
    above = np.where(forest.parent < 0, -1, forest.subtree[forest.parent])
    first = above[forest.distinct_subtrees]
    differs = above != first[forest.subtree]
    return (first < 0) | (np.bincount(forest.subtree, differs) > 0)


def _subtrees_at(forest: Forest, nodes: IntArray) -> Forest:
    """Return the subtrees of some nodes."""
    size = forest.subtree_size[nodes]
    places, offsets = places_of(nodes - size + 1, size)
    label, labels = used_labels(forest.label[places], forest.labels)
    return Forest._trusted(label, forest.arity[places], offsets, labels)


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
