"""The demonstration: near-duplicate functions of Python's own standard library, found by their syntax."""

from __future__ import annotations

import difflib
import html
import re
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from treedot.errors import SourceError
from treedot.files import check_target, write_whole
from treedot.kernels import SubsetTreeKernel
from treedot.learn import DistributedTreeVectorizer, FragmentVectorizer
from treedot.page import figure, page, require_plots, table
from treedot.readers import read_trees
from treedot.search import nearest
from treedot.timing import timed
from treedot.trees import Forest
from treedot.vectors import dot_products
from treedot.vectors.fidelity import different_pairs, spearman

SMALLEST, LARGEST = 30, 600  # nodes of a function
PAIRS = 10
NEIGHBOURS = 5  # looked at for every function
DECAYS = (0.2, 0.4, 0.6)
DRAWN = 0.4  # the λ whose pairs are drawn
COMPARED = 400  # functions whose exact kernels are computed for every λ
SIZE = 8192
SKIPPED = {"site-packages", "dist-packages", "test", "tests", "encodings", "idlelib", "lib2to3", "turtledemo"}
MAX_LINES = 60  # of a function that is shown


@dataclass(frozen=True)
class Pair:
    """Two similar functions."""

    a: int
    b: int
    cosine: float
    exact: float


@dataclass(frozen=True)
class Search:
    """The most similar pairs of functions, and what it took to find them."""

    pairs: list[Pair]
    nonzeros: float  # of a row, on average
    encode_seconds: float
    search_seconds: float


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


def run(out: Path, n_functions: int, say: Callable[[str], object] = print) -> Path:
    """Compare functions, print what was found, and write ``index.html`` to a folder."""
    require_plots("the demo")
    target = _report_file(out)
    root = Path(sysconfig.get_paths()["stdlib"])
    forest = standard_library(root, n_functions)
    say(f"{len(forest)} different functions of the standard library, {forest.n_nodes} nodes")
    search(forest[:50])
    for method in METHODS:
        compare(forest[:50], method, DRAWN)

    found = search(forest)
    say(
        f"\nThe most similar of all pairs: encoding {found.encode_seconds:.2f} s, "
        f"search {found.search_seconds:.2f} s"
    )
    say("  cosine  exact kernel")
    for pair in found.pairs:
        say(
            f"  {pair.cosine:6.3f}  {pair.exact:12.3f}  {_place(forest, pair.a)}  ~  {_place(forest, pair.b)}"
        )

    comparisons = [compare(forest[:COMPARED], method, decay) for method in METHODS for decay in DECAYS]
    say(f"\nDot products against the exact subset tree kernel, {min(COMPARED, len(forest))} functions:")
    rows = [COMPARISON_HEADER, *(c.row for c in comparisons)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())

    with write_whole(target) as aside:
        aside.write_text(report(root, forest, found, comparisons), encoding="utf-8")
    say(f"\nThe report, with the functions side by side: {target}")
    return target


def _report_file(folder: Path) -> Path:
    """Return where the report goes; raise before the work where it cannot be written there."""
    target = folder / "index.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise SourceError(f"cannot write {target}: {error.strerror or error}") from error
    check_target(target)
    return target


def standard_library(root: Path, n_functions: int) -> Forest:
    """Return different functions of moderate size from all over the library, always the same ones."""
    paths = sorted(p for p in root.rglob("*.py") if not SKIPPED & set(p.relative_to(root).parts))
    if not paths:
        raise SourceError(f"there is no Python source in {root}: the demo needs the standard library's files")
    np.random.default_rng(0).shuffle(paths)
    parts, found = [], 0
    for path in paths:
        forest = read_trees(path, on_bad=lambda error: None)
        forest.columns["file"] = [str(path.relative_to(root))] * len(forest)
        parts.append(forest[(forest.sizes >= SMALLEST) & (forest.sizes <= LARGEST)])
        found += len(parts[-1])
        if found >= n_functions:
            break
    forest = Forest.concat(parts)
    _, first = np.unique(forest.root_subtree, return_index=True)  # of equal trees
    return forest[np.sort(first)[:n_functions]]


def search(forest: Forest) -> Search:
    """Return the most similar pairs of functions by dot products of sparse rows, each function once."""
    vectorizer = FragmentVectorizer(n_features=2**30, n_jobs=-1)
    rows, encode_seconds = timed(lambda: vectorizer.transform(forest))
    (others, cosines), search_seconds = timed(lambda: nearest(rows, k=NEIGHBOURS, n_jobs=-1))
    pairs: list[tuple[int, int, float]] = []
    shown: set[int] = set()
    for k in np.argsort(-cosines, axis=None, kind="stable"):
        a, b = int(k) // others.shape[1], int(others.flat[k])
        if len(pairs) == PAIRS:
            break
        if not {a, b} & shown and not _inside(forest, a, b):
            shown |= {a, b}
            pairs.append((min(a, b), max(a, b), float(cosines.flat[k])))
    exact = SubsetTreeKernel(normalize=True).pairs(forest, [a for a, _, _ in pairs], [b for _, b, _ in pairs])
    found = [Pair(*pair, float(value)) for pair, value in zip(pairs, exact, strict=True)]
    return Search(found, rows.nnz / len(forest), encode_seconds, search_seconds)


def _inside(forest: Forest, a: int, b: int) -> bool:
    """Tell whether one of two functions is defined in the other."""
    names = [f"{forest.columns['file'][i]} {forest.columns['name'][i]}." for i in (a, b)]
    return names[0].startswith(names[1]) or names[1].startswith(names[0])


METHODS: dict[str, Callable[[float], Any]] = {
    "sparse rows, dense rest": lambda decay: FragmentVectorizer(
        n_features=2**30, decay=decay, rest="dense", n_jobs=-1
    ),
    "dense vectors": lambda decay: DistributedTreeVectorizer(
        n_components=SIZE, decay=decay, normalize=True, n_jobs=-1
    ),
}


def compare(forest: Forest, method: str, decay: float) -> Comparison:
    """Measure one kind of vectors at one λ."""
    exact, exact_seconds = timed(lambda: SubsetTreeKernel(decay=decay, normalize=True).gram(forest))
    vectors, encode_seconds = timed(lambda: METHODS[method](decay).transform(forest))
    estimate, product_seconds = timed(lambda: dot_products(vectors, n_jobs=-1))
    return Comparison(
        method, decay, exact, estimate.astype(float), exact_seconds, encode_seconds, product_seconds
    )


def _place(forest: Forest, i: int) -> str:
    file, line, name = (forest.columns[key][i] for key in ("file", "start", "name"))
    return f"{file}:{line} {name}"


def report(root: Path, forest: Forest, found: Search, comparisons: Sequence[Comparison]) -> str:
    """Return the report as one self-contained HTML page."""
    drawn = [c for c in comparisons if c.decay == DRAWN]
    drawings = "".join(
        figure(f"{c.method}, λ = {c.decay}: every point is a pair of functions", _scatter(c)) for c in drawn
    )
    return page(
        "treedot: near-duplicates in Python's standard library",
        f"""
<p>{len(forest):,} different functions of the standard library as syntax trees of {SMALLEST} to {LARGEST}
nodes. Every function is turned into a sparse row with one column for each small fragment of syntax,
{found.nonzeros:.0f} non-zeros on average; the dot product of two rows says how much syntax two functions
share. Encoding took {found.encode_seconds:.2f} seconds, and finding the {NEIGHBOURS} nearest of every
function among {len(forest) * (len(forest) - 1) // 2:,} pairs {found.search_seconds:.2f} seconds.</p>
<h2>The most similar functions</h2>
<p>What only one of the two has is marked. No pair is an exact copy: even a different name makes a different
tree. Beside the cosine of the two rows stands the exact subset tree kernel (normalised, λ = 0.4), which
counts <em>all</em> shared fragments: the largest ones decide, and a change in the middle of a long function
takes it far down.</p>
{"".join(_pair_section(root, forest, pair, k < 3) for k, pair in enumerate(found.pairs))}
<h2>How close dot products come to the exact kernel</h2>
<p>Where the subset tree kernel is what is wanted, sparse rows hold the small fragments exactly and the
others in a dense rest; the dense vectors of the paper hold all of them in {SIZE} numbers. Below, both beside
the normalised kernel (1 for a function with itself) of {len(drawn[0].exact)} functions with each other.</p>
<div class="beside">{drawings}</div>
{table(COMPARISON_HEADER, [tuple(map(html.escape, c.row)) for c in comparisons])}
<p>The error is the root mean square over all pairs, beside the largest; seconds are for all
{len(drawn[0].exact)} functions, after compilation.</p>
""",
    )


def _pair_section(root: Path, forest: Forest, pair: Pair, opened: bool) -> str:
    """Return two functions side by side, what differs marked."""
    sources = [_source(root, forest, i) for i in (pair.a, pair.b)]
    marked = _marked(*sources)
    columns = "".join(
        f"<div><h3>{html.escape(_place(forest, i))}</h3><pre>{code}</pre></div>"
        for i, code in zip((pair.a, pair.b), marked, strict=True)
    )
    names = " ~ ".join(html.escape(forest.columns["name"][i]) for i in (pair.a, pair.b))
    return (
        f"<details{' open' if opened else ''}><summary><b>{names}</b>: cosine {pair.cosine:.3f}, "
        f'exact kernel {pair.exact:.3f}</summary><div class="beside">{columns}</div></details>'
    )


def _source(root: Path, forest: Forest, i: int) -> list[str]:
    """Return the lines of a function."""
    lines = (root / forest.columns["file"][i]).read_text(encoding="utf-8", errors="replace").splitlines(True)
    block = lines[forest.columns["start"][i] - 1 : forest.columns["end"][i]]
    indent = len(block[0]) - len(block[0].lstrip())
    kept = [line.rstrip()[indent:] if not line[:indent].strip() else line.rstrip() for line in block]
    return kept if len(kept) <= MAX_LINES else [*kept[:MAX_LINES], "…"]


def _marked(a: list[str], b: list[str]) -> tuple[str, str]:
    """Return two texts as HTML, with the parts that only one of them has marked."""
    sides: tuple[list[str], list[str]] = ([], [])
    for kind, a0, a1, b0, b1 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "replace" and a1 - a0 == b1 - b0:  # line by line: mark words
            for x, y in zip(a[a0:a1], b[b0:b1], strict=True):
                for side, text in zip(sides, _marked_line(x, y), strict=True):
                    side.append(text)
            continue
        for side, lines in zip(sides, (a[a0:a1], b[b0:b1]), strict=True):
            side += [html.escape(line) if kind == "equal" else _mark(line) for line in lines]
    return "\n".join(sides[0]), "\n".join(sides[1])


def _marked_line(a: str, b: str) -> tuple[str, str]:
    words = _words(a), _words(b)
    texts = ["", ""]
    for kind, a0, a1, b0, b1 in difflib.SequenceMatcher(
        None, words[0], words[1], autojunk=False
    ).get_opcodes():
        for k, (start, end) in enumerate(((a0, a1), (b0, b1))):
            part = "".join(words[k][start:end])
            texts[k] += html.escape(part) if kind == "equal" else _mark(part)
    return texts[0], texts[1]


def _words(line: str) -> list[str]:
    return re.findall(r"\w+|\s+|.", line)


def _mark(text: str) -> str:
    return f"<mark>{html.escape(text)}</mark>" if text else ""


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
