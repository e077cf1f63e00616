"""Why a linear model decides as it does about one tree: exact shares of nodes, fragments and other parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treedot.encode.sparse.occurrences import Occurrences, fragment_at
from treedot.explanation.linear import LinearFunction
from treedot.explanation.removal import Removal, smallest_flip
from treedot.explanation.shares import node_shares
from treedot.parameters import checked_flag, checked_integer
from treedot.readers import read_tree
from treedot.trees import Forest, Tree

BEYOND = "fragments beyond the budget"


class FragmentShare(NamedTuple):
    """What one fragment contributes to a score.

    Attributes
    ----------
    fragment : Tree
    value : float
        Its weight times its value in the tree's row.
    nodes : list of list of int
        The inner nodes of every occurrence, in post-order.
    """

    fragment: Tree
    value: float
    nodes: list[list[int]]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The score of one tree taken apart; what ``explain`` returns.

    It prints as a tree with the value of every node, and draws itself in notebooks.

    Attributes
    ----------
    tree : Tree
        What is explained.
    target : object
        The class whose score it is; None for a model that predicts numbers.
    score : float
        The model's decision value for that class: the sum of ``node_values``, ``others`` and ``bias``.
    node_values : array
        The Shapley value of every node, in post-order; 0 for leaves.
    others : dict
        What belongs to no node, by name.
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

    tree: Tree
    target: Any
    score: float
    node_values: np.ndarray
    others: dict[str, float]
    bias: float
    supporting: list[FragmentShare]
    opposing: list[FragmentShare]
    flip: Removal | None
    flip_sought: bool

    def to_text(self, color: bool = False) -> str:
        """Return text, the tree with one line for each inner node; coloured for terminals."""
        from treedot.explanation.text import explanation_text

        return explanation_text(self, color)

    def to_json(self) -> str:
        """Return the explanation as JSON; the fields are those of the page on explanations."""
        from treedot.explanation.exchange import explanation_json

        return explanation_json(self)

    def to_html(self) -> str:
        """Return a page that makes no requests and needs no other file."""
        from treedot.explanation.web import explanation_page

        return explanation_page(self)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from treedot.explanation.web import explanation_body

        return explanation_body(self)


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
    model : Pipeline
        A ``FragmentVectorizer`` and a fitted linear model with ``coef_`` and ``intercept_``.
    tree : bracket text, Tree, nested lists, or a Forest of one tree
        What the decision is about.
    target : object, optional
        The class whose score is explained; by default the one that the model decides for. Of two classes,
        the first has the negative of the decision value.
    n_fragments : int
        How many fragments are listed for and against.
    find_flip : bool
        Whether to look for the smallest subtree whose removal (its label stays, its children go) changes the
        decision: every pruned tree is encoded and normalised anew.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treedot import DualLinearSVC, FragmentVectorizer, explain
    >>> trees = ["(S (B b))", "(S (B c))", "(S (C b))", "(S (C c))"]
    >>> model = make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(trees, ["B", "B", "C", "C"])
    >>> found = explain(model, "(S (B c))")
    >>> found.target, found.supporting[0].fragment
    ('B', Tree.parse('(S B)'))
    >>> bool(abs(found.node_values.sum() + found.bias - found.score) < 1e-6)
    True
    """
    linear, forest = LinearFunction.of(model), read_tree(tree)
    n_fragments = checked_integer("n_fragments", n_fragments, 0)
    find_flip = checked_flag("find_flip", find_flip)
    scores = linear.scores(forest)
    number, row, sign = linear.target(target, scores)
    found = linear.vectorizer.occurrences(forest)
    known = found.column >= 0
    contribution = np.zeros(found.value.size)
    contribution[known] = sign * linear.weights_at(found.column[known])[row] * found.value[known]
    values = node_shares(found, contribution, forest.n_nodes)
    order = np.argsort(-contribution, kind="stable").tolist()
    return Explanation(
        forest[0],
        None if linear.classes is None else linear.classes[number],
        float(sign * scores[0, row]),
        values,
        _others(linear, forest, row, sign),
        float(sign * linear.bias[row]),
        [_share(found, forest, k, contribution) for k in order[:n_fragments] if contribution[k] > 0],
        [_share(found, forest, k, contribution) for k in order[::-1][:n_fragments] if contribution[k] < 0],
        smallest_flip(linear, forest) if find_flip else None,
        find_flip and linear.classes is not None,
    )


def _others(linear: LinearFunction, forest: Forest, row: int, sign: float) -> dict[str, float]:
    """Return what the score holds beside bounded fragments and the bias."""
    if linear.vectorizer.rest is None:
        return {}
    matrix, width = linear.vectorizer.transform(forest), linear.vectorizer.n_features
    beyond = matrix.indices >= (len(linear.vectorizer.dictionary_) if width is None else width)
    weights = linear.weights_at(matrix.indices[beyond])[row]
    return {BEYOND: float(sign * weights @ matrix.data[beyond].astype(float))}


def _share(found: Occurrences, forest: Forest, number: int, contribution: np.ndarray) -> FragmentShare:
    nodes = found.nodes_of(number)
    return FragmentShare(fragment_at(forest, nodes[0]), float(contribution[number]), nodes)
