"""The fragments that weigh most in a support vector machine, found without writing all fragments out.

After Pighin & Moschitti (*On reverse feature engineering of syntactic tree kernels*, 2010): the gradient
of a support vector machine gives every fragment a weight, and the heaviest are mined by extending single
productions, one production at a time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, FloatArray, IntArray
from treedot.kernels.fragments.expansion import (
    Expandable,
    Extensions,
    Level,
    expandable,
    extend,
    extensible,
    extensions,
    first_level,
    occurrences,
)
from treedot.kernels.fragments.space import FragmentSpace, production_labels
from treedot.trees import Forest
from treedot.trees.distinct import DistinctSubtrees
from treedot.trees.nodes import Nodes

BEAM = 2**18


class Mined(NamedTuple):
    """The heaviest fragments, their weights (problems by fragments), and whether none was overlooked."""

    space: FragmentSpace
    weights: FloatArray
    exact: bool


class _Weighed(NamedTuple):
    """Of some extensions: the weight in every problem, its largest magnitude, and a bound on further ones."""

    weights: FloatArray
    score: FloatArray
    bound: FloatArray


def mine(
    forest: Forest,
    gradient: FloatArray,
    decay: float,
    n_fragments: int,
    *,
    threshold: float = 0.0,
    max_expansions: int | None = None,
    beam: int = BEAM,
) -> Mined:
    """Return the ``n_fragments`` fragments with the largest |w| in any problem, heaviest first.

    In problem k a fragment with p productions weighs ``w = √λ^(p-1) Σ gradient[i, k] count_i`` over the
    trees i. It occurs only where the one before it in its derivation does, so that one's positive or
    negative terms alone, with one more √λ, bound it: what cannot reach the ``n_fragments`` best so far
    is not extended. That is exact; only ``beam`` is greedy.

    Parameters
    ----------
    forest : Forest
        The support vectors.
    gradient : array of shape (trees, problems)
        αᵢ yᵢ, divided by the norm of tree i where the kernel is normalised.
    decay : float
        λ.
    n_fragments : int
        How many to return, if there are so many.
    threshold : float
        Leave out what weighs less than this share of the heaviest.
    max_expansions : int, optional
        How many productions a fragment may have beyond its first.
    beam : int
        How many fragments of one size are extended at most: those with the largest bounds.
    """
    subtrees = DistinctSubtrees(Nodes(forest), 0, len(forest))
    trees = expandable(subtrees.subtrees, subtrees.subtrees.production)
    of_subtree = subtrees.count_matrix().T @ gradient
    pool = _Pool(n_fragments, threshold, gradient.shape[1])
    trie: list[Extensions] = []
    level, overlooked = first_level(trees), -math.inf
    while level.node.size and (max_expansions is None or len(trie) <= max_expansions):
        here, taken = extensions(trees, level)
        weighed = _weigh(trees, level, taken, here.parent.size, of_subtree, decay, len(trie))
        kept = pool.worth_keeping(weighed.score) | pool.worth_keeping(weighed.bound)
        here, weighed = Extensions(*(x[kept] for x in here)), _Weighed(*(x[kept] for x in weighed))
        taken = np.where(kept, np.cumsum(kept) - 1, -1)[taken]
        pool.add(weighed, len(trie))
        followed = pool.worth_keeping(weighed.bound)
        if followed.sum() > beam:
            by_bound = np.argsort(np.where(followed, -weighed.bound, math.inf), kind="stable")
            overlooked = max(overlooked, float(weighed.bound[by_bound[beam]]))
            followed[by_bound[beam:]] = False
        trie.append(here)
        level = extend(trees, level, np.where(np.append(followed, False)[taken], taken, -1))
    depth, number, weights = pool.best()
    exact = not pool.worth_keeping(np.array([overlooked]))[0]
    return Mined(_chosen(forest, trie, depth, number), weights, exact)


def _weigh(
    trees: Expandable, level: Level, taken: IntArray, n: int, gradient: FloatArray, decay: float, depth: int
) -> _Weighed:
    """Weigh ``n`` extensions by the gradient of every distinct subtree."""
    root = level.root[occurrences(level)]
    root_decay = math.sqrt(decay)
    further = extensible(trees, level)
    weights = root_decay**depth * _sums(taken, root, n, gradient)
    positive = _sums(taken[further], root[further], n, np.maximum(gradient, 0.0))
    negative = _sums(taken[further], root[further], n, np.maximum(-gradient, 0.0))
    bound = root_decay ** (depth + 1) * np.maximum(positive, negative).max(axis=1)
    return _Weighed(weights, np.abs(weights).max(axis=1), bound)


def _sums(taken: IntArray, root: IntArray, n: int, gradient: FloatArray) -> FloatArray:
    """Return for each of ``n`` extensions the sum of the gradient over the subtrees it is taken in."""
    from scipy.sparse import csr_matrix

    counts = csr_matrix((np.ones(taken.size), (taken, root)), shape=(n, gradient.shape[0]))
    total: FloatArray = counts @ gradient
    return total


class _Pool:
    """The best fragments so far, each by the depth of its last extension in the trie and its number there."""

    def __init__(self, n_fragments: int, threshold: float, n_problems: int) -> None:
        self.n_fragments = n_fragments
        self.threshold = threshold
        self.score: FloatArray = np.zeros(0)
        self.weights: FloatArray = np.zeros((0, n_problems))
        self.where: IntArray = np.zeros((0, 2), np.int64)

    @property
    def full(self) -> bool:
        return self.score.size == self.n_fragments

    @property
    def least(self) -> float:
        return self.threshold * float(self.score[0]) if self.score.size else 0.0

    def add(self, weighed: _Weighed, depth: int) -> None:
        fresh = np.flatnonzero(self.worth_keeping(weighed.score))
        score = np.concatenate([self.score, weighed.score[fresh]])
        where = np.concatenate([self.where, np.column_stack([np.full(fresh.size, depth), fresh])])
        weights = np.concatenate([self.weights, weighed.weights[fresh]])
        best = np.argsort(-score, kind="stable")[: self.n_fragments]
        best = best[score[best] >= self.threshold * score.max(initial=0.0)]
        self.score, self.where, self.weights = score[best], where[best], weights[best]

    def worth_keeping(self, score: FloatArray) -> BoolArray:
        worth = score >= self.least
        return worth & (score > self.score[-1]) if self.full else worth

    def best(self) -> tuple[IntArray, IntArray, FloatArray]:
        return self.where[:, 0], self.where[:, 1], self.weights.T


def _chosen(forest: Forest, trie: list[Extensions], depth: IntArray, number: IntArray) -> FragmentSpace:
    """Return the space of the chosen fragments, with only the extensions that lead to them."""
    features = [np.full(level.parent.size, -1) for level in trie]
    for d, numbers in enumerate(features):
        chosen = np.flatnonzero(depth == d)
        numbers[number[chosen]] = chosen
    used = [numbers >= 0 for numbers in features]
    for d in range(len(trie) - 1, 0, -1):
        used[d - 1][trie[d].parent[used[d]]] = True
    rank: IntArray = np.zeros(1, np.int64)
    for d, (level, use) in enumerate(zip(trie, used, strict=True)):
        trie[d] = Extensions(rank[level.parent[use]], level.position[use], level.production[use])
        rank = np.cumsum(use) - 1
    n_levels = 1 + int(depth.max(initial=-1))
    features = [numbers[use] for numbers, use in zip(features, used, strict=True)]
    return FragmentSpace(production_labels(forest), trie[:n_levels], features[:n_levels])
