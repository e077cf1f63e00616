"""``Tree`` for one tree, ``Forest`` for many."""

from treedot.trees.forest import Forest
from treedot.trees.tree import Tree

__all__ = ["Forest", "Tree"]
