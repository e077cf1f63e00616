"""What estimators that take trees have in common."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin


class TreeTransformer(TransformerMixin, BaseEstimator):
    """A transformer whose input is any source of trees, not a matrix."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


class StatelessTreeTransformer(ClassNamePrefixFeaturesOutMixin, TreeTransformer):
    """One with nothing to fit: its ``spec`` determines everything."""

    spec: Any

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters; nothing is learned from X."""
        _ = self.spec
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return True
