"""Measure reading, encoding, exact kernels and search in one run; print one table and write JSON and plots.

The unit is a *row pass*: the time of ``y += a * x`` over d float32 numbers in cache, measured in the same
run. Rates that depend on the machine's speed are also given as if a row pass of 8192 numbers took 1 us.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import treedot
from benchmarks import growth, partial_vectors
from benchmarks import partial as partial_kernel
from benchmarks.templates import pages
from benchmarks.timing import seconds
from benchmarks.trees import PYTHON, benchmark_forest
from treedot import Forest, SubsetTreeKernel, dot_products, iter_trees, nearest, read_trees
from treedot._runtime.jit import njit
from treedot._runtime.timing import timed
from treedot._storage.files import write_whole
from treedot.parameters import COMPOSITIONS
from treedot.vectors import DenseEncoder, DenseSpec, SparseEncoder, SparseSpec
from treedot.vectors.dense import fourier

SIZE = 8192
SEARCHED = 8192  # vectors
READ = ("questions", "Penn sentences", "Java functions", PYTHON)
CROSSING = ("questions", "Penn sentences", "RTE-5 texts", "Java functions", PYTHON)


@dataclass
class Figure:
    """One line of the table."""

    what: str
    value: float
    unit: str
    floor: float | None = None  # the best possible value, in the same unit
    bar: str = ""  # the target

    @property
    def ratio(self) -> float | None:
        """Return the ratio of the value to the floor."""
        return None if self.floor is None else self.value / self.floor


@njit
def _row_passes(y: Any, x: Any, a: Any, count: int) -> None:
    for _ in range(count):
        for j in range(y.size):
            y[j] += a * x[j]


@njit
def _transforms(row: Any, order: Any, work: Any, re: Any, im: Any, count: int) -> None:
    for _ in range(count):
        fourier.forward(row, order, work, re, im)
        fourier.backward(re, im, work, row.dtype.type(1e-4), row)


def row_pass(size: int = SIZE) -> float:
    y, x = np.zeros(size, np.float32), np.ones(size, np.float32)
    return seconds(lambda: _row_passes(y, x, np.float32(0.5), 1000)) / 1000


def transform() -> float:
    work = fourier.plan(SIZE, "float32")
    order = fourier.planar(np.random.default_rng(0).permutation(SIZE))
    row, re, im = np.ones(SIZE, np.float32), *np.zeros((2, SIZE // 2 + 1), np.float32)
    return seconds(lambda: _transforms(row, order, work, re, im, 100)) / 200


def reading(data: str | None, wanted: str) -> list[Figure]:
    """Measure reading into a Forest from a file of brackets, from texts in memory and from a table."""
    forest, name = benchmark_forest(data, wanted)
    if name != wanted:
        return []
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        brackets, table = Path(folder, "trees.mrg"), Path(folder, "trees.tsv")
        forest.write_brackets(brackets)
        texts = brackets.read_text(encoding="utf-8").splitlines()
        table.write_text("\n".join(["tree", *texts]), encoding="utf-8")
        for what, work, bar in (
            ("brackets", lambda: read_trees(brackets), ">= 15"),
            ("brackets in batches", lambda: list(map(len, iter_trees(brackets))), ">= 15"),
            ("texts in memory", lambda: read_trees(texts), ""),
            ("TSV", lambda: read_trees(table), ""),
        ):
            rate = forest.n_nodes / seconds(work) / 1e6
            figures.append(Figure(f"read {what}, {name}", rate, "M nodes/s", bar=bar))
    return figures


def reading_documents() -> list[Figure]:
    """Measure reading pages and JSON, from one large file each."""
    made, _ = pages(n_sites=1, n_templates=2, n_pages=20, n_noise=0)
    raw = "".join(made).encode()
    records = json.dumps([{"id": k, "tags": ["a", "b"], "at": {"x": 1.5, "y": [k]}} for k in range(20_000)])
    figures = []
    for format, source, bar in (("html", raw, ">= 1"), ("json", records.encode(), "")):
        nodes = read_trees(io.BytesIO(source), format).n_nodes
        took = seconds(lambda s=source, f=format: read_trees(io.BytesIO(s), f))  # type: ignore[misc]
        figures.append(Figure(f"read {format} into a Forest", nodes / took / 1e6, "M nodes/s", bar=bar))
    return figures


def encode_seconds(forest: Forest, composition: str, size: int = SIZE, jobs: int = 1) -> float:
    encoder = DenseEncoder(DenseSpec(size, composition=composition, normalize=False))
    out = np.empty((len(forest), size), np.float32)
    return seconds(lambda: encoder.encode(forest, out=out, n_jobs=jobs))


def encoding(forest: Forest) -> list[Figure]:
    unit = row_pass()
    last_child = np.concatenate([[0], forest.arity[:-1]])
    pre_terminals = int(((forest.arity == 1) & (last_child == 0)).sum())
    inner = int((forest.arity > 0).sum()) - pre_terminals
    rows = [Figure("row pass, d = 8192", unit * 1e6, "us")]
    bars = {"mixed": ">= 8000 (10000)", "product": ">= 4000", "convolution": ">= 500"}
    for composition, bar in bars.items():
        took = encode_seconds(forest, composition)
        rows.append(Figure(f"encode {composition}", len(forest) / took, "trees/s"))
        rows.append(
            Figure(
                f"encode {composition}, if a row pass took 1 us",
                len(forest) / took * unit * 1e6,
                "trees/s",
                bar=bar,
            )
        )
        if composition == "mixed":
            rows.append(
                Figure("encode mixed, per inner node", took / inner / unit, "row passes", bar="<= 12 (8)")
            )
        if composition == "convolution":
            # One inverse per edge, one forward per edge that is not a leaf's last child in its fold.
            edges = forest.n_nodes - len(forest)
            openers = int((forest.arity > 0).sum())
            forwards = openers - len(forest) + edges - openers
            floor = (edges + forwards) * transform()
            rows.append(
                Figure("convolution against its transforms", took * 1e3, "ms", floor * 1e3, "ratio <= 1.5")
            )
        two = encode_seconds(forest, composition, jobs=2)
        rows.append(Figure(f"{composition}, 2 threads against 1", took / two, "times", bar=">= 1.8"))
    return rows


def fragments(forest: Forest) -> list[Figure]:
    """Measure bounded rows against dense vectors of the default size, and their dot products."""
    encoder = SparseEncoder(SparseSpec())
    took = seconds(lambda: encoder.encode(forest, n_jobs=1))
    dense = encode_seconds(forest, "mixed")
    two = seconds(lambda: encoder.encode(forest, n_jobs=2))
    rows = encoder.encode(forest)
    product = seconds(lambda: dot_products(rows, n_jobs=1))
    generic = seconds(lambda: (rows @ rows.T).toarray())
    exactly = seconds(lambda: SubsetTreeKernel().gram(forest[:]))
    return [
        Figure("encode bounded rows", len(forest) / took, "trees/s"),
        Figure("bounded rows against mixed, d = 8192", dense / took, "times", bar=">= 15"),
        Figure("bounded rows, 2 threads against 1", took / two, "times"),
        Figure("bounded rows, non-zeros per tree", rows.nnz / len(forest), ""),
        Figure("dot_products against scipy's product", generic / product, "times"),
        Figure("dot_products against the exact Gram", exactly / product, "times"),
    ]


def rates(forest: Forest) -> list[Figure]:
    """Measure trees and nodes encoded per second and core, at several dimensions."""
    rows = []
    for composition in COMPOSITIONS:
        for size in (1024, 4096, 8192):
            took = encode_seconds(forest, composition, size)
            rows.append(Figure(f"encode {composition}, d = {size}", len(forest) / took, "trees/s"))
            rows.append(Figure(f"encode {composition}, d = {size}", forest.n_nodes / took, "nodes/s"))
    return rows


def cold(forest: Forest) -> list[Figure]:
    """Measure the cost of labels that are new to the process."""
    rows = []
    for composition in COMPOSITIONS:
        spec = DenseSpec(composition=composition, normalize=False)
        _, took = timed(lambda spec=spec: DenseEncoder(spec).encode(forest))  # type: ignore[misc]
        rows.append(Figure(f"encode {composition}, all labels new", len(forest) / took, "trees/s"))
    return rows


def exact(questions: Forest, sentences: Forest) -> list[Figure]:
    rows = []
    for name, forest, bar in (
        ("1,000 questions", questions[:1000], "<= 0.04"),
        ("1,000 Penn sentences", sentences[:1000], "<= 0.12"),
        (f"{len(questions):,} questions", questions, "< 2"),
    ):
        fresh = seconds(lambda forest=forest: SubsetTreeKernel(decay=0.4).gram(forest[:]), 0.2)  # type: ignore[misc]
        packed = forest[:]
        again = seconds(lambda packed=packed: SubsetTreeKernel(decay=0.3).gram(packed), 0.2)  # type: ignore[misc]
        rows.append(Figure(f"exact Gram, {name}", fresh, "s", bar=bar))
        rows.append(Figure(f"exact Gram, {name}, another λ", again, "s"))
        pairs = len(forest) * (len(forest) + 1) / 2
        rows.append(Figure(f"exact Gram, {name}, per pair", fresh / pairs * 1e6, "us"))
    return rows


def partial_trees(questions: Forest) -> list[Figure]:
    """Compare partial tree kernels with a plain implementation, and their vectors with those of fragments."""
    plain, ours = partial_kernel.figures(questions[:1000])
    subset, partial = partial_vectors.seconds_of_both(questions[:1000])
    return [
        Figure("partial Gram, 1,000 questions", ours, "s"),
        Figure("partial Gram, against plain code", plain / ours, "times", bar=">= 5"),
        Figure("partial vectors, against fragments", partial / subset, "times", bar="<= 1.5"),
    ]


def crossing(data: str | None, wanted: str) -> list[Figure]:
    """Compare the exact Gram matrix with encoding and multiplying, to see where vectors win."""
    forest, name = benchmark_forest(data, wanted)
    if name != wanted:
        return []
    part = forest[:1000]
    exactly = seconds(lambda: SubsetTreeKernel().gram(part[:]), 0.2)
    encoder = DenseEncoder(DenseSpec(SIZE, normalize=False))
    vectors = encoder.encode(part)
    by_vectors = seconds(lambda: encoder.encode(part, out=vectors), 0.2)
    multiplied = seconds(lambda: vectors @ vectors.T, 0.2)
    nodes = part.n_nodes / len(part)
    # Exact kernels and products grow with the square of the number of trees, encoding with the number.
    saved = exactly - multiplied
    return [
        Figure(f"{name}, {nodes:.0f} nodes: exact Gram of {len(part)}", exactly, "s"),
        Figure(f"{name}: encode them", by_vectors, "s"),
        Figure(f"{name}: multiply the vectors", multiplied, "s"),
        Figure(f"{name}: vectors win from", len(part) * by_vectors / saved if saved > 0 else np.inf, "trees"),
    ]


def search() -> list[Figure]:
    x = np.random.default_rng(0).normal(size=(SEARCHED, SIZE)).astype(np.float32)
    product = seconds(lambda: x @ x.T)
    found = seconds(lambda: nearest(x, k=10))
    return [Figure(f"10 nearest of {SEARCHED:,} among themselves", found, "s", product, "X @ X.T: <= 1.18")]


def starting() -> list[Figure]:
    def command(*arguments: str) -> float:
        line = [sys.executable, "-m", "treedot", *arguments]
        return seconds(lambda: subprocess.run(line, capture_output=True, check=True), 0.3)

    return [
        Figure("treedot --help", command("--help"), "s", bar="< 0.15"),
        Figure("first encode of a process", command("kernel", "(a b)", "(a b)"), "s", bar="< 1.5"),
    ]


def show(figure: Figure) -> None:
    floor = f"{figure.floor:10.4g}  {figure.ratio:6.2f}" if figure.floor is not None else " " * 18
    print(f"{figure.what:<48}{figure.value:10.4g} {figure.unit:<11}{floor}  {figure.bar}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--out", default="results", help="folder of the figures and plots")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    questions, source = benchmark_forest(options.data, "questions")
    sentences, other = benchmark_forest(options.data, "Penn sentences")
    print(f"{source}: {len(questions)} trees, {questions.n_nodes} nodes; {other}: {len(sentences)} trees")
    print(f"{'':<48}{'measured':>10} {'':<11}{'floor':>10}  {'ratio':>6}  bar")
    figures: list[Figure] = []
    for part in (
        *(partial(reading, options.data, name) for name in READ),
        reading_documents,
        lambda: encoding(questions[:1000]),
        lambda: fragments(questions[:2000]),
        lambda: rates(questions[:500]),
        lambda: cold(questions[:1000]),
        lambda: exact(questions, sentences),
        lambda: partial_trees(questions),
        *(partial(crossing, options.data, name) for name in CROSSING),
        search,
        starting,
    ):
        for figure in part():
            figures.append(figure)
            show(figure)
    for name, exponent in growth.measure(out):
        figures.append(Figure(f"growth of time with {name}", exponent, "exponent", bar="<= 1.05"))
        show(figures[-1])
    figures.append(Figure("peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB"))
    show(figures[-1])
    facts = {
        "treedot": treedot.__version__,
        "python": platform.python_version(),
        "trees": [source, other],
        "figures": [{**asdict(figure), "ratio": figure.ratio} for figure in figures],
    }
    with write_whole(out / "bench.json") as aside:
        aside.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    print(f"written to {out}")


if __name__ == "__main__":
    main()
