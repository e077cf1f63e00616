"""Kinds of columns of trees: how often each fragment, label, edge, pair of children or path occurs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from treedot import Forest, FragmentVectorizer
from treedot._runtime.array_types import IntArray
from treedot._runtime.hashing import GOLDEN, mix_words


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
