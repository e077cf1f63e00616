"""Folds of a cross-validation over trees, encoded once for all that is trained on them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import get_tags

from treedot.array_types import Array, IntArray
from treedot.errors import ParameterError
from treedot.model.linear_model import with_columns
from treedot.parameters import checked_integer
from treedot.trees import Forest


class Fold(NamedTuple):
    """One part of the trees that is left out, and the others to train on: their rows, and which they are."""

    rows: csr_matrix
    left_out: csr_matrix
    train: IntArray
    test: IntArray


def split_folds(y: Array, n_folds: Any, groups: Any = None) -> list[tuple[IntArray, IntArray]]:
    """Return which trees to train on and which are left out, in every fold, with all classes alike in each.

    Trees of a group are never on both sides.

    Examples
    --------
    >>> [test.tolist() for _, test in split_folds(np.array(["a", "a", "b", "b"]), 2)]
    [[0, 2], [1, 3]]
    """
    n_folds = checked_integer("cv", n_folds, at_least=2)
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < n_folds:
        raise ParameterError(
            f"cv={n_folds} folds need {n_folds} trees of some class, and there are at most {largest}: lower "
            "cv, or give one decay and one C, for which there is no cross-validation"
        )
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != y.shape:
            raise ParameterError(f"groups must hold one for each of the {y.size} trees, not {groups.shape}")
        if np.unique(groups).size < n_folds:
            raise ParameterError(f"there are fewer groups than the cv={n_folds} folds: lower cv")
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():  # some folds lack a class that is rarer than they are: no harm
        warnings.simplefilter("ignore", UserWarning)
        return list(kind(n_folds).split(np.zeros(y.size), y, groups))


def encoded_folds(
    vectorizer: Any, trees: Forest, y: Array, folds: list[tuple[IntArray, IntArray]]
) -> Iterator[Fold]:
    """Yield every fold with its rows, all columns of which occur.

    All trees are encoded at once, but for vectorizers that learn from them: what is left out must stay
    unknown to these.
    """
    if not get_tags(vectorizer).requires_fit:
        _, rows = narrowed(to_csr(vectorizer.transform(trees)))
        for train, test in folds:
            yield Fold(rows[train], rows[test], train, test)
        return
    for train, test in folds:
        made = clone(vectorizer)
        columns, rows = narrowed(to_csr(made.fit_transform(trees[train], y[train])))
        yield Fold(rows, with_columns(to_csr(made.transform(trees[test])), columns), train, test)


def narrowed(rows: csr_matrix) -> tuple[IntArray, csr_matrix]:
    """Return which columns of rows are in use, ascending, and the rows with these alone."""
    columns, indices = np.unique(rows.indices, return_inverse=True)
    narrow = csr_matrix((rows.data, indices.ravel(), rows.indptr), shape=(rows.shape[0], columns.size))
    return columns.astype(np.int64), narrow


def to_csr(rows: Any) -> csr_matrix:
    """Return rows as a CSR matrix, dense ones too."""
    return rows if hasattr(rows, "indptr") else csr_matrix(rows)
