"""Find: the nearest trees among many, by dot products of their vectors."""

from treedot.search.index import TreeIndex
from treedot.search.neighbours import nearest

__all__ = ["TreeIndex", "nearest"]
