"""Show how KeLP's SubTreeKernel differs from the kernel of equal subtrees: ``python -m benchmarks.toolkits``.

Reads qc_test.tsv.gz in the folder of the corpora: prints for how many random pairs of the questions the two
kernels differ, and the extreme eigenvalues of the Gram matrix of KeLP's.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from treedot import SubtreeKernel, read_trees

DECAY = 0.4


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.toolkits", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA", "data"), help="folder of corpora")
    parser.add_argument("--pairs", type=int, default=1000)
    options = parser.parse_args(arguments)
    trees = read_trees(Path(options.data) / "qc_test.tsv.gz")
    equal, kelp = (
        SubtreeKernel(DECAY, convention=convention, leaves=False).gram(trees)
        for convention in ("collins-duffy", "kelp")
    )
    first, second = np.triu_indices(len(trees), 1)
    chosen = np.random.default_rng(0).choice(first.size, options.pairs, replace=False)
    pairs = first[chosen], second[chosen]
    differ = ~np.isclose(equal[pairs], kelp[pairs])
    print(f"{differ.sum()} of {options.pairs} pairs of questions differ")
    for name, gram in (("equal subtrees", equal), ("KeLP", kelp)):
        values = np.linalg.eigvalsh(gram)
        print(f"{name}: eigenvalues from {values[0]:.3g} to {values[-1]:.4g}")


if __name__ == "__main__":
    main()
