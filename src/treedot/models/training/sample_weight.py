"""Check the weights of training examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from treedot._runtime.array_types import FloatArray
from treedot.errors import ParameterError

SMALLEST, LARGEST = 1e-100, 1e100  # non-zero weights: their products and quotients with C stay finite


def checked_sample_weight(sample_weight: Any, n_examples: int) -> FloatArray:
    """Return one weight for each example; None means 1 for all, and a number is the weight of all.

    Examples
    --------
    >>> checked_sample_weight([2, 0, 0.5], 3)
    array([2. , 0. , 0.5])
    >>> checked_sample_weight([1, -1], 2)
    Traceback (most recent call last):
    treedot.errors.ParameterError: sample_weight must not be negative: that of example 2 is -1.0
    """
    if sample_weight is None:
        return np.ones(n_examples)
    found = np.asarray(sample_weight)
    if found.dtype.kind not in "biufO" or any(isinstance(x, str | bytes) for x in found.ravel().tolist()):
        raise ParameterError(
            f"sample_weight must hold numbers, not {found.dtype}; give groups by name: groups=..."
        )
    try:
        weight = found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"sample_weight must hold numbers: {error}") from None
    if weight.ndim == 0:
        weight = np.full(n_examples, float(weight))
    if weight.shape != (n_examples,):
        raise ParameterError(
            f"sample_weight must hold one weight for each of the {n_examples} examples, not shape "
            f"{weight.shape}"
        )
    _check_values(weight)
    return weight


def _check_values(weight: FloatArray) -> None:
    in_range = (weight == 0) | ((weight >= SMALLEST) & (weight <= LARGEST))
    for wrong, what in (
        (~np.isfinite(weight), "must be finite"),
        (weight < 0, "must not be negative"),
        (~in_range, f"must be 0 or from {SMALLEST:g} to {LARGEST:g}"),
    ):
        if wrong.any():
            first = int(wrong.argmax())
            raise ParameterError(f"sample_weight {what}: that of example {first + 1} is {weight[first]}")
    if weight.size and not weight.any():
        raise ParameterError("sample_weight is zero for every example: there is nothing to learn from")
