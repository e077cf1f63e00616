"""Forests in, vectors out: dense ones by the paper's recursion, and sparse rows of fragments."""

from treedot.encode.dense.encoder import DenseEncoder
from treedot.encode.sparse.encoder import SparseEncoder
from treedot.encode.spec import DenseSpec, SparseSpec

__all__ = ["DenseEncoder", "DenseSpec", "SparseEncoder", "SparseSpec"]
