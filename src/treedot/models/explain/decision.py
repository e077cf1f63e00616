"""Why a linear model decides as it does about one tree: exact shares of nodes, fragments and other parts."""

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
    """What one fragment contributes to a score.

    Attributes
    ----------
    fragment : Tree
        The fragment.
    value : float
        Its weight times its value in the tree's row.
    nodes : list of list of int
        The inner nodes of every occurrence, in post-order.
    column : str or None
        Which tree of the example it is a fragment of, where the model has several.
    """

    fragment: Tree
    value: float
    nodes: list[list[int]]
    column: str | None = None

    def __repr__(self) -> str:
        """Return the fields, and of the nodes only the number of occurrences."""
        shown = f"fragment={self.fragment!r}, value={self.value!r}, nodes=<{len(self.nodes)} occurrences>"
        return f"FragmentShare({shown}, column={self.column!r})"


class TreeValues(NamedTuple):
    """What the nodes of one tree contribute to a score.

    Attributes
    ----------
    column : str or None
        The name of the tree's column, where it has one.
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
    """The score of one tree taken apart; what ``explain`` returns.

    It prints as a tree with the value of every node, and draws itself in notebooks.

    Attributes
    ----------
    trees : list of TreeValues
        What is explained: a tree and the values of its nodes, for each tree column of the model.
    tree, node_values : Tree, array
        The first of these.
    target : object
        The class whose score it is; None for a model that predicts numbers.
    score : float
        The model's decision value for that class: the sum of all node values, ``others`` and ``bias``.
    others : dict
        What belongs to no node, by name: columns of numbers and texts, and what lies beyond the budget.
    bias : float
        The model's intercept.
    supporting, opposing : list of FragmentShare
        The fragments that raise and lower the score the most, the strongest first.
    flip : Removal or None
        The smallest subtree whose removal changes the model's decision; None where there is none, where it
        was not looked for, and for a model that predicts numbers.
    flip_sought : bool
        Whether it was looked for.
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
        """What the score is the sum of, by name."""
        nodes = [("nodes" if one.column is None else f"nodes of {one.column}", one) for one in self.trees]
        sums = [(name, float(one.node_values.sum())) for name, one in nodes]
        return [*sums, *self.others.items(), ("bias", self.bias)]

    def __repr__(self) -> str:
        """Return one line; ``str`` has all of it."""
        sizes = ", ".join(str(one.tree.size) for one in self.trees)
        return f"<Explanation of the score {self.score!r} for {self.target!r}: trees of {sizes} nodes>"


def explain(
    model: Any, tree: Any, target: Any = None, *, n_fragments: int = 10, find_flip: bool = True
) -> Explanation:
    """Take the decision of a linear model about one tree apart.

    The score is the bias plus w·x, and a fragment that occurs c times has the value √λ^(p - 1) g(c) / ‖x‖.
    With the length ‖x‖, the damping g and inverse frequencies held fixed, as constants of this tree, what a
    fragment contributes is divided equally among its c occurrences, and that of an occurrence equally among
    its p inner nodes. These are the Shapley values of the nodes, in the game where an occurrence is there as
    long as all of its nodes are. They sum exactly to the score, with the other parts and the bias.

    Parameters
    ----------
    model : TreeClassifier, LinearModel or Pipeline
        Whose rows are those of a ``FragmentVectorizer``; in a Pipeline, this and a fitted linear model with
        ``coef_`` and ``intercept_``.
    tree : bracket text, Tree, nested lists, or a Forest of one tree
        What the decision is about. For a model of a table's columns, a dictionary of the values by column,
        or a table of one row.
    target : object, default=None
        The class whose score is explained; by default the one that the model decides for. Of two classes,
        the first has the negative of the decision value.
    n_fragments : int, default=10
        How many fragments are listed for and against.
    find_flip : bool, default=True
        Whether to look for the smallest subtree whose removal (its label stays, its children go) changes the
        decision: every pruned tree is encoded and normalised anew.

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
    """A tree with the values of its nodes, and what each of its fragments contributes."""

    values: TreeValues
    forest: Forest
    found: Occurrences
    contribution: np.ndarray

    def share(self, number: int) -> FragmentShare:
        """Return what a fragment contributes."""
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
    """Return what the score holds beside bounded fragments and the bias."""
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
    """Return what the fragments beyond the budget contribute."""
    matrix, width = vectorizer.transform(forest), vectorizer.n_features
    beyond = matrix.indices >= (len(vectorizer.dictionary_) if width is None else width)
    weights = part.weights_at(matrix.indices[beyond])[row]
    return float(weights @ matrix.data[beyond].astype(float))
