"""Table 1: how time and memory grow with the trees."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from benchmarks.timing import cpu_seconds, exponent

from paper.corpora import Corpora
from paper.growing import Group, growing
from paper.methods import COLOURS, MIXED
from paper.record import Record, Step, alone
from paper.rivals.label_selection import LabelSelectionKernel
from paper.rivals.label_selection_transformer import LabelSelectionTransformer
from paper.rivals.mined_fragment_vectorizer import MinedFragmentVectorizer
from paper.section import Drawing, Section, Table, panel
from paper.settings import SIZE, Settings
from treedot.kernels import SubsetTreeKernel
from treedot.vectors import DenseEncoder, DenseSpec

TITLE = "Table 1: how time and memory grow"
SAMPLE = (
    "Comparable with the paper: which methods grow with the trees and which do not, and that TK grows most. "
    "Not comparable: the exponents, since the trees are functions of Python's standard library, and ATK and "
    "FTK+FS learn from the example questions; microseconds, since the machine is another one."
)
NEEDS = ("qc", "rte")
DECAY = 0.4
FEWEST = 500  # pairs that a kernel is timed on
SHARE = 0.5  # of the comparisons that label selection may spend
QUESTIONS = 1000  # for learning which labels and which fragments matter
PRINTED = {
    "TK": ("O(n²)", "O(n²)", "O(n²)", "O(n²)"),
    "FTK": ("A(n)", "O(n²)", "A(n)", "O(n²)"),
    "FTK+FS": ("A(n)", "O(n²)", "k", "k"),
    "ATK": ("O(n²/q)", "O(n²)", "O(n²/q)", "O(n²)"),
    "DTK": ("d", "d", "d", "d"),
}


def steps(corpora: Corpora, settings: Settings) -> dict[str, Step]:
    """Return what is to be measured, by name."""
    return {"costs, CPU time": alone(costs, corpora, settings)}


def costs(corpora: Corpora, settings: Settings) -> dict[str, Any]:
    """Measure every method on trees of growing size, after learning on questions what is to be learnt."""
    questions = corpora.train[: min(QUESTIONS, settings.questions or QUESTIONS)]
    classes = questions.columns["coarse"]
    labels = LabelSelectionTransformer(decay=DECAY, normalize=False, comparisons=SHARE).fit(
        questions, classes
    )
    selector = MinedFragmentVectorizer(n_fragments=settings.kept_fragments, decay=DECAY).fit(
        questions, classes
    )
    approximate = LabelSelectionKernel(labels.labels_, decay=DECAY)
    return {
        "questions": len(questions),
        "speed-up": float(labels.speedup_),
        "fragments": len(selector.fragments_),
        "groups": [_group(group, approximate, selector) for group in growing(corpora, settings.timed_pairs)],
    }


def _group(
    group: Group, approximate: LabelSelectionKernel, selector: MinedFragmentVectorizer
) -> dict[str, Any]:
    n = len(group.first)
    timed = max(n, FEWEST)  # pairs, some of them several times, so that the cost of a call hardly counts
    first, second = (np.resize(np.asarray(side), timed) for side in (group.first, group.second))
    found: dict[str, Any] = {"nodes": group.total / 2}
    kernels: dict[str, SubsetTreeKernel | LabelSelectionKernel] = {
        "TK": SubsetTreeKernel(decay=DECAY, algorithm="TK"),
        "FTK": SubsetTreeKernel(decay=DECAY, algorithm="FTK"),
        "ATK": approximate,
    }
    for name, kernel in kernels.items():
        took = cpu_seconds(partial(kernel.pairs, group.forest, first, second)) / timed
        entries = np.mean(
            [
                kernel.work(group.forest[[i]], group.forest[[j]])
                for i, j in zip(group.first, group.second, strict=True)
            ]
        )
        found[name] = {"seconds": took, "bytes": 8 * max(float(entries), 1.0)}
    selected = selector.transform(group.forest)
    found["FTK+FS"] = {
        "seconds": cpu_seconds(lambda: selector.transform(group.forest)) / len(group.forest),
        "bytes": max(12 * selected.nnz / len(group.forest), 1.0),
    }
    rows = MIXED.rows(group.forest, DECAY, 0)
    pairs = [(rows[i], rows[j]) for i, j in zip(group.first, group.second, strict=True)]
    found["DTK"] = {"seconds": cpu_seconds(lambda: [x @ y for x, y in pairs]) / n, "bytes": 4.0 * SIZE}
    encoder = DenseEncoder(DenseSpec(SIZE, DECAY, MIXED.name, normalize=False))
    found["encoding"] = {
        "seconds": cpu_seconds(lambda: encoder.encode(group.forest, n_jobs=1)) / len(group.forest),
        "bytes": 4.0 * SIZE,
    }
    return found


def section(record: Record, settings: Settings) -> Section:
    """Return what was found."""
    measured = record["costs, CPU time"]
    groups = measured["groups"]
    grows = {name: _growth(groups, name) for name in (*PRINTED, "encoding")}
    result = Section(
        "table1",
        TITLE,
        f"One evaluation grows as n^{grows['TK'][0]:z.1f} for TK, as n^{grows['FTK'][0]:z.1f} for FTK and as "
        f"n^{grows['DTK'][0]:z.1f} for DTK, a dot product; encoding a tree, done once, grows as "
        f"n^{grows['encoding'][0]:z.1f}.",
    )
    rows = []
    for name, printed in PRINTED.items():
        seconds, size = (f"n^{b:z.2f}" for b in grows[name])
        learning = tuple(f"n^{b:z.2f}" for b in grows["FTK" if name == "FTK+FS" else name])
        rows.append([name, *(f"{p}: {m}" for p, m in zip(printed, (*learning, seconds, size), strict=True))])
    result.blocks += [
        Table(
            [
                "method",
                "learning, time",
                "learning, memory",
                "classification, time",
                "classification, memory",
            ],
            rows,
        ),
        "The paper's complexity: the exponent of n, the nodes of one tree, fitted to the figures below "
        "(CPU seconds of one evaluation; bytes of Δ entries, of the kept fragments of a tree, or of a "
        "vector). FTK+FS learns with FTK and classifies a tree by matching the kept fragments; matching "
        "reads the tree, so its time cannot be independent of n as the paper's k suggests. ATK keeps the "
        f"labels chosen on {measured['questions']} questions for {SHARE} of the comparisons, q = "
        f"{measured['speed-up']:.1f}; FTK+FS keeps {measured['fragments']} fragments.",
        Drawing("table1", _draw(groups), "CPU time and memory of one evaluation by the nodes of a tree."),
        Table(
            [
                "nodes",
                *(f"{name}, µs" for name in (*PRINTED, "encoding")),
                *(f"{name}, KB" for name in PRINTED),
            ],
            [
                [
                    f"{g['nodes']:.0f}",
                    *(f"{g[name]['seconds'] * 1e6:.1f}" for name in (*PRINTED, "encoding")),
                    *(f"{g[name]['bytes'] / 1e3:.1f}" for name in PRINTED),
                ]
                for g in groups
            ],
        ),
    ]
    return result


def _growth(groups: list[dict[str, Any]], name: str) -> tuple[float, float]:
    nodes = [group["nodes"] for group in groups]
    return (
        exponent(nodes, [group[name]["seconds"] for group in groups]),
        exponent(nodes, [group[name]["bytes"] for group in groups]),
    )


def _draw(groups: list[dict[str, Any]]) -> list[Any]:
    figures = []
    nodes = [group["nodes"] for group in groups]
    for what, factor, title in (("seconds", 1e6, "µs"), ("bytes", 1e-3, "KB")):
        figure, axes = panel(title, xlabel="nodes of a tree", xscale="log", yscale="log")
        for name in (*PRINTED, "encoding"):
            vectors = name in ("DTK", "encoding")
            label = {"DTK": MIXED.title, "encoding": f"{MIXED.title}, encoding"}.get(name, name)
            axes.plot(
                nodes,
                [group[name][what] * factor for group in groups],
                "^--" if name == "encoding" else "o-",
                color=COLOURS["mixed" if vectors else name],
                label=label,
                markersize=4,
            )
        axes.legend(fontsize=8)
        figures.append(figure)
    return figures
