"""Find: the nearest trees among many, by dot products of their vectors."""

from treedot.search.neighbours import nearest

__all__ = ["nearest"]
