"""Square plots as SVG, in the colours of the page."""

from __future__ import annotations

import math

SIZE, LEFT, BOTTOM = 420, 60, 40  # of the plot and its margins, in pixels
TICKS = 5
PLOT_STYLE = """
.plot { max-width: 30rem; width: 100% } .plot text { fill: var(--text); font-size: 12px }
.plot circle { fill: var(--accent); fill-opacity: 0.4 } .plot rect { fill: none; stroke: var(--quiet) }
.plot line { stroke: var(--bad); stroke-dasharray: 4 3 }
"""


def place(value: float, low: float, high: float) -> float:
    """Return the distance of a value from the lower end of an axis, in pixels."""
    return (value - low) / (high - low) * SIZE


def square_plot(marks: str, low: float, high: float, title: str, x_name: str, y_name: str) -> str:
    """Return a plot with its diagonal; both axes have the same range, and ``marks`` are SVG elements."""
    marked = "".join(
        f'<text x="{LEFT + place(at, low, high):.0f}" y="{SIZE + 16}" text-anchor="middle">{at:.4g}</text>'
        f'<text x="{LEFT - 6}" y="{SIZE - place(at, low, high) + 4:.0f}" text-anchor="end">{at:.4g}</text>'
        for at in ticks(low, high)
    )
    middle = SIZE / 2
    return (
        f'<svg class="plot" viewBox="0 0 {LEFT + SIZE + 10} {SIZE + BOTTOM}" role="img" aria-label="{title}">'
        f'<rect x="{LEFT}" y="0" width="{SIZE}" height="{SIZE}"/>'
        f'<line x1="{LEFT}" y1="{SIZE}" x2="{LEFT + SIZE}" y2="0"/>{marks}{marked}'
        f'<text x="{LEFT + middle}" y="{SIZE + 34}" text-anchor="middle">{x_name}</text>'
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{y_name}</text></svg>'
    )


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers in a range, about five."""
    rough = (high - low) / TICKS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= rough)
    first = math.ceil(low / step)
    return [step * k for k in range(first, math.floor(high / step) + 1)]
