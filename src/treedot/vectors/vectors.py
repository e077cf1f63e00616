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
    """A matrix of vectors, one row per tree, and how it was made.

    ``dot_products`` and ``nearest`` take it in the place of a matrix, and refuse two that differ.

    Parameters
    ----------
    matrix : array or CSR matrix
        The vectors; a memory map where they were loaded from ``.npy``.
    spec : DenseSpec or SparseSpec
        The settings that they were made with.
    fingerprint : str, default=""
        The name of everything that determines a vector. It is the spec's own, unless the vectorizer has
        learned columns or weights from trees.
    columns : dict of str to list, default={}
        What else is known of the trees, where the file has room for it.

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
    """Return how many columns the vectors of a spec have, None where ``fit`` decides."""
    if isinstance(spec, DenseSpec):
        return spec.n_components
    return None if spec.n_features is None else spec.n_features + spec.rest_width


def check_matrix(spec: DenseSpec | SparseSpec, kind: str, shape: tuple[int, ...], dtype: str) -> None:
    """Raise where a matrix, "dense" or "sparse", cannot hold the vectors of a spec."""
    width = vector_width(spec)
    if spec.kind != kind or len(shape) != 2 or dtype != spec.dtype:
        raise SpecMismatchError(
            f"a {kind} matrix of {dtype} with shape {shape} does not hold {spec.kind} vectors of "
            f"{spec.dtype}, as its spec says"
        )
    if width not in (None, shape[1]):
        raise SpecMismatchError(f"vectors of {shape[1]} columns do not have {width}, as their spec says")


def comparable(X: Any, Y: Any = None) -> tuple[Any, Any]:
    """Return the matrices of vectors that are to be compared; raise where they do not belong together.

    Of a plain matrix nothing is known: the check is the caller's.
    """
    if isinstance(X, Vectors) and isinstance(Y, Vectors):
        if X.spec.kind != Y.spec.kind:
            raise SpecMismatchError(
                f"these vectors do not belong together: {X.spec.kind} and {Y.spec.kind} ones"
            )
        X.spec.require_same(Y.spec)
        if X.fingerprint != Y.fingerprint:
            raise SpecMismatchError(
                "these vectors do not belong together: their vectorizers learned from different trees "
                f"(fingerprints {X.fingerprint} and {Y.fingerprint})"
            )
    return _matrix(X), _matrix(Y)


def _matrix(X: Any) -> Any:
    if isinstance(X, Vectors):
        return X.matrix
    if are_trees(X):
        raise ParameterError("these are trees: turn them into rows first, by FragmentVectorizer().transform")
    return X


def are_trees(X: Any) -> bool:
    """Whether someone gives trees, or bracket texts, where vectors belong."""
    if isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and X.dtype.kind in "OU"):
        X = X[0] if len(X) else None
    return isinstance(X, (Forest, Tree, str))
