"""What a linear model has learned: its strongest fragments for and against each class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from treedot.errors import SourceError
from treedot.models.explain.linear import LinearFunction, Part
from treedot.models.explain.shares import strongest
from treedot.models.explain.shown import Shown
from treedot.models.inputs.table import Columns, read_table
from treedot.parameters import checked_integer
from treedot.trees import Tree
from treedot.vectors.fragment_vectorizer import FragmentColumns

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
        Which tree of an example it is a fragment of, where the model has several.
    """

    fragment: Tree
    value: float
    column: str | None = None


class ClassFragments(NamedTuple):
    """The strongest fragments for and against a class.

    Attributes
    ----------
    supporting : list of FragmentWeight
        The fragments with the largest weights, the largest first.
    opposing : list of FragmentWeight
        The fragments with the smallest weights, the smallest first.
    """

    supporting: list[FragmentWeight]
    opposing: list[FragmentWeight]


@dataclass(frozen=True, eq=False, repr=False)
class ModelExplanation(Shown):
    """What a model has learned; what ``explain_model`` returns.

    Attributes
    ----------
    fragments : dict
        Of every class its ``supporting`` and ``opposing`` fragments, the strongest first. A model that
        predicts numbers has one entry, None.
    n_fragments : int
        Among how many distinct fragments these were chosen.
    n_trees : int
        How many trees were read for that.
    complete : bool
        Whether these are all: else there were more fragments than ``max_fragments``.
    """

    fragments: dict[Any, ClassFragments]
    n_fragments: int
    n_trees: int
    complete: bool

    format = "treedot model explanation"

    def json_fields(self) -> dict[str, Any]:
        """Return the fields by name; the fragments are a list of classes.

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
        """Return one line; ``str`` has all of it."""
        read = f"{self.n_fragments} fragments of {self.n_trees} trees"
        return f"<ModelExplanation of {len(self.fragments)} classes: {read}>"


def explain_model(
    model: Any, trees: Any, *, n_fragments: int = 10, max_fragments: int = MAX_FRAGMENTS
) -> ModelExplanation:
    """Return the strongest fragments of a linear model, for and against each class.

    Hashed columns have no names, so the fragments are looked for in trees, such as those of the training. Of
    fragments that share a column each has the weight of the column, with its sign.

    Parameters
    ----------
    model : TreeClassifier, LinearModel or Pipeline
        As ``explain`` takes it.
    trees : source of trees
        Where to look for fragments, as ``read_trees`` takes it; a table for a model of a table's columns.
    n_fragments : int, default=10
        How many are listed for and against each class.
    max_fragments : int, default=2**22
        When to stop reading: when there are more distinct fragments.

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
    wanted = checked_integer("n_fragments", n_fragments, 0)
    most = checked_integer("max_fragments", max_fragments, 1)
    listed = _listed(function, trees, most)
    if not any(found.number.size for _, found in listed):
        raise SourceError("these trees have no fragment that the model has a column for")
    weights = [part.weights_at(found.column) * found.sign for part, found in listed]
    if function.classes is not None and len(function.classes) == 2:
        weights = [np.concatenate([-own, own]) for own in weights]
    names = [None] if function.classes is None else function.classes
    fragments = {}
    for k, name in enumerate(names):
        each = [(own[k], partial(_share, *found, own[k])) for found, own in zip(listed, weights, strict=True)]
        fragments[name] = ClassFragments(strongest(each, 1, wanted), strongest(each, -1, wanted))
    known = [len(found.dictionary) for _, found in listed]
    n_trees = sum(found.dictionary.n_trees for _, found in listed)
    return ModelExplanation(fragments, sum(known), n_trees, max(known) <= most)


def _listed(function: LinearFunction, trees: Any, most: int) -> list[tuple[Part, FragmentColumns]]:
    """Return the fragments of every tree column, and the columns of rows that they have."""
    table = None
    if function.reads.are_named:
        table = read_table(trees, Columns(function.reads.trees))
    return [
        (part, part.vectorizer.fragment_columns(trees if table is None else table[part.column], most))
        for part in function.trees
        if part.vectorizer is not None
    ]


def _share(part: Part, columns: FragmentColumns, weights: np.ndarray, number: int) -> FragmentWeight:
    """Return a fragment of a tree column with its weight."""
    fragment = columns.dictionary.fragment(columns.number[number])
    return FragmentWeight(fragment, float(weights[number]), part.column)
