"""The page that explains the decision of a model about one tree."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from treedot._pages.page import table
from treedot._pages.printable import printable
from treedot.errors import ParameterError
from treedot.models.explain.decision import Explanation
from treedot.models.explain.text import decision_words, flip_words
from treedot.models.explain.tree_values import SHAPLEY, FragmentShare
from treedot.models.linear_model import LinearModel
from treedot.serve.answers import Given
from treedot.serve.explaining import ClassScore, Explained
from treedot.serve.fields import EXPLAIN, Value
from treedot.serve.given import current_model
from treedot.serve.pages.drawn import fragment_boxes
from treedot.serve.pages.layout import (
    choice_field,
    count_field,
    form,
    layout,
    line_field,
    link,
    part,
    row,
    text_field,
)
from treedot.trees.drawing import tree_html

FIELD = {field.name: field for field in EXPLAIN}
QUESTIONS = (
    "(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))",
    "(SBARQ (WHADVP (WRB Where)) (SQ (VBZ is) (NP (DT the) (NN library))))",
    "(SBARQ (WHNP (WHADJP (WRB How) (JJ many)) (NNS books)) (SQ (VBD did) (NP (NNP Ann)) (VP (VB write))))",
)


def values(fields: Mapping[str, Value], given: Given) -> dict[str, Any]:
    """Return the explanation as JSON values."""
    return Explained.of(_model(given), fields).to_dict()


def page(fields: Mapping[str, Value], given: Given) -> str:
    """Return the page, with the explanation if a tree is given."""
    model = _model(given)
    result = _explained(fields, Explained.of(model, fields)) if str(fields["tree"]).strip() else ""
    return frame(fields, result, has_examples=given.is_example)


def frame(fields: Mapping[str, Value], result: str, has_examples: bool = False) -> str:
    """Return the page with a result, and with links to examples if the model has learned from such."""
    examples = ", ".join(
        f'<a href="{link("explain", {"tree": tree})}">{name}</a>'
        for name, tree in zip(("a person", "a place", "a number"), QUESTIONS, strict=True)
    )
    controls = [
        text_field(FIELD["tree"], fields["tree"], "The tree; edit it to see the decision change"),
        row(
            choice_field(FIELD["tree_format"], fields["tree_format"], "Format"),
            line_field(FIELD["target"], fields["target"], "Class (empty: the predicted one)"),
            count_field(FIELD["fragments"], fields["fragments"], "Fragments"),
        ),
    ]
    introduction = f"<p>Questions for the example model: {examples}.</p>" if has_examples else ""
    shown = introduction + form("/explain", controls, "Explain") + part("result", result)
    return layout("Explain a decision", shown, "/explain")


def _model(given: Given) -> LinearModel:
    if given.model is None:
        raise ParameterError("there is no model: start treedot serve with --model")
    return current_model(given.model)


def _explained(fields: Mapping[str, Value], found: Explained) -> str:
    why = found.why
    largest = max(float(abs(one.node_values).max()) for one in why.trees)
    trees = "".join(
        f'<section data-tree="a">{tree_html(one.tree, values, largest, scripted=True)}</section>'
        for one in why.trees
        for values in [one.node_values.tolist()]
    )
    what = "Shapley value" if why.values_are == SHAPLEY else "loss if its children are removed"
    return (
        f'<p class="says" data-decision>{html.escape(_decision(found))}</p>{_scores(fields, found.scores)}'
        f"<h2>{_title(why)}</h2><p>{html.escape(decision_words(why))}.</p>"
        f"<p>{html.escape(flip_words(why))}</p>{trees}"
        f"<p>The value of a node is its exact {what}.</p>"
        f"{_fragments('For', why.supporting)}{_fragments('Against', why.opposing)}"
    )


def _decision(found: Explained) -> str:
    if not found.scores:
        return f"The model predicts {found.why.score:.4g}."
    best = found.scores[0]
    sure = "" if best.probability is None else f", with probability {best.probability:.3f}"
    return f"The model decides for {printable(best.name)}{sure}."


def _title(why: Explanation) -> str:
    return "Why this prediction?" if why.target is None else f"Why {html.escape(printable(str(why.target)))}?"


def _scores(fields: Mapping[str, Value], scores: Sequence[ClassScore]) -> str:
    if not scores:
        return ""
    rows = [(_class(fields, one.name), f"{one.score:+.3f}", _share(one.probability)) for one in scores]
    return table(("Class", "score", "probability"), rows)


def _class(fields: Mapping[str, Value], name: str) -> str:
    to = link("explain", {**fields, "target": name})
    return f'<a href="{to}">{html.escape(printable(name))}</a>'


def _share(probability: float | None) -> str:
    return "–" if probability is None else f'<meter value="{probability:.4f}"></meter> {probability:.3f}'


def _fragments(title: str, shares: Sequence[FragmentShare]) -> str:
    if not shares:
        return ""
    boxes = fragment_boxes((f"{one.value:+.3f}", one.fragment, one.nodes) for one in shares)
    return f"<h2>{title}</h2>{boxes}"
