"""Explain a linear model's decision about one tree: exact shares of nodes, fragments and other parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treedot._runtime.array_types import FloatArray
from treedot.errors import ParameterError
from treedot.models.explain.linear import LinearFunction
from treedot.models.explain.links import LinkShare, link_shares
from treedot.models.explain.removal import Removal, removal_values, smallest_flip
from treedot.models.explain.shares import strongest
from treedot.models.explain.shown import Shown
from treedot.models.explain.tree_parts import ExplainedTree, explained_tree, with_terms
from treedot.models.explain.tree_values import REMOVAL, FragmentShare, TreeValues
from treedot.models.inputs.number_input import NumberInput
from treedot.models.inputs.table import Table
from treedot.parameters import checked_flag, checked_integer
from treedot.readers import read_tree
from treedot.trees import Forest, Tree


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Shown):
    """The parts of one tree's score; the result of ``explain``.

    It prints as a tree with the value of every node; notebooks draw it.

    Attributes
    ----------
    trees : list of TreeValues
        The tree and the values of its nodes, for each tree column of the model.
    tree, node_values, values_are : Tree, array, str
        The first tree, its values, and what these are: ``"shapley"`` or ``"removal"``.
    target : object
        The class whose score is explained; None for a model that predicts numbers.
    score : float
        The model's decision value for that class: the sum of what the trees contribute (of all node values,
        if these are Shapley values), ``others`` and ``bias``.
    others : dict
        Contributions that belong to no node, by name: columns of numbers and texts, fragments beyond the
        budget, and equal leaves.
    bias : float
        The model's intercept.
    supporting, opposing : list of FragmentShare
        The fragments that raise and lower the score most, strongest first.
    flip : Removal or None
        The smallest subtree whose removal changes the decision; None if there is none, if none was sought,
        or if the model predicts numbers.
    flip_sought : bool
        Whether ``flip`` was sought.
    probability : float or None
        The probability of the class; None for a model that predicts numbers, or has no calibration.
    links : list of LinkShare
        Of a model of pairs, by how much the score falls if a link between both trees is undone, strongest
        first.
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
    probability: float | None = None
    links: list[LinkShare] = field(default_factory=list)

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
    def values_are(self) -> str:
        """The kind of the first tree's node values: ``"shapley"`` or ``"removal"``."""
        return self.trees[0].values_are

    @property
    def parts(self) -> list[tuple[str, float]]:
        """The parts that sum to the score, by name."""
        trees = [(_part_name(one), one.contribution) for one in self.trees]
        return [*trees, *self.others.items(), ("bias", self.bias)]

    def __repr__(self) -> str:
        """Return a summary in one line; ``str`` returns the whole explanation."""
        sizes = ", ".join(str(one.tree.size) for one in self.trees)
        return f"<Explanation of the score {self.score!r} for {self.target!r}: trees of {sizes} nodes>"


def explain(
    model: Any, tree: Any, target: Any = None, *, n_fragments: int = 10, find_flip: bool = True
) -> Explanation:
    """Explain the decision of a linear model about one tree.

    For rows of fragments, the score is the bias plus w·x, and a fragment that occurs c times has the value
    √λ^(p - 1) g(c) / ‖x‖. The length ‖x‖, the damping g and inverse frequencies are held fixed, as constants
    of this tree. A fragment's contribution is divided equally among its c occurrences, and the share of an
    occurrence equally among its p inner nodes. These are the Shapley values of the nodes in the game in which
    an occurrence counts if all of its nodes are present. With the other parts and the bias, they sum exactly
    to the score.

    The values are defined in the same way for these models:

    - ``SubsetTreeKernel`` with ``weighting="count"``: the score Σ αᵢ yᵢ K(tᵢ, x) is a sum over the fragments
      of x, of any size. Integrated gradients give the values of the nodes without listing the fragments.
    - ``BoundedTreeKernel``: the fragments within the kernel's budget are listed.
    - ``DistributedTreeVectorizer`` of the subset tree kernel: the weight of a fragment is the dot product of
      w with the fragment's own vector. Fragments up to a cost of 4 (less for large trees) are divided among
      the nodes. All others are one separate part, so the sum is exact.

    Words and labels beside the fragments are listed as fragments of one node. A label belongs to its node,
    and a word to the node above its leaf; two such nodes share a pair of words equally.

    Of a model with a pair of columns, the trees are those with placeholders for linked words. The lexical
    overlap is one part of the score, which stays as it is if a subtree is removed or a link undone.

    For all other kernels and vectors, the value of a node is the score minus the score of the tree in which
    this node is a leaf, with lengths computed again. ``values_are`` is then ``"removal"``, and there are no
    fragments to list.

    Parameters
    ----------
    model : TreeClassifier, TreeRegressor, LinearModel or Pipeline
        A fitted model of fragments, of dense vectors or of an exact kernel. A Pipeline consists of a
        ``FragmentVectorizer`` or a ``DistributedTreeVectorizer``, and a linear model with ``coef_`` and
        ``intercept_``.
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

    Raises
    ------
    ParameterError
        If the model cannot be explained, or if it has no class ``target``.
    LimitError
        If the tree is too large for values by removal, or for the search for a flip.

    See Also
    --------
    explain_pair : Explain the kernel of two trees.
    explain_model : The strongest fragments of a model.

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
    trees = {part.column: explained_tree(part, table[part.column], row, sign) for part in linear.trees}
    for part in linear.terms:
        trees[part.column] = with_terms(trees[part.column], part, table[part.column], row, sign)
    fragments = [pair for one in trees.values() for pair in one.listed]
    return Explanation(
        [one.values for one in trees.values()],
        None if linear.classes is None else linear.classes[number],
        float(sign * scores[0, row]),
        _others(linear, table, trees, row, sign),
        float(sign * linear.bias[row]),
        strongest(fragments, 1, n_fragments),
        strongest(fragments, -1, n_fragments),
        smallest_flip(linear, table) if find_flip else None,
        find_flip and linear.classes is not None,
        linear.probability(scores, number),
        link_shares(linear, table, row, sign),
    )


def explain_by_removal(score: Callable[[Forest], Any], tree: Any, target: Any = None) -> Explanation:
    """Explain any score of a tree, such as the output of a neural network, by removing subtrees.

    The value of a node is exactly how much the score falls if the children of this node are removed, so that
    it becomes a leaf. These values overlap: a node's value contains what the nodes below it bring about, so
    their sum has no meaning. For a linear model of vectors, ``explain`` gives the same values where it has no
    Shapley values.

    Parameters
    ----------
    score : callable
        Takes a ``Forest`` and returns one number for each tree.
    tree : bracket text, Tree, nested lists, or a Forest of one tree
        The tree to explain.
    target : object, default=None
        The name of the class whose score this is, for the text.

    Returns
    -------
    Explanation
        The value of every node; there are no fragments.

    Raises
    ------
    ParameterError
        If ``score`` does not return one finite number for each tree.
    LimitError
        If the tree is too large.

    See Also
    --------
    explain : Explain a linear model by Shapley values, with fragments.

    Examples
    --------
    >>> from treedot.models.explain import explain_by_removal
    >>> found = explain_by_removal(lambda trees: trees.sizes, "(S (A a) (B b))")
    >>> found.node_values.tolist(), found.values_are
    ([0.0, 1.0, 0.0, 1.0, 4.0], 'removal')
    """

    def value_of(trees: Forest) -> FloatArray:
        values = np.asarray(score(trees), float)
        if values.shape != (len(trees),):
            raise ParameterError(f"score must return {len(trees)} numbers, one per tree, not {values.shape}")
        if not np.isfinite(values).all():
            raise ParameterError("score must return finite numbers")
        return values

    forest = read_tree(tree)
    whole, node_values = removal_values(forest, value_of)
    values = TreeValues(None, forest[0], node_values, REMOVAL, whole)
    return Explanation([values], target, whole, {}, 0.0, [], [], None, False)


def _part_name(one: TreeValues) -> str:
    what = "tree" if one.values_are == REMOVAL else "nodes"
    return what if one.column is None else f"{what} of {one.column}"


def _others(
    linear: LinearFunction, table: Table, trees: dict[str | None, ExplainedTree], row: int, sign: float
) -> dict[str, float]:
    """Return the parts of the score that belong to no node, except the bias."""
    found: dict[str, float] = {}
    for part in linear.parts:
        columns, _, texts, _ = part.input.reads
        if columns and not part.is_terms:
            where = "" if part.column is None else f" of {part.column}"
            found |= {f"{name}{where}": value for name, value in trees[part.column].others.items()}
        elif isinstance(part.input, NumberInput):
            numbers = part.input.columns
            values = part.input.transform(table)[0] * part.weights_at(np.arange(len(numbers)))[row]
            found |= dict(zip(numbers, (sign * values).tolist(), strict=True))
        elif texts:
            found[texts[0]] = float(sign * part.scores(table)[0, row])
    return found
