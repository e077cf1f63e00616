"""Take linear models of trees apart into inputs, weights and biases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from treedot._pages.printable import first_few
from treedot.errors import ParameterError
from treedot.models.calibration import Calibration
from treedot.models.inputs.inputs import Inputs, columns_of, spans
from treedot.models.inputs.model_input import ModelInput
from treedot.models.inputs.table import Columns, Table, read_table
from treedot.models.inputs.term_input import TermInput
from treedot.models.inputs.tree_inputs import KernelInput
from treedot.models.inputs.vectorizer_input import VectorizerInput, from_stored
from treedot.models.linear_model import LinearModel
from treedot.models.training.folds import to_csr
from treedot.models.tree_estimator import TreeEstimator
from treedot.readers import read_tree
from treedot.vectors.distributed_tree_vectorizer import DistributedTreeVectorizer
from treedot.vectors.fragment_vectorizer import FragmentVectorizer

WANTED = (
    "a TreeClassifier or TreeRegressor, or a Pipeline of a FragmentVectorizer and a linear model, such as "
    "LinearSVC"
)
EXPLAINED = (FragmentVectorizer, DistributedTreeVectorizer)


class Part(NamedTuple):
    """An input of a model, and a function from columns to their weights, with one row for each score."""

    input: ModelInput
    weights_at: Callable[[np.ndarray], np.ndarray]

    @property
    def column(self) -> str | None:
        """The name of the tree column, if the input is one of trees."""
        return self.input.reads.trees[0]

    @property
    def vectorizer(self) -> FragmentVectorizer | None:
        """The vectorizer of rows of fragments; None for all other inputs."""
        made_by = getattr(self.input, "vectorizer", None)
        return made_by if isinstance(made_by, FragmentVectorizer) else None

    @property
    def is_terms(self) -> bool:
        """Whether the input is the words or the labels of trees."""
        return isinstance(self.input, TermInput)

    def scores(self, table: Table) -> np.ndarray:
        """Return the contribution of this input to the scores of every example."""
        rows = to_csr(self.input.transform(table))
        columns, number = np.unique(rows.indices, return_inverse=True)  # all weights may take gigabytes
        narrow = csr_matrix((rows.data.astype(float), number, rows.indptr), (len(table), columns.size))
        return np.asarray(narrow @ self.weights_at(columns).T)


class LinearFunction(NamedTuple):
    """A linear function of rows: one score for each class, or one number.

    Attributes
    ----------
    parts : list of Part
        The inputs, with their weights.
    bias : array
        One number for each score.
    classes : list, optional
        The classes in the order of the scores; two classes have one score, which is positive for the second.
        None for a model that predicts numbers.
    calibration : Calibration, optional
        What turns scores into probabilities.
    """

    parts: list[Part]
    bias: np.ndarray
    classes: list[Any] | None
    calibration: Calibration | None = None

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the linear function of a fitted model; raise ParameterError for any other object."""
        if isinstance(model, TreeEstimator):
            check_is_fitted(model)
            classes = getattr(model, "classes_", None)
            linear = cls._of_inputs(model.inputs_, model.columns_, model.weights_, model.intercept_, classes)
            return linear._replace(calibration=getattr(model, "calibration_", None))
        if isinstance(model, LinearModel):
            inputs = [from_stored(each) for each in model.inputs]
            linear = cls._of_inputs(inputs, model.columns, model.weights, model.bias, model.classes)
            return linear._replace(calibration=model.calibration)
        if not isinstance(model, Pipeline):
            raise ParameterError(f"cannot explain {type(model).__name__}: give {WANTED}")
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
        if len(steps) != 2:
            named = ", ".join(type(step).__name__ for step in steps)
            raise ParameterError(f"cannot explain a Pipeline of {named}: give {WANTED}")
        return cls._of_steps(VectorizerInput(None, steps[0]), steps[1])

    @classmethod
    def _of_inputs(
        cls,
        inputs: Inputs,
        columns: np.ndarray,
        weights: np.ndarray,
        bias: np.ndarray,
        classes: np.ndarray | None,
    ) -> Self:
        parts = [
            Part(_checked(each), partial(_listed, which, own.T))
            for each, which, own in spans(inputs, columns, weights)
        ]
        return cls(parts, bias, None if classes is None else classes.tolist())

    @classmethod
    def _of_steps(cls, rows: VectorizerInput, linear: Any) -> Self:
        name = type(linear).__name__
        check_is_fitted(linear)
        if not (hasattr(linear, "coef_") and hasattr(linear, "intercept_")):
            raise ParameterError(f"{name} has no weights (coef_, intercept_): use {WANTED}")
        coef = linear.coef_ if issparse(linear.coef_) else np.atleast_2d(linear.coef_)
        classes = np.asarray(linear.classes_).tolist() if hasattr(linear, "classes_") else None
        wanted = 1 if classes is None or len(classes) == 2 else len(classes)
        one_vs_one = wanted > 1 and isinstance(linear, (SVC, NuSVC))
        if coef.shape[0] != wanted or one_vs_one:
            raise ParameterError(f"{name} does not have one row of weights per class: use {WANTED}")
        bias = np.broadcast_to(np.asarray(linear.intercept_, float), coef.shape[:1])
        part = Part(_checked(rows), partial(_sparse if issparse(coef) else _dense, coef))
        return cls([part], bias, classes)

    @property
    def reads(self) -> Columns:
        """The names of the columns that make up an example."""
        return columns_of([part.input for part in self.parts])

    @property
    def trees(self) -> list[Part]:
        """The parts of rows or kernels of trees, one for each tree column."""
        return [part for part in self.parts if part.input.reads.trees and not part.is_terms]

    @property
    def terms(self) -> list[Part]:
        """The parts of words and labels of trees."""
        return [part for part in self.parts if part.is_terms]

    def read_one(self, example: Any) -> Table:
        """Read one example: a tree or, if columns have names, a mapping of values or a table of one row."""
        if not self.reads.are_named:
            return Table({None: read_tree(example)})
        if isinstance(example, Mapping):
            example = {name: [value] for name, value in example.items()}
        table = read_table(example, self.reads)
        if len(table) != 1:
            raise ParameterError(f"expected one example, found {len(table)}: give a table of one row")
        return table

    def scores(self, table: Table) -> np.ndarray:
        """Return the scores of every example; for two classes, only the score of the second."""
        return self.bias + sum(part.scores(table) for part in self.parts)

    def probability(self, scores: np.ndarray, number: int) -> float | None:
        """Return the probability of a class, given the scores of one example; None without calibration."""
        return None if self.calibration is None else float(self.calibration.probabilities(scores)[0, number])

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Return the number of the predicted class for each row of scores."""
        return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)

    def target(self, wanted: Any, scores: np.ndarray) -> tuple[int, int, float]:
        """Return the number, weight row and sign of a class; by default of the predicted one."""
        if self.classes is None:
            if wanted is not None:
                raise ParameterError("this model predicts numbers, not classes: omit the target")
            return 0, 0, 1.0
        if wanted is not None and wanted not in self.classes:
            raise ParameterError(f"there is no class {wanted!r}: choose one of {first_few(self.classes)}")
        number = int(self.best(scores)[0]) if wanted is None else self.classes.index(wanted)
        if self.bias.size == 1:
            return number, 0, 1.0 if number == 1 else -1.0
        return number, number, 1.0


def _checked(each: ModelInput) -> ModelInput:
    made_by = getattr(each, "vectorizer", None)
    if not each.reads.trees or isinstance(each, (KernelInput, TermInput)) or isinstance(made_by, EXPLAINED):
        return each
    raise ParameterError(
        f"cannot explain the rows of {type(made_by or each).__name__}: use a FragmentVectorizer, a "
        "DistributedTreeVectorizer, or TreeClassifier with a kernel"
    )


def _dense(coef: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return np.asarray(coef[:, columns], float)


def _sparse(coef: Any, columns: np.ndarray) -> np.ndarray:
    coef = coef.tocsr()
    if not coef.has_canonical_format:
        coef = coef.copy()
        coef.sum_duplicates()  # this also sorts the columns
    rows = [slice(*coef.indptr[k : k + 2]) for k in range(coef.shape[0])]
    return np.concatenate([_listed(coef.indices[row], coef.data[None, row], columns) for row in rows])


def _listed(known: np.ndarray, weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the weights of ``columns``, 0 for those not in ``known``, which is ascending."""
    rank = np.searchsorted(known, columns)
    there = rank < np.searchsorted(known, columns, side="right")
    found = np.zeros((weights.shape[0], columns.size))
    found[:, there] = weights[:, rank[there]]
    return found
