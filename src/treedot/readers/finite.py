"""Raise for an object that contains itself, or that shared parts make larger than a Forest can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treedot.errors import SourceError
from treedot.trees import Tree
from treedot.trees.forest import MAX_NODES

CHECK_AFTER = 1 << 16  # nodes of a tree before it is checked for a cycle


def check_finite(
    thing: Any, children_of: Callable[[Any], list[Any]], place: str = "", limit: int = MAX_NODES
) -> None:
    """Raise if a tree contains itself, or has more nodes than ``limit``.

    Every object is visited once, however often it occurs.
    """
    place = place and f"{place}: "
    kept = [thing]  # keeps objects alive, so that addresses stay unique
    nodes = {id(thing): 0}  # nodes in the subtree of each finished object; 0 while it is open
    children = children_of(thing)
    open_nodes = [(thing, children, iter(children))]
    while open_nodes:
        node, children, todo = open_nodes[-1]
        for child in todo:
            if isinstance(child, (Tree, str)):
                continue
            known = nodes.get(id(child))
            if known == 0:
                raise SourceError(f"{place}a {type(child).__name__} contains itself, so this is not a tree")
            if known is None:
                kept.append(child)
                nodes[id(child)] = 0
                below = children_of(child)
                open_nodes.append((child, below, iter(below)))
                break
        else:
            open_nodes.pop()
            nodes[id(node)] = 1 + sum(nodes.get(id(child), 1) for child in children)
    if nodes[id(thing)] > limit:
        raise SourceError(f"{place}a tree of {nodes[id(thing)]} nodes; the limit is {limit}")
