"""Measure reading, encoding and exact kernels in one run; print a table and write JSON.

Figures are rates of this machine at this moment; the ratios to a row pass (``y += a * x`` over the
same number of elements, measured in the same run) carry over to others.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import treedot
from benchmarks.trees import benchmark_forest
from treedot import Encoder, Forest, Spec, SubsetTreeKernel, read_trees
from treedot.files import write_whole
from treedot.jit import njit

COMPOSITIONS = ("mixed", "product", "convolution")
SIZES = (1024, 4096, 8192)


@njit
def _row_passes(y, x, a, count):  # type: ignore[no-untyped-def]
    for _ in range(count):
        for j in range(y.size):
            y[j] += a * x[j]


def seconds(work: Callable[[], object], at_least: float = 0.3) -> float:
    """Return the time of one call: the best of several, after one that may compile."""
    work()
    best, spent = np.inf, 0.0
    while spent < at_least:
        start = time.perf_counter()
        work()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
    return best


def row_pass(size: int) -> float:
    y, x = np.zeros(size, np.float32), np.ones(size, np.float32)
    return seconds(lambda: _row_passes(y, x, np.float32(0.5), 1000)) / 1000


def reading(forest: Forest) -> dict[str, object]:
    text = "\n".join(map(str, forest)).encode()
    took = seconds(lambda: read_trees(io.BytesIO(text)))
    return {"what": "read brackets", "nodes/s": forest.n_nodes / took, "MB/s": len(text) / took / 1e6}


def encoding(forest: Forest, composition: str, size: int, jobs: int) -> dict[str, object]:
    encoder = Encoder(Spec(size, composition=composition))
    out = np.empty((len(forest), size), np.float32)
    took = seconds(lambda: encoder.encode(forest, out=out, n_jobs=jobs))
    inner = int((forest.arity > 0).sum())
    return {
        "what": f"encode {composition}, d = {size}, {jobs} thread(s)",
        "trees/s": len(forest) / took,
        "nodes/s": forest.n_nodes / took,
        "row passes per inner node": took / inner / row_pass(size),
    }


def exact(forest: Forest, count: int) -> dict[str, object]:
    part = forest[:count]
    kernel = SubsetTreeKernel()
    packing = seconds(lambda: [part[:].subtree, part[:].production])
    _ = part.subtree, part.production
    took = seconds(lambda: kernel.gram(part))
    pairs = len(part) * (len(part) + 1) / 2
    return {
        "what": f"exact Gram of {len(part)}",
        "s": took,
        "us/pair": took / pairs * 1e6,
        "packing s": packing,
    }


def pairs(forest: Forest) -> dict[str, object]:
    kernel = SubsetTreeKernel()
    vectors = Encoder(Spec(8192)).encode(forest[:200])
    trees = [forest[[i]] for i in range(100)]
    one = seconds(lambda: [kernel._raw_gram(trees[i], trees[i + 1]) for i in range(99)]) / 99
    dot = seconds(lambda: [vectors[i] @ vectors[i + 1] for i in range(99)]) / 99
    return {"what": "one pair", "exact us": one * 1e6, "dot product us": dot * 1e6}


def show(row: dict[str, object]) -> None:
    figures = "   ".join(f"{name} {value:,.4g}" for name, value in row.items() if isinstance(value, float))
    print(f"{row['what']:<42} {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--out", default="results/bench.json")
    options = parser.parse_args()
    forest, source = benchmark_forest(options.data)
    print(f"{source}: {len(forest)} trees, {forest.n_nodes} nodes")
    print(f"a row pass of 8192 elements takes {row_pass(8192) * 1e6:.2f} us")
    rows: list[dict[str, object]] = [reading(forest)]
    show(rows[-1])
    for composition in COMPOSITIONS:
        for size in SIZES:
            rows.append(encoding(forest[:500], composition, size, 1))
            show(rows[-1])
        rows.append(encoding(forest[:500], composition, 8192, 2))
        show(rows[-1])
    for count in (250, 1000, len(forest)):
        rows.append(exact(forest, count))
        show(rows[-1])
    rows.append(pairs(forest))
    show(rows[-1])
    rows.append({"what": "peak memory", "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
    show(rows[-1])
    target = Path(options.out)
    target.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "treedot": treedot.__version__,
        "python": platform.python_version(),
        "trees": source,
        "rows": rows,
    }
    with write_whole(target) as aside:
        aside.write_text(json.dumps(facts, indent=2) + "\n")
    print(f"written to {target}")


if __name__ == "__main__":
    main()
