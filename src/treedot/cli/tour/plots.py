"""Plots as SVG inside a page, in the page's own colours."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

WIDTH, HEIGHT = 500, 340  # pixels
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 14, 48  # margins
NAMES = 102  # the right margin where it holds the names of lines
NAME_LINE = 16  # pixels from one line of a name to the next
SIDE = 360  # of a scatter plot

STYLE = """
.plot { display: block; width: 100%; max-width: 34rem; height: auto; margin: auto }
.plot { font: 13px system-ui, sans-serif }
.plot text { fill: currentColor } .plot .tick { fill: var(--quiet); font-size: 12px }
.plot path { fill: none; stroke: var(--ink, currentColor) }
.plot .grid { stroke: var(--line) } .plot .mark { stroke: var(--quiet); stroke-dasharray: 2 3 }
.plot .line { stroke-width: 2 } .plot .beyond { stroke-width: 2; stroke-dasharray: 6 5; opacity: 0.75 }
.plot circle { fill: var(--ink) }
.plot .name { fill: var(--ink); font-weight: 600 }
.plot .points { stroke-width: 2.4; stroke-linecap: round; opacity: 0.5; --ink: var(--accent) }
.plot .exact { --ink: var(--bad) } .plot .dense { --ink: var(--accent) } .plot .sparse { --ink: var(--good) }
"""


class Curve(NamedTuple):
    """A line of a plot: measured points, and further ones that are calculated."""

    kind: str  # the class of its colour
    name: str
    points: list[tuple[float, float]]
    beyond: list[tuple[float, float]]


class Scale(NamedTuple):
    """Maps numbers from ``low`` to ``high`` to pixels from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: Any) -> Any:
        """Return the pixel of a number, or those of an array of numbers."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def log_plot(
    title: str,
    curves: Sequence[Curve],
    x_name: str,
    y_text: Callable[[float], str],
    mark: float | None = None,
) -> str:
    """Return lines on two logarithmic axes with a line per decade; ``mark`` is a value of x to mark."""
    points = np.log10([point for curve in curves for point in curve.points + curve.beyond])
    low, high = np.floor(points[:, 1].min()), np.ceil(points[:, 1].max())
    left, right = points[:, 0].min(), points[:, 0].max()
    x = Scale(left, right if right > left else left + 1, LEFT, WIDTH - NAMES)
    y = Scale(low, max(high, low + 1), HEIGHT - BOTTOM, TOP)
    x_ticks = [(d, f"{10**d:,}") for d in range(math.ceil(x.low), math.floor(x.high) + 1)]
    y_ticks = [(d, y_text(10.0**d)) for d in range(int(y.low), int(y.high) + 1)]
    drawn = _axes(x, y, x_ticks, y_ticks, x_name)
    if mark is not None:
        at = x(math.log10(mark))
        drawn += f'<path class="mark" d="M{at:.1f} {y.start:.1f}V{y.end:.1f}"/>'
    ends = [y(math.log10((curve.beyond or curve.points)[-1][1])) for curve in curves]
    names = _apart(ends, 2 * NAME_LINE + 2)
    drawn += "".join(_curve(curve, x, y, at) for curve, at in zip(curves, names, strict=True))
    return _svg(title, WIDTH, HEIGHT, drawn)


def scatter(title: str, x_values: np.ndarray, y_values: np.ndarray, x_name: str, y_name: str) -> str:
    """Return points whose two values should be equal, from 0 to 1, and the diagonal.

    Points that would cover each other are drawn once.
    """
    x, y = Scale(0, 1, LEFT, LEFT + SIDE), Scale(0, 1, TOP + SIDE, TOP)
    ticks = [(tick / 4, f"{tick / 4:g}") for tick in range(5)]
    drawn = _axes(x, y, ticks, ticks, x_name, y_name)
    drawn += f'<path class="mark" d="M{x(0):.0f} {y(0):.0f}L{x(1):.0f} {y(1):.0f}"/>'
    pixels = np.unique(np.round(np.column_stack([x(x_values), y(y_values)])).astype(int), axis=0)
    dots = "".join(f"M{across} {down}h0" for across, down in pixels.tolist())
    drawn += f'<path class="points" d="{dots}"/>'
    return _svg(title, LEFT + SIDE + RIGHT, TOP + SIDE + BOTTOM, drawn)


def _axes(
    x: Scale,
    y: Scale,
    x_ticks: Sequence[tuple[float, str]],
    y_ticks: Sequence[tuple[float, str]],
    x_name: str,
    y_name: str = "",
) -> str:
    lines = [f"M{x(tick):.1f} {y.start:.1f}V{y.end:.1f}" for tick, _ in x_ticks]
    lines += [f"M{x.start:.1f} {y(tick):.1f}H{x.end:.1f}" for tick, _ in y_ticks]
    parts = [f'<path class="grid" d="{"".join(lines)}"/>']
    parts += [_text(x(tick), y.start + 17, text, "middle", "tick") for tick, text in x_ticks]
    parts += [_text(x.start - 7, y(tick) + 4, text, "end", "tick") for tick, text in y_ticks]
    parts.append(_text((x.start + x.end) / 2, y.start + 39, x_name, "middle"))
    if y_name:
        middle = (y.start + y.end) / 2
        parts.append(_text(16, middle, y_name, "middle", turn=f"rotate(-90 16 {middle:.0f})"))
    return "".join(parts)


def _apart(heights: Sequence[float], distance: float) -> list[float]:
    """Return heights that keep a distance: those that are too close to one above move down.

    >>> _apart([10, 100, 20], 30)
    [10, 100, 40]
    """
    placed = list(heights)
    order = sorted(range(len(placed)), key=placed.__getitem__)
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + distance)
    return placed


def _curve(curve: Curve, x: Scale, y: Scale, name_at: float) -> str:
    """Return a line with its points, and its name beside its end, one word or two per line of text."""

    def pixels(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(x(math.log10(a)), y(math.log10(b))) for a, b in points]

    def path(points: Sequence[tuple[float, float]], kind: str) -> str:
        return f'<path class="{kind}" d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in points)}"/>'

    shown, beyond = pixels(curve.points), pixels(curve.beyond)
    drawn = path(shown, "line") + (path([shown[-1], *beyond], "beyond") if beyond else "")
    drawn += "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in shown)
    first, _, rest = curve.name.partition(" ")
    name = _text(x.end + 8, name_at, first, "start", "name")
    name += _text(x.end + 8, name_at + NAME_LINE, rest, "start", "name")
    return f'<g class="{curve.kind}">{drawn}{name}</g>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "", turn: str = "") -> str:
    more = (f' class="{kind}"' if kind else "") + (f' transform="{turn}"' if turn else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(text)}</text>'


def _svg(title: str, width: int, height: int, content: str) -> str:
    label = html.escape(title, quote=True)
    return f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{content}</svg>'
