"""Rank neighbours again by an exact kernel, after a search by dot products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treedot._runtime.threads import thread_map
from treedot.errors import ParameterError
from treedot.kernels.tree_kernel import checked_tree_kernel
from treedot.parameters import checked_integer
from treedot.search import top_k
from treedot.trees import Forest


def checked_candidates(kernel: Any, candidates: Any, k: int) -> int:
    """Return the number of neighbours to find: ``candidates`` if a kernel reranks them, otherwise ``k``."""
    if kernel is None:
        return k
    checked_tree_kernel("rerank", kernel)
    candidates = checked_integer("candidates", candidates, at_least=1)
    if candidates < k:
        raise ParameterError(f"candidates must be at least k={k}, not {candidates}")
    return candidates


def ranked_again(
    kernel: Any, queries: Forest, trees: Callable[[np.ndarray], Forest], rows: np.ndarray, k: int,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return the k best of each query's ``rows``, and their exact kernels; ``trees`` fetches trees by row."""

    def kernels(i: int) -> np.ndarray:
        values: np.ndarray = kernel.gram(queries[[i]], trees(rows[i]))[0]
        return values

    with thread_map(n_jobs, len(queries)) as run_all:
        exact = np.array(list(run_all(kernels, range(len(queries))))).reshape(rows.shape)
    return top_k.ranked(rows, exact, k)
