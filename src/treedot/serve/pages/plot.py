"""A plot of estimates against the size of vectors, as SVG in the colours of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from treedot._pages.plot import ticks
from treedot.serve.estimates import Estimate
from treedot.serve.fields import COMPONENTS

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 240, 60, 12, 44  # of the plot inside its margins, in pixels
SPREAD = 20  # between the first and the last seed, in pixels


def ladder_plot(exact: float, ladder: Iterable[Estimate]) -> str:
    """Return the estimates of every size as points, with their mean and error, and the exact kernel."""
    found = list(ladder)
    values = [exact, *(value for one in found for value in one.values)]
    margin = 0.06 * (max(values) - min(values)) or 0.5
    low, high = min(values) - margin, max(values) + margin

    def y(value: float) -> float:
        return TOP + HEIGHT * (high - value) / (high - low)

    axis = "".join(
        f'{_line("grid", y(at))}<text x="{LEFT - 6}" y="{y(at) + 4:.1f}" text-anchor="end">{at:.4g}</text>'
        for at in ticks(low, high)
    )
    sizes = "".join(
        f'<text x="{_x(size):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{size:,}</text>'
        for size in COMPONENTS
    )
    columns = "".join(_column(one, y) for one in found)
    name = f"Estimates with {len(found[0].values)} seeds for every size of vectors"
    return (
        f'<svg class="ladder" viewBox="0 0 {LEFT + WIDTH + 10} {TOP + HEIGHT + BOTTOM}" role="img" '
        f'aria-label="{name}"><rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"/>{axis}{sizes}'
        f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 38}" text-anchor="middle">numbers in a vector, d'
        f"</text>{_line('exact', y(exact))}{columns}</svg>"
    )


def _line(name: str, y: float) -> str:
    return f'<line class="{name}" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _x(size: int) -> float:
    place = math.log2(size / COMPONENTS[0]) + 0.5
    return LEFT + WIDTH * place / len(COMPONENTS)


def _column(one: Estimate, y: Callable[[float], float]) -> str:
    x, n = _x(one.components), len(one.values)
    points = "".join(
        f'<circle cx="{x + SPREAD * (k / (n - 1) - 0.5):.1f}" cy="{y(value):.1f}" r="2.5">'
        f"<title>seed {k}: {value:.4f}</title></circle>"
        for k, value in enumerate(one.values)
    )
    top, bottom = y(one.mean + one.error), y(one.mean - one.error)
    bar = f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}M{x - 7:.1f} {y(one.mean):.1f}h14"/>'
    return f"<g>{points}{bar}</g>"
