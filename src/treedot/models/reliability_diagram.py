"""A reliability diagram as SVG: the accuracy of predictions against their probability."""

from __future__ import annotations

from collections.abc import Sequence

from treedot._pages.plot import LEFT, PLOT_STYLE, SIZE, place, square_plot
from treedot.models.probability_evaluation import ReliabilityBin

SMALLEST, LARGEST = 3.0, 12.0  # radius of a point, in pixels
LOW, HIGH = -0.04, 1.04  # the range of the plot, with room for points at its ends
DIAGRAM_STYLE = f"{PLOT_STYLE}.plot .whisker {{ stroke: var(--accent); stroke-dasharray: none }}\n"


def reliability_diagram(bins: Sequence[ReliabilityBin]) -> str:
    """Return a point for each bin, whose area grows with its number of trees."""
    most = max((one.n_trees for one in bins), default=1)
    marks = "".join(_mark(one, (one.n_trees / most) ** 0.5) for one in bins)
    return square_plot(
        marks, LOW, HIGH, "Accuracy against probability", "probability of the predicted class", "accuracy"
    )


def _mark(one: ReliabilityBin, size: float) -> str:
    x, y = LEFT + place(one.confidence, LOW, HIGH), SIZE - place(one.accuracy, LOW, HIGH)
    low, high = (SIZE - place(end, LOW, HIGH) for end in one.interval)
    title = f"mean probability {one.confidence:.3f}, accuracy {one.accuracy:.3f}, {one.n_trees:,} trees"
    radius = max(SMALLEST, LARGEST * size)
    return (
        f'<line class="whisker" x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{title}</title></circle>'
    )
