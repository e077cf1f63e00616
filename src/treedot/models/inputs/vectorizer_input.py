"""A tree column as an input of a model, through any scikit-learn transformer of trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import get_tags

from treedot._runtime.array_types import FloatArray
from treedot.errors import ParameterError
from treedot.models.inputs.model_input import ModelInput, StoredInput
from treedot.models.inputs.table import Table
from treedot.models.inputs.tree_inputs import DenseInput, FragmentInput
from treedot.vectors.distributed_tree_vectorizer import DistributedTreeVectorizer
from treedot.vectors.fragment_vectorizer import FragmentVectorizer


@dataclass(frozen=True, eq=False)
class VectorizerInput(ModelInput):
    """The rows of a vectorizer; ``width`` and ``is_dense`` are set once it is fitted."""

    column: str | None
    vectorizer: Any
    width: int = 0
    is_dense: bool = False

    @property
    def learns(self) -> bool:
        """Whether the vectorizer has something to fit."""
        return bool(get_tags(self.vectorizer).requires_fit)

    def fitted(
        self,
        table: Table,
        y: Any = None,
        n_jobs: int | None = None,
        sample_weight: FloatArray | None = None,
    ) -> tuple[Self, Any]:
        """Return the input with a fitted clone of the vectorizer, and the rows of the examples.

        As in a scikit-learn pipeline, the vectorizer ignores sample weights.
        """
        made = clone(self.vectorizer)
        rows = _matrix(made.fit_transform(table[self.column], y))
        if not np.isfinite(rows.data if issparse(rows) else rows).all():
            raise ParameterError(f"{type(made).__name__} returned NaN or infinite values")
        return type(self)(self.column, made, rows.shape[1], not issparse(rows)), rows

    def transform(self, table: Table, n_jobs: int | None = None) -> Any:
        """Return one row for each example; the vectorizer has its own ``n_jobs``."""
        return _matrix(self.vectorizer.transform(table[self.column]))


def _matrix(rows: Any) -> Any:
    """Return rows as a CSR matrix if they are sparse, otherwise as an array."""
    return rows.tocsr() if issparse(rows) else np.asarray(rows)


def to_stored(each: ModelInput) -> StoredInput:
    """Return an equivalent input that can be stored; raise ParameterError if there is none."""
    if isinstance(each, StoredInput):
        return each
    vectorizer = each.vectorizer if isinstance(each, VectorizerInput) else each
    if isinstance(vectorizer, FragmentVectorizer):
        return FragmentInput(each.reads.trees[0], vectorizer._rows()._replace(parameters=None))
    if isinstance(vectorizer, DistributedTreeVectorizer):
        return DenseInput(each.reads.trees[0], vectorizer.spec, vectorizer._words)
    raise ParameterError(
        f"cannot store a model with a {type(vectorizer).__name__}: use a FragmentVectorizer, a "
        "DistributedTreeVectorizer or an exact kernel"
    )


def from_stored(each: StoredInput) -> ModelInput:
    """Invert ``to_stored``: return an input with a vectorizer that can be fitted again."""
    if isinstance(each, FragmentInput):
        return VectorizerInput(each.column, FragmentVectorizer._of_rows(each.rows), each.width)
    if isinstance(each, DenseInput):
        vectorizer = DistributedTreeVectorizer._of_spec(each.spec, each.similarity)
        return VectorizerInput(each.column, vectorizer, each.width, True)
    return each
