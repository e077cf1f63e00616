"""What a tree is: ``Tree`` for one, ``Forest`` for many."""

from treedot.trees.forest import Forest
from treedot.trees.tree import Tree

__all__ = ["Forest", "Tree"]
