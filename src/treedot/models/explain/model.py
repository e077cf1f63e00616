"""Explain a linear model by its strongest fragments for and against each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from treedot.errors import ParameterError, SourceError
from treedot.models.explain.linear import LinearFunction, Part
from treedot.models.explain.shares import strongest
from treedot.models.explain.shown import Shown
from treedot.models.inputs.table import Columns, Table, read_table
from treedot.models.inputs.term_input import TermInput
from treedot.parameters import checked_integer
from treedot.trees import Forest, Tree

MAX_FRAGMENTS = 2**22  # some hundred megabytes


class FragmentWeight(NamedTuple):
    """A fragment and its weight in a linear model.

    Attributes
    ----------
    fragment : Tree
        The fragment.
    value : float
        The weight.
    column : str or None
        The tree column of the fragment, if the model has named columns.
    """

    fragment: Tree
    value: float
    column: str | None = None


class ClassFragments(NamedTuple):
    """The strongest fragments for and against a class.

    Attributes
    ----------
    supporting : list of FragmentWeight
        The fragments with the largest weights, largest first.
    opposing : list of FragmentWeight
        The fragments with the smallest weights, smallest first.
    """

    supporting: list[FragmentWeight]
    opposing: list[FragmentWeight]


@dataclass(frozen=True, eq=False, repr=False)
class ModelExplanation(Shown):
    """The strongest fragments of a model; the result of ``explain_model``.

    Attributes
    ----------
    fragments : dict
        The ``supporting`` and ``opposing`` fragments of every class, strongest first. For a model that
        predicts numbers, the only key is None.
    n_fragments : int
        The number of distinct fragments that were considered.
    n_trees : int
        The number of trees that were read.
    complete : bool
        Whether all fragments were considered; False if there were more than ``max_fragments``.
    """

    fragments: dict[Any, ClassFragments]
    n_fragments: int
    n_trees: int
    complete: bool

    format = "treedot model explanation"

    def json_fields(self) -> dict[str, Any]:
        """Return the fields by name, with the fragments as a list of classes.

        Returns
        -------
        dict
            The fields.
        """
        classes = [{"target": name, **found._asdict()} for name, found in self.fragments.items()]
        fields = super().json_fields()
        del fields["fragments"]
        return {"classes": classes, **fields}

    def __repr__(self) -> str:
        """Return a summary in one line; ``str`` returns the whole explanation."""
        read = f"{self.n_fragments} fragments of {self.n_trees} trees"
        return f"<ModelExplanation of {len(self.fragments)} classes: {read}>"


def explain_model(
    model: Any, trees: Any, *, n_fragments: int = 10, max_fragments: int = MAX_FRAGMENTS
) -> ModelExplanation:
    """Return the strongest fragments of a linear model, for and against each class.

    Hashed columns have no names, so fragments are taken from trees, such as those of the training. Fragments
    that share a column all have the column's weight, each with its own sign.

    Parameters
    ----------
    model : TreeClassifier, TreeRegressor, LinearModel or Pipeline
        As ``explain`` takes it.
    trees : source of trees
        The trees with the fragments, as ``read_trees`` takes them; a table if the model has named columns.
    n_fragments : int, default=10
        The number of fragments to list for each class, and against it.
    max_fragments : int, default=2**22
        Stop reading trees when there are more distinct fragments than this.

    Returns
    -------
    ModelExplanation
        The fragments of every class.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treedot.models import DualLinearSVC
    >>> from treedot import FragmentVectorizer, explain_model
    >>> trees = ["(S (B b))", "(S (B c))", "(S (C b))", "(S (C c))"]
    >>> model = make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(trees, ["B", "B", "C", "C"])
    >>> print(explain_model(model, trees, n_fragments=1))
    10 fragments of 4 trees
    <BLANKLINE>
    B
      +0.880  (S B)
      -0.880  (S C)
    <BLANKLINE>
    C
      +0.880  (S C)
      -0.880  (S B)
    """
    function = LinearFunction.of(model)
    if any(part.vectorizer is None for part in function.trees):
        raise ParameterError("explain_model needs a model of fragments: use a FragmentVectorizer, or explain")
    wanted = checked_integer("n_fragments", n_fragments, 0)
    most = checked_integer("max_fragments", max_fragments, 1)
    listed = _listed(function, trees, most)
    if not any(found.column.size for found in listed):
        raise SourceError("the model has no column for any fragment of these trees: give training trees")
    weights = [found.part.weights_at(found.column) * found.sign for found in listed]
    if function.classes is not None and len(function.classes) == 2:
        weights = [np.concatenate([-own, own]) for own in weights]
    names = [None] if function.classes is None else function.classes
    fragments = {}
    for k, name in enumerate(names):
        each = [(own[k], partial(_share, found, own[k])) for found, own in zip(listed, weights, strict=True)]
        fragments[name] = ClassFragments(strongest(each, 1, wanted), strongest(each, -1, wanted))
    known = [found.n_known for found in listed]
    n_trees = sum(found.n_trees for found in listed)
    return ModelExplanation(fragments, sum(known), n_trees, max(known) <= most)


class _Listed(NamedTuple):
    """The columns and signs of fragments or terms, and a function from their numbers to trees."""

    part: Part
    column: np.ndarray
    sign: np.ndarray
    fragment: Callable[[int], Tree]
    n_known: int
    n_trees: int


def _listed(function: LinearFunction, trees: Any, most: int) -> list[_Listed]:
    """Return the fragments of every tree column, then its words and labels."""
    if function.reads.are_named or function.terms:
        table = read_table(trees, Columns(function.reads.trees, pair=function.reads.pair))
    else:
        table = Table({None: trees})  # read in batches
    fragments = [_fragments(part, table[part.column], most) for part in function.trees]
    return fragments + [_terms(part, table[part.column]) for part in function.terms]


def _fragments(part: Part, trees: Any, most: int) -> _Listed:
    assert part.vectorizer is not None
    found = part.vectorizer.fragment_columns(trees, most)

    def fragment(number: int) -> Tree:
        return found.dictionary.fragment(found.number[number])

    return _Listed(part, found.column, found.sign, fragment, len(found.dictionary), found.dictionary.n_trees)


def _terms(part: Part, forest: Forest) -> _Listed:
    assert isinstance(part.input, TermInput)
    (terms, _), hashed = part.input.occurrences(forest)

    def fragment(number: int) -> Tree:
        return Tree(terms.names[number])

    return _Listed(part, hashed.column, hashed.sign, fragment, len(terms.names), 0)


def _share(found: _Listed, weights: np.ndarray, number: int) -> FragmentWeight:
    """Return the fragment with this number, and its weight."""
    return FragmentWeight(found.fragment(number), float(weights[number]), found.part.column)
