"""Columns of nodes that ``Forest.derived`` caches: parents, children, sizes, depths, equal subtrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treedot._runtime.array_types import IntArray
from treedot.trees import derived

if TYPE_CHECKING:
    from treedot.trees.forest import Forest


def parents(forest: Forest) -> IntArray:
    """Return the parent of every node; -1 for roots."""
    return derived.parents_in(forest.arity, forest.children[1])


def children(forest: Forest) -> tuple[IntArray, IntArray]:
    """Return ``(start, child)``: node ``i`` has the children ``child[start[i]:start[i + 1]]``."""
    return derived.links(forest.arity)[:2]


def subtree_sizes(forest: Forest) -> IntArray:
    """Return the number of nodes in every node's subtree."""
    return derived.subtree_sizes(forest.arity)


def depths(forest: Forest) -> IntArray:
    """Return the number of nodes on the path from the root to every node, both included."""
    return derived.depths(forest.arity)


def productions(forest: Forest) -> tuple[IntArray, IntArray]:
    """Return the number of every node's production, and the first node with each production."""
    return derived.intern_nodes(forest.label, *forest.children, False)


def subtrees(forest: Forest) -> tuple[IntArray, IntArray]:
    """Return the number of every node's subtree, and the first root of each distinct subtree."""
    return derived.intern_nodes(forest.label, *forest.children, True)
