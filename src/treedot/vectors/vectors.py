"""A matrix of vectors with the settings that made it, so that only comparable vectors are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from treedot._runtime.array_types import Matrix
from treedot.errors import ParameterError, SpecMismatchError
from treedot.trees import Forest, Tree
from treedot.vectors.spec import DenseSpec, SparseSpec

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False)
class Vectors:
    """A matrix of vectors, one row per tree, and the settings that made it.

    ``dot_products`` and ``nearest`` take it instead of a matrix, and raise if the settings of two differ.

    Parameters
    ----------
    matrix : array or CSR matrix
        The vectors; a memory map if they were loaded from ``.npy``.
    spec : DenseSpec or SparseSpec
        The settings that made them.
    fingerprint : str, default=""
        The name of everything that determines a vector. By default the fingerprint of the spec; pass the
        vectorizer's if it has learned columns or weights.
    columns : dict of str to list, default={}
        Further values for each tree, from files that can hold them.

    Examples
    --------
    >>> from treedot import FragmentVectorizer, Vectors, dot_products
    >>> trees, vectorizer = ["(A b)", "(B (A b))"], FragmentVectorizer(normalize=False)
    >>> vectors = Vectors(vectorizer.transform(trees), vectorizer.spec)
    >>> vectors
    <Vectors: 2 × 1048576, sparse, float32, fingerprint ...>
    >>> print(dot_products(vectors).round(2))
    [[1.  1. ]
     [1.  2.4]]
    """

    matrix: Matrix | csr_matrix
    spec: DenseSpec | SparseSpec
    fingerprint: str = ""
    columns: dict[str, Sequence[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.fingerprint:
            object.__setattr__(self, "fingerprint", self.spec.fingerprint)
        kind, shape = "sparse" if hasattr(self.matrix, "tocsr") else "dense", self.matrix.shape
        check_matrix(self.spec, kind, shape, str(self.matrix.dtype))
        for name, values in self.columns.items():
            if len(values) != shape[0]:
                raise ParameterError(f"the column {name!r} has {len(values)} values for {shape[0]} vectors")

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __repr__(self) -> str:
        return (
            f"<Vectors: {len(self)} × {self.matrix.shape[1]}, {self.spec.kind}, {self.spec.dtype}, "
            f"fingerprint {self.fingerprint}>"
        )


def vector_width(spec: DenseSpec | SparseSpec) -> int | None:
    """Return the number of columns of the vectors of a spec, None if ``fit`` determines it."""
    if isinstance(spec, DenseSpec):
        return spec.n_components
    return None if spec.n_features is None else spec.n_features + spec.rest_width


def check_matrix(spec: DenseSpec | SparseSpec, kind: str, shape: tuple[int, ...], dtype: str) -> None:
    """Raise if a matrix, "dense" or "sparse", cannot hold the vectors of a spec."""
    width = vector_width(spec)
    if spec.kind != kind or len(shape) != 2 or dtype != spec.dtype:
        raise SpecMismatchError(
            f"the spec is for {spec.kind} vectors of {spec.dtype}, not for a {kind} matrix of {dtype} with "
            f"shape {shape}"
        )
    if width not in (None, shape[1]):
        raise SpecMismatchError(f"the spec is for vectors of {width} columns, not {shape[1]}")


def comparable(X: Any, Y: Any = None) -> tuple[Any, Any]:
    """Return the matrices of X and Y; raise if both are ``Vectors`` with different settings."""
    if isinstance(X, Vectors) and isinstance(Y, Vectors):
        if X.spec.kind != Y.spec.kind:
            raise SpecMismatchError(f"cannot compare {X.spec.kind} with {Y.spec.kind} vectors")
        X.spec.require_same(Y.spec)
        if X.fingerprint != Y.fingerprint:
            raise SpecMismatchError(
                "cannot compare these vectors: their vectorizers learned from different trees "
                f"(fingerprints {X.fingerprint} and {Y.fingerprint})"
            )
    return _matrix(X), _matrix(Y)


def _matrix(X: Any) -> Any:
    if isinstance(X, Vectors):
        return X.matrix
    if are_trees(X):
        raise ParameterError("these are trees: turn them into rows first with FragmentVectorizer().transform")
    return X


def are_trees(X: Any) -> bool:
    """Return whether X is trees or bracket texts instead of vectors."""
    if isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and X.dtype.kind in "OU"):
        X = X[0] if len(X) else None
    return isinstance(X, (Forest, Tree, str))
