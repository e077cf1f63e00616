"""The nearest of rows that come some at a time, as of a file that is read piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np

from treedot.array_types import IntArray
from treedot.errors import ParameterError
from treedot.search import top_k
from treedot.search.neighbours import NOT_FINITE, TILE, keep_tile, pass_over
from treedot.vectors.inverted_index import InvertedIndex, real_rows
from treedot.vectors.products import dense_columns, dot_products


class RunningNearest:
    """For every query, the ``k`` rows with the largest dot products among all that were added.

    Memory follows queries × k and what is added at a time, not the number of rows.

    Parameters
    ----------
    queries : array or sparse matrix
        Vectors; all rows that are added are of the same kind.
    k : int
        How many to keep.

    Examples
    --------
    >>> from treedot import FragmentVectorizer
    >>> rows = FragmentVectorizer().transform(["(S (A b))", "(T (X y))", "(S (A b) c)", "(T (X y))"])
    >>> best = RunningNearest(rows[:2], 1)
    >>> for start in (0, 2):
    ...     _ = best.add(rows[start : start + 2])
    >>> best.ranked()[0].ravel()
    array([0, 1])
    """

    def __init__(self, queries: Any, k: int) -> None:
        self._queries = queries
        self._rows, self._values = top_k.empty(queries.shape[0], k)
        self._index = None
        if hasattr(queries, "tocsr") and dense_columns(queries) is None:
            self._index = InvertedIndex(queries)
        self.n_rows = 0  # that were added

    def add(self, rows: Any) -> IntArray:
        """Look at more rows; return which of them are among the best now, ascending."""
        first, self.n_rows = self.n_rows, self.n_rows + rows.shape[0]
        if self._index is not None:
            rows = real_rows(rows)
            csr = rows.indptr, rows.indices, rows.data
            if not pass_over(csr, 0, rows.shape[0], first, self._index.lists, self._rows, self._values):
                raise ParameterError(NOT_FINITE)
        else:
            for start in range(0, self._queries.shape[0], TILE):
                here = slice(start, start + TILE)
                products = dot_products(self._queries[here], rows)
                if not np.isfinite(products).all():
                    raise ParameterError(NOT_FINITE)
                keep_tile(self._rows[here], self._values[here], products, first)
        kept = np.unique(self._rows)
        return kept[(kept >= first) & (kept < self.n_rows)] - first

    def ranked(self) -> tuple[IntArray, np.ndarray]:
        """Return the row numbers and dot products, best first; -1 and -inf where there were fewer than k.

        Equal ones are ordered by row number.
        """
        return top_k.ranked(self._rows, self._values, self._rows.shape[1])
