"""The composition of vectors: labels, shuffles, the algebras and their measured properties."""

from treedot.algebra.algebras import (
    ALGEBRAS,
    Algebra,
    MixedProduct,
    ShuffledConvolution,
    ShuffledProduct,
    algebra_class,
)

__all__ = ["ALGEBRAS", "Algebra", "MixedProduct", "ShuffledConvolution", "ShuffledProduct", "algebra_class"]
