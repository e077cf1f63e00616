"""Fig. 2 and Properties 1 and 2: how nearly ideal the compositions are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from paper import properties
from paper.corpora import Corpora
from paper.methods import COLOURS, DENSE
from paper.record import Record, Step, alone
from paper.section import Drawing, Section, Table, panel
from paper.settings import SIZE, Settings
from treedot.kernels import count_fragments, list_fragments
from treedot.trees import Forest, Tree
from treedot.vectors.dense.compositions import ALGEBRAS
from treedot.vectors.dense.reference import fragment_vector

TITLE = "Fig. 2: how nearly ideal the compositions are"
SAMPLE = (
    "Comparable with the paper: the drawing and the table of statements, which need no corpus. Not "
    "comparable: the tables of fragments, which are of the example questions."
)
NEEDS = ("qc",)
MOST = 20  # vectors in a composition
# Shared vectors up to which growth is fitted: beyond, rare giants carry the variance, which samples miss.
FITTED = 6
SMALL_SIZES = (1024, 2048, 4096)
MOST_FRAGMENTS = 2000  # of a tree whose fragments are written out
COMPOSITIONS = tuple(method.name for method in DENSE)


def steps(corpora: Corpora, settings: Settings) -> dict[str, Step]:
    """Return what is to be measured, by name."""
    plan: dict[str, Step] = {}
    for composition in COMPOSITIONS:
        for seed in range(settings.seeds):
            plan[f"{composition} seed {seed}"] = alone(compositions, composition, seed, settings.samples)
        plan[f"{composition} fragments"] = alone(
            lambda c: fragment_properties(corpora.train, c, settings.fragments), composition
        )
    return plan


def compositions(composition: str, seed: int, samples: int) -> dict[str, Any]:
    """Measure norms, and dot products of compositions that have all vectors but one in common."""
    algebra = ALGEBRAS[composition](SIZE, seed)
    measured = {
        "norm": properties.norms(algebra, MOST, samples),
        "first changed": properties.one_changed(algebra, MOST, samples),
        "last changed": properties.one_changed(algebra, MOST, samples, last=True),
        "alone": properties.similarities(algebra, MOST, samples),
    }
    return {
        name: {"mean": spread.mean.tolist(), "variance": spread.variance.tolist()}
        for name, spread in measured.items()
    }


def sample_fragments(forest: Forest, count: int, seed: int = 0) -> list[Tree]:
    """Return distinct fragments of trees drawn at random, in equal shares of every number of productions."""
    random = np.random.default_rng(seed)
    found: dict[int, dict[Tree, None]] = {}
    for i in random.permutation(len(forest)):
        tree = forest[int(i)]
        if count_fragments(tree) <= MOST_FRAGMENTS:
            for fragment in list_fragments(tree):
                found.setdefault(_productions(fragment), {})[fragment] = None
        if sum(map(len, found.values())) > 20 * count:
            break
    chosen: list[Tree] = []
    groups = sorted(found.values(), key=len)
    for k, fitting in enumerate(groups):  # small groups leave room for the larger ones
        share = math.ceil((count - len(chosen)) / (len(groups) - k))
        group = list(fitting)
        chosen += [group[i] for i in random.permutation(len(group))[:share]]
    return chosen[:count]


def fragment_properties(forest: Forest, composition: str, count: int) -> dict[str, Any]:
    """Measure Property 1, norms by size, and Property 2, dot products of all pairs by size."""
    chosen = sample_fragments(forest, count)
    sizes = np.array([_productions(fragment) for fragment in chosen])
    by_size: dict[str, Any] = {}
    epsilon: dict[str, Any] = {}
    for size in (*SMALL_SIZES, SIZE):
        algebra = ALGEBRAS[composition](size, 0)
        vectors = np.array([fragment_vector(fragment, algebra) for fragment in chosen])
        products = vectors @ vectors.T
        norms = np.sqrt(np.diagonal(products))
        np.fill_diagonal(products, 0.0)
        largest = np.abs(products).max(axis=1)
        epsilon[str(size)] = {
            "fragments": len(chosen),
            "largest": float(largest.max()),
            "root mean square": float(np.sqrt((products**2).sum() / (len(chosen) * (len(chosen) - 1)))),
            "norm off by": float(np.abs(norms - 1).max()),
            "norm off by, median": float(np.median(np.abs(norms - 1))),
        }
        if size == SIZE:
            for low, high in ((1, 2), (3, 4), (5, 8), (9, 16), (17, 10**9)):
                group = (sizes >= low) & (sizes <= high)
                if group.any():
                    within = products[np.ix_(group, group)]
                    by_size[
                        str(low) if high == low else f"{low}-{high}" if high < 10**9 else f"{low} and more"
                    ] = {
                        "fragments": int(group.sum()),
                        "norm": float(norms[group].mean()),
                        "norm spread": float(norms[group].std()),
                        "dot product": float(within.sum() / max(group.sum() * (group.sum() - 1), 1)),
                        "root mean square": float(
                            np.sqrt((within**2).sum() / max(group.sum() * (group.sum() - 1), 1))
                        ),
                        "largest": float(np.abs(within).max()),
                    }
    return {"by size": by_size, "epsilon": epsilon}


def lindenstrauss(fragments: int, size: int) -> float:
    """Return the ε that all pairs of so many random unit vectors stay below, more likely than not.

    A dot product of two of them is nearly normal with variance 1/d, so a union bound over the m²/2
    pairs gives ε = √(4 ln m / d): the Johnson-Lindenstrauss relation, d = 4 ln m / ε².
    """
    return math.sqrt(4 * math.log(fragments) / size)


def section(record: Record, settings: Settings) -> Section:
    """Return what was found."""
    means = {c: _over_seeds(record, c, settings.seeds) for c in COMPOSITIONS}
    titles = {method.name: method.title for method in DENSE}
    longest = {c: means[c]["norm"]["mean"][-1] for c in COMPOSITIONS}
    alone = max(np.abs(means[c]["alone"]["mean"]).max() for c in COMPOSITIONS)
    growth = {c: growth_per_vector(means[c]["first changed"]["variance"]) for c in COMPOSITIONS}
    result = Section(
        "fig2",
        TITLE,
        f"Composing {MOST} vectors leaves the norm at {longest['convolution']:.2f} with ⊡ and at "
        f"{longest['product']:.2f} with ⊠; our mixed product keeps "
        f"{longest['mixed']:.2f}.",
    )
    result.blocks += [
        Drawing(
            "fig2",
            _draw(means, titles),
            "Norms (a), and the variance of the dot product of two compositions "
            "that share all vectors but the first (b) or the last (c).",
        ),
        Table(
            ["statement of the paper", "measured"],
            [
                [
                    "2.4: ⊡ keeps norms much better than ⊠",
                    _verdict(
                        abs(longest["convolution"] - 1) < 0.1 * abs(longest["product"] - 1),
                        f"|norm - 1| at {MOST} vectors: ⊡ {abs(longest['convolution'] - 1):.3f}, "
                        f"⊠ {abs(longest['product'] - 1):.3f}",
                    ),
                ],
                [
                    "2.5: average similarities below 1 %",
                    _verdict(alone < 0.01, f"largest average {alone:.4f}"),
                ],
                [
                    "2.6: the variance grows with ⊠, less with ⊡",
                    _verdict(
                        growth["product"] > 1.5 * max(1.0, growth["convolution"]),
                        f"fitted over 1 to {FITTED} shared vectors, each makes it {growth['product']:.2f} "
                        f"times as large with ⊠ (1.5 are wanted), {growth['convolution']:.2f} times with ⊡ "
                        f"and {growth['mixed']:.2f} times with mixed; at {MOST}: ⊠ "
                        f"{_variance(means, 'product'):.2e}, ⊡ {_variance(means, 'convolution'):.2e}, "
                        f"mixed {_variance(means, 'mixed'):.2e} (1/d = {1 / SIZE:.2e})",
                    ),
                ],
            ],
        ),
        f"d = {SIZE}, {settings.samples} samples, {settings.seeds} seeds (mean). Properties 1 and 2 "
        f"(Lemmas 1 and 2) on fragments of {'example' if settings.sample else 'real'} questions, as many of "
        "every size as there are, up to equal shares:",
        Table(
            [
                "composition",
                "productions",
                "fragments",
                "norm",
                "± ",
                "mean dot product",
                "root mean square",
                "largest",
            ],
            [
                [
                    titles[c],
                    size,
                    row["fragments"],
                    f"{row['norm']:.3f}",
                    f"{row['norm spread']:.3f}",
                    f"{row['dot product']:.5f}",
                    f"{row['root mean square']:.4f}",
                    f"{row['largest']:.3f}",
                ]
                for c in COMPOSITIONS
                for size, row in record[f"{c} fragments"]["by size"].items()
            ],
        ),
        "The ε that d buys: the largest |dot product| among m fragments, beside √(4 ln m / d), which m "
        "random unit vectors would reach.",
        Table(
            [
                "composition",
                "d",
                "m",
                "largest",
                "√(4 ln m / d)",
                "root mean square",
                "1/√d",
                "|norm - 1|, largest (median)",
            ],
            [
                [
                    titles[c],
                    size,
                    row["fragments"],
                    f"{row['largest']:.3f}",
                    f"{lindenstrauss(row['fragments'], int(size)):.3f}",
                    f"{row['root mean square']:.4f}",
                    f"{1 / math.sqrt(int(size)):.4f}",
                    f"{row['norm off by']:.3f} ({row['norm off by, median']:.3f})",
                ]
                for c in COMPOSITIONS
                for size, row in record[f"{c} fragments"]["epsilon"].items()
            ],
        ),
    ]
    return result


def _productions(fragment: Tree) -> int:
    return sum(1 for node in fragment.postorder() if node.children)


def _over_seeds(record: Record, composition: str, seeds: int) -> dict[str, dict[str, np.ndarray]]:
    runs = [record[f"{composition} seed {seed}"] for seed in range(seeds)]
    return {
        what: {of: np.mean([run[what][of] for run in runs], axis=0) for of in ("mean", "variance")}
        for what in runs[0]
    }


def _variance(means: dict[str, Any], composition: str) -> float:
    return float(means[composition]["first changed"]["variance"][-1])


def growth_per_vector(variance: np.ndarray) -> float:
    """Return the factor by which each further shared vector changes a variance: that of the best fit."""
    return float(np.exp(np.polyfit(np.arange(FITTED), np.log(variance[:FITTED]), 1)[0]))


def _verdict(holds: bool, text: str) -> str:
    return f"{'✓' if holds else '✗'} {text}"


def _draw(means: dict[str, Any], titles: dict[str, str]) -> list[Any]:
    norms = panel("(a) norm", xlabel="composed vectors", ylim=(0, 1.3))
    first = panel("(b) variance, the first differs", xlabel="shared vectors", yscale="log")
    last = panel("(c) variance, the last differs", xlabel="shared vectors", yscale="log")
    for (_, axes), what, of in (
        (norms, "norm", "mean"),
        (first, "first changed", "variance"),
        (last, "last changed", "variance"),
    ):
        for name, mean in means.items():
            axes.plot(np.arange(1, MOST + 1), mean[what][of], color=COLOURS[name], label=titles[name])
        axes.legend()
    last[1].set_ylim(first[1].get_ylim())
    return [figure for figure, _ in (norms, first, last)]
