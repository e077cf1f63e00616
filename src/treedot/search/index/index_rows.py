"""The settings of the rows of an index, from what the user gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treedot.errors import ParameterError
from treedot.vectors.metric.metric import Metric
from treedot.vectors.sparse.fitted_rows import FittedRows
from treedot.vectors.spec import MAX_FEATURES, SparseSpec

if TYPE_CHECKING:
    from treedot.vectors.fragment_vectorizer import FragmentVectorizer


def rows_of(vectorizer: FragmentVectorizer | None) -> FittedRows:
    """Return the settings of the rows of an index."""
    if vectorizer is None:
        return FittedRows(SparseSpec(n_features=MAX_FEATURES), parameters={"damping": None, "n_jobs": None})
    from treedot.vectors.fragment_vectorizer import FragmentVectorizer

    if not isinstance(vectorizer, FragmentVectorizer):
        raise ParameterError(
            f"an index needs sparse rows: use a FragmentVectorizer, not {type(vectorizer).__name__}"
        )
    return vectorizer._rows()


def rows_of_metric(metric: Metric, vectorizer: FragmentVectorizer | None) -> FittedRows:
    """Return the settings of the rows of an index with a metric."""
    if not isinstance(metric, Metric):
        raise ParameterError(
            f"metric must be a Metric, not {type(metric).__name__}: "
            "load it, or use the metric_ of a TreeMetric"
        )
    if vectorizer is not None:
        raise ParameterError("a metric has its own vectorizer: leave out vectorizer")
    if metric.rows is None or metric.rows.spec.rest is not None:
        raise ParameterError("an index needs a metric that was learned from trees, without a rest")
    return metric.rows
