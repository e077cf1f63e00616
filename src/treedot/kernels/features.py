"""Kernels as dot products of sparse feature vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.signedinteger[Any]]


def feature_gram(
    tree: IntArray, feature: IntArray, weight: FloatArray, n: int, n_rows: int, symmetric: bool
) -> FloatArray:
    """Return the products of the vectors of ``n`` trees, given as (tree, feature, weight) triples.

    Rows are the first ``n_rows`` trees; columns are the same, or the rest.
    """
    from scipy.sparse import csr_matrix

    width = int(feature.max()) + 1 if feature.size else 1
    vectors = csr_matrix((weight, (tree, feature)), shape=(n, width))
    return gram_of(vectors, n_rows, symmetric)


def gram_of(vectors: Any, n_rows: int, symmetric: bool) -> FloatArray:
    """Return the products of the first ``n_rows`` sparse rows with each other, or with the rest."""
    columns = vectors[:n_rows] if symmetric else vectors[n_rows:]
    result: FloatArray = (vectors[:n_rows] @ columns.T).toarray()
    return result
