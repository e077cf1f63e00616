"""The nearest trees among many, by dot products of their vectors: in memory, or by an index on disk."""

from treedot.search.index import TreeIndex
from treedot.search.neighbours import nearest

__all__ = ["TreeIndex", "nearest"]
