"""Compare every algebra with the exact kernel: ``python -m benchmarks.fidelity``.

Error over floor (1 is a random projection), Spearman's correlation, and the spread of ‖T̃‖²/K11.
"""

from __future__ import annotations

import argparse
import os

import numpy as np

from benchmarks.trees import benchmark_forest
from treedot import Encoder, Spec, SubsetTreeKernel
from treedot.algebra import ALGEBRAS
from treedot.experiments.fidelity import error_over_floor, norm_ratios, spearman


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dim", type=int, default=8192)
    options = parser.parse_args()
    for name in ("questions", "Penn sentences"):
        forest, source = benchmark_forest(options.data, name)
        forest = forest[np.random.default_rng(0).choice(len(forest), options.trees, replace=False)]
        print(f"{source}: {len(forest)} trees at random, {options.seeds} seeds, d = {options.dim}")
        print("λ    composition   error/floor  Spearman  ‖T̃‖²/K11")
        for decay in (0.2, 0.4, 0.6, 0.8, 1.0):
            exact = SubsetTreeKernel(decay=decay).gram(forest)
            for composition in ALGEBRAS:
                errors, ranks, norms = [], [], []
                for seed in range(options.seeds):
                    spec = Spec(options.dim, decay, composition, seed, dtype="float64")
                    vectors = Encoder(spec).encode(forest, n_jobs=-1)
                    estimate = vectors @ vectors.T
                    errors.append(error_over_floor(exact, estimate, options.dim) ** 2)
                    ranks.append(spearman(exact, estimate))
                    norms.append(norm_ratios(exact, estimate))
                low, high = np.min(norms), np.max(norms)
                print(
                    f"{decay}  {composition:<12}  {np.sqrt(np.mean(errors)):11.2f}  {np.mean(ranks):8.3f}  "
                    f"{low:.3g} … {high:.3g}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
