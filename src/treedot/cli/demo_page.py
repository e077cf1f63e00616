"""The demonstration: near-duplicate functions of Python's own standard library, found by their syntax."""

from __future__ import annotations

import html
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import treedot as td
from treedot._pages.page import figure, require_plots, table
from treedot._runtime.timing import timed
from treedot._storage.files import check_target, write_whole
from treedot.clones.duplicates import MIN_NODES
from treedot.clones.report.findings import Finding, findings
from treedot.clones.report.formats import duplicates_report
from treedot.clones.report.html import html_report
from treedot.errors import SourceError
from treedot.readers.code.source_files import source_lines
from treedot.vectors.fidelity import different_pairs, spearman

SMALLEST, LARGEST = 30, 600  # nodes of a function whose exact kernels are computed
SHOWN = 10  # groups that are printed
PAGE = "index.html"
DECAYS = (0.2, 0.4, 0.6)
DRAWN = 0.4  # the λ whose pairs are drawn
COMPARED = 400  # functions whose exact kernels are computed for every λ
SIZE = 8192
SKIPPED = {"site-packages", "dist-packages", "test", "tests", "encodings", "idlelib", "lib2to3", "turtledemo"}


@dataclass(frozen=True)
class Comparison:
    """Dot products of one kind of vectors beside the exact normalised kernel."""

    method: str
    decay: float
    exact: np.ndarray
    estimate: np.ndarray
    exact_seconds: float
    encode_seconds: float
    product_seconds: float

    @property
    def errors(self) -> np.ndarray:
        """Dot product minus kernel, for every pair of different functions."""
        errors: np.ndarray = (self.estimate - self.exact)[different_pairs(len(self.exact))]
        return errors

    @property
    def row(self) -> tuple[str, ...]:
        """The figures, as text: λ, method, error, largest error, Spearman's correlation, seconds."""
        errors = self.errors
        fidelity = f"{np.sqrt(np.mean(errors**2)):.4f}", f"{np.abs(errors).max():.3f}"
        seconds = (f"{s:.2f}" for s in (self.encode_seconds, self.product_seconds, self.exact_seconds))
        return (
            f"{self.decay:g}",
            self.method,
            *fidelity,
            f"{spearman(self.exact, self.estimate):.3f}",
            *seconds,
        )


COMPARISON_HEADER = (
    "λ", "vectors", "error", "largest", "Spearman", "encoding, s", "dot products, s", "exact, s",
)  # fmt: skip


def write_demo(out: Path, n_functions: int, say: Callable[[str], object] = print) -> Path:
    """Write one page to a folder: the near-duplicates, and the approximation of the exact kernel."""
    require_plots("the demo")
    target = _report_file(out / PAGE)
    root = Path(sysconfig.get_paths()["stdlib"])
    found = _duplicates(root, n_functions, say)
    compared = approximation(_comparisons(root, say))
    title = "treedot: near-duplicates in Python's standard library"
    with write_whole(target) as aside:
        aside.write_text(html_report(title, found, compared), encoding="utf-8")
    say(f"\nThe functions side by side, and the approximation: {target}")
    return target


def _duplicates(root: Path, n_functions: int, say: Callable[[str], object]) -> list[Finding]:
    forest, read_seconds = timed(lambda: units(root, n_functions))
    td.find_duplicates(forest[:50])  # compile before timing
    groups, find_seconds = timed(lambda: td.find_duplicates(forest, n_jobs=-1))
    say(
        f"{len(forest)} functions of the standard library, read in {read_seconds:.1f} s; "
        f"{len(groups)} groups of near-duplicates, found in {find_seconds:.1f} s. The first:\n"
    )

    def lines(file: str) -> list[str]:
        return source_lines(str(root / file), "python")

    say(duplicates_report(forest, groups[:SHOWN], "text", sources=lines))
    return findings(forest, groups, lines)


def _comparisons(root: Path, say: Callable[[str], object]) -> list[Comparison]:
    forest = standard_library(root, COMPARED)
    for method in METHODS:
        compare(forest[:50], method, DRAWN)  # compile before timing
    comparisons = [compare(forest, method, decay) for method in METHODS for decay in DECAYS]
    say(f"Dot products against the exact subset tree kernel, {len(forest)} functions:")
    rows = [COMPARISON_HEADER, *(c.row for c in comparisons)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    return comparisons


def _report_file(target: Path) -> Path:
    """Return where a page goes; raise before the work where it cannot be written there."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise SourceError(f"cannot write {target}: {error.strerror or error}") from error
    check_target(target)
    return target


def units(root: Path, n_functions: int) -> td.Forest:
    """Return the first functions of the library, file by file, names and literals blurred."""
    settings = td.readers.CodeSettings(identifiers="blur", literals="blur", min_nodes=MIN_NODES, blurred=True)
    parts, found = [], 0
    for forest in td.iter_code(_files(root), settings=settings, on_bad=lambda error: None, n_jobs=-1):
        forest.columns["file"] = [Path(file).relative_to(root).as_posix() for file in forest.columns["file"]]
        parts.append(forest)
        found += len(forest)
        if found >= n_functions:
            break
    return td.Forest.concat(parts)[:n_functions]


def standard_library(root: Path, n_functions: int) -> td.Forest:
    """Return different functions of moderate size from all over the library, always the same ones."""
    parts, found = [], 0
    for path in _files(root):
        forest = td.read_trees(path, on_bad=lambda error: None)
        forest.columns["file"] = [str(path.relative_to(root))] * len(forest)
        parts.append(forest[(forest.sizes >= SMALLEST) & (forest.sizes <= LARGEST)])
        found += len(parts[-1])
        if found >= n_functions:
            break
    forest = td.Forest.concat(parts)
    _, first = np.unique(forest.root_subtree, return_index=True)  # the first of equal trees
    return forest[np.sort(first)[:n_functions]]


def _files(root: Path) -> list[Path]:
    """Return the files of the library, shuffled, always in the same order."""
    paths = sorted(p for p in root.rglob("*.py") if not SKIPPED & set(p.relative_to(root).parts))
    if not paths:
        raise SourceError(f"there is no Python source in {root}: the demo needs the standard library's files")
    np.random.default_rng(0).shuffle(paths)
    return paths


METHODS: dict[str, Callable[[float], Any]] = {
    "sparse rows, dense rest": lambda decay: td.FragmentVectorizer(
        n_features=2**30, decay=decay, rest="dense", n_jobs=-1
    ),
    "dense vectors": lambda decay: td.DistributedTreeVectorizer(
        n_components=SIZE, decay=decay, normalize=True, n_jobs=-1
    ),
}


def compare(forest: td.Forest, method: str, decay: float) -> Comparison:
    """Measure one kind of vectors at one λ."""
    exact, exact_seconds = timed(
        lambda: td.SubsetTreeKernel(decay=decay, normalize=True).gram(forest, n_jobs=-1)
    )
    vectors, encode_seconds = timed(lambda: METHODS[method](decay).transform(forest))
    estimate, product_seconds = timed(lambda: td.dot_products(vectors, n_jobs=-1))
    return Comparison(
        method, decay, exact, estimate.astype(float), exact_seconds, encode_seconds, product_seconds
    )


def approximation(comparisons: Sequence[Comparison]) -> str:
    """Return the section on how close dot products come to the exact kernel."""
    drawn = [c for c in comparisons if c.decay == DRAWN]
    drawings = "".join(
        figure(f"{c.method}, λ = {c.decay}: every point is a pair of functions", _scatter(c)) for c in drawn
    )
    return f"""
<h2>How close dot products come to the exact tree kernel</h2>
<p>Where the subset tree kernel is what is wanted, sparse rows hold the small fragments exactly and the
others in a dense rest; the dense vectors of the paper hold all of them in {SIZE} numbers. Below, both beside
the normalised kernel (1 for a function with itself) of {len(drawn[0].exact)} functions of Python's standard
library with each other.</p>
<div class="beside">{drawings}</div>
{table(COMPARISON_HEADER, [tuple(map(html.escape, c.row)) for c in comparisons])}
<p>The error is the root mean square over all pairs, beside the largest; seconds are for all
{len(drawn[0].exact)} functions, after compilation.</p>
"""


def _scatter(c: Comparison) -> Any:
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(4.2, 4.2), layout="constrained")
    pairs = different_pairs(len(c.exact))
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.plot(
        c.exact[pairs], c.estimate[pairs], ".", markersize=2, color="#1f5f8b", alpha=0.3, rasterized=True
    )
    axes.set(xlabel="exact kernel", ylabel="dot product", title=c.method)
    plt.close(drawing)
    return drawing
