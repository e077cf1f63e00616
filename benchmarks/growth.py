"""Measure how time grows: ``python -m benchmarks.growth``.

It prints and plots the exponents of the growth with the nodes of a tree, the dimensions and the number of
trees.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.timing import exponent, seconds
from treedot import Forest, SubsetTreeKernel, read_trees
from treedot.vectors import DenseEncoder, DenseSpec

NODES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
SIZES = (1024, 2048, 4096, 8192, 16384)
COUNTS = (125, 250, 500, 1000, 2000)  # trees


def bushy(nodes: int) -> str:
    """Return a tree in which every inner node has two children."""
    level = [f"(T w{k % 50})" for k in range(max(1, nodes // 3))]
    while len(level) > 1:
        level = [f"(N {' '.join(level[k : k + 2])})" for k in range(0, len(level), 2)]
    return level[0]


SHAPES: dict[str, Callable[[int], str]] = {
    "bushy": bushy,
    "deep": lambda nodes: "(N " * (nodes - 1) + "x" + ")" * (nodes - 1),
    "wide": lambda nodes: "(R" + "".join(f" (T w{k % 50})" for k in range(nodes // 2)) + ")",
}


def measure(out: Path) -> list[tuple[str, float]]:
    """Measure, plot to ``growth.png``, and return the exponents."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    drawing, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    exponents = []
    for name, shape in SHAPES.items():
        x, y = [], []
        encoder = DenseEncoder(DenseSpec(256, normalize=True))
        for nodes in NODES:
            # Small trees are measured many at a time, so that the overhead of a call does not count.
            forest = Forest.concat([read_trees([shape(nodes)])] * max(1, 100_000 // nodes))
            x.append(forest.n_nodes / len(forest))
            y.append(seconds(partial(encoder.encode, forest), 0.15) / len(forest))
        left.loglog(x, y, "o-", label=name)
        exponents.append((f"nodes, {name} trees", exponent(x, y)))
    left.set(xlabel="nodes of a tree", ylabel="seconds per tree", title="mixed, d = 256")
    left.legend()
    forest = Forest.concat([read_trees([bushy(31)])] * 200)
    for composition in ("mixed", "product", "convolution"):
        encoders = [DenseEncoder(DenseSpec(size, composition=composition, normalize=False)) for size in SIZES]
        times = [seconds(partial(encoder.encode, forest), 0.15) / len(forest) for encoder in encoders]
        middle.loglog(SIZES, times, "o-", label=composition)
        exponents.append((f"dimensions, {composition}", exponent(list(SIZES), times)))
    middle.set(xlabel="dimensions", ylabel="seconds per tree", title="trees of 31 nodes")
    middle.legend()
    rng = np.random.default_rng(0)
    trees = read_trees([_random_tree(rng) for _ in range(COUNTS[-1])])
    exact = [seconds(lambda n=n: SubsetTreeKernel().gram(trees[:n]), 0.15) for n in COUNTS]  # type: ignore[misc]
    encoder = DenseEncoder(DenseSpec(8192, normalize=False))
    vectors = []
    for n in COUNTS:
        part = trees[:n]
        vectors.append(seconds(lambda part=part: (v := encoder.encode(part)) @ v.T, 0.15))  # type: ignore[misc]
    right.loglog(COUNTS, exact, "o-", label="exact")
    right.loglog(COUNTS, vectors, "o-", label="encode and multiply, d = 8192")
    right.set_xticks(COUNTS, [str(n) for n in COUNTS])
    right.minorticks_off()
    right.set(xlabel="trees", ylabel="seconds", title="Gram matrix, trees of 30 nodes")
    right.legend()
    drawing.savefig(out / "growth.png", dpi=130)
    plt.close(drawing)
    return exponents


def _random_tree(rng: np.random.Generator) -> str:
    level = [f"(T{int(rng.integers(8))} w{int(rng.zipf(1.5)) % 1000})" for _ in range(10)]
    while len(level) > 1:
        k = int(rng.integers(len(level) - 1))
        level[k : k + 2] = [f"(N{int(rng.integers(6))} {level[k]} {level[k + 1]})"]
    return level[0]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--out", default="results", help="folder of the plot (default: results)")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    for name, value in measure(out):
        print(f"time grows with {name}: exponent {value:.2f}", flush=True)
    print(f"the plot: {out / 'growth.png'}")


if __name__ == "__main__":
    main()
