"""The scatter of rows around the means of their groups on a GPU, through PyTorch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray, Matrix, Row
from treedot.errors import RangeError
from treedot.models.training.scatter import NOT_DEFINITE, mean_diagonal, scaled_sums
from treedot.vectors.gpu.device import clear_memory_errors, open_device
from treedot.vectors.metric.triangle import SIDE

BATCH = 4096  # rows at a time


class ScatterOnGpu:
    """The scatter of rows in float64, as ``ScatterInMemory`` computes it, apart from rounding.

    Parameters
    ----------
    n_columns : int
        The number of columns of the rows.
    device : str
        "cuda", or "cuda:1" for the second GPU.
    """

    def __init__(self, n_columns: int, device: str) -> None:
        self._device = open_device(device)  # an error where there is no PyTorch
        import torch

        self._torch = torch
        with self._clear_errors():
            self._total = torch.zeros((n_columns, n_columns), dtype=torch.float64, device=self._device)

    def _clear_errors(self) -> Any:
        return clear_memory_errors(self._device, "the number of columns")

    def add(self, rows: Any, groups: IntArray) -> None:
        """Add rows, which are all members of their groups; ``groups`` numbers the group of each from 0."""
        with self._clear_errors():
            self._add_outer(rows, 1.0)
            self._add_outer(scaled_sums(rows, groups), -1.0)

    def _add_outer(self, rows: Any, sign: float) -> None:
        for first in range(0, rows.shape[0], BATCH):
            part = rows[first : first + BATCH]
            sent = self._sent(part) if not hasattr(part, "tocsr") else self._sent_sparse(part)
            self._total.addmm_(sent.T, sent, alpha=sign)

    def _sent(self, rows: Matrix) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(rows, np.float64)).to(self._device)

    def _sent_sparse(self, rows: Any) -> Any:
        """Return sparse rows as a dense matrix on the GPU; only their non-zeros are sent."""
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        places = self._torch.from_numpy(row * rows.shape[1] + rows.indices).to(self._device)
        values = self._torch.from_numpy(rows.data).to(self._device)
        dense = self._torch.zeros(
            rows.shape[0] * rows.shape[1], dtype=self._torch.float64, device=self._device
        )
        dense[places] = values
        return dense.view(rows.shape)

    def factor(self, shrinkage: float, *, keep: bool = True) -> FactorOnGpu:
        """Return the factor of the inverse of ``S + shrinkage * t * I``, t the mean diagonal of S."""
        with self._clear_errors():
            matrix = self._total.clone() if keep else self._total
            diagonal = matrix.diagonal()
            diagonal += shrinkage * mean_diagonal(float(diagonal.sum()), diagonal.numel())
            lower, failed = self._torch.linalg.cholesky_ex(matrix)
        if int(failed):
            raise RangeError(NOT_DEFINITE)
        return FactorOnGpu(lower, self)


class FactorOnGpu(NamedTuple):
    """The Cholesky factor L of a regularised covariance on a GPU; M is the inverse of Lᵀ."""

    lower: Any
    scatter: ScatterOnGpu

    def mapped(self, rows: Matrix) -> Matrix:
        """Return the products of dense rows and M."""
        with self.scatter._clear_errors():
            sent = self.scatter._sent(rows)
            found: Matrix = self._solved(sent.T).T.contiguous().cpu().numpy()
        return found

    def tiles(self) -> Row:
        """Return M in tiles; the factor cannot be used afterwards."""
        torch, size = self.scatter._torch, self.lower.shape[0]
        with self.scatter._clear_errors():
            unit = torch.eye(size, dtype=self.lower.dtype, device=self.lower.device)
            lower = torch.nn.functional.pad(self._solved(unit).float(), (0, 0, 0, -size % SIDE))
            limits = range(SIDE, lower.shape[0] + 1, SIDE)
            inside = torch.nn.functional.pad(lower, (0, -size % SIDE))
            parts = [inside[last - SIDE : last, :last].T.reshape(-1) for last in limits]
            tiles: Row = torch.cat(parts).cpu().numpy()
        return tiles

    def _solved(self, right: Any) -> Any:
        return self.scatter._torch.linalg.solve_triangular(self.lower, right, upper=False)
