"""Weights of columns: inverse document frequencies counted by ``fit``, or given weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot.errors import ParameterError, SourceError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MAX_WEIGHTS = 2**26  # most columns for which weights can be given
MAX_WEIGHT = 1e100


class DocumentCounts(NamedTuple):
    """The number of training trees that hold each hashed column.

    ``columns`` are those in use, ascending; ``counts[k]`` of the ``n_trees`` trees hold ``columns[k]``.
    """

    columns: Array
    counts: IntArray
    n_trees: int

    @classmethod
    def of(cls, batches: Iterable[csr_matrix]) -> Self:
        """Count the trees that hold each column, from batches of rows."""
        n_trees, columns, documents = 0, np.zeros(0, np.int64), np.zeros(0, np.int64)
        for rows in batches:
            both = np.concatenate([columns, rows.indices])
            counts = np.concatenate([documents, np.ones(rows.nnz, np.int64)])
            columns, group = np.unique(both, return_inverse=True)
            documents = np.bincount(group, counts, columns.size).astype(np.int64)
            n_trees += rows.shape[0]
        if not n_trees:
            raise SourceError("cannot learn idf: there are no trees")
        return cls(columns, documents, n_trees)

    def arrays(self) -> dict[str, Array]:
        """Return everything as arrays, for a file."""
        return {"columns": self.columns, "documents": self.counts, "n_trees": np.array([self.n_trees])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], width: int) -> Self:
        """Return the counts that ``arrays`` described, of rows with ``width`` columns."""
        try:
            columns, counts = np.asarray(arrays["columns"]), np.asarray(arrays["documents"])
            n_trees = int(arrays["n_trees"][0])
        except (KeyError, IndexError) as error:
            raise SourceError(f"the document counts of idf are damaged: {error} is missing") from None
        ascending = columns.size == 0 or (
            columns[0] >= 0 and columns[-1] < width and (np.diff(columns) > 0).all()
        )
        if columns.dtype.kind != "i" or columns.shape != counts.shape or not ascending:
            raise SourceError("the document counts of idf are damaged: the columns are out of order")
        if counts.dtype.kind != "i" or ((counts < 0) | (counts > n_trees)).any() or n_trees < 0:
            raise SourceError(
                "the document counts of idf are damaged: a count is negative or exceeds the number of trees"
            )
        return cls(columns, counts, n_trees)


def inverse_frequency(counts: Array, n_trees: int) -> FloatArray:
    """Return ``ln((1 + trees) / (1 + trees that hold it)) + 1`` for every column.

    Examples
    --------
    >>> inverse_frequency(np.array([3, 0]), 3).round(2)
    array([1.  , 2.39])
    """
    weights: FloatArray = np.log((1.0 + n_trees) / (1.0 + counts)) + 1.0
    return weights


def is_flag(idf: Any) -> bool:
    """Return whether ``idf`` is a boolean and not an array of weights."""
    return isinstance(idf, (bool, np.bool_))


def checked_idf(idf: Any, n_columns: int | None, rest: str | None) -> bool | FloatArray:
    """Return ``idf`` as a bool, or a copy of the given weights; raise if it is invalid.

    Parameters
    ----------
    idf : bool or array
        The parameter of ``FragmentVectorizer``.
    n_columns : int or None
        The number of columns; None if it is not known yet.
    rest : str or None
        The parameter of ``FragmentVectorizer``; a rest cannot have weights.
    """
    weights: bool | FloatArray
    if is_flag(idf):
        weights = bool(idf)
    else:
        weights = np.asarray(idf)
        if weights.ndim != 1 or weights.dtype.kind not in "fiu":
            raise ParameterError("idf must be True, False or an array of one weight per column")
        if not ((weights == 0) | ((weights >= 1 / MAX_WEIGHT) & (weights <= MAX_WEIGHT))).all():
            raise ParameterError(f"the weights of idf must be 0 or from {1 / MAX_WEIGHT} to {MAX_WEIGHT}")
        if n_columns is not None and (weights.size != n_columns or n_columns > MAX_WEIGHTS):
            raise ParameterError(
                f"idf has {weights.size} weights for {n_columns} columns (the limit is {MAX_WEIGHTS})"
            )
        weights = weights.astype(np.float64)
    if weights is not False and rest is not None:
        raise ParameterError("idf cannot be combined with a rest, which has no weights: use rest=None")
    return weights
