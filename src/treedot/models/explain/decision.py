"""Explain a linear model's decision about one tree: exact shares of nodes, fragments and other parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treedot.models.explain.linear import LinearFunction, Part
from treedot.models.explain.removal import Removal, smallest_flip
from treedot.models.explain.shares import node_shares, strongest
from treedot.models.explain.shown import Shown
from treedot.models.inputs.table import Table
from treedot.parameters import checked_flag, checked_integer
from treedot.trees import Forest, Tree
from treedot.vectors.fragment_vectorizer import FragmentVectorizer
from treedot.vectors.sparse.occurrences import Occurrences, fragment_at

BEYOND = "fragments beyond the budget"


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
        The Shapley value of every node, in post-order; 0 for leaves.
    """

    column: str | None
    tree: Tree
    node_values: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Shown):
    """The parts of one tree's score; the result of ``explain``.

    It prints as a tree with the value of every node; notebooks draw it.

    Attributes
    ----------
    trees : list of TreeValues
        The tree and the values of its nodes, for each tree column of the model.
    tree, node_values : Tree, array
        The first tree and its values.
    target : object
        The class whose score is explained; None for a model that predicts numbers.
    score : float
        The model's decision value for that class: the sum of all node values, ``others`` and ``bias``.
    others : dict
        Contributions that belong to no node, by name: columns of numbers and texts, and fragments beyond the
        budget.
    bias : float
        The model's intercept.
    supporting, opposing : list of FragmentShare
        The fragments that raise and lower the score most, strongest first.
    flip : Removal or None
        The smallest subtree whose removal changes the decision; None if there is none, if none was sought,
        or if the model predicts numbers.
    flip_sought : bool
        Whether ``flip`` was sought.
    """

    trees: list[TreeValues]
    target: Any
    score: float
    others: dict[str, float]
    bias: float
    supporting: list[FragmentShare]
    opposing: list[FragmentShare]
    flip: Removal | None
    flip_sought: bool

    format = "treedot explanation"

    @property
    def tree(self) -> Tree:
        """The first tree."""
        return self.trees[0].tree

    @property
    def node_values(self) -> np.ndarray:
        """The values of the first tree's nodes."""
        return self.trees[0].node_values

    @property
    def parts(self) -> list[tuple[str, float]]:
        """The parts that sum to the score, by name."""
        nodes = [("nodes" if one.column is None else f"nodes of {one.column}", one) for one in self.trees]
        sums = [(name, float(one.node_values.sum())) for name, one in nodes]
        return [*sums, *self.others.items(), ("bias", self.bias)]

    def __repr__(self) -> str:
        """Return a summary in one line; ``str`` returns the whole explanation."""
        sizes = ", ".join(str(one.tree.size) for one in self.trees)
        return f"<Explanation of the score {self.score!r} for {self.target!r}: trees of {sizes} nodes>"


def explain(
    model: Any, tree: Any, target: Any = None, *, n_fragments: int = 10, find_flip: bool = True
) -> Explanation:
    """Explain the decision of a linear model about one tree.

    The score is the bias plus w·x, and a fragment that occurs c times has the value √λ^(p - 1) g(c) / ‖x‖.
    The length ‖x‖, the damping g and inverse frequencies are held fixed, as constants of this tree. A
    fragment's contribution is divided equally among its c occurrences, and the share of an occurrence equally
    among its p inner nodes. These are the Shapley values of the nodes in the game in which an occurrence
    counts if all of its nodes are present. With the other parts and the bias, they sum exactly to the score.

    Parameters
    ----------
    model : TreeClassifier, TreeRegressor, LinearModel or Pipeline
        A fitted model whose rows come from a ``FragmentVectorizer``. A Pipeline consists of this vectorizer
        and a linear model with ``coef_`` and ``intercept_``.
    tree : bracket text, Tree, nested lists, or a Forest of one tree
        The tree to explain. For a model with named columns, a dictionary of values by column, or a table of
        one row.
    target : object, default=None
        The class whose score to explain; by default the predicted one. Of two classes, the score of the first
        is the negative decision value.
    n_fragments : int, default=10
        The number of fragments to list for the class, and against it.
    find_flip : bool, default=True
        Whether to look for the smallest subtree whose removal changes the decision. The root of the removed
        subtree stays as a leaf. Every pruned tree is encoded and normalised again.

    Returns
    -------
    Explanation
        The parts of the score.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treedot.models import DualLinearSVC
    >>> from treedot import FragmentVectorizer, explain
    >>> trees = ["(S (B b))", "(S (B c))", "(S (C b))", "(S (C c))"]
    >>> model = make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(trees, ["B", "B", "C", "C"])
    >>> found = explain(model, "(S (B c))")
    >>> found.target, found.supporting[0].fragment
    ('B', Tree.parse('(S B)'))
    >>> bool(abs(found.node_values.sum() + found.bias - found.score) < 1e-6)
    True
    """
    linear = LinearFunction.of(model)
    table = linear.read_one(tree)
    n_fragments = checked_integer("n_fragments", n_fragments, 0)
    find_flip = checked_flag("find_flip", find_flip)
    scores = linear.scores(table)
    number, row, sign = linear.target(target, scores)
    explained = [_explained(part, table[part.column], row, sign) for part in linear.trees]
    fragments = [(one.contribution, one.share) for one in explained]
    return Explanation(
        [one.values for one in explained],
        None if linear.classes is None else linear.classes[number],
        float(sign * scores[0, row]),
        _others(linear, table, row, sign),
        float(sign * linear.bias[row]),
        strongest(fragments, 1, n_fragments),
        strongest(fragments, -1, n_fragments),
        smallest_flip(linear, table) if find_flip else None,
        find_flip and linear.classes is not None,
    )


class _Explained(NamedTuple):
    """A tree with the values of its nodes and the contribution of each fragment."""

    values: TreeValues
    forest: Forest
    found: Occurrences
    contribution: np.ndarray

    def share(self, number: int) -> FragmentShare:
        """Return the share of the fragment with this number."""
        nodes = self.found.nodes_of(number)
        fragment = fragment_at(self.forest, nodes[0])
        return FragmentShare(fragment, float(self.contribution[number]), nodes, self.values.column)


def _explained(part: Part, forest: Forest, row: int, sign: float) -> _Explained:
    vectorizer = part.vectorizer
    assert vectorizer is not None
    found = vectorizer.occurrences(forest)
    known = found.column >= 0
    contribution = np.zeros(found.value.size)
    contribution[known] = sign * part.weights_at(found.column[known])[row] * found.value[known]
    values = TreeValues(part.column, forest[0], node_shares(found, contribution, forest.n_nodes))
    return _Explained(values, forest, found, contribution)


def _others(linear: LinearFunction, table: Table, row: int, sign: float) -> dict[str, float]:
    """Return the parts of the score other than bounded fragments and the bias."""
    found: dict[str, float] = {}
    for part in linear.parts:
        trees, numbers, texts = part.input.reads
        if trees and part.vectorizer is not None and part.vectorizer.rest is not None:
            name = BEYOND if part.column is None else f"{BEYOND} of {part.column}"
            found[name] = sign * _beyond(part, part.vectorizer, table[part.column], row)
        elif numbers:
            values = part.input.transform(table)[0] * part.weights_at(np.arange(len(numbers)))[row]
            found |= dict(zip(numbers, (sign * values).tolist(), strict=True))
        elif texts:
            found[texts[0]] = float(sign * part.scores(table)[0, row])
    return found


def _beyond(part: Part, vectorizer: FragmentVectorizer, forest: Forest, row: int) -> float:
    """Return the contribution of the fragments beyond the budget."""
    matrix, width = vectorizer.transform(forest), vectorizer.n_features
    beyond = matrix.indices >= (len(vectorizer.dictionary_) if width is None else width)
    weights = part.weights_at(matrix.indices[beyond])[row]
    return float(weights @ matrix.data[beyond].astype(float))
