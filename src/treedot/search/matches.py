"""The trees of an index that match a query by both measures: the cosine and the similarity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot.clones.similarity import similarities, unordered_multisets
from treedot.parameters import checked_share
from treedot.readers.code.blurring import blurred
from treedot.search.index.tree_index import TreeIndex
from treedot.search.reading import Reading
from treedot.trees import Forest

CANDIDATES = 20  # by the cosine; of planted copies among 20,000 functions, all were among the first 10
CODE_THRESHOLD = 0.55  # few functions from elsewhere reach it, and all edited copies: ``benchmarks.search``


class Match(NamedTuple):
    """A tree of an index that matches a query."""

    row: int
    cosine: float  # of the rows of fragments
    similarity: float  # of the trees, without the texts of names and literals

    @property
    def likeness(self) -> float:
        """The similarity or twice the cosine, the larger one; a threshold applies to it."""
        return max(self.similarity, 2 * self.cosine)

    @property
    def rank(self) -> float:
        """The value that orders matches: the cosine counts twice, since rewritten code keeps its names."""
        return 2 * self.cosine + self.similarity


def find_matches(
    index: TreeIndex,
    queries: Forest,
    k: int = 10,
    *,
    threshold: float | None = None,
    expand: int = 0,
    n_jobs: int | None = None,
) -> list[list[Match]]:
    """Return for every query the best ``k`` trees of an index, best first.

    Candidates are the trees with the largest cosines, at least 20. They are ordered by both measures, or by
    the learned similarity if the index holds a metric.

    Parameters
    ----------
    index : TreeIndex
        The index.
    queries : Forest
        The queries, read as the trees of the index were.
    k : int, default=10
        The largest number of matches for a query.
    threshold : float, default=None
        A match has at least this similarity, or a cosine of at least half of it; by default 0.55 in an index
        of source code, else 0. Trees that share no fragment with a query never match.
    expand : int, default=0
        Of an index with a metric: see ``TreeIndex.search``.
    n_jobs : int, default=None
        The number of threads; -1 uses all cores. The results are the same.

    Returns
    -------
    list of list of Match
        The matches of every query.
    """
    least = default_threshold(index) if threshold is None else checked_share("threshold", threshold)
    rows, cosines = index.search(queries, max(k, CANDIDATES), expand=expand, n_jobs=n_jobs)
    candidates = index.forest(rows.ravel())
    shared = similarities_of(queries, candidates, Reading.of(index.reading)).reshape(rows.shape)
    found = []
    for line in zip(rows.tolist(), cosines.tolist(), shared.tolist(), strict=True):
        matches = [Match(*one) for one in zip(*line, strict=True) if one[1] > 0]
        if index.metric is None:
            matches.sort(key=lambda match: (-match.rank, match.row))
        found.append([match for match in matches if match.likeness >= least][:k])
    return found


def default_threshold(index: TreeIndex) -> float:
    """Return the threshold that suits the trees of an index."""
    return CODE_THRESHOLD if index.grammars and index.metric is None else 0.0


def similarities_of(queries: Forest, candidates: Forest, reading: Reading) -> np.ndarray:
    """Return the similarities of each query with its candidates, which follow each other."""
    both = Forest.concat([structure(queries, reading), structure(candidates, reading)])
    n = len(queries)
    query = np.repeat(np.arange(n), len(candidates) // n if n else 0)
    return similarities(unordered_multisets(both), query, n + np.arange(len(candidates)))


def structure(forest: Forest, reading: Reading) -> Forest:
    """Return trees, however they were read, without the texts of names and literals."""
    return blurred(forest) if reading.identifiers == "keep" else forest
