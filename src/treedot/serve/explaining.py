"""Explain the decision of a model about one tree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from treedot.errors import ParameterError
from treedot.models.explain.decision import Explanation, explain
from treedot.models.linear_model import LinearModel
from treedot.serve.fields import Value
from treedot.serve.inputs import read_input
from treedot.trees import Forest

MAX_FLIPPED = 300  # nodes of a tree in which a removal that changes the decision is sought


class ClassScore(NamedTuple):
    """The score of a class, and its probability if the model has probabilities."""

    name: str
    score: float
    probability: float | None


class Explained(NamedTuple):
    """The scores of all classes, best first, and the explanation of one of them."""

    tree: Forest
    format: str
    scores: list[ClassScore]
    why: Explanation

    @classmethod
    def of(cls, model: LinearModel, fields: Mapping[str, Value]) -> Self:
        """Explain the decision that a request asks for."""
        if model.reads.trees != (None,) or model.reads.numbers or model.reads.texts:
            raise ParameterError("this model reads several columns: use treedot explain with a table")
        tree, format = read_input(str(fields["tree"]), str(fields["tree_format"]), "tree")
        why = explain(
            model,
            tree,
            _target(model, str(fields["target"])),
            n_fragments=int(fields["fragments"]),
            find_flip=tree.n_nodes <= MAX_FLIPPED,
        )
        return cls(tree, format, _scores(model, tree), why)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        found: dict[str, Any] = json.loads(self.why.to_json())
        return {"input": self.format, "scores": [one._asdict() for one in self.scores], "explanation": found}


def _target(model: LinearModel, name: str) -> Any:
    """Return the class of a name; None, which is the predicted one, for an empty name."""
    if not name:
        return None
    known = {} if model.classes is None else {str(one): one for one in model.classes.tolist()}
    if name not in known:
        raise ParameterError(f"the model has no class {name[:50]!r}: its classes are {', '.join(known)}")
    return known[name]


def _scores(model: LinearModel, tree: Forest) -> list[ClassScore]:
    if model.classes is None:
        return []
    found = np.asarray(model.decision_function(tree))
    scores = [-found[0], found[0]] if found.ndim == 1 else found[0].tolist()
    shares = [None] * len(scores) if model.calibration is None else model.probabilities(found)[0].tolist()
    names = map(str, model.classes.tolist())
    every = [ClassScore(name, float(s), p) for name, s, p in zip(names, scores, shares, strict=True)]
    return sorted(every, key=lambda one: -one.score)
