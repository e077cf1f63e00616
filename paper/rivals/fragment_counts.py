"""How often trees hold known fragments."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot.kernels.fragments.expansion import (
    Expandable,
    Extensions,
    Level,
    expandable,
    extend,
    first_level,
    occurrences,
    ranks,
)
from treedot.kernels.fragments.space import FragmentSpace, counted, production_labels
from treedot.trees import Forest
from treedot.trees.distinct import DistinctSubtrees
from treedot.trees.nodes import Nodes

BATCH_NODES = 2**17


def count_known(space: FragmentSpace, forest: Forest, batch_nodes: int = BATCH_NODES) -> Any:
    """Return how often each tree holds each fragment of a space, as a sparse matrix.

    Trees of about ``batch_nodes`` nodes are looked at together, which bounds the memory.
    """
    from scipy.sparse import csr_matrix, vstack

    n_features = space.sizes.size
    number = {labels: k for k, labels in enumerate(space.productions)}
    known = np.array([number.get(labels, -1) for labels in production_labels(forest)] + [-1], np.int64)
    parts = [csr_matrix((0, n_features))]
    for first, last in _batches(forest, batch_nodes):
        subtrees = DistinctSubtrees(Nodes(forest), first, last)
        parts.append(counted(subtrees, list(_find(space, subtrees, known)), n_features))
    return vstack(parts, format="csr")


def _find(
    space: FragmentSpace, subtrees: DistinctSubtrees, known: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield subtrees and the fragments rooted there; ``known`` translates productions, its last is -1."""
    trees = expandable(subtrees.subtrees, known[subtrees.subtrees.production])
    level = first_level(trees)
    for here, numbers in zip(space.trie, space.features, strict=True):
        if not level.node.size:
            break
        taken = _known_extensions(trees, level, here)
        feature = np.append(numbers, -1)[taken]
        hits = np.flatnonzero(feature >= 0)
        yield level.root[occurrences(level)[hits]], feature[hits]
        level = extend(trees, level, taken)


def _known_extensions(trees: Expandable, level: Level, known: Extensions) -> IntArray:
    """Return for each open position the number of the known extension that it takes, or -1."""
    where, at = ranks(known.parent, known.position)
    pair, _ = ranks(at, known.production)  # they are sorted and distinct: ranks are their numbers
    fragment = level.fragment[occurrences(level)]
    return _find_pairs(pair, _find_pairs(where, fragment, level.position), trees.production[level.node])


def _find_pairs(pairs: tuple[IntArray, IntArray], a: IntArray, b: IntArray) -> IntArray:
    """Return the rank of each pair among sorted ones, or -1."""
    width = max(int(part.max()) + 1 if part.size else 1 for part in (pairs[1], b))
    codes = np.append(pairs[0] * width + pairs[1], -1)
    wanted = np.where((a >= 0) & (b >= 0), a * width + b, -1)
    rank = np.searchsorted(codes[:-1], wanted)
    return np.where((codes[rank] == wanted) & (wanted >= 0), rank, -1)


def _batches(forest: Forest, batch_nodes: int) -> Iterator[tuple[int, int]]:
    batch = forest.offsets[1:] // batch_nodes
    cuts = [0, *(np.flatnonzero(np.diff(batch)) + 1).tolist(), len(forest)]
    return ((a, b) for a, b in pairwise(cuts) if a < b)
