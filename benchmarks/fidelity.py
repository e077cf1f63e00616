"""Compare every algebra with the exact kernel: ``python -m benchmarks.fidelity``.

Error over floor (1 is a random projection), Spearman's correlation, and the spread of ‖T̃‖²/K11.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.trees import benchmark_forest
from treedot import Forest, SubsetTreeKernel, dot_products
from treedot.algebra import ALGEBRAS
from treedot.encode import DenseEncoder, DenseSpec
from treedot.vectors.fidelity import error_over_floor, norm_ratios, spearman

SOURCES = ("questions", "Penn sentences")
DECAYS = (0.2, 0.4, 0.6, 0.8, 1.0)


class Measured(NamedTuple):
    """How vectors of several seeds compare with the exact kernel."""

    error: float  # over the floor
    rank: float  # Spearman's correlation, mean
    norms: np.ndarray  # ‖x‖²/K11 by seed and tree


def measure(exact: np.ndarray, estimates: Iterable[np.ndarray], size: float) -> Measured:
    """Compare matrices of dot products, one for each seed, with the exact one."""
    errors, ranks, norms = [], [], []
    for estimate in estimates:
        errors.append(error_over_floor(exact, estimate, size) ** 2)
        ranks.append(spearman(exact, estimate))
        norms.append(norm_ratios(exact, estimate))
    return Measured(float(np.sqrt(np.mean(errors))), float(np.mean(ranks)), np.array(norms))


def sample(forest: Forest, trees: int) -> Forest:
    """Return some trees at random, always the same."""
    return forest[np.random.default_rng(0).choice(len(forest), trees, replace=False)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dim", type=int, default=8192)
    options = parser.parse_args(arguments)
    for name in SOURCES:
        whole, source = benchmark_forest(options.data, name)
        forest = sample(whole, options.trees)
        print(f"{source}: {len(forest)} trees at random, {options.seeds} seeds, d = {options.dim}")
        print("λ    composition   error/floor  Spearman  ‖T̃‖²/K11")
        for decay in DECAYS:
            exact = SubsetTreeKernel(decay=decay).gram(forest)
            for composition in ALGEBRAS:
                specs = [
                    DenseSpec(options.dim, decay, composition, seed, dtype="float64", normalize=False)
                    for seed in range(options.seeds)
                ]
                vectors = (DenseEncoder(spec).encode(forest, n_jobs=-1) for spec in specs)
                found = measure(exact, map(dot_products, vectors), options.dim)
                print(
                    f"{decay}  {composition:<12}  {found.error:11.2f}  {found.rank:8.3f}  "
                    f"{found.norms.min():.3g} … {found.norms.max():.3g}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
