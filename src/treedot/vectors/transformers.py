"""Base classes of the scikit-learn transformers whose input is trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from treedot.errors import ParameterError, TreedotError
from treedot.kernels.kernel import Kernel
from treedot.readers import read_trees
from treedot.readers.sources import are_vectors


def check_source(X: Any) -> None:
    """Raise if X is vectors or a single bracket text; for a ``fit`` that does not read its trees."""
    if are_vectors(X) or (isinstance(X, str) and X.lstrip().startswith("(")):
        read_trees(X)


class TreeInput:
    """A mixin for estimators whose input is any source of trees, not a matrix."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


class TreeTransformer(TransformerMixin, TreeInput, BaseEstimator):
    """A transformer whose input is any source of trees."""

    def __dir__(self) -> list[str]:
        """Return the names of attributes, except those that raise, such as ``spec`` of wrong parameters."""
        return [name for name in object.__dir__(self) if self._is_there(name)]

    def _is_there(self, name: str) -> bool:
        try:
            getattr(self, name)
        except (AttributeError, TreedotError):
            return False
        return True


class SparseTreeTransformer(TreeTransformer):
    """A tree transformer whose output is sparse."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Accept only the default output: data frames cannot hold sparse rows.

        Parameters
        ----------
        transform : {"default"} or None, default=None
            The container of the output.

        Returns
        -------
        object
            The transformer itself.

        Raises
        ------
        ParameterError
            If ``transform`` names a data frame.
        """
        if transform not in (None, "default"):
            raise ParameterError(
                f"{type(self).__name__} makes sparse rows, which do not fit a {transform} frame: call "
                "set_output on a later step, such as TruncatedSVD"
            )
        return self


class StatelessTreeTransformer(ClassNamePrefixFeaturesOutMixin, TreeTransformer):
    """A tree transformer with nothing to fit: its ``spec`` determines everything."""

    spec: Any

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters; the trees have no effect.

        Parameters
        ----------
        X : source of trees, default=None
            Not used.
        y : object, default=None
            Not used.

        Returns
        -------
        object
            The transformer itself.
        """
        _ = self.spec
        check_source(X)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return True


class KernelMatrixTransformer(ClassNamePrefixFeaturesOutMixin, TreeTransformer):
    """A tree transformer that computes the kernels of trees with the training trees.

    Subclasses implement ``fit``, which sets ``kernel_`` and ``trees_``.
    """

    kernel_: Kernel
    trees_: Any
    n_jobs: int | None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the training trees.

        Parameters
        ----------
        X : source of trees, or table
            The training examples.
        y : object, default=None
            Not used.

        Returns
        -------
        object
            The transformer itself.
        """
        raise NotImplementedError

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Return the Gram matrix of the training trees.

        Parameters
        ----------
        X : source of trees, or table
            The training examples.
        y : object, default=None
            Not used.

        Returns
        -------
        array of shape (n_train, n_train)
            The kernels of all pairs of training examples.
        """
        self.fit(X, y)
        return self.kernel_.gram(self.trees_, n_jobs=self.n_jobs)

    def transform(self, X: Any) -> np.ndarray:
        """Return the kernels of every tree of X with every training tree.

        Parameters
        ----------
        X : source of trees, or table
            The examples.

        Returns
        -------
        array of shape (n_examples, n_train)
            The kernels.
        """
        check_is_fitted(self)
        return self.kernel_.gram(self.kernel_.read(X), self.trees_, n_jobs=self.n_jobs)

    @property
    def _n_features_out(self) -> int:
        examples = self.trees_
        return len(next(iter(examples.values())) if isinstance(examples, Mapping) else examples)
