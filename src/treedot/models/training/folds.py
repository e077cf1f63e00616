"""Folds of a cross-validation, encoded once for all that is trained on them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from treedot._runtime.array_types import Array, BoolArray, FloatArray, IntArray
from treedot.errors import ParameterError
from treedot.models.inputs.inputs import Inputs
from treedot.models.inputs.model_input import ModelInput, with_columns
from treedot.models.inputs.table import Table
from treedot.models.inputs.tree_inputs import KernelInput
from treedot.parameters import checked_integer


class Task(NamedTuple):
    """What is to be learned: examples and classes, and the problems of one class against the rest."""

    table: Table
    y: Array
    classes: Array
    sample_weight: FloatArray  # (examples,), all positive
    positive: BoolArray  # (examples, problems)
    costs: FloatArray  # (problems, 2), for C = 1


class Fold(NamedTuple):
    """Some examples that are left out, and the others to train on: their rows, and which they are.

    For exact kernels, these are the kernels with those to train on.
    """

    rows: Any
    left_out: Any
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
        groups = checked_groups(groups, y.size)
        if np.unique(groups).size < n_folds:
            raise ParameterError(f"there are fewer groups than the cv={n_folds} folds: lower cv")
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():  # some folds lack a class that is rarer than they are: no harm
        warnings.simplefilter("ignore", UserWarning)
        return list(kind(n_folds).split(np.zeros(y.size), y, groups))


def checked_groups(groups: Any, n_examples: int) -> Array:
    """Return the groups of examples as an array, one for each."""
    found = np.asarray(groups)
    if found.shape != (n_examples,):
        raise ParameterError(f"groups must hold one for each of the {n_examples} trees, not {found.shape}")
    if any(group is None or group != group for group in found.tolist()):
        raise ParameterError("some of groups are missing: give every tree one")
    return found


def row_folds(
    inputs: Inputs, task: Task, folds: list[tuple[IntArray, IntArray]], n_jobs: int | None = None
) -> Iterator[Fold]:
    """Yield every fold with the rows of all inputs side by side.

    Examples are encoded at once for all folds, but for inputs that learn from them: what is left out must
    stay unknown to these.
    """
    ready = [None if each.learns else narrowed(each.transform(task.table, n_jobs))[1] for each in inputs]
    for train, test in folds:
        pairs = [
            _fitted_pair(each, task, train, test) if rows is None else (rows[train], rows[test])
            for each, rows in zip(inputs, ready, strict=True)
        ]
        own, other = zip(*pairs, strict=True)
        yield Fold(side_by_side(own), side_by_side(other), train, test)


def kernel_folds(
    inputs: Inputs, task: Task, folds: list[tuple[IntArray, IntArray]], n_jobs: int | None = None
) -> Iterator[Fold]:
    """Yield every fold with the sums of kernels of all inputs; Gram matrices are computed once."""
    kernels, others = by_kind(inputs)
    gram = np.sum([each.kernel.gram(task.table[each.column], n_jobs=n_jobs) for each in kernels], axis=0)
    beside = row_folds(others, task, folds, n_jobs) if others else None
    for train, test in folds:
        own, other = gram[np.ix_(train, train)], gram[np.ix_(test, train)]
        if beside is not None:
            rows, left_out, *_ = next(beside)
            own, other = own + (rows @ rows.T).toarray(), other + (left_out @ rows.T).toarray()
        yield Fold(own, other, train, test)


def by_kind(inputs: Inputs) -> tuple[list[KernelInput], list[ModelInput]]:
    """Return which inputs are exact kernels, and the others."""
    kernels = [each for each in inputs if isinstance(each, KernelInput)]
    return kernels, [each for each in inputs if not isinstance(each, KernelInput)]


def _fitted_pair(
    each: ModelInput, task: Task, train: IntArray, test: IntArray
) -> tuple[csr_matrix, csr_matrix]:
    """Return the rows of some examples and of others, for an input that is fitted to the first."""
    own, weight = task.table.take(train), task.sample_weight[train]
    made, rows = each.fitted(own, task.y[train], sample_weight=weight)
    columns, narrow = narrowed(rows)
    return narrow, with_columns(to_csr(made.transform(task.table.take(test))), columns)


def narrowed(rows: Any) -> tuple[IntArray, csr_matrix]:
    """Return which columns of rows are in use, all of dense ones, and CSR rows with these alone."""
    if not hasattr(rows, "indptr"):
        return np.arange(rows.shape[1]), csr_matrix(rows)
    columns, indices = np.unique(rows.indices, return_inverse=True)
    narrow = csr_matrix((rows.data, indices.ravel(), rows.indptr), shape=(rows.shape[0], columns.size))
    return columns.astype(np.int64), narrow


def side_by_side(parts: Sequence[csr_matrix]) -> csr_matrix:
    """Return rows with the columns of all parts."""
    return parts[0] if len(parts) == 1 else csr_matrix(hstack(parts, format="csr"))


def to_csr(rows: Any) -> csr_matrix:
    """Return rows as a CSR matrix, dense ones too."""
    return rows if hasattr(rows, "indptr") else csr_matrix(rows)
