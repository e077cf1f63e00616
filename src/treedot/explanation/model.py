"""What a linear model has learned: its strongest fragments for and against each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treedot.errors import SourceError
from treedot.explanation.linear import LinearFunction
from treedot.learn.fragment_vectorizer import FragmentColumns
from treedot.parameters import checked_integer
from treedot.trees import Tree

MAX_FRAGMENTS = 2**22  # some hundred megabytes


class FragmentWeight(NamedTuple):
    """A fragment and its weight in a linear model."""

    fragment: Tree
    value: float


class ClassFragments(NamedTuple):
    """The fragments that speak the most for a class, and those that speak the most against it."""

    supporting: list[FragmentWeight]
    opposing: list[FragmentWeight]


@dataclass(frozen=True, eq=False)
class ModelExplanation:
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

    def __str__(self) -> str:
        from treedot.explanation.text import model_text

        return model_text(self)

    def _repr_html_(self) -> str:
        from treedot.explanation.web import model_body

        return model_body(self)

    def to_json(self) -> str:
        """Return the fragments as JSON; the fields are those of the page on explanations."""
        from treedot.explanation.exchange import model_json

        return model_json(self)


def explain_model(
    model: Any, trees: Any, *, n_fragments: int = 10, max_fragments: int = MAX_FRAGMENTS
) -> ModelExplanation:
    """Return the strongest fragments of a linear model, for and against each class.

    Hashed columns have no names, so the fragments are looked for in trees, such as those of the training. Of
    fragments that share a column each has the weight of the column, with its sign.

    Parameters
    ----------
    model : Pipeline
        As ``explain`` takes it.
    trees : source of trees
        Where to look for fragments, as ``read_trees`` takes it.
    n_fragments : int
        How many are listed for and against each class.
    max_fragments : int
        When to stop reading: when there are more distinct fragments.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treedot import DualLinearSVC, FragmentVectorizer, explain_model
    >>> trees = ["(S (B b))", "(S (B c))", "(S (C b))", "(S (C c))"]
    >>> model = make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(trees, ["B", "B", "C", "C"])
    >>> print(explain_model(model, trees, n_fragments=1))
    10 fragments of 4 trees
    <BLANKLINE>
    B
      +0.911  (S B)
      -0.911  (S C)
    <BLANKLINE>
    C
      +0.911  (S C)
      -0.911  (S B)
    """
    function = LinearFunction.of(model)
    wanted = checked_integer("n_fragments", n_fragments, 0)
    most = checked_integer("max_fragments", max_fragments, 1)
    listed = function.vectorizer.fragment_columns(trees, most)
    if not listed.number.size:
        raise SourceError("these trees have no fragment that the model has a column for")
    weights = function.weights_at(listed.column) * listed.sign
    if function.classes is not None and len(function.classes) == 2:
        weights = np.concatenate([-weights, weights])
    names = [None] if function.classes is None else function.classes
    found = {name: _strongest(listed, row, wanted) for name, row in zip(names, weights, strict=True)}
    known = len(listed.dictionary)
    return ModelExplanation(found, known, listed.dictionary.n_trees, known <= most)


def _strongest(listed: FragmentColumns, weights: np.ndarray, wanted: int) -> ClassFragments:
    order = np.argsort(-weights, kind="stable")
    sides = [order[:wanted], order[::-1][:wanted]]
    return ClassFragments._make(
        [
            FragmentWeight(listed.dictionary.fragment(listed.number[k]), float(weights[k]))
            for k in side
            if weights[k] * sign > 0
        ]
        for side, sign in zip(sides, (1, -1), strict=True)
    )
