"""The cost of a fragment, which bounded kernels and bounded rows limit."""

from __future__ import annotations

from treedot.trees import Tree


def fragment_cost(fragment: Tree) -> int:
    """Return the sum, over expanded nodes below the root, of the number of siblings including the node.

    Expanding one of m children costs m.

    >>> fragment_cost(Tree.parse("(NP (DT a) NN)"))
    2
    """
    return sum(
        len(node.children) for node in fragment.postorder() for child in node.children if not child.is_leaf
    )
