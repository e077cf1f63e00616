"""The part of the tour on time and memory: two plots, a table, and where the lines cross."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import treedot as td
from treedot._pages.page import table
from treedot._runtime.jit import COMPILED
from treedot.cli.tour.library import LARGEST_PIECE, SMALLEST_PIECE, pieces
from treedot.cli.tour.plots import Curve, log_plot
from treedot.cli.tour.quantities import bytes_text, rounded, seconds_text
from treedot.cli.tour.scaling import (
    COMPONENTS,
    MOST_BYTES,
    PATIENCE,
    SIZES,
    Growth,
    crossing,
    growths,
)
from treedot.cli.tour.section import beside, code, measured, paragraph, picture, step


def growth_part(functions: td.Forest, report: Callable[[], object]) -> tuple[str, list[str]]:
    """Measure on pieces of functions; return HTML, and the lines to print."""
    found = growths(pieces(functions, SIZES[-1]), report)
    mark = crossing(found[0], found[1])
    plots = beside(
        ("Time", log_plot("Time against the number of trees", _times(found), "trees", seconds_text, mark)),
        ("Memory of the result", log_plot("Memory of the result", _sizes(found), "trees", bytes_text)),
    )
    dotted = " (dotted line)" if mark is not None else ""
    html = [
        step("Time and memory against the number of trees"),
        paragraph(
            "A learner that uses the exact kernel compares every pair of trees: <i>n</i>² numbers. A vector "
            "is made once per tree, and linear models, nearest neighbours and clustering take vectors as "
            "they are.",
            f"{code('DistributedTreeVectorizer')} makes dense vectors of {COMPONENTS:,} numbers;",
            f"{code('FragmentVectorizer')} makes sparse rows, which hold only small fragments, and these "
            "exactly, apart from hash collisions.",
        ),
        paragraph(
            f"The trees are {found[0].sizes[-1]:,} different statements and expressions of {SMALLEST_PIECE} "
            f"to {LARGEST_PIECE} nodes from the standard library. The times are those of this machine, with "
            f"all cores. They were measured while this page was made, {_warm_up_words()}.",
        ),
        measured(
            picture(plots, f"{crossing_words(found)}{dotted}.", _slope_words(found), _dashes_words(found))
        ),
        measured(_table(found)),
    ]
    return "".join(html), [f"  {_line(found)}", f"  {crossing_words(found)}"]


def _warm_up_words() -> str:
    return "after a warm-up that compiles code" if COMPILED else "with plain Python instead of compiled code"


def crossing_words(found: Sequence[Growth]) -> str:
    """Return from which number of trees dense vectors take less time than the Gram matrix."""
    exact, dense = found[0], found[1]
    at = crossing(exact, dense)
    if at is not None:
        return f"From about {rounded(at):,.0f} trees, dense vectors take less time than the exact Gram matrix"
    last = min(len(exact.seconds), len(dense.seconds)) - 1
    if exact.seconds[last] < dense.seconds[last]:
        return (
            f"The lines do not cross: up to {exact.trees[last]:,} trees, the exact Gram matrix takes less "
            "time than dense vectors"
        )
    return (
        f"The lines do not cross: already for {exact.trees[0]:,} trees, dense vectors take less time than "
        "the exact Gram matrix"
    )


def _slope_words(found: Sequence[Growth]) -> str:
    exact, dense = (one.way.exponent for one in found[:2])
    return (
        f"Both axes are logarithmic: a time that grows with <i>n</i>² has the slope {exact}, as the exact "
        f"matrix should, and one that grows with <i>n</i> the slope {dense}."
    )


def _dashes_words(found: Sequence[Growth]) -> str:
    if all(one.is_complete for one in found):
        return ""
    return (
        "A dashed line is not measured: it extends the last point with the theoretical slope. Measuring "
        f"stops after a step of more than {PATIENCE:g} s, or before a result of more than "
        f"{bytes_text(MOST_BYTES)}."
    )


def _table(found: Sequence[Growth]) -> str:
    largest = f"{found[0].sizes[-1]:,} trees"
    rows = [
        (
            one.way.name,
            "–" if one.slope is None else f"{one.slope:.1f}",
            f"{one.trees[-1]:,}",
            _time_at_most(one),
            bytes_text(one.at_most(one.memory)),
        )
        for one in found
    ]
    header = ("", "measured slope", "measured up to", f"time, {largest}", f"memory, {largest}")
    return table(header, rows)


def _line(found: Sequence[Growth]) -> str:
    times = ", ".join(
        f"{one.way.name} {_time_at_most(one)} and {bytes_text(one.at_most(one.memory))}" for one in found
    )
    return f"{found[0].sizes[-1]:,} trees: {times}"


def _time_at_most(one: Growth) -> str:
    text = seconds_text(one.at_most(one.seconds))
    return text if one.is_complete else f"about {text} (extrapolated)"


def _times(found: Sequence[Growth]) -> list[Curve]:
    return [_curve(one, one.seconds) for one in found]


def _sizes(found: Sequence[Growth]) -> list[Curve]:
    return [_curve(one, one.memory) for one in found]


def _curve(one: Growth, values: Sequence[float]) -> Curve:
    return Curve(one.way.kind, one.way.name, list(zip(one.trees, values, strict=True)), one.beyond(values))
