"""Tree kernels that search for clones of Java functions, as in a study of 2025: types 1 and 2."""

from __future__ import annotations

import csv
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from paper.record import Record, Step, alone
from paper.section import Section, Table

from published.cost import peak, spent
from treedot import Forest, PartialTreeKernel, SubsetTreeKernel, SubtreeKernel, TreeIndex, read_trees
from treedot._runtime.array_types import IntArray
from treedot.errors import SourceError
from treedot.kernels.tree_kernel import TreeKernel

LAYOUT = (
    "DIR holds a study of tree kernels on code, with its trees, queries and results:\n"
    "  git clone https://github.com/Hareem-E-Sahar/treekernel-jss2025 DIR/treekernel-jss2025"
)
FOLDER = "treekernel-jss2025"
TREES = "data/BigCloneEval/ijadataset/sexpr_from_gumtree/0"
CLONES = "data/BigCloneEval/bigclone_groundtruth_v3/{kind}-clones-selected-columns.txt"
QUERIES = "results/RQ2/sampled/{kind}_{seed}.txt"
BY_KERNEL, TFIDF = "results/RQ2/{kind}/metrics_RQ2_{kind}_{name}_topk.csv", "results/RQ2/tfidf"
HYBRID, CODEBERT = "results/RQ4/metrics_RQ4_hybrid_{name}_topk.csv", "results/codebert-metrics.csv"

KINDS = "T1", "T2"
SEEDS = 6251, 9080, 8241, 8828, 55, 2084, 1375, 2802, 3501, 3389
RESULTS = 100  # of each query; a clone that comes later counts as not found
TILE = 256  # queries at a time
KELP: dict[str, Any] = {"decay": 0.4, "leaves": True}  # λ of the study; KeLP counts leaves
KERNELS: dict[str, TreeKernel] = {
    "subset trees": SubsetTreeKernel(**KELP, convention="collins-duffy", normalize=True),
    "subtrees": SubtreeKernel(**KELP, convention="collins-duffy", normalize=True),
}
RERANKED: dict[str, TreeKernel] = {
    "subset trees": KERNELS["subset trees"],
    "subtrees of KeLP": SubtreeKernel(**KELP, convention="kelp", normalize=True),
    "partial trees": PartialTreeKernel(0.4, mu=0.4, terminal_factor=1.0, normalize=True),
}
PUBLISHED_KERNELS = {"SSTK": "subset trees", "STK": "subtrees", "PTK": "partial trees"}


class Functions:
    """The functions of the study as trees, in the order in which it lists functions of equal similarity.

    Parameters
    ----------
    data : Path
        The folder of the data.
    out : Path
        The folder that keeps the trees in one file.
    """

    def __init__(self, data: Path, out: Path) -> None:
        self.folder, self._out = data / FOLDER, out
        if not (self.folder / TREES).is_dir():
            raise SourceError(f"{self.folder / TREES} is not a folder.\n{LAYOUT}")

    @cached_property
    def names(self) -> list[str]:
        """The functions: ``FILE_START_END.java``."""
        names = sorted(path.name for path in (self.folder / TREES).iterdir())
        size = 1 << max(4, ((4 * len(names) - 1) // 3).bit_length())  # at most three quarters are taken
        return sorted(names, key=lambda name: java_hash(name) & (size - 1))

    @cached_property
    def digest(self) -> str:
        """A name for the content of the files."""
        found = hashlib.sha256()
        for path in (*(self.folder / TREES / name for name in self.names), *self._tables()):
            found.update(path.name.encode())
            found.update(path.read_bytes())
        return found.hexdigest()[:16]

    def _tables(self) -> Iterator[Path]:
        for kind in KINDS:
            yield self.folder / CLONES.format(kind=kind)
            yield from (self.folder / QUERIES.format(kind=kind, seed=seed) for seed in SEEDS)

    @cached_property
    def trees(self) -> Forest:
        """The trees of the functions."""
        kept = self._out / f"functions-{self.digest}.parquet"
        if not kept.exists():
            paths = [self.folder / TREES / name for name in self.names]
            read_trees(paths, format="brackets").save(kept)
        return Forest.load(kept)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each function."""
        return {name: number for number, name in enumerate(self.names)}

    def queries(self, kind: str) -> IntArray:
        """Return the 100 queries of each seed."""
        texts = ((self.folder / QUERIES.format(kind=kind, seed=seed)).read_text() for seed in SEEDS)
        return np.array([[self.numbers[Path(line).name] for line in text.split()] for text in texts])

    def clones(self, kind: str) -> dict[int, set[int]]:
        """Return the clones of each function that are functions of the study."""
        found: dict[int, set[int]] = {}
        for row in _rows(self.folder / CLONES.format(kind=kind), header=True):
            pair = [self.numbers.get(_name(*row[k + 1 : k + 4])) for k in (0, 4)]
            for a, b in (pair, pair[::-1]):
                if a is not None and b is not None:
                    found.setdefault(a, set()).add(b)
        return found


def java_hash(text: str) -> int:
    """Return the hash by which Java's ``HashMap`` chooses the place of a text."""
    found = 0
    for character in text:
        found = (31 * found + ord(character)) & 0xFFFFFFFF
    return found ^ (found >> 16)


def _name(file: str, start: str, end: str) -> str:
    return f"{Path(file).stem}_{start}_{end}.java"


def _rows(path: Path, header: bool = False) -> list[list[str]]:
    with path.open(encoding="utf-8") as lines:
        return list(csv.reader(lines))[header:]


read = Functions


def steps(functions: Functions) -> dict[str, Step]:
    """Return what is to be measured, by name."""
    found: dict[str, Step] = {"published": alone(published, functions)}
    for kind in KINDS:
        for name, kernel in KERNELS.items():
            found[f"{kind}, {name}"] = alone(compared, functions, kind, kernel)
        found[f"{kind}, index"] = alone(searched, functions, kind)
        for name, kernel in RERANKED.items():
            found[f"{kind}, index, {name}"] = alone(searched, functions, kind, kernel)
    return found


def published(functions: Functions) -> dict[str, Any]:
    """Return the means of the study's own results, and the range of its seconds for a query."""
    folder = functions.folder
    codebert = _rows(folder / CODEBERT, header=True)
    (tfidf,) = (folder / TFIDF).iterdir()
    found: dict[str, Any] = {}
    for kind in KINDS:
        for name in PUBLISHED_KERNELS:
            found[f"{kind}, {name}"] = _mean(_rows(folder / BY_KERNEL.format(kind=kind, name=name)))
        found[f"{kind}, TF-IDF"] = _mean([row for row in _rows(tfidf) if row[7] == kind])
        found[f"{kind}, CodeBERT"] = _mean([row for row in codebert if row[5] == kind])
    for name in PUBLISHED_KERNELS:
        rows = _rows(folder / HYBRID.format(name=name))
        total = [float(row[5]) for row in rows if row[7:] == ["normalized", "100"]]
        found[f"seconds, {name}"] = [min(total) / 100, max(total) / 100]  # of 100 queries
    return found


def _mean(rows: Sequence[Sequence[str]]) -> list[float]:
    """Return the means of the first three columns: precision at 5 and at 10, and reciprocal rank."""
    if len(rows) != len(SEEDS):
        raise SourceError(f"expected {len(SEEDS)} lines of results, one for each seed, not {len(rows)}")
    means: list[float] = np.mean([[float(cell) for cell in row[:3]] for row in rows], axis=0).tolist()
    return means


def compared(functions: Functions, kind: str, kernel: TreeKernel) -> dict[str, Any]:
    """Measure an exact kernel of each query with all functions, in single precision as in the study."""
    queries = functions.queries(kind)
    distinct = np.unique(queries)
    trees = functions.trees
    start = spent()
    best = np.empty((distinct.size, RESULTS), int)
    for first in range(0, distinct.size, TILE):
        tile = distinct[first : first + TILE]
        values = kernel.gram(trees[tile], trees).astype(np.float32)
        values[np.arange(tile.size), tile] = -1  # a query is not its own result
        for line, row in zip(best[first:], values, strict=False):
            line[:] = largest(row, RESULTS)
    milliseconds = 1000 * (spent() - start) / distinct.size
    found = _scores(queries, dict(zip(distinct.tolist(), best, strict=True)), functions.clones(kind))
    return {**found, "milliseconds": milliseconds, "memory": peak()}


def largest(values: Any, count: int) -> IntArray:
    """Return the numbers of the largest values, best first; equal ones in ascending order."""
    chosen = np.flatnonzero(values >= np.partition(values, -count)[-count])
    return chosen[np.argsort(-values[chosen], kind="stable")][:count]


def searched(functions: Functions, kind: str, kernel: TreeKernel | None = None) -> dict[str, Any]:
    """Measure an index with weights by rarity; a kernel may rank the results again."""
    queries = functions.queries(kind)
    distinct = np.unique(queries)
    with tempfile.TemporaryDirectory() as folder:
        start = spent()
        index = TreeIndex.build(functions.trees, Path(folder, "functions.index"), idf=True)
        seconds, trees = spent() - start, functions.trees[distinct]
        index.search(trees[:1], RESULTS + 1, rerank=kernel, candidates=RESULTS + 1)
        start = spent()
        rows, _ = index.search(trees, RESULTS + 1, rerank=kernel, candidates=RESULTS + 1)
        milliseconds = 1000 * (spent() - start) / distinct.size
    best = {own: line[line != own][:RESULTS] for own, line in zip(distinct.tolist(), rows, strict=True)}
    found = _scores(queries, best, functions.clones(kind))
    return {**found, "milliseconds": milliseconds, "build": seconds, "memory": peak()}


def _scores(
    queries: IntArray, best: Mapping[int, IntArray], clones: Mapping[int, set[int]]
) -> dict[str, Any]:
    """Return the mean precision at 5 and at 10 and the mean reciprocal rank of each seed."""
    scores = {own: _score(line, clones.get(own, set())) for own, line in best.items()}
    seeds = [np.mean([scores[own] for own in line], axis=0).tolist() for line in queries.tolist()]
    return {"seeds": seeds, "queries": len(best)}


def _score(found: IntArray, clones: set[int]) -> tuple[float, float, float]:
    hit = np.array([number in clones for number in found.tolist()])
    rank = 1 / (1 + float(hit.argmax())) if hit.any() else 0.0
    return float(hit[:5].mean()), float(hit[:10].mean()), rank


_NAMES = {
    "subset trees": "all functions: `SubsetTreeKernel`",
    "subtrees": "all functions: `SubtreeKernel`",
    "index": "`TreeIndex`",
    "index, subset trees": "`TreeIndex`, then `SubsetTreeKernel`",
    "index, subtrees of KeLP": '`TreeIndex`, then `SubtreeKernel(convention="kelp")`',
    "index, partial trees": "`TreeIndex`, then `PartialTreeKernel`",
}


def section(record: Record) -> Section:
    """Return what was found."""
    theirs = record["published"]
    rows = [
        [f"KeLP: {name}, {what}", *_published(theirs, name), "not published"]
        for name, what in PUBLISHED_KERNELS.items()
    ]
    rows += [[name, *_published(theirs, name), ""] for name in ("TF-IDF", "CodeBERT")]
    rows += [_row(name, text, record) for name, text in _NAMES.items()]
    times = ", ".join(
        "{} {:.1f} to {:.1f} s".format(name, *theirs[f"seconds, {name}"]) for name in PUBLISHED_KERNELS
    )
    exact, fast = (record[f"T1, {name}"]["milliseconds"] for name in ("subset trees", "index"))
    differences = [_difference(record, kind) for kind in KINDS]
    counts = [f"{record[f'{kind}, index']['queries']} different ones of {kind}" for kind in KINDS]
    return Section(
        "clone_search",
        "BigCloneBench: tree kernels that search for clones",
        f"The exact subset tree kernel gives the study's values to {max(differences):.0e}, in {exact:.0f} ms "
        f"of processor time for a query against all functions; `TreeIndex` takes {fast:.1f} ms.",
        [
            'The study ("An Empirical Evaluation of Tree Kernels for Source Code Retrieval", Journal of '
            "Systems and Software, 2025) searches Java functions, as trees with names. Its queries are "
            f"functions that have a clone of the type: {len(SEEDS)} samples of 100, which it lists "
            f"({', '.join(counts)}). A result is relevant if it is marked as a clone of this type. A clone "
            "of another type counts as wrong, and many queries have fewer than five of this one. P@5 and "
            "P@10 are the shares of relevant results, MRR the mean of 1 / rank of the first one, of "
            f"{RESULTS} results; all are means over the samples.",
            "The values of KeLP, TF-IDF (Elasticsearch) and CodeBERT are means of the files in `results` of "
            "the study's repository. Our kernels have its λ and μ of 0.4 and are normalised. Values are "
            "rounded to single precision, and equal ones are ordered as Java's `HashMap` orders the "
            "functions, as in the study.",
            Table(["method", *(f"{kind} {name}" for kind in KINDS for name in _SCORES), "a query"], rows),
            "The repository has no times for KeLP with all functions: its files say 0. For the 100 functions "
            f"that Elasticsearch finds first they say, for a query, {times}. This is elapsed time, "
            "with a share of the time for the kernel of every function with itself. Ours is processor time "
            "on one core. With all functions it includes preparing them; with `TreeIndex` it does not "
            f"include making the index ({record['T1, index']['build']:.0f} s, "
            f"{record['T1, index']['memory']:.1f} GiB at the peak of the process). `TreeIndex`, then a "
            f"kernel: the {RESULTS} nearest functions are ranked again.",
            'KeLP\'s STK [counts subtrees that differ](toolkits.md), as `convention="kelp"` does, so it is '
            "not the kernel of the line `SubtreeKernel`. Not repeated: PTK and KeLP's STK with all "
            "functions, which would take hours; type 3 and all types together, whose lists of clones are not "
            "in the repository.",
        ],
    )


_SCORES = "P@5", "P@10", "MRR"


def _published(theirs: Mapping[str, Sequence[float]], name: str) -> list[str]:
    return [f"{value:.3f}" for kind in KINDS for value in theirs[f"{kind}, {name}"]]


def _row(name: str, text: str, record: Record) -> list[str]:
    found = [record[f"{kind}, {name}"] for kind in KINDS]
    values = [value for each in found for value in np.mean(each["seeds"], axis=0)]
    times = " and ".join(
        f"{each['milliseconds']:.{0 if each['milliseconds'] > 10 else 1}f}" for each in found
    )
    return [text, *(f"{value:.3f}" for value in values), f"{times} ms"]


def _difference(record: Record, kind: str) -> float:
    ours = np.mean(record[f"{kind}, subset trees"]["seeds"], axis=0)
    return float(np.abs(ours - record["published"][f"{kind}, SSTK"]).max())
