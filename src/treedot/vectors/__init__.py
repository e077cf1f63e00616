"""What one does with vectors once they exist: multiply, store and judge them."""

from treedot.vectors.files import load_vectors, save_vectors
from treedot.vectors.products import dot_products
from treedot.vectors.vectors import Vectors

__all__ = ["Vectors", "dot_products", "load_vectors", "save_vectors"]
