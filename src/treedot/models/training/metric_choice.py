"""Choose the settings of a metric on groups that its covariance has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import BoolArray, FloatArray, IntArray, Matrix, Row
from treedot.errors import ParameterError
from treedot.models.training.retrieval import map_at_r
from treedot.models.training.scatter import Scatter
from treedot.vectors.metric.folding import Folding
from treedot.vectors.metric.metric import unit_rows

MOST_HELD_OUT = 3000  # held-out rows that are compared with each other
LEAST_GROUPS = 4  # of at least two members, so that some can be held out

Scores = dict[tuple[int, float], float]  # by the number of columns and the shrinkage


class Examples(NamedTuple):
    """Rows of length 1, sparse or dense, and the numbers of their groups, from 0."""

    rows: Any
    groups: IntArray

    @classmethod
    def folded(cls, rows: Any, groups: IntArray, folding: Folding) -> Examples:
        """Return examples whose rows are hashed into fewer columns."""
        return cls(folding.sparse(rows) if hasattr(rows, "tocsr") else folding.dense(rows), groups)

    def take(self, chosen: BoolArray) -> Examples:
        """Return the chosen examples, with groups numbered anew."""
        return Examples(self.rows[chosen], np.unique(self.groups[chosen], return_inverse=True)[1])

    @property
    def mean(self) -> FloatArray:
        """The mean of the rows."""
        total = np.asarray(self.rows.sum(axis=0), np.float64).reshape(-1)
        return total / self.groups.size


class Learned(NamedTuple):
    """A learned metric: the folding, the mean and the triangular matrix."""

    folding: Folding
    mean: FloatArray
    tiles: Row


class MetricTrainer(NamedTuple):
    """How a metric is learned.

    Attributes
    ----------
    make : callable
        Returns the scatter for a number of columns.
    held_out : float
        The share of groups that are held out to choose settings.
    seed : int
        Determines which groups.
    report : callable
        Called with the numbers of finished steps and of all steps.
    """

    make: Callable[[int], Scatter]
    held_out: float
    seed: int
    report: Callable[[int, int], object]

    def choose(
        self, rows: Any, groups: IntArray, foldings: Sequence[Folding], shrinkage: Sequence[float]
    ) -> Scores:
        """Return the mean average precision at R of every setting, on groups that are held out."""
        held = held_out_groups(groups, self.held_out, self.seed)
        compared = _sample(held, MOST_HELD_OUT, self.seed)
        scores: Scores = {}
        for folding in foldings:
            examples = Examples.folded(rows, groups, folding)
            seen, others = examples.take(~held), examples.take(compared)
            scatter = self.make(folding.n_columns)
            scatter.add(*seen)
            centred = _dense(others.rows) - seen.mean
            for a in shrinkage:
                vectors = unit_rows(scatter.factor(a).mapped(centred).astype(np.float32))
                scores[folding.n_columns, a] = map_at_r(vectors, others.groups)
                self.report(len(scores), len(foldings) * len(shrinkage) + 1)
        return scores

    def learn(self, rows: Any, groups: IntArray, folding: Folding, shrinkage: float) -> Learned:
        """Return the metric that all groups give."""
        examples = Examples.folded(rows, groups, folding)
        scatter = self.make(folding.n_columns)
        scatter.add(*examples)
        return Learned(folding, examples.mean, scatter.factor(shrinkage, keep=False).tiles())


def held_out_groups(groups: IntArray, share: float, seed: int) -> BoolArray:
    """Return which examples are held out: those of a random share of the groups with several members."""
    several = np.flatnonzero(np.bincount(groups) > 1)
    if several.size < LEAST_GROUPS:
        raise ParameterError(
            f"to choose settings on held-out groups takes at least {LEAST_GROUPS} groups of two trees or "
            f"more, not {several.size}: give more groups, or one number for n_columns and for shrinkage"
        )
    count = min(max(2, round(share * several.size)), several.size - 2)
    chosen = np.random.default_rng(seed).permutation(several)[:count]
    return np.isin(groups, chosen)


def _sample(chosen: BoolArray, most: int, seed: int) -> BoolArray:
    """Return at most ``most`` of the chosen examples, at random."""
    numbers = np.flatnonzero(chosen)
    kept = np.zeros_like(chosen)
    kept[np.random.default_rng(seed).permutation(numbers)[:most]] = True
    return kept


def _dense(rows: Any) -> Matrix:
    found: Matrix = rows.toarray() if hasattr(rows, "toarray") else rows
    return found
