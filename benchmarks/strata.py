"""Show what a budget buys for stratified rows: ``python -m benchmarks.strata``.

Numbers per tree, Spearman's correlation with the exact kernel by λ, error over the floor of a dense random
projection into as many numbers, the spread of ‖x‖²/K11, and the encoding time against dense vectors.
"""

from __future__ import annotations

import argparse
import os
from functools import partial

import numpy as np

from benchmarks.__main__ import encode_seconds, seconds
from benchmarks.trees import benchmark_forest
from treedot import SubsetTreeKernel, sparse_gram
from treedot.encode import StratifiedEncoder, StratifiedSpec
from treedot.experiments.fidelity import error_over_floor, norm_ratios, spearman

DECAYS = (0.2, 0.4, 0.6, 0.8, 1.0)
WIDE = 2**30


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strata", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name in ("questions", "Penn sentences"):
        whole, source = benchmark_forest(options.data, name)
        forest = whole[np.random.default_rng(0).choice(len(whole), options.trees, replace=False)]
        exact = {decay: SubsetTreeKernel(decay).gram(forest) for decay in DECAYS}
        timed = whole[:1000]
        dense = encode_seconds(timed, "mixed")
        print(f"{source}: {len(forest)} trees at random, {options.seeds} seeds")
        print("budget  numbers  times dense  " + "  ".join(f"λ = {x}: ρ, error/floor, norm²" for x in DECAYS))
        for budget in (2, 4, 6, 7, 8, 9, 10, 11, 12, 14):
            encoder = StratifiedEncoder(StratifiedSpec(budget=budget))
            took = seconds(partial(encoder.encode, timed, n_jobs=1))
            cells = []
            for decay in DECAYS:
                ranks, errors, norms = [], [], []
                for seed in range(options.seeds):
                    rows = StratifiedEncoder(
                        StratifiedSpec(WIDE, decay, budget, seed, dtype="float64")
                    ).encode(forest)
                    numbers = rows.nnz / len(forest)
                    estimate = sparse_gram(rows)
                    ranks.append(spearman(exact[decay], estimate))
                    errors.append(error_over_floor(exact[decay], estimate, numbers) ** 2)
                    norms.append(norm_ratios(exact[decay], estimate))
                low, middle, high = np.quantile(norms, (0.05, 0.5, 0.95))
                error = np.sqrt(np.mean(errors))
                cells.append(f"{np.mean(ranks):.4f} {error:.3f} {low:.2f} {middle:.2f} {high:.2f}")
            print(f"{budget:>6}  {numbers:7.0f}  {dense / took:11.2f}  " + "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
