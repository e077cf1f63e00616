"""The best by an exact kernel among the best by dot products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treedot.errors import ParameterError
from treedot.parameters import checked_integer
from treedot.search import top_k
from treedot.trees import Forest


def checked_candidates(kernel: Any, candidates: Any, k: int) -> int:
    """Return how many neighbours to find: ``candidates`` to be ranked again by a kernel, or just ``k``."""
    if kernel is None:
        return k
    if not hasattr(kernel, "gram") or isinstance(kernel, type):
        raise ParameterError(f"rerank must be a kernel such as SubsetTreeKernel(), not {kernel!r}")
    candidates = checked_integer("candidates", candidates, at_least=1)
    if candidates < k:
        raise ParameterError(f"candidates must be at least k={k}, not {candidates}")
    return candidates


def ranked_again(
    kernel: Any, queries: Forest, trees: Callable[[np.ndarray], Forest], rows: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best of some rows for every query, and their exact kernels; ``trees`` fetches rows."""
    exact = np.full(rows.shape, -np.inf)
    for i in range(len(queries)):
        there = np.flatnonzero(rows[i] >= 0)
        if there.size:
            exact[i, there] = kernel.gram(queries[[i]], trees(rows[i, there]))[0]
    return top_k.ranked(np.where(rows < 0, top_k.NO_ROW, rows), exact, k)
