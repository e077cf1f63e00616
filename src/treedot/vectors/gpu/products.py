"""Compute the dot products of arrays on a GPU, or the largest of them, and return arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from treedot._runtime.array_types import Array, Matrix
from treedot.errors import DeviceError, ParameterError
from treedot.vectors.gpu.device import clear_memory_errors, open_device
from treedot.vectors.gpu.neighbours import NOT_FINITE, nearest_tensors

BLOCK = 8192  # rows sent or multiplied at a time


def products_on_gpu(X: Matrix, Y: Matrix, device: str) -> Matrix:
    """Return the dot products of all rows of X with all rows of Y, in float32."""
    on = open_device(device)
    products = np.empty((len(X), len(Y)), np.float32)
    with clear_memory_errors(on, f"{len(Y):,} vectors"):
        y = _sent(Y, on)
        x = y if X is Y else None
        for start in range(0, len(X), BLOCK):
            here = slice(start, start + BLOCK)
            rows = _sent(X[here], on) if x is None else x[here]
            products[here] = (rows @ y.T).cpu().numpy()
    return products


def nearest_on_gpu(
    X: Matrix, Y: Matrix | None, k: int, device: str, elements: int | None = None
) -> tuple[Array, Array]:
    """Return, for every row of X, the ``k`` rows of Y, or other rows of X, with the largest dot products."""
    on = open_device(device)
    with clear_memory_errors(on, f"{len(X):,} vectors and the nearest of them"):
        x = _sent(X, on)
        rows, values = nearest_tensors(x, None if Y is None else _sent(Y, on), k, elements=elements)
        if not bool(values.isfinite().all()):
            raise ParameterError(NOT_FINITE)
    return rows.cpu().numpy(), values.cpu().numpy()


def _sent(rows: Any, device: Any) -> Any:
    """Copy rows to the GPU, in float32."""
    import torch

    needed, free = 4 * rows.shape[0] * rows.shape[1], torch.cuda.mem_get_info(device)[0]
    if needed > free:
        raise DeviceError(
            f"{rows.shape[0]:,} vectors take {needed / 2**30:.1f} GiB, but {device} has only "
            f"{free / 2**30:.1f} GiB free: compare fewer at a time, or use device='cpu'"
        )
    sent = torch.empty(rows.shape, dtype=torch.float32, device=device)
    for start in range(0, len(rows), BLOCK):
        block = np.ascontiguousarray(rows[start : start + BLOCK], np.float32)
        sent[start : start + BLOCK] = torch.from_numpy(block)
    return sent
