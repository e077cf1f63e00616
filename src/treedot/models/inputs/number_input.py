"""Columns of numbers as an input of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from treedot._runtime.array_types import Array, FloatArray
from treedot.errors import ParameterError, SourceError
from treedot.models.inputs.model_input import StoredInput, check_arrays, entry
from treedot.models.inputs.table import Columns, Table

ROUNDING = 1e-12  # a deviation up to this share of the largest number counts as 0


@dataclass(frozen=True, eq=False)
class NumberInput(StoredInput):
    """Columns of numbers as standard scores: minus the mean, divided by the standard deviation.

    So the mean square is 1, like the squared length of the row of a tree or a text.

    Examples
    --------
    >>> table = Table({"overlap": np.array([1.0, 2.0, 3.0])})
    >>> NumberInput.make(["overlap"]).fitted(table)[1].ravel().round(2)
    array([-1.22,  0.  ,  1.22])
    """

    kind = "numbers"
    is_dense = True

    columns: tuple[str, ...]
    mean: FloatArray
    scale: FloatArray

    @classmethod
    def make(cls, columns: Sequence[str]) -> Self:
        """Return an input that is not fitted yet."""
        return cls(tuple(columns), np.zeros(len(columns)), np.ones(len(columns)))

    @property
    def reads(self) -> Columns:
        """The names of the columns."""
        return Columns((), self.columns)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def learns(self) -> bool:
        """True: rows depend on the mean and deviation of the training examples."""
        return True

    def transform(self, table: Table, n_jobs: int | None = None) -> FloatArray:
        """Return the standard scores of each example."""
        numbers: FloatArray = (self._matrix(table) - self.mean) / self.scale
        return numbers

    def fitted(
        self,
        table: Table,
        y: Array | None = None,
        n_jobs: int | None = None,
        sample_weight: FloatArray | None = None,
    ) -> tuple[NumberInput, FloatArray]:
        """Return the input with the weighted mean and deviation of the examples, and their rows."""
        matrix = self._matrix(table)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, deviation = _mean_and_deviation(matrix, sample_weight)
        fine = np.isfinite(mean) & np.isfinite(deviation)
        if not fine.all():
            column = self.columns[fine.argmin()]
            raise ParameterError(f"the numbers in column {column!r} are too large: rescale them")
        constant = deviation <= ROUNDING * np.abs(matrix).max(axis=0, initial=0.0)
        made = replace(self, mean=mean, scale=np.where(constant, 1.0, deviation))
        return made, made.transform(table)

    def _matrix(self, table: Table) -> FloatArray:
        return np.stack([table[name] for name in self.columns], axis=1)

    def config(self) -> dict[str, Any]:
        """Return the names of the columns."""
        return {"columns": list(self.columns)}

    def arrays(self) -> dict[str, Array]:
        """Return the means and the deviations."""
        return {"mean": self.mean, "scale": self.scale}

    @classmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Restore the input."""
        columns = entry(config, "columns", list)
        if not columns or not all(isinstance(name, str) for name in columns):
            raise SourceError("an input has column names that are not texts")
        check_arrays(arrays, {"mean": np.float64, "scale": np.float64})
        return cls(tuple(columns), *checked_scores(arrays, len(columns)))


def checked_scores(arrays: Mapping[str, Array], n_columns: int) -> tuple[FloatArray, FloatArray]:
    """Return the stored means and deviations of columns after checking them."""
    mean, scale = arrays["mean"], arrays["scale"]
    if not mean.size == scale.size == n_columns:
        raise SourceError("an input of numbers does not have one mean and one scale for each column")
    if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0).all()):
        raise SourceError(
            "an input of numbers has a mean or scale that is not finite, or a scale of 0 or less"
        )
    return mean, scale


def _mean_and_deviation(
    matrix: FloatArray, sample_weight: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean and standard deviation of every column."""
    if sample_weight is None:
        return matrix.mean(axis=0), matrix.std(axis=0)
    mean: FloatArray = np.average(matrix, axis=0, weights=sample_weight)
    deviation: FloatArray = np.sqrt(np.average((matrix - mean) ** 2, axis=0, weights=sample_weight))
    return mean, deviation
