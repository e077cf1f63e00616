"""The base classes of a model's inputs, which turn columns of a table into rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot._runtime.sorted_arrays import locate
from treedot.errors import SourceError
from treedot.models.inputs.table import Columns, Table

ROWS = 1024  # dense rows that are made at a time


class ModelInput(ABC):
    """Turns columns of a table into rows."""

    is_dense: bool  # whether all columns of the rows have weights
    column: str | None  # the tree column; None if columns have no names

    @property
    def reads(self) -> Columns:
        """The names of the columns."""
        return Columns((self.column,))

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of columns of the rows."""

    @property
    def learns(self) -> bool:
        """Whether rows depend on the examples to which the input was fitted."""
        return False

    @abstractmethod
    def transform(self, table: Table, n_jobs: int | None = None) -> Any:
        """Return one row for each example: a CSR matrix, or an array if rows are dense."""

    def fitted(
        self,
        table: Table,
        y: Array | None = None,
        n_jobs: int | None = None,
        sample_weight: FloatArray | None = None,
    ) -> tuple[ModelInput, Any]:
        """Return the input fitted to examples, and their rows.

        ``sample_weight`` holds the weight of each example; by default 1.
        """
        return self, self.transform(table, n_jobs)

    def scores(self, table: Table, columns: IntArray, weights: Array, n_jobs: int | None) -> FloatArray:
        """Return w · x for every example, with weights for ``columns`` only."""
        found: FloatArray
        if not self.is_dense:
            found = with_columns(self.transform(table, n_jobs), columns) @ weights
            return found
        # In float64, since sums of thousands of products in float32 differ between machines.
        exact, every = weights.astype(np.float64), np.arange(len(table))
        found = np.zeros((every.size, weights.shape[1]))
        for start in range(0, every.size, ROWS):
            rows = every[start : start + ROWS]
            found[rows] = self.transform(table.take(rows), n_jobs).astype(np.float64) @ exact
        return found


class StoredInput(ModelInput):
    """An input that can be stored as JSON values and arrays, and restored from these."""

    kind: ClassVar[str]

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Return the settings as JSON values."""

    def arrays(self) -> dict[str, Array]:
        """Return the arrays to store."""
        return {}

    @classmethod
    @abstractmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Restore an input; raise SourceError if ``config`` and ``arrays`` are inconsistent."""


def with_columns(rows: Any, columns: IntArray) -> Any:
    """Return CSR rows restricted to ``columns``, which are in ascending order."""
    from scipy.sparse import csr_matrix

    known, number = locate(rows.indices, columns)
    indptr = np.searchsorted(known, rows.indptr)
    return csr_matrix((rows.data[known], number, indptr), shape=(rows.shape[0], columns.size))


def entry(config: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return an entry of a stored input; raise SourceError unless it has the type ``kind``."""
    value = config.get(name)
    if not isinstance(value, kind):
        raise SourceError(f"an input lacks its {name}")
    return value


def stored_column(config: Mapping[str, Any]) -> str | None:
    """Return the name of a stored input's column; None if columns have no names."""
    name = config.get("column")
    if name is not None and not isinstance(name, str):
        raise SourceError("the name of an input's column is not a text")
    return name


def check_arrays(arrays: Mapping[str, Array], wanted: Mapping[str, Any]) -> None:
    """Raise SourceError unless the arrays are one-dimensional, with the names and types in ``wanted``."""
    found = {name: (array.dtype, array.ndim) for name, array in arrays.items()}
    if found != {name: (np.dtype(dtype), 1) for name, dtype in wanted.items()}:
        raise SourceError(
            f"an input has the wrong arrays or types; expected {', '.join(wanted) or 'no arrays'}"
        )
