"""Fig. 5: the time of one comparison, by the size of the trees."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from benchmarks.timing import cpu_seconds, exponent

from paper.corpora import Corpora
from paper.growing import Group, growing
from paper.methods import BOUNDED, COLOURS, DENSE, MIXED, Method
from paper.record import Record, Step, alone
from paper.section import Drawing, Section, Table, panel
from paper.settings import SIZE, Settings
from treedot.kernels import SubsetTreeKernel
from treedot.vectors import dot_products

ROWS: tuple[Method, ...] = (*DENSE, BOUNDED)
TITLE = "Fig. 5: the time of one comparison"
SAMPLE = (
    "Comparable with the paper: the time of a dot product stays the same while those of TK and FTK grow. "
    "Not comparable: from how many nodes on a method is faster, since the trees are functions of Python's "
    "standard library, and microseconds, since the machine is another one."
)
NEEDS = ("qc", "rte")
DECAY = 0.4
COMPARISONS = (1, 10, 100, 1000)
BATCHED = 1000  # dense rows that are multiplied at once
SPARSE = 500  # sparse rows


def steps(corpora: Corpora, settings: Settings) -> dict[str, Step]:
    """Return what is to be measured, by name."""
    return {"CPU times": alone(lambda: [times(group) for group in growing(corpora, settings.timed_pairs)])}


def times(group: Group) -> dict[str, float]:
    """Measure one group of trees: CPU seconds of each evaluation, and of encoding each tree."""
    from threadpoolctl import threadpool_limits

    found = {"nodes": group.total}
    for algorithm in ("TK", "FTK"):
        kernel = SubsetTreeKernel(decay=DECAY, algorithm=algorithm)
        found[algorithm] = cpu_seconds(partial(kernel.pairs, group.forest, group.first, group.second)) / len(
            group.first
        )
    with threadpool_limits(1):
        rows = MIXED.rows(group.forest, DECAY, 0)
        pairs = [(rows[i], rows[j]) for i, j in zip(group.first, group.second, strict=True)]
        found["dot product"] = cpu_seconds(lambda: [x @ y for x, y in pairs]) / len(pairs)
        many = np.resize(rows, (BATCHED, SIZE))
        found["batched"] = cpu_seconds(lambda: many @ many.T) / (len(many) ** 2)
        sparse = BOUNDED.rows(group.forest, DECAY, 0)[np.resize(np.arange(len(group.forest)), SPARSE)]
        found["bounded, batched"] = cpu_seconds(lambda: dot_products(sparse, sparse)) / (SPARSE**2)
    for method in ROWS:
        found[f"encoding {method.name}"] = cpu_seconds(
            partial(method.rows, group.forest, DECAY, 0, n_jobs=1)
        ) / len(group.forest)
    return found


def charged(row: dict[str, float], method: str, comparisons: int) -> float:
    """Return the seconds of a comparison when every tree, encoded once, takes part in so many."""
    return row["dot product"] + 2 * row[f"encoding {method}"] / comparisons


def crossing(nodes: list[float], rising: list[float], other: list[float]) -> str:
    """Say from how many nodes on the rising times are above the others."""
    ahead = [math.log(a / b) for a, b in zip(rising, other, strict=True)]
    below = [k for k, lead in enumerate(ahead) if lead < 0]
    if not below:
        return f"always (from {nodes[0]:.0f} nodes)"
    k = below[-1]
    if k + 1 == len(nodes):
        return f"never (up to {nodes[-1]:.0f} nodes)"
    share = -ahead[k] / (ahead[k + 1] - ahead[k])
    return f"{math.exp(math.log(nodes[k]) + share * math.log(nodes[k + 1] / nodes[k])):.0f}"


def section(record: Record, settings: Settings) -> Section:
    """Return what was found."""
    rows: list[dict[str, float]] = record["CPU times"]
    nodes = [row["nodes"] for row in rows]
    dots = [row["dot product"] for row in rows]
    result = Section(
        "fig5",
        TITLE,
        f"From {nodes[0]:.0f} to {nodes[-1]:.0f} nodes a dot product stays between {min(dots) * 1e6:.1f} "
        f"and {max(dots) * 1e6:.1f} µs, while FTK grows from {rows[0]['FTK'] * 1e6:.1f} to "
        f"{rows[-1]['FTK'] * 1e6:.0f} µs and TK from {rows[0]['TK'] * 1e6:.1f} to "
        f"{rows[-1]['TK'] * 1e6:.0f} µs.",
    )
    contenders = {
        "one dot product": dots,
        "batched dot products": [row["batched"] for row in rows],
        "bounded rows, batched": [row["bounded, batched"] for row in rows],
    }
    for method in DENSE:
        for comparisons in COMPARISONS:
            contenders[f"{method.title}, each tree encoded for {comparisons} comparison(s)"] = [
                charged(row, method.name, comparisons) for row in rows
            ]
    result.blocks += [
        Drawing(
            "fig5", _draw(rows), "CPU time of one kernel evaluation by the total nodes of the two trees."
        ),
        Table(
            [
                "total nodes",
                "TK, µs",
                "FTK, µs",
                "dot product, µs",
                "batched, µs",
                "bounded, batched, µs",
                *(f"encoding {m.title}, µs per tree" for m in ROWS),
            ],
            [
                [
                    f"{row['nodes']:.0f}",
                    *(
                        f"{row[key] * 1e6:.3g}"
                        for key in ("TK", "FTK", "dot product", "batched", "bounded, batched")
                    ),
                    *(f"{row[f'encoding {m.name}'] * 1e6:.0f}" for m in ROWS),
                ]
                for row in rows
            ],
        ),
        f"Growth with the number of nodes n, fitted: TK n^{exponent(nodes, [r['TK'] for r in rows]):z.2f}, "
        f"FTK n^{exponent(nodes, [r['FTK'] for r in rows]):z.2f}, dot product "
        f"n^{exponent(nodes, dots):z.2f}, encoding (mixed) "
        f"n^{exponent(nodes, [r['encoding mixed'] for r in rows]):z.2f}.",
        "From how many total nodes on FTK takes longer than:",
        Table(
            ["contender", "FTK is slower from", "TK is slower from"],
            [
                [name, *(crossing(nodes, [row[key] for row in rows], other) for key in ("FTK", "TK"))]
                for name, other in contenders.items()
            ],
        ),
        f"CPU time of one core, λ = {DECAY}, d = {SIZE}. All kernels are compiled and evaluate one pair "
        "after another on trees that are in memory; a single dot product is a NumPy call from Python. Pairs "
        f"of trees of like size, from {_sources(settings)}; the last group holds the ten largest "
        "trees. The bounded products are of 500 rows with 500, in which the group's trees repeat, their "
        "lists included. In the paper's figure, too, FTK is faster on small trees.",
    ]
    return result


def _sources(settings: Settings) -> str:
    return "Python's standard library" if settings.sample else "questions, texts and hypotheses"


def _draw(rows: list[dict[str, float]]) -> list[Any]:
    """Draw all times; the legend is beside the curves, in the order in which they end."""
    figure, axes = panel(
        xlabel="nodes of the two trees together", ylabel="µs per evaluation", xscale="log", yscale="log"
    )
    figure.set_size_inches(8.4, 4.4)
    nodes = [row["nodes"] for row in rows]
    for method, what, style, label in (
        ("TK", "TK", "o-", "TK"),
        ("FTK", "FTK", "s-", "FTK"),
        ("mixed", "dot product", "o-", f"{MIXED.title}, one dot product"),
        ("mixed", "batched", "^-", f"{MIXED.title}, batched"),
        ("bounded", "bounded, batched", "v-", f"{BOUNDED.title}, batched"),
    ):
        times = [row[what] * 1e6 for row in rows]
        axes.plot(nodes, times, style, color=COLOURS[method], label=label, markersize=4)
    for comparisons, style in zip(COMPARISONS, ("D:", "P-.", "x--", "*:"), strict=True):
        axes.plot(
            nodes,
            [charged(row, "mixed", comparisons) * 1e6 for row in rows],
            style,
            color=COLOURS["mixed"],
            linewidth=1,
            markersize=5,
            label=f"{MIXED.title}, encoding charged to {comparisons}",
        )
    curves = sorted(axes.get_lines(), key=lambda curve: -curve.get_ydata()[-1])
    figure.legend(handles=curves, loc="outside right upper", fontsize=8, handlelength=3.5, frameon=False)
    return [figure]
