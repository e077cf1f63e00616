"""The parents, children, sizes, depths, productions and subtrees of nodes, which ``Forest.derived`` keeps.

The code that computes it is compiled, and loaded when it is first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treedot._runtime.array_types import IntArray

if TYPE_CHECKING:
    from treedot.trees.forest import Forest


def parents(forest: Forest) -> IntArray:
    """Return the parent of every node; -1 for roots."""
    from treedot.trees.derived import parents_in

    return parents_in(forest.arity, forest.children[1])


def children(forest: Forest) -> tuple[IntArray, IntArray]:
    """Return the children of every node, as ``child_lists`` does."""
    from treedot.trees.derived import child_lists

    return child_lists(forest.arity)


def subtree_sizes(forest: Forest) -> IntArray:
    """Return the number of nodes in every node's subtree."""
    from treedot.trees.derived import subtree_sizes

    return subtree_sizes(forest.arity)


def depths(forest: Forest) -> IntArray:
    """Return the number of nodes from the root to every node."""
    from treedot.trees.derived import depths

    return depths(forest.arity)


def productions(forest: Forest) -> tuple[IntArray, IntArray]:
    """Return the number of every node's production, and the first node of each."""
    from treedot.trees.derived import intern_nodes

    return intern_nodes(forest.label, *forest.children, False)


def subtrees(forest: Forest) -> tuple[IntArray, IntArray]:
    """Return the number of every node's subtree, and the first node of each."""
    from treedot.trees.derived import intern_nodes

    return intern_nodes(forest.label, *forest.children, True)
