"""An index of trees on disk."""

from treedot.search.index.tree_index import TreeIndex

__all__ = ["TreeIndex"]
