"""The cost of a fragment: what a budget bounds."""

from __future__ import annotations

from treedot.trees import Tree


def fragment_cost(fragment: Tree) -> int:
    """Return the sum over the productions below the root's of the number of siblings, itself included.

    >>> fragment_cost(Tree.parse("(S NP (VP V (NP D N)))"))
    4
    """
    return sum(
        len(node.children) for node in fragment.postorder() for child in node.children if not child.is_leaf
    )
