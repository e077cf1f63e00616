"""The fragments that matter most to a kernel machine, found without writing all fragments out.

After Pighin & Moschitti (*On reverse feature engineering of syntactic tree kernels*, 2010): the gradient
of a support vector machine gives every fragment a weight, and the heaviest are mined by growing
them step by step from single productions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.fragments.growth import Level, Soil, Steps, grow, leads_on, occurrences, seeds, soil, steps
from treedot.fragments.index import FragmentIndex, production_labels
from treedot.trees import Forest
from treedot.trees.distinct import DistinctSubtrees
from treedot.trees.nodes import Nodes
from treedot.types import FloatArray, IntArray

BEAM = 2**18


class Mined(NamedTuple):
    """The heaviest fragments, their weights (problems by fragments), and whether none was overlooked."""

    space: FragmentIndex
    weights: FloatArray
    exact: bool


class _Weighed(NamedTuple):
    """Of some steps: the weight in every problem, its largest magnitude, and that of anything beyond."""

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
    is not grown. That is exact; only ``beam`` is greedy.

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
        How many fragments of one size are grown further at most: those with the largest bounds.
    """
    subtrees = DistinctSubtrees(Nodes(forest), 0, len(forest))
    ground = soil(subtrees.items, subtrees.items.production)
    force = subtrees.weighed(gradient)  # on every distinct subtree
    pool = _Pool(n_fragments, threshold, gradient.shape[1])
    trie: list[Steps] = []
    level, overlooked = seeds(ground), -math.inf
    while level.node.size and (max_expansions is None or len(trie) <= max_expansions):
        here, step = steps(ground, level)
        weighed = _weigh(ground, level, step, here.parent.size, force, decay, len(trie))
        kept = pool.worth_keeping(weighed.score) | pool.worth_keeping(weighed.bound)
        here, weighed = Steps(*(x[kept] for x in here)), _Weighed(*(x[kept] for x in weighed))
        step = np.where(kept, np.cumsum(kept) - 1, -1)[step]
        pool.add(weighed, len(trie))
        grown = pool.worth_keeping(weighed.bound)
        if grown.sum() > beam:
            by_bound = np.argsort(np.where(grown, -weighed.bound, math.inf), kind="stable")
            overlooked = max(overlooked, float(weighed.bound[by_bound[beam]]))
            grown[by_bound[beam:]] = False
        trie.append(here)
        level = grow(ground, level, np.where(np.append(grown, False)[step], step, -1))
    depth, number, weights = pool.best()
    exact = not pool.worth_keeping(np.array([overlooked]))[0]
    return Mined(_index(forest, trie, depth, number), weights, exact)


def _weigh(
    ground: Soil, level: Level, step: IntArray, n_steps: int, force: FloatArray, decay: float, depth: int
) -> _Weighed:
    root = level.root[occurrences(level)]
    root_decay = math.sqrt(decay)
    on = leads_on(ground, level)
    weights = root_decay**depth * _sums(step, root, n_steps, force)
    rising = _sums(step[on], root[on], n_steps, np.maximum(force, 0.0))
    falling = _sums(step[on], root[on], n_steps, np.maximum(-force, 0.0))
    bound = root_decay ** (depth + 1) * np.maximum(rising, falling).max(axis=1)
    return _Weighed(weights, np.abs(weights).max(axis=1), bound)


def _sums(step: IntArray, root: IntArray, n_steps: int, force: FloatArray) -> FloatArray:
    """Return the force on each step: of the subtrees that it is taken in, all together."""
    from scipy.sparse import csr_matrix

    taken = csr_matrix((np.ones(step.size), (step, root)), shape=(n_steps, force.shape[0]))
    total: FloatArray = taken @ force
    return total


class _Pool:
    """The best fragments so far, each by the depth of its step in the trie and its number there."""

    def __init__(self, n_fragments: int, threshold: float, n_problems: int) -> None:
        self.n_fragments = n_fragments
        self.threshold = threshold
        self.score: FloatArray = np.zeros(0)
        self.weights: FloatArray = np.zeros((0, n_problems))
        self.place: IntArray = np.zeros((0, 2), np.int64)

    @property
    def full(self) -> bool:
        return self.score.size == self.n_fragments

    @property
    def least(self) -> float:
        return self.threshold * float(self.score[0]) if self.score.size else 0.0

    def add(self, weighed: _Weighed, depth: int) -> None:
        fresh = np.flatnonzero(self.worth_keeping(weighed.score))
        score = np.concatenate([self.score, weighed.score[fresh]])
        place = np.concatenate([self.place, np.column_stack([np.full(fresh.size, depth), fresh])])
        weights = np.concatenate([self.weights, weighed.weights[fresh]])
        best = np.argsort(-score, kind="stable")[: self.n_fragments]
        best = best[score[best] >= self.threshold * score.max(initial=0.0)]
        self.score, self.place, self.weights = score[best], place[best], weights[best]

    def worth_keeping(self, score: FloatArray) -> npt.NDArray[np.bool_]:
        worth = score >= self.least
        return worth & (score > self.score[-1]) if self.full else worth

    def best(self) -> tuple[IntArray, IntArray, FloatArray]:
        return self.place[:, 0], self.place[:, 1], self.weights.T


def _index(forest: Forest, trie: list[Steps], depth: IntArray, number: IntArray) -> FragmentIndex:
    """Return the index of the chosen fragments, with only the steps that lead to them."""
    features = [np.full(level.parent.size, -1) for level in trie]
    for d, numbers in enumerate(features):
        chosen = np.flatnonzero(depth == d)
        numbers[number[chosen]] = chosen
    used = [numbers >= 0 for numbers in features]
    for d in range(len(trie) - 1, 0, -1):
        used[d - 1][trie[d].parent[used[d]]] = True
    rank: IntArray = np.zeros(1, np.int64)
    for d, (level, use) in enumerate(zip(trie, used, strict=True)):
        trie[d] = Steps(rank[level.parent[use]], level.place[use], level.production[use])
        rank = np.cumsum(use) - 1
    n_levels = 1 + int(depth.max(initial=-1))
    features = [numbers[use] for numbers, use in zip(features, used, strict=True)]
    return FragmentIndex(production_labels(forest), trie[:n_levels], features[:n_levels])
