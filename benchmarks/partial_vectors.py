"""Compare vectors of partial trees with the exact kernel: ``python -m benchmarks.partial_vectors``.

It prints error over floor and Spearman's correlation, as ``benchmarks.fidelity`` does for fragments; the time
of encoding relative to fragments; and the number of short partial trees that sparse rows would contain.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.ends import sample
from benchmarks.fidelity import measure
from benchmarks.trees import benchmark_forest
from treedot import Forest, FragmentVectorizer, PartialTreeKernel, Tree, dot_products
from treedot.parameters import GAPS
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.fidelity import projected, spearman

SOURCES = ("questions", "questions, GRCT", "questions, LCT")
GRID = (0.2, 0.4, 0.6, 0.8, 1.0)
ROUNDS = 9


def compare(forest: Forest, decay: float, mu: float, gaps: str, seeds: int, size: int) -> str:
    """Compare vectors, and a random projection of the same size, with the exact kernel."""
    exact = PartialTreeKernel(decay, mu=mu, gaps=gaps).gram(forest)
    specs = [
        DenseSpec(
            size, decay, seed=seed, dtype="float64", normalize=False, kernel="partial", mu=mu, gaps=gaps
        )
        for seed in range(seeds)
    ]
    found = measure(exact, (dot_products(DenseEncoder(spec).encode(forest)) for spec in specs), size)
    floor = np.mean([spearman(exact, projected(exact, size, seed)) for seed in range(min(seeds, 3))])
    return (
        f"{decay}  {mu}  {gaps:<7}  {found.error:11.2f}  {found.rank:8.3f}  {floor:9.3f}  "
        f"{found.norms.min():.3g} … {found.norms.max():.3g}"
    )


def seconds_of_both(forest: Forest, **partial: Any) -> tuple[float, float]:
    """Return the processor time of encoding fragments and partial trees, the best of several rounds."""
    encoders = [DenseEncoder(DenseSpec()), DenseEncoder(DenseSpec(kernel="partial", **partial))]
    out = np.empty((len(forest), DenseSpec().n_components), np.float32)
    best = [math.inf, math.inf]
    for _ in range(ROUNDS + 1):  # the first compiles
        for k, encoder in enumerate(encoders):
            start = time.process_time()
            encoder.encode(forest, out=out)
            best[k] = min(best[k], time.process_time() - start)
    return best[0], best[1]


def short_partial_trees(tree: Tree, most: int, decay: float, mu: float) -> dict[tuple, float]:
    """Return the values of the partial trees of at most ``most`` nodes, with toolkit gaps."""
    found: dict[tuple, float] = {}
    rooted: list[list[tuple[tuple, int, float]]] = []  # of nodes that wait for their parents: size, value
    for node in tree.postorder():
        first = len(rooted) - len(node.children)
        below = rooted[first:]
        here = [((node.label,), 1, math.sqrt(mu) * decay)]
        for length in range(1, min(len(below), most - 1) + 1):
            for chosen in itertools.combinations(range(len(below)), length):
                gaps = decay ** (chosen[-1] - chosen[0] + 1 - length)
                for parts in itertools.product(*(below[k] for k in chosen)):
                    size = 1 + sum(part[1] for part in parts)
                    if size <= most:
                        value = math.sqrt(mu) * gaps * math.prod(part[2] for part in parts)
                        here.append(((node.label, *(part[0] for part in parts)), size, value))
        for name, _, value in here:
            found[name] = found.get(name, 0.0) + value
        rooted[first:] = [here]
    return found


def rows_of_short(forest: Forest, most: int, decay: float, mu: float) -> csr_matrix:
    """Return sparse rows of the partial trees of at most ``most`` nodes."""
    columns: dict[tuple, int] = {}
    entries = [
        (row, columns.setdefault(name, len(columns)), value)
        for row, tree in enumerate(forest)
        for name, value in short_partial_trees(tree, most, decay, mu).items()
    ]
    rows, places, values = zip(*entries, strict=True)
    return csr_matrix((values, (rows, places)), (len(forest), len(columns)))


def normalised(gram: np.ndarray) -> np.ndarray:
    own = np.sqrt(np.diagonal(gram))
    return gram / np.outer(own, own)


def report_short(forest: Forest) -> None:
    """Print the size of sparse rows of short partial trees, and their error."""
    fragments = FragmentVectorizer().transform(forest)
    print(f"rows of fragments (budget 4): {fragments.nnz / len(forest):.0f} non-zeros a row")
    print("λ    μ    nodes  non-zeros a row  error of the cosine: mean square root, largest")
    pairs = np.triu_indices(len(forest), 1)
    for decay, mu in ((0.4, 0.4), (0.8, 0.8)):
        exact = normalised(PartialTreeKernel(decay, mu=mu).gram(forest))
        for most in (1, 2, 3, 4):
            rows = rows_of_short(forest, most, decay, mu)
            error = (normalised((rows @ rows.T).toarray()) - exact)[pairs]
            print(
                f"{decay}  {mu}  {most:5}  {rows.nnz / len(forest):15.0f}  "
                f"{np.sqrt(np.mean(error**2)):.4f}  {np.abs(error).max():.3f}"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partial_vectors", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--dim", type=int, default=8192)
    options = parser.parse_args(arguments)
    for name in SOURCES:
        whole, source = benchmark_forest(options.data, name)
        forest = sample(whole, options.trees)
        print(f"\n{source}: {len(forest)} trees at random, {options.seeds} seeds, d = {options.dim}")
        print("λ    μ    gaps     error/floor  Spearman  of floor   ‖T̃‖²/K11")
        settings = [(0.4, 0.4, gaps) for gaps in GAPS]
        settings += [(x, x, gaps) for x in GRID if x != 0.4 for gaps in GAPS]
        settings += [(0.4, 1.0, "toolkit"), (1.0, 0.4, "toolkit")]
        for decay, mu, gaps in settings:
            print(compare(forest, decay, mu, gaps, options.seeds, options.dim), flush=True)
        report_short(forest)
        subset, partial = seconds_of_both(whole[: 5 * options.trees])
        print(f"encoding partial trees takes {partial / subset:.2f} times as long as fragments (bar: 1.5)")
    _, limited = seconds_of_both(whole[: 5 * options.trees], max_length=5)
    print(f"with max_length=5, {limited / subset:.2f} times as long")


if __name__ == "__main__":
    main()
