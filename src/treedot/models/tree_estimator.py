"""The base class of the estimators that learn from trees and from tables with trees."""

from __future__ import annotations

import os
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from treedot._runtime.array_types import FloatArray, IntArray
from treedot.models.inputs.inputs import columns_of, linear_scores
from treedot.models.inputs.model_input import ModelInput
from treedot.models.inputs.table import Columns, Table, read_table
from treedot.models.inputs.vectorizer_input import VectorizerInput, from_stored
from treedot.models.linear_model import LinearModel
from treedot.models.training.candidates import Settings, named_columns
from treedot.models.training.folds import by_kind
from treedot.vectors.transformers import TreeInput


class TreeEstimator(TreeInput, BaseEstimator):
    """A linear model of trees; a subclass has ``to_model`` and ``_of_model``, and sets these in ``fit``."""

    tree_columns: Any
    number_columns: Any
    text_columns: Any
    pair_columns: Any
    n_jobs: int | None
    inputs_: list[ModelInput]
    columns_: IntArray
    weights_: Any
    intercept_: FloatArray

    def to_model(self, facts: dict[str, Any] | None = None) -> LinearModel:
        """Return everything that a prediction needs, without scikit-learn.

        Parameters
        ----------
        facts : dict of str to object, default=None
            JSON values to store with the model.

        Returns
        -------
        LinearModel
            The trained model.
        """
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a folder atomically; ``load`` and ``LinearModel.load`` read it.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool, default=False
            Replace an existing model.
        """
        self.to_model().save(path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a folder that ``save`` wrote.

        Parameters
        ----------
        path : path
            The folder.

        Returns
        -------
        estimator
            The fitted estimator, of this class.

        Raises
        ------
        SourceError
            If the folder is damaged, or holds the model of another kind of estimator.
        """
        return cls._of_model(LinearModel.load(path), path)

    @classmethod
    def _of_model(cls, model: LinearModel, path: str | os.PathLike[str]) -> Self:
        raise NotImplementedError

    @classmethod
    def _with_weights(cls, model: LinearModel, **settings: Any) -> Self:
        """Return an estimator with the inputs and weights of a model, and with more settings."""
        inputs = [from_stored(each) for each in model.inputs]
        reads = model.reads
        trees = [name for name in reads.trees if name not in reads.pair]
        kernels, _ = by_kind(inputs)
        vectorizers = [each.vectorizer for each in inputs if isinstance(each, VectorizerInput)]
        made = cls(
            tree_columns=trees or None if reads.are_named else None,
            number_columns=list(reads.numbers) or None,
            text_columns=list(reads.texts) or None,
            pair_columns=list(reads.pair) or None,
            vectorizer=None if kernels else vectorizers[0],
            kernel=kernels[0].kernel if kernels else None,
            **settings,
        )
        made.inputs_, made.columns_ = inputs, model.columns
        made.weights_, made.intercept_ = model.weights, model.bias
        return made

    def _set_settings(self, settings: Settings) -> None:
        self.decay_, self.idf_, self.damping_, self.words_, self.labels_ = settings

    @property
    def _settings(self) -> Settings:
        return Settings(self.decay_, self.idf_, self.damping_, self.words_, self.labels_)

    def _scores(self, X: Any) -> FloatArray:
        """Return ``w · x + b`` of every example."""
        check_is_fitted(self)
        table = self._table(X, columns_of(self.inputs_))
        return linear_scores(self.inputs_, table, self.columns_, self.weights_, self.intercept_, self.n_jobs)

    def _columns(self) -> Columns:
        return named_columns(self)

    def _table(self, X: Any, columns: Columns) -> Table:
        """Read the examples; without named columns, a data frame goes to the vectorizer as it is."""
        is_frame = hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2 and X.shape[1] > 1
        return Table({None: X}) if is_frame and not columns.are_named else read_table(X, columns)
