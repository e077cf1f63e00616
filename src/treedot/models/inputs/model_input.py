"""What a model's scores are linear in: columns of a table, and how they become rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot._runtime.sorted_arrays import locate
from treedot.errors import SourceError
from treedot.models.inputs.table import Columns, Table

ROWS = 1024  # dense ones that are made at a time


class ModelInput(ABC):
    """Some columns of a table, and how they become rows."""

    is_dense: bool  # whether all columns of the rows have weights
    column: str | None  # of trees, where it has one

    @property
    def reads(self) -> Columns:
        """The names of the columns."""
        return Columns((self.column,))

    @property
    @abstractmethod
    def width(self) -> int:
        """How many columns the rows have."""

    @property
    def learns(self) -> bool:
        """Whether rows depend on the examples that the input was fitted to."""
        return False

    @abstractmethod
    def transform(self, table: Table, n_jobs: int | None = None) -> Any:
        """Return one row for each example: CSR, or an array where rows are dense."""

    def fitted(
        self,
        table: Table,
        y: Array | None = None,
        n_jobs: int | None = None,
        sample_weight: FloatArray | None = None,
    ) -> tuple[ModelInput, Any]:
        """Return the input with what it learns from examples, and their rows.

        ``sample_weight`` holds how much each example counts; by default, all count alike.
        """
        return self, self.transform(table, n_jobs)

    def scores(self, table: Table, columns: IntArray, weights: Array, n_jobs: int | None) -> FloatArray:
        """Return w · x of every example; all other columns of the rows weigh nothing."""
        found: FloatArray
        if not self.is_dense:
            found = with_columns(self.transform(table, n_jobs), columns) @ weights
            return found
        # In float64: sums of thousands of products in float32 differ between machines.
        exact, every = weights.astype(np.float64), np.arange(len(table))
        found = np.zeros((every.size, weights.shape[1]))
        for start in range(0, every.size, ROWS):
            rows = every[start : start + ROWS]
            found[rows] = self.transform(table.take(rows), n_jobs).astype(np.float64) @ exact
        return found


class StoredInput(ModelInput):
    """An input that can be written down as JSON values and arrays, and is made again from these."""

    kind: ClassVar[str]

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Return what is not an array, as JSON values."""

    def arrays(self) -> dict[str, Array]:
        """Return what is kept as arrays."""
        return {}

    @classmethod
    @abstractmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Return what ``config`` and ``arrays`` describe, or raise where it makes no sense."""


def with_columns(rows: Any, columns: IntArray) -> Any:
    """Return CSR rows with some of their columns alone, which are given in ascending order."""
    from scipy.sparse import csr_matrix

    known, number = locate(rows.indices, columns)
    indptr = np.searchsorted(known, rows.indptr)
    return csr_matrix((rows.data[known], number, indptr), shape=(rows.shape[0], columns.size))


def entry(config: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return an entry of a stored input, which must be of some type."""
    value = config.get(name)
    if not isinstance(value, kind):
        raise SourceError(f"an input has no {name}")
    return value


def stored_column(config: Mapping[str, Any]) -> str | None:
    """Return the name of a stored input's column; None where there are no names."""
    name = config.get("column")
    if name is not None and not isinstance(name, str):
        raise SourceError("the name of an input's column is not a text")
    return name


def check_arrays(arrays: Mapping[str, Array], wanted: Mapping[str, Any]) -> None:
    """Raise where a stored input has other arrays, or of another type, than these one-dimensional ones."""
    found = {name: (array.dtype, array.ndim) for name, array in arrays.items()}
    if found != {name: (np.dtype(dtype), 1) for name, dtype in wanted.items()}:
        raise SourceError(f"an input has other arrays than {', '.join(wanted) or 'none'}, or of other types")
