"""The fragments of kernels that explanations list, without scikit-learn."""

from __future__ import annotations

import math
from typing import TypeGuard

import numpy as np

from treedot._runtime.array_types import FloatArray
from treedot.kernels import SubsetTreeKernel
from treedot.kernels.tree_kernel import TreeKernel
from treedot.trees import Forest
from treedot.vectors.sparse.encoder import SparseEncoder
from treedot.vectors.spec import SparseSpec

LEAVES = "equal leaves"
BUDGET = 4  # of the fragments that are listed
N_COLUMNS = 2**30  # in which fragments hardly ever collide


def is_counted(kernel: object) -> TypeGuard[SubsetTreeKernel]:
    """Whether a kernel is a subset tree kernel that weighs fragments by how often they occur."""
    return isinstance(kernel, SubsetTreeKernel) and kernel.weighting == "count"


def fragment_encoder(decay: float, budget: int | None) -> SparseEncoder:
    """Return the encoder of rows whose dot products are the kernel of bounded fragments."""
    spec = SparseSpec(
        n_features=N_COLUMNS, decay=decay, budget=budget, damping="linear", normalize=False, dtype="float64"
    )
    return SparseEncoder(spec)


def log_norms(kernel: TreeKernel, forest: Forest) -> FloatArray:
    """Return the logarithms of the lengths by which a kernel divides; 0 if it is not normalised.

    Trees of length 0 have the length infinity here, since their kernels are 0.
    """
    if not kernel.normalize:
        return np.zeros(len(forest))
    own = kernel.log_norms(forest)
    return np.where(own == -math.inf, math.inf, own)
