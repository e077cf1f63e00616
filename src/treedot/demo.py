"""The demonstration: the functions of Python's own standard library, compared by structure."""

from __future__ import annotations

import html
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from treedot.encode import DenseEncoder, DenseSpec
from treedot.errors import SourceError
from treedot.files import write_whole
from treedot.kernels import SubsetTreeKernel
from treedot.page import figure, page, require_plots, table
from treedot.readers.python_code import read_functions
from treedot.trees import Forest
from treedot.vectors.fidelity import different_pairs, error_over_floor, spearman

DECAYS = (0.1, 0.2, 0.4, 0.6)
SIZE = 8192
COMPARED = 400  # functions whose exact kernels are computed for every decay
SMALLEST, LARGEST = 30, 600
SEARCH_DECAY = 0.4
PAIRS = 10


@dataclass(frozen=True)
class Comparison:
    """Vectors against the exact kernel at one decay."""

    decay: float
    exact: np.ndarray
    estimate: np.ndarray
    exact_seconds: float
    encode_seconds: float
    product_seconds: float

    @property
    def spearman(self) -> float:
        """Spearman's correlation of dot products and exact kernels."""
        return spearman(self.exact, self.estimate)

    @property
    def error(self) -> float:
        """Root mean square of error over floor."""
        return error_over_floor(self.exact, self.estimate, SIZE)


def run(out: Path, n_functions: int, say: Callable[[str], object] = print) -> Path:
    """Compare functions, print what was found, and write ``index.html`` to a folder."""
    require_plots("the demo")
    forest = standard_library(n_functions)
    say(f"{len(forest)} functions of the standard library, {forest.n_nodes} nodes")
    _warm_up(forest[:2])

    comparisons = [compare(forest[:COMPARED], decay) for decay in DECAYS]
    say(f"\nDot products of {SIZE} numbers against the exact kernel, {COMPARED} functions:")
    say("  λ    Spearman  error/floor  exact Gram  encoding  dot products")
    for c in comparisons:
        say(
            f"  {c.decay}  {c.spearman:8.3f}  {c.error:11.2f}  {c.exact_seconds:9.2f}s  "
            f"{c.encode_seconds:7.2f}s  {c.product_seconds:11.3f}s"
        )

    found, seconds = most_similar(forest)
    say(f"\nThe {len(found)} most similar pairs of different functions (search: {seconds:.2f}s):")
    for pair in found:
        say(f"  {pair['exact']:.3f}  {pair['a']}  ~  {pair['b']}")

    out.mkdir(parents=True, exist_ok=True)
    target = out / "index.html"
    with write_whole(target) as aside:
        aside.write_text(report(forest, comparisons, found, seconds), encoding="utf-8")
    say(f"\nThe report with plots: {target}")
    return target


def standard_library(n_functions: int) -> Forest:
    """Return functions of moderate size from all over the standard library, always the same ones."""
    root = Path(sysconfig.get_paths()["stdlib"])
    skipped = {
        "site-packages",
        "dist-packages",
        "test",
        "tests",
        "encodings",
        "idlelib",
        "lib2to3",
        "turtledemo",
    }
    paths = sorted(p for p in root.rglob("*.py") if not skipped & set(p.relative_to(root).parts))
    if not paths:
        raise SourceError(f"there is no Python source in {root}: the demo needs the standard library's files")
    np.random.default_rng(0).shuffle(paths)
    parts, found = [], 0
    for path in paths:
        forest = read_functions([path])
        fitting = forest[(forest.sizes >= SMALLEST) & (forest.sizes <= LARGEST)]
        fitting.columns["file"] = [str(path.relative_to(root))] * len(fitting)
        parts.append(fitting)
        found += len(fitting)
        if found >= n_functions:
            break
    return Forest.concat(parts)[:n_functions]


def compare(forest: Forest, decay: float) -> Comparison:
    """Measure one decay."""
    exact, exact_seconds = _timed(lambda: SubsetTreeKernel(decay=decay).gram(forest))
    encoder = DenseEncoder(DenseSpec(n_components=SIZE, decay=decay, normalize=False))
    vectors, encode_seconds = _timed(lambda: encoder.encode(forest, n_jobs=-1))
    estimate, product_seconds = _timed(lambda: vectors @ vectors.T)
    return Comparison(decay, exact, estimate.astype(float), exact_seconds, encode_seconds, product_seconds)


def most_similar(forest: Forest) -> tuple[list[dict[str, Any]], float]:
    """Return the most similar pairs of different functions by dot product, with the exact values."""
    start = time.perf_counter()
    vectors = DenseEncoder(DenseSpec(n_components=SIZE, decay=SEARCH_DECAY, normalize=True)).encode(
        forest, n_jobs=-1
    )
    whole = forest.subtree[forest.offsets[1:] - 1]  # equal numbers: equal trees
    first, second = different_pairs(len(forest))
    products = (vectors @ vectors.T)[first, second]
    products[whole[first] == whole[second]] = -np.inf
    ranked = np.argsort(-products, kind="stable")
    seconds = time.perf_counter() - start
    exact = SubsetTreeKernel(decay=SEARCH_DECAY, normalize=True)
    found: list[dict[str, Any]] = []
    shown: set[int] = set()
    for k in ranked:
        i, j = int(first[k]), int(second[k])
        if {whole[i], whole[j]} & shown:
            continue  # one pair of a family says it all
        if len(found) == PAIRS:
            break
        shown |= {whole[i], whole[j]}
        found.append(
            {
                "a": _place(forest, i),
                "b": _place(forest, j),
                "estimate": float(products[k]),
                "exact": exact(forest[i], forest[j]),
            }
        )
    return found, seconds


def _place(forest: Forest, i: int) -> str:
    file, line, name = (forest.columns[key][i] for key in ("file", "line", "name"))
    return f"{file}:{line} {name}"


def _warm_up(forest: Forest) -> None:
    """Let the compiler work before the clock runs."""
    DenseEncoder(DenseSpec(n_components=256)).encode(forest, n_jobs=-1)
    SubsetTreeKernel().gram(forest)
    SubsetTreeKernel(normalize=True)(forest[0], forest[1])


def _timed(work: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def report(forest: Forest, comparisons: list[Comparison], found: list[dict[str, Any]], seconds: float) -> str:
    """Return the report as one self-contained HTML page."""
    figures = [
        (c.decay, f"{c.spearman:.3f}", f"{c.error:.2f}", *(f"{s:.3f}" for s in _seconds(c)))
        for c in comparisons
    ]
    similar = [
        (f"{pair['exact']:.3f}", f"{pair['estimate']:.3f}", html.escape(pair["a"]), html.escape(pair["b"]))
        for pair in found
    ]
    return page(
        "treedot: tree kernels as dot products",
        f"""
<p>{len(forest)} functions of Python's standard library as syntax trees ({forest.n_nodes} nodes, between
{SMALLEST} and {LARGEST} each), compared by the fragments of syntax that they share: exactly, and by dot
products of vectors of {SIZE} numbers.</p>
<h2>How close the vectors come</h2>
{figure(_scatter(comparisons), "Each point is a pair of functions: its exact kernel and its dot product.")}
{table(("λ", "Spearman", "error / floor", "exact Gram, s", "encoding, s", "dot products, s"), figures)}
<p>Error over floor is the root mean square of the error, pair by pair, in units of what a random projection
of all fragments into {SIZE} numbers would do; 1 is as good as that. {COMPARED} functions, one seed.</p>
<h2>The most similar pairs of different functions</h2>
<p>Among all {len(forest) * (len(forest) - 1) // 2:,} pairs, found by dot products at λ = {SEARCH_DECAY} in
{seconds:.2f} seconds, encoding included. The exact normalised kernel is given beside.</p>
{table(("exact", "dot product", "function", "function"), similar)}
""",
    )


def _seconds(c: Comparison) -> tuple[float, float, float]:
    return c.exact_seconds, c.encode_seconds, c.product_seconds


def _scatter(comparisons: list[Comparison]) -> Any:
    import matplotlib.pyplot as plt

    drawing, panels = plt.subplots(
        1, len(comparisons), figsize=(3.4 * len(comparisons), 3.4), layout="constrained"
    )
    for axes, c in zip(panels, comparisons, strict=True):
        pairs = different_pairs(len(c.exact))
        own = np.sqrt(np.diagonal(c.exact))
        scale = np.outer(own, own)
        x, y = (c.exact / scale)[pairs], (c.estimate / scale)[pairs]
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        axes.plot(x, y, ".", markersize=1.5, color="#1f5f8b", alpha=0.3, rasterized=True)
        axes.set(title=f"λ = {c.decay}   Spearman {c.spearman:.3f}", xlabel="exact kernel (normalised)")
    panels[0].set_ylabel("dot product")
    return drawing
