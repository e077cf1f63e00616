"""Kinds of columns of trees: how often each fragment, label, edge, pair of children or path occurs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize

from treedot import Forest, FragmentVectorizer
from treedot._runtime.array_types import IntArray
from treedot._runtime.hashing import GOLDEN, mix_words
from treedot.vectors.sparse.idf import inverse_frequency

WIDTH = 2**22  # columns of each kind, after hashing


class Columns(TransformerMixin, BaseEstimator):
    """Turns trees into rows of several kinds of columns.

    Parameters
    ----------
    kinds : sequence of str
        The kinds. Each has a row of length 1 of its own, weighted by rarity in training.
    """

    def __init__(self, kinds: Sequence[str] = ()) -> None:
        self.kinds = kinds

    def fit(self, trees: Forest, y: object = None) -> Self:
        """Count in how many trees each column occurs."""
        self.n_trees_, self.labels_ = len(trees), list(trees.labels)
        self.documents_ = [documents(counts(trees, kind, WIDTH)) for kind in self.kinds]
        return self

    def transform(self, trees: Forest) -> csr_matrix:
        """Return one row for each tree."""
        labels = list(dict.fromkeys([*self.labels_, *trees.labels]))  # numbered as in training
        number = {text: i for i, text in enumerate(labels)}
        label = np.array([number[text] for text in trees.labels], trees.label.dtype)[trees.label]
        alike = Forest(label, trees.arity, trees.offsets, labels)
        found = (counts(alike, kind, WIDTH) for kind in self.kinds)
        parts = zip(found, self.documents_, strict=True)
        return hstack([damped(each, seen, self.n_trees_) for each, seen in parts], format="csr")


def documents(found: csr_matrix) -> IntArray:
    """Return the number of rows in which each column occurs."""
    return np.bincount(found.indices, minlength=found.shape[1])


def damped(found: csr_matrix, seen: IntArray, n_training: int) -> csr_matrix:
    """Return the roots of counts, weighted by rarity in the training rows, in rows of length 1.

    A column that no training row has gets the weight of a document count of 0, the largest.
    """
    weights = inverse_frequency(seen, n_training)[found.indices]
    values = np.sign(found.data) * np.sqrt(np.abs(found.data)) * weights
    return normalize(csr_matrix((values.astype(np.float32), found.indices, found.indptr), found.shape))


def counts(forest: Forest, kind: str, width: int) -> csr_matrix:
    """Return how often each column of a kind occurs in each tree; columns are hashed into a power of two."""
    return _KINDS[kind](forest, width)


def fragments(forest: Forest, width: int, budget: int) -> csr_matrix:
    """Return the values of fragments; their signs are those of hashing."""
    vectorizer = FragmentVectorizer(n_features=width, budget=budget, damping="linear", normalize=False)
    return vectorizer.transform(forest)


def labels(forest: Forest, width: int) -> csr_matrix:
    """Return the counts of labels."""
    return _counted(forest, width, np.arange(forest.n_nodes), forest.label)


def edges(forest: Forest, width: int) -> csr_matrix:
    """Return the counts of pairs of a node's label and its parent's."""
    child = np.flatnonzero(forest.parent >= 0)
    return _counted(forest, width, child, forest.label[forest.parent[child]], forest.label[child])


def neighbours(forest: Forest, width: int) -> csr_matrix:
    """Return the counts of pairs of the labels of adjacent children."""
    order = np.argsort(forest.parent, kind="stable")
    parent = forest.parent[order]
    first = np.flatnonzero((parent[1:] == parent[:-1]) & (parent[1:] >= 0))
    left, right = order[first], order[first + 1]
    return _counted(forest, width, left, forest.label[left], forest.label[right])


def paths(forest: Forest, width: int) -> csr_matrix:
    """Return the counts of triples of a node's label, its parent's and its grandparent's."""
    above = np.where(forest.parent >= 0, forest.parent[forest.parent], -1)
    node = np.flatnonzero(above >= 0)
    ancestors = above[node], forest.parent[node]
    return _counted(forest, width, node, *(forest.label[each] for each in (*ancestors, node)))


_KINDS: dict[str, Callable[[Forest, int], csr_matrix]] = {
    "labels": labels,
    "productions": partial(fragments, budget=0),
    "budget 1": partial(fragments, budget=1),
    "budget 4": partial(fragments, budget=4),
    "edges": edges,
    "adjacent children": neighbours,
    "paths of three": paths,
}


def _counted(forest: Forest, width: int, nodes: IntArray, *numbers: Any) -> csr_matrix:
    """Return how often each combination of the numbers of labels occurs in each tree, hashed."""
    word = np.zeros(nodes.size, np.uint64)
    with np.errstate(over="ignore"):  # products wrap around
        for each in numbers:
            word = mix_words((word + each.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN))
    column = (word & np.uint64(width - 1)).astype(np.int32)
    ones = np.ones(nodes.size, np.float32)
    return csr_matrix((ones, (forest.tree_of_node[nodes], column)), (len(forest), width))
