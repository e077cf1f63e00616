"""The folds of a cross-validation, encoded once for all settings that are tried on them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from treedot._runtime.array_types import Array, BoolArray, FloatArray, IntArray
from treedot.errors import ParameterError
from treedot.models.inputs.inputs import Inputs
from treedot.models.inputs.model_input import ModelInput, with_columns
from treedot.models.inputs.table import Table
from treedot.models.inputs.tree_inputs import KernelInput
from treedot.models.inputs.vectorizer_input import VectorizerInput
from treedot.parameters import checked_integer


class Examples(Protocol):
    """Examples with their classes or numbers, and their weights."""

    @property
    def table(self) -> Table:
        """The columns of the examples."""

    @property
    def y(self) -> Array:
        """The class or number of each example."""

    @property
    def sample_weight(self) -> FloatArray:
        """The weight of each example, above 0."""


class Task(NamedTuple):
    """A training task: examples with their classes, and one problem per class against the rest."""

    table: Table
    y: Array
    classes: Array
    sample_weight: FloatArray  # (examples,), all positive
    positive: BoolArray  # (examples, problems)

    @property
    def number(self) -> IntArray:
        """The number of the class of each example."""
        return np.searchsorted(self.classes, self.y)

    @property
    def counts(self) -> FloatArray:
        """The sum of the weights of the examples of each class."""
        sums = np.bincount(self.number, self.sample_weight, self.classes.size)
        return sums.astype(np.float64)


class Fold(NamedTuple):
    """The rows of the training and the test examples of a fold, and their positions in the task.

    For exact kernels, the rows are the kernels with the training examples.
    """

    rows: Any
    left_out: Any  # the rows of the test examples
    train: IntArray
    test: IntArray


def split_folds(y: Array, n_folds: Any, groups: Any = None) -> list[tuple[IntArray, IntArray]]:
    """Return the training and the test examples of every fold, stratified by class.

    There are at most as many folds as the smallest class has examples, which has to have two. A group is
    never on both sides of a fold.

    Examples
    --------
    >>> [test.tolist() for _, test in split_folds(np.array(["a", "a", "b", "b"]), 2)]
    [[0, 2], [1, 3]]
    """
    n_folds = min(checked_integer("cv", n_folds, at_least=2), smallest_class(y))
    if groups is not None:
        groups = checked_groups(groups, y.size)
        if np.unique(groups).size < n_folds:
            raise ParameterError(f"cv={n_folds} needs at least {n_folds} groups: lower cv")
    return stratified(y, n_folds, groups)


def stratified(y: Array, n_folds: int, groups: Array | None) -> list[tuple[IntArray, IntArray]]:
    """Return the training and the test examples of every fold, without checks."""
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():  # if groups leave no example of a class to some fold: harmless
        warnings.simplefilter("ignore", UserWarning)
        return list(kind(n_folds).split(np.zeros(y.size), y, groups))


def smallest_class(y: Array) -> int:
    """Return the number of examples of the smallest class."""
    return int(np.unique(y, return_counts=True)[1].min())


def checked_groups(groups: Any, n_examples: int) -> Array:
    """Return the groups as an array; raise ParameterError unless every example has one."""
    found = np.asarray(groups)
    if found.shape != (n_examples,):
        raise ParameterError(
            f"groups must hold one group for each of the {n_examples} trees, not {found.shape}"
        )
    if any(group is None or group != group for group in found.tolist()):
        raise ParameterError("some groups are missing: give every tree a group")
    return found


def folds_of(
    candidates: Sequence[Inputs],
    task: Examples,
    folds: list[tuple[IntArray, IntArray]],
    n_jobs: int | None = None,
) -> Iterator[tuple[int, Fold]]:
    """Yield every fold of every candidate, with the candidate's position, in any order.

    Candidates that share an input share its rows, too.
    """
    rows = SharedRows(task, folds, n_jobs)
    for _, together in groupby(range(len(candidates)), lambda k: id(candidates[k][0])):
        places = list(together)
        if by_kind(candidates[places[0]])[0]:
            for k in places:
                yield from ((k, fold) for fold in kernel_folds(candidates[k], task, folds, n_jobs))
            continue
        encoders = [each for each in candidates[places[0]] if isinstance(each, VectorizerInput)]
        for number in range(len(folds)):
            yield from ((k, rows.fold(candidates[k], number)) for k in places)
            rows.forget(encoders, number)
        rows.forget_all(encoders)


def row_folds(
    inputs: Inputs, task: Examples, folds: list[tuple[IntArray, IntArray]], n_jobs: int | None = None
) -> Iterator[Fold]:
    """Yield every fold with the concatenated rows of all inputs."""
    rows = SharedRows(task, folds, n_jobs)
    for number in range(len(folds)):
        yield rows.fold(inputs, number)
        rows.forget(inputs, number)


class SharedRows:
    """The rows of inputs on folds, each made once.

    Examples are encoded once for all folds. Only inputs that learn from examples are fitted in every fold, to
    its training examples.
    """

    def __init__(
        self, task: Examples, folds: list[tuple[IntArray, IntArray]], n_jobs: int | None = None
    ) -> None:
        self._task, self._folds, self._n_jobs = task, folds, n_jobs
        self._whole: dict[int, csr_matrix] = {}  # of inputs that do not learn
        self._pairs: dict[tuple[int, int], tuple[csr_matrix, csr_matrix]] = {}  # of an input on a fold

    def fold(self, inputs: Inputs, number: int) -> Fold:
        """Return a fold with the concatenated rows of some inputs, which have to outlive this object."""
        own, other = zip(*(self._pair(each, number) for each in inputs), strict=True)
        return Fold(side_by_side(own), side_by_side(other), *self._folds[number])

    def forget(self, inputs: Inputs, number: int) -> None:
        """Free the memory for the rows of some inputs on a fold."""
        for each in inputs:
            self._pairs.pop((id(each), number), None)

    def forget_all(self, inputs: Inputs) -> None:
        """Free the memory for the rows from which those of later folds would be cut."""
        for each in inputs:
            self._whole.pop(id(each), None)

    def _pair(self, each: ModelInput, number: int) -> tuple[csr_matrix, csr_matrix]:
        key = id(each), number
        if key not in self._pairs:
            made = _fitted_pair if each.learns else self._cut
            self._pairs[key] = made(each, self._task, *self._folds[number])
        return self._pairs[key]

    def _cut(
        self, each: ModelInput, task: Examples, train: IntArray, test: IntArray
    ) -> tuple[csr_matrix, csr_matrix]:
        """Return the rows of training and test examples, with the columns that occur in training."""
        if id(each) not in self._whole:
            self._whole[id(each)] = narrowed(each.transform(task.table, self._n_jobs))[1]
        rows = self._whole[id(each)]
        own, other = rows[train], rows[test]
        used = np.zeros(rows.shape[1], bool)
        used[own.indices] = True
        return own[:, used], other[:, used]


def kernel_folds(
    inputs: Inputs, task: Examples, folds: list[tuple[IntArray, IntArray]], n_jobs: int | None = None
) -> Iterator[Fold]:
    """Yield every fold with the sum of all inputs' kernels; Gram matrices are computed once."""
    kernels, others = by_kind(inputs)
    gram = reduce(np.add, (each.kernel.gram(task.table[each.column], n_jobs=n_jobs) for each in kernels))
    beside = row_folds(others, task, folds, n_jobs) if others else None
    for train, test in folds:
        own, other = gram[np.ix_(train, train)], gram[np.ix_(test, train)]
        if beside is not None:
            rows, left_out, *_ = next(beside)
            own, other = own + (rows @ rows.T).toarray(), other + (left_out @ rows.T).toarray()
        yield Fold(own, other, train, test)


def by_kind(inputs: Inputs) -> tuple[list[KernelInput], list[ModelInput]]:
    """Return the inputs that are exact kernels, and the others."""
    kernels = [each for each in inputs if isinstance(each, KernelInput)]
    return kernels, [each for each in inputs if not isinstance(each, KernelInput)]


def _fitted_pair(
    each: ModelInput, task: Examples, train: IntArray, test: IntArray
) -> tuple[csr_matrix, csr_matrix]:
    """Fit an input to the training examples, and return the rows of training and test examples."""
    own, weight = task.table.take(train), task.sample_weight[train]
    made, rows = each.fitted(own, task.y[train], sample_weight=weight)
    columns, narrow = narrowed(rows)
    return narrow, with_columns(to_csr(made.transform(task.table.take(test))), columns)


def narrowed(rows: Any) -> tuple[IntArray, csr_matrix]:
    """Return the columns in use (all, if rows are dense), and the rows restricted to these, as CSR."""
    if not hasattr(rows, "indptr"):
        return np.arange(rows.shape[1]), csr_matrix(rows)
    columns, indices = np.unique(rows.indices, return_inverse=True)
    narrow = csr_matrix((rows.data, indices.ravel(), rows.indptr), shape=(rows.shape[0], columns.size))
    return columns.astype(np.int64), narrow


def side_by_side(parts: Sequence[csr_matrix]) -> csr_matrix:
    """Concatenate the columns of several matrices."""
    return parts[0] if len(parts) == 1 else csr_matrix(hstack(parts, format="csr"))


def to_csr(rows: Any) -> csr_matrix:
    """Return sparse or dense rows as a CSR matrix."""
    return rows if hasattr(rows, "indptr") else csr_matrix(rows)
