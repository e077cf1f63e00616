"""Report an evaluation as text, as JSON values and as an HTML page."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any, NamedTuple

from treedot._pages.page import page, table
from treedot._pages.printable import first_few, printable
from treedot.models.evaluation import Evaluation, McNemar
from treedot.models.probability_evaluation import ProbabilityEvaluation
from treedot.models.reliability_diagram import DIAGRAM_STYLE, reliability_diagram
from treedot.trees import Tree
from treedot.trees.drawing import STYLE as TREE_STYLE
from treedot.trees.drawing import tree_html

LONGEST, LONGEST_WORDS = 1000, 200  # characters of a tree, and of its words, on the page
MANY = 15  # a matrix of at least this many classes is drawn small

MATRIX_STYLE = """
.confusion th, .confusion td { text-align: right; padding: 0.15rem 0.4rem; border: 0; min-width: 1.6rem }
.confusion thead th { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left }
.confusion thead th { padding: 0 }
.confusion tbody th { position: sticky; left: 0; background: var(--back); white-space: nowrap }
.confusion td { background: color-mix(in srgb, var(--bad) calc(var(--share) * 60%), transparent) }
.confusion .right { background: color-mix(in srgb, var(--accent) calc(var(--share) * 60%), transparent) }
.confusion .none { color: var(--line) }
.many { font-size: 0.7rem } .many :is(th, td) { padding: 0 0.1rem; min-width: 0.8rem }
"""
STYLE = f"""{TREE_STYLE}{MATRIX_STYLE}{DIAGRAM_STYLE}
th, td {{ text-align: right }} :is(th, td):first-child {{ text-align: left }}
.mistake summary span {{ color: var(--quiet) }}
"""


class Mistake(NamedTuple):
    """A tree with a wrong prediction; ``margin`` is the difference of the two classes' scores."""

    number: int  # the number of the tree, from 1
    truth: str
    predicted: str
    margin: float
    tree: str


class EvaluationReport(NamedTuple):
    """The evaluation of a model with its mistakes, and optionally the comparison with a second model."""

    model: str
    found: Evaluation
    mistakes: list[Mistake]  # the most confident first
    against: str | None = None
    other: Evaluation | None = None
    test: McNemar | None = None
    probabilities: ProbabilityEvaluation | None = None  # of a calibrated model


def as_json(report: EvaluationReport) -> dict[str, Any]:
    """Return the report as JSON values."""
    found = report.found
    values: dict[str, Any] = {
        "model": report.model,
        "trees": found.n_trees,
        "accuracy": found.accuracy,
        "interval": list(found.interval),
        "macro_f1": found.macro_f1,
        "macro_f1_interval": list(found.macro_f1_interval),
        "classes": [figures._asdict() for figures in found.classes],
        "confusion": found.confusion.tolist(),
        "unknown": found.unknown,
        "mistakes": [mistake._asdict() for mistake in report.mistakes],
    }
    if report.probabilities is not None:
        values["probabilities"] = {
            **report.probabilities._asdict(),
            "bins": [one._asdict() for one in report.probabilities.bins],
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
    names = [printable(figures.name) for figures in found.classes]
    width = max(len("class"), *map(len, names))
    cell = max(6, *(len(str(count)) for count in found.confusion.ravel()))
    lines = [*_summary(report), "", f"{'class':<{width}}  precision  recall  (95 %)              F1  trees"]
    lines += [
        f"{name:<{width}}  {one.precision:9.3f}  {one.recall:6.3f}  {_range(one.recall_interval)}  "
        f"{one.f1:5.3f}  {one.support:5d}"
        for name, one in zip(names, found.classes, strict=True)
    ]
    head = "".join(f"  {name[:cell]:>{cell}}" for name in names)
    lines += ["", "true class in rows, predicted class in columns:", f"{'':<{width}}{head}"]
    lines += [
        f"{name:<{width}}" + "".join(f"  {count:>{cell}}" for count in row)
        for name, row in zip(names, found.confusion.tolist(), strict=True)
    ]
    return "\n".join(lines)


def as_page(report: EvaluationReport) -> str:
    """Return the report as a self-contained page, with the confusion matrix and the mistakes."""
    found = report.found
    figures = table(
        ("class", "precision", "recall", "95 %", "F1", "trees"),
        [
            (
                html.escape(one.name),
                f"{one.precision:.3f}",
                f"{one.recall:.3f}",
                _range(one.recall_interval),
                f"{one.f1:.3f}",
                one.support,
            )
            for one in found.classes
        ],
    )
    mistakes = "".join(map(_mistake, report.mistakes)) or "<p>None.</p>"
    summary = "".join(f'<p class="says">{html.escape(line)}</p>' for line in _summary(report))
    body = (
        f"{summary}<h2>Confusion matrix</h2><p>True classes are in rows, predicted ones in columns. "
        f"The stronger the colour, the larger the share of the true class.</p>{matrix_html(found)}"
        f"<h2>Classes</h2>{figures}{_reliability(report.probabilities)}"
        "<h2>Most confident mistakes</h2><p>The margin is the score of the predicted class minus the score "
        f"of the true one. Open a mistake to see its tree.</p>{mistakes}"
    )
    return page(f"How good is {Path(report.model).name}?", body, STYLE)


def _summary(report: EvaluationReport) -> list[str]:
    """Return lines with the accuracy, the unknown classes and the comparison with a second model."""
    lines = [f"{printable(report.model)}: {accuracy_words(report.found)}, {_macro_f1(report.found)}"]
    if report.probabilities is not None:
        rest = ", without those of unknown classes" if report.found.unknown else ""
        lines.append(probability_words(report.probabilities) + rest)
    if unknown := report.found.unknown:
        trees = sum(unknown.values())
        lines.append(
            f"{trees:,} tree{'s' * (trees > 1)} of {first_few(unknown)}, which the model does not know, "
            f"count{'s' * (trees == 1)} as wrong"
        )
    if report.other is not None and report.test is not None:
        named = printable(report.against or "")
        lines.append(f"{named}: {accuracy_words(report.other)}, {_macro_f1(report.other)}")
        lines.append(
            f"McNemar: only the first is right on {report.test.only_first} trees, only the second on "
            f"{report.test.only_second}, p = {report.test.p_value:.3g}"
        )
    return lines


def accuracy_words(found: Evaluation) -> str:
    """Return the accuracy, its interval and the number of trees in words."""
    low, high = found.interval
    return f"accuracy {found.accuracy:.3f} (95 %: {low:.3f} to {high:.3f}) on {found.n_trees:,} trees"


def probability_words(found: ProbabilityEvaluation) -> str:
    """Return the figures of the probabilities in words."""
    return (
        f"probabilities: log loss {found.log_loss:.4f}, Brier score {found.brier:.4f}, expected calibration "
        f"error {found.calibration_error:.3f} on {found.n_trees:,} trees"
    )


def _reliability(found: ProbabilityEvaluation | None) -> str:
    """Return the section on probabilities; an empty text if the model has none."""
    if found is None:
        return ""
    rows = [
        (
            f"{one.low:.1f} to {one.high:.1f}",
            one.n_trees,
            f"{one.confidence:.3f}",
            f"{one.accuracy:.3f}",
            _range(one.interval),
        )
        for one in found.bins
    ]
    return (
        "<h2>Are the probabilities right?</h2><p>Trees are grouped by the probability of their predicted "
        "class. Of trees with a probability of 80 %, 80 % should be right: on the dashed line, they are. "
        "Whiskers are 95 % intervals of the accuracy; the larger a point, the more trees.</p>"
        f'<div class="beside"><div>{reliability_diagram(found.bins)}</div>'
        f"<div>{table(('probability', 'trees', 'mean', 'accuracy', '95 %'), rows)}</div></div>"
    )


def _macro_f1(found: Evaluation) -> str:
    return f"macro F1 {found.macro_f1:.3f} (95 %: {_range(found.macro_f1_interval)})"


def _range(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.3f} to {interval[1]:.3f}"


def _mistake(one: Mistake) -> str:
    """Return a mistake as HTML: one line with the words of the tree, which opens to show the tree."""
    says = f"tree {one.number}, margin {one.margin:.2f}"
    return tree_details(f"{one.truth} predicted as {one.predicted}", says, one.tree)


def tree_details(title: str, says: str, brackets: str) -> str:
    """Return a title and the words of a tree as HTML, which opens to show the tree."""
    tree = Tree.parse(brackets)
    words = printable(" ".join(node.label for node in tree.postorder() if node.is_leaf))
    title = f"{title}: {_shortened(words, LONGEST_WORDS)}"
    return (
        f'<details class="mistake"><summary>{html.escape(title)} <span>{says}</span></summary>'
        f"{tree_html(tree)}<p><code>{html.escape(_shortened(brackets, LONGEST))}</code></p></details>\n"
    )


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + " …"


def matrix_html(found: Evaluation) -> str:
    """Return the confusion matrix as HTML; ``MATRIX_STYLE`` is its style."""
    names = [html.escape(figures.name) for figures in found.classes]
    head = "<th></th>" + "".join(f"<th>{name}</th>" for name in names)
    lines = []
    for i, (name, row) in enumerate(zip(names, found.confusion.tolist(), strict=True)):
        cells = "".join(_count(count, sum(row), i == j) for j, count in enumerate(row))
        lines.append(f"<tr><th>{name}</th>{cells}</tr>")
    rows = "\n".join(lines)
    kind = "confusion many" if len(names) >= MANY else "confusion"
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _count(count: int, whole: int, is_right: bool) -> str:
    if count == 0:
        return '<td class="none">0</td>'
    kind = ' class="right"' if is_right else ""
    return f'<td{kind} style="--share: {count / whole:.3f}">{count}</td>'
