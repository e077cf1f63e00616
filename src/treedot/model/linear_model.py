"""A linear model of trees: all that a prediction needs, without scikit-learn."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from treedot.array_types import Array, FloatArray, IntArray
from treedot.encode import SparseEncoder, SparseSpec
from treedot.errors import ParameterError
from treedot.model.model_folder import read_model, write_model
from treedot.readers import read_trees
from treedot.vectors.inverted_index import locate


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Classes of trees by scores that are linear in their rows: ``w · x + b`` for each class.

    ``TreeClassifier`` trains one and saves it; this loads it again, and needs no scikit-learn.

    Parameters
    ----------
    spec : SparseSpec
        How trees become rows: hashed, and without a rest.
    classes : array of str or int
        The classes, ascending.
    columns : array of int
        The columns of rows that have weights, ascending.
    weights : array of float32, (columns, classes)
        The weights w; for two classes one column of them, that of the second.
    bias : array
        The biases b, one for each column of ``weights``.
    facts : dict
        What else is known, as JSON values: how it was trained, on what, and how good it was.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treedot import LinearModel, TreeClassifier
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "model")
    >>> TreeClassifier(decay=0.4, C=10).fit(trees, ["S", "S", "T", "T"]).save(folder)
    >>> print(*LinearModel.load(folder).predict(["(T (A e) (C e))"]))
    T
    """

    spec: SparseSpec
    classes: Array
    columns: IntArray
    weights: Array
    bias: FloatArray
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.spec.n_features is None or self.spec.rest is not None:
            raise ParameterError("a LinearModel has hashed columns and no rest: it wants other settings")

    @cached_property
    def _encoder(self) -> SparseEncoder:
        return SparseEncoder(self.spec)

    def decision_function(self, X: Any, n_jobs: int | None = None) -> FloatArray:
        """Return the score of every tree for each class, or for the second of two."""
        rows = self._encoder.encode(read_trees(X), n_jobs=n_jobs)
        return linear_scores(rows, self.columns, self.weights, self.bias)

    def predict(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the class of every tree, that with the largest score."""
        return self.best(self.decision_function(X, n_jobs))

    def best(self, scores: FloatArray) -> Array:
        """Return the class of every tree from its scores."""
        return best_class(self.classes, scores)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a folder, which appears whole or not at all."""
        arrays = {"columns": self.columns, "weights": self.weights, "bias": self.bias}
        write_model(path, self.spec, self.classes, arrays, self.facts, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a folder that ``save`` wrote; one that is damaged is refused."""
        return cls(*read_model(path))


def linear_scores(rows: Any, columns: IntArray, weights: Array, bias: FloatArray) -> FloatArray:
    """Return ``w · x + b`` of CSR rows, whose other columns weigh nothing; one score each for two classes."""
    scores: FloatArray = (with_columns(rows, columns) @ weights).astype(np.float64) + bias
    return scores[:, 0] if bias.size == 1 else scores


def with_columns(rows: Any, columns: IntArray) -> Any:
    """Return CSR rows with some of their columns alone, which are given in ascending order."""
    from scipy.sparse import csr_matrix

    known, number = locate(rows.indices, columns)
    indptr = np.searchsorted(known, rows.indptr)
    return csr_matrix((rows.data[known], number, indptr), shape=(rows.shape[0], columns.size))


def best_class(classes: Array, scores: FloatArray) -> Array:
    """Return the class of every example from its scores: a number where there are two classes, else a row."""
    chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    best: Array = classes[chosen]
    return best
