"""The contributions of one tree to a score: values of its nodes, and contributions of its fragments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot.trees import Tree

SHAPLEY = "shapley"
REMOVAL = "removal"


class FragmentShare(NamedTuple):
    """The contribution of one fragment to a score.

    Attributes
    ----------
    fragment : Tree
        The fragment.
    value : float
        The contribution: its weight times its value in the tree's row.
    nodes : list of list of int
        The inner nodes of every occurrence, in post-order.
    column : str or None
        The tree column of the fragment, if the model has named columns.
    """

    fragment: Tree
    value: float
    nodes: list[list[int]]
    column: str | None = None

    def __repr__(self) -> str:
        """Return the fields, with only the number of occurrences for the nodes."""
        shown = f"fragment={self.fragment!r}, value={self.value!r}, nodes=<{len(self.nodes)} occurrences>"
        return f"FragmentShare({shown}, column={self.column!r})"


class TreeValues(NamedTuple):
    """The contributions of one tree's nodes to a score.

    Attributes
    ----------
    column : str or None
        The name of the tree's column, if it has one.
    tree : Tree
        The tree.
    node_values : array of shape (n_nodes,)
        The value of every node, in post-order; 0 for leaves.
    values_are : {"shapley", "removal"}
        What the values are. ``"shapley"``: Shapley values, which sum to ``contribution``. ``"removal"``: by
        how much the score falls if the children of this node are removed; these values overlap, so their sum
        has no meaning.
    contribution : float
        What the nodes of the tree add to the score together.
    """

    column: str | None
    tree: Tree
    node_values: np.ndarray
    values_are: str
    contribution: float
