"""Report the evaluation of predicted numbers as text, as JSON values and as an HTML page."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._pages.page import page
from treedot._pages.plot import LEFT, PLOT_STYLE, SIZE, place, square_plot
from treedot._pages.printable import printable
from treedot._runtime.array_types import FloatArray
from treedot.models.evaluation_report import tree_details
from treedot.models.regression_evaluation import Estimate, PairedTest, RegressionEvaluation
from treedot.trees.drawing import STYLE as TREE_STYLE

MOST_POINTS = 2000  # of the plot
STYLE = f"""{TREE_STYLE}{PLOT_STYLE}
.mistake summary span {{ color: var(--quiet) }}
"""


class NumberError(NamedTuple):
    """A tree with its true and its predicted number."""

    number: int  # of the tree, from 1
    truth: float
    predicted: float
    tree: str


class RegressionReport(NamedTuple):
    """The evaluation of a model with its largest errors, and optionally a comparison with a second model."""

    model: str
    found: RegressionEvaluation
    errors: list[NumberError]  # the largest first
    truth: FloatArray
    predicted: FloatArray
    against: str | None = None
    other: RegressionEvaluation | None = None
    test: PairedTest | None = None


def regression_json(report: RegressionReport) -> dict[str, Any]:
    """Return the report as JSON values."""
    values = {"model": report.model, **_figures(report.found)}
    values["errors"] = [error._asdict() for error in report.errors]
    if report.other is not None and report.test is not None:
        test = {"difference": report.test.difference._asdict(), "p_value": report.test.p_value}
        values["against"] = {"model": report.against, **_figures(report.other), **test}
    return values


def regression_text(report: RegressionReport) -> str:
    """Return the report for a terminal."""
    lines = [*_summary(report), "", "largest errors:", "   tree        true   predicted"]
    return "\n".join(
        [*lines, *(f"{one.number:7d}  {one.truth:10.5g}  {one.predicted:10.5g}" for one in report.errors)]
    )


def regression_page(report: RegressionReport) -> str:
    """Return the report as a self-contained page, with a plot of predicted against true numbers."""
    summary = "".join(f'<p class="says">{html.escape(line)}</p>' for line in _summary(report))
    n_trees = report.truth.size
    shown = "" if n_trees <= MOST_POINTS else f" {MOST_POINTS:,} of {n_trees:,} trees are drawn."
    errors = "".join(
        tree_details(
            f"{one.truth:.5g} predicted as {one.predicted:.5g}",
            f"tree {one.number}, error {one.predicted - one.truth:+.4g}",
            one.tree,
        )
        for one in report.errors
    )
    body = (
        f"{summary}<p>Intervals are 95 % normal approximations.</p><h2>Predicted against true numbers</h2>"
        f"<p>On the dashed line, predictions are exact.{shown}</p>{_plot(report.truth, report.predicted)}"
        f"<h2>Largest errors</h2><p>Open an error to see its tree.</p>{errors}"
    )
    return page(f"How good is {Path(report.model).name}?", body, STYLE)


def _figures(found: RegressionEvaluation) -> dict[str, Any]:
    figures = {"r2": found.r2, "mae": found.mae, "rmse": found.rmse}
    known = {name: None if one is None else one._asdict() for name, one in figures.items()}
    return {"trees": found.n_trees, **known}


def _summary(report: RegressionReport) -> list[str]:
    """Return lines with the figures of both models and their comparison."""
    lines = [f"{printable(report.model)}: {_words(report.found)}"]
    if report.other is not None and report.test is not None:
        difference = report.test.difference
        lines.append(f"{printable(report.against or '')}: {_words(report.other)}")
        lines.append(
            f"mean squared error of the first minus the second: {_interval(difference)}, paired z-test p = "
            f"{report.test.p_value:.3g}"
        )
    return lines


def _words(found: RegressionEvaluation) -> str:
    r2 = "undefined, since all true numbers are equal" if found.r2 is None else _interval(found.r2)
    return f"R² {r2}, MAE {_interval(found.mae)}, RMSE {_interval(found.rmse)} on {found.n_trees:,} trees"


def _interval(one: Estimate) -> str:
    return f"{one.value:.4g} (95 %: {one.low:.4g} to {one.high:.4g})"


def _plot(truth: FloatArray, predicted: FloatArray) -> str:
    """Return a scatter plot as SVG; both axes have the same range."""
    drawn = np.unique(np.linspace(0, truth.size - 1, min(truth.size, MOST_POINTS)).astype(int))
    truth, predicted = truth[drawn], predicted[drawn]
    low, high = float(min(truth.min(), predicted.min())), float(max(truth.max(), predicted.max()))
    margin = 0.03 * (high - low) or abs(high) * 0.1 or 1.0
    low, high = low - margin, high + margin

    def circle(x: float, y: float) -> str:
        at = f'cx="{LEFT + place(x, low, high):.1f}" cy="{SIZE - place(y, low, high):.1f}"'
        return f'<circle {at} r="3"><title>true {x:.5g}, predicted {y:.5g}</title></circle>'

    points = "".join(map(circle, truth.tolist(), predicted.tolist()))
    return square_plot(points, low, high, "Predicted against true numbers", "true", "predicted")
