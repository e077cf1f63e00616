"""What one does with vectors once they exist: multiply, store and judge them."""

from treedot.vectors.products import dot_products

__all__ = ["dot_products"]
