"""How good a model is, as text, as JSON values and as a page."""

from __future__ import annotations

import html
from typing import Any, NamedTuple

from treedot.model.evaluation import Evaluation, McNemar
from treedot.page import page, table

LONGEST = 1000  # characters of a tree on the page

STYLE = """
.confusion td { text-align: right } .confusion th:first-child { text-align: right }
.confusion td { background: color-mix(in srgb, var(--accent) calc(var(--share) * 55%), transparent) }
"""


class Mistake(NamedTuple):
    """A tree whose class was taken for another; ``margin`` is by how much the scores differ."""

    number: int  # of the tree, from 1
    truth: str
    predicted: str
    margin: float
    tree: str


class EvaluationReport(NamedTuple):
    """What there is to say of a model on some trees: a second model and mistakes beside, where given."""

    model: str
    found: Evaluation
    mistakes: list[Mistake]  # the most confident first
    against: str | None = None
    other: Evaluation | None = None
    test: McNemar | None = None


def as_json(report: EvaluationReport) -> dict[str, Any]:
    """Return the report as JSON values."""
    found = report.found
    values: dict[str, Any] = {
        "model": report.model,
        "trees": found.n_trees,
        "accuracy": found.accuracy,
        "interval": list(found.interval),
        "macro_f1": found.macro_f1,
        "classes": [figures._asdict() for figures in found.classes],
        "confusion": found.confusion.tolist(),
        "unknown": found.unknown,
        "mistakes": [mistake._asdict() for mistake in report.mistakes],
    }
    if report.other is not None and report.test is not None:
        values["against"] = {
            "model": report.against,
            "accuracy": report.other.accuracy,
            "interval": list(report.other.interval),
            **report.test._asdict(),
        }
    return values


def as_text(report: EvaluationReport) -> str:
    """Return the report for a terminal."""
    found = report.found
    names = [figures.name for figures in found.classes]
    width = max(len("class"), *map(len, names))
    cell = max(6, *(len(str(count)) for count in found.confusion.ravel()))
    lines = [*_summary(report), "", f"{'class':<{width}}  precision  recall     F1  trees"]
    lines += [
        f"{one.name:<{width}}  {one.precision:9.3f}  {one.recall:6.3f}  {one.f1:5.3f}  {one.support:5d}"
        for one in found.classes
    ]
    head = "".join(f"  {name[:cell]:>{cell}}" for name in names)
    lines += ["", "true class in lines, predicted class in columns:", f"{'':<{width}}{head}"]
    lines += [
        f"{name:<{width}}" + "".join(f"  {count:>{cell}}" for count in row)
        for name, row in zip(names, found.confusion.tolist(), strict=True)
    ]
    return "\n".join(lines)


def as_page(report: EvaluationReport) -> str:
    """Return the report as a self-contained page, with the confusion matrix and the mistakes."""
    found = report.found
    figures = table(
        ("class", "precision", "recall", "F1", "trees"),
        [
            (html.escape(one.name), f"{one.precision:.3f}", f"{one.recall:.3f}", f"{one.f1:.3f}", one.support)
            for one in found.classes
        ],
    )
    mistakes = table(
        ("tree", "true class", "predicted", "margin", ""),
        [
            (one.number, html.escape(one.truth), html.escape(one.predicted), f"{one.margin:.2f}",
             f"<code>{html.escape(_shortened(one.tree))}</code>")
            for one in report.mistakes
        ],
    )  # fmt: skip
    summary = "".join(f'<p class="says">{html.escape(line)}</p>' for line in _summary(report))
    body = (
        f"{summary}<h2>Confusion matrix</h2><p>True classes in lines, predicted ones in columns; the colour "
        f"is the share of the true class.</p>{_matrix(found)}<h2>Classes</h2>{figures}"
        "<h2>Most confident mistakes</h2><p>The margin is the score of the predicted class less that of the "
        f"true one.</p>{mistakes}"
    )
    return page(f"Evaluation of {report.model}", body, STYLE)


def _summary(report: EvaluationReport) -> list[str]:
    """Return the accuracy, and how it compares with a second model, a line each."""
    lines = [f"{report.model}: {_accuracy(report.found)}, macro F1 {report.found.macro_f1:.3f}"]
    lines += [
        f"{count:,} trees of {name!r}, which the model does not know, count as wrong"
        for name, count in report.found.unknown.items()
    ]
    if report.other is not None and report.test is not None:
        lines.append(f"{report.against}: {_accuracy(report.other)}, macro F1 {report.other.macro_f1:.3f}")
        lines.append(
            f"McNemar: {report.test.only_first} trees are right by the first alone, "
            f"{report.test.only_second} by the second alone, p = {report.test.p_value:.3g}"
        )
    return lines


def _accuracy(found: Evaluation) -> str:
    low, high = found.interval
    return f"accuracy {found.accuracy:.3f} (95 %: {low:.3f} to {high:.3f}) on {found.n_trees:,} trees"


def _shortened(tree: str) -> str:
    return tree if len(tree) <= LONGEST else tree[:LONGEST] + " …"


def _matrix(found: Evaluation) -> str:
    names = [html.escape(figures.name) for figures in found.classes]
    head = "<th></th>" + "".join(f"<th>{name}</th>" for name in names)
    lines = []
    for name, row in zip(names, found.confusion.tolist(), strict=True):
        whole = max(1, sum(row))
        cells = "".join(f'<td style="--share: {count / whole:.3f}">{count}</td>' for count in row)
        lines.append(f"<tr><th>{name}</th>{cells}</tr>")
    rows = "\n".join(lines)
    return f'<div class="wide"><table class="confusion"><tr>{head}</tr>\n{rows}\n</table></div>'
