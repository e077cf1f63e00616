"""Find the trees of an index that are most similar to a query by a learned similarity, exactly.

A learned similarity is a linear function of a tree's row, divided by two lengths. So an index needs no dense
vectors: it stores the two lengths of every tree beside the posting lists of the rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import FloatArray
from treedot._runtime.threads import thread_map
from treedot.errors import SourceError
from treedot.search.index.inverted_index_writer import Lists
from treedot.trees import Forest
from treedot.vectors.metric.metric import Metric, unit_rows
from treedot.vectors.sparse.fitted_rows import FittedRows

STEP = 1 << 20  # postings added up at a time
LENGTHS = ("row_length", "vector_length")


class LearnedRows(NamedTuple):
    """A metric, and for every tree of an index the lengths of its row and of its vector."""

    metric: Metric
    row_length: FloatArray
    vector_length: FloatArray

    def taken(self, rows: np.ndarray) -> Self:
        """Return the same for some of the trees."""
        return self._replace(row_length=self.row_length[rows], vector_length=self.vector_length[rows])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the metric, except those of its rows, and the lengths, by name."""
        lengths = {name: getattr(self, name) for name in LENGTHS}
        return replace(self.metric, rows=None).arrays | lengths

    def settings(self) -> dict[str, Any]:
        """Return the settings of the metric, except those of its rows, as JSON values."""
        return replace(self.metric, rows=None).settings | {"facts": self.metric.facts}

    @classmethod
    def from_stored(
        cls, config: Any, arrays: Mapping[str, np.ndarray], rows: FittedRows, n_rows: int
    ) -> Self:
        """Return what an index file with these rows describes; raise SourceError if it is damaged."""
        if not isinstance(config, dict) or config.get("width") != rows.n_columns:
            raise SourceError("the metric does not fit the rows")
        lengths = [arrays.get(name, np.zeros(0)) for name in LENGTHS]
        for name, length in zip(LENGTHS, lengths, strict=True):
            sound = length.dtype == np.float64 and length.shape == (n_rows,)
            if not sound or not (np.isfinite(length) & (length > 0)).all():
                raise SourceError(f"the metric's array {name!r} is damaged")
        metric = Metric.from_stored(config | {"rows": None}, arrays)
        return cls(replace(metric, rows=rows), *lengths)


class LearnedSearch(NamedTuple):
    """A search by a learned similarity in an index.

    Attributes
    ----------
    lists : Lists
        The posting lists of the rows.
    learned : LearnedRows
        The metric, and the lengths.
    take : callable
        Returns trees of the index by row number.
    path : Path
        The file, for errors.
    n_jobs : int or None
        The number of threads, which share the queries.
    """

    lists: Lists
    learned: LearnedRows
    take: Callable[[np.ndarray], Forest]
    path: Path
    n_jobs: int | None

    def best(self, queries: Forest, k: int, expand: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ``k`` most similar rows for each query, after adding its ``expand`` nearest to it."""
        metric = self.learned.metric
        vectors = metric.transform(queries, self.n_jobs)
        if expand:
            for query, near in enumerate(self._nearest(vectors, expand)[0]):
                vectors[query] += metric.transform(self.take(near), self.n_jobs).sum(axis=0)
            vectors = unit_rows(vectors)
        return self._nearest(vectors, k)

    def _nearest(self, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ``k`` most similar rows for each query, given the vectors of the queries."""
        columns, signs = self.learned.metric.folding.places(np.asarray(self.lists.column))
        forms, constants = self.learned.metric.linear_forms(vectors)
        rows, values = np.zeros((len(vectors), k), np.int64), np.zeros((len(vectors), k))

        def find(query: int) -> None:
            sums = self._sums(signs * forms[query][columns])
            found = (sums / self.learned.row_length - constants[query]) / self.learned.vector_length
            if not np.isfinite(found).all():
                raise SourceError(f"{self.path} is damaged: a similarity is not finite; build it again")
            rows[query] = np.argsort(-found, kind="stable")[:k]
            values[query] = found[rows[query]]

        with thread_map(self.n_jobs, len(vectors)) as run_all:
            list(run_all(find, range(len(vectors))))
        return rows, values

    def _sums(self, weights: FloatArray) -> FloatArray:
        """Return the weighted sum of the values of each row, given the weights of the posting lists."""
        sums = np.zeros(self.learned.row_length.size)
        try:
            for first, last in _spans(np.asarray(self.lists.start)):
                counts = np.diff(self.lists.start[first : last + 1])
                part = slice(self.lists.start[first], self.lists.start[last])
                products = np.repeat(weights[first:last], counts) * self.lists.value[part]
                sums += np.bincount(self.lists.row[part], products, sums.size)
        except ValueError:  # a row number is negative or too large, or lists do not follow each other
            raise SourceError(
                f"{self.path} is damaged: a list of rows is out of order; build it again"
            ) from None
        return sums


def _spans(start: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the limits of adjacent lists of about ``STEP`` postings together."""
    limits = np.searchsorted(start, np.arange(STEP, start[-1], STEP))
    edges = np.unique(np.concatenate([[0], limits, [start.size - 1]])).tolist()
    yield from itertools.pairwise(edges)
