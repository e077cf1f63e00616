"""Compare dense vectors in float32 with those in float64: ``python -m benchmarks.precision``. Needs no data.

Prints, for each composition, the largest difference of an element as a share of the largest element of its
vector: for functions of Python's standard library, random lists like JSON, and roots with many children.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from benchmarks.ends import sample
from benchmarks.trees import JSON, PYTHON, benchmark_forest
from treedot import Forest, read_trees
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.dense.compositions import ALGEBRAS


def wide(n_children: int) -> str:
    """Return a tree whose root has many children, of fifty kinds."""
    return f"(A {' '.join(f'(B w{k % 50})' for k in range(n_children))})"


def difference(forest: Forest, composition: str, dim: int) -> float:
    """Return the largest difference, as a share of the largest element of the vector."""
    specs = (DenseSpec(dim, 0.4, composition, dtype=dtype) for dtype in ("float32", "float64"))
    single, double = (DenseEncoder(spec).encode(forest) for spec in specs)
    largest = np.abs(double).max(axis=1)
    return float((np.abs(single - double).max(axis=1) / largest).max())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision", description=__doc__)
    parser.add_argument("--dim", type=int, default=8192)
    parser.add_argument("--trees", type=int, default=200)
    options = parser.parse_args(arguments)
    sets = {
        **{name: sample(benchmark_forest(None, name)[0], options.trees) for name in (PYTHON, JSON)},
        **{f"{n} children": read_trees([wide(n)]) for n in (100, 300, 1000)},
    }
    for name, forest in sets.items():
        found = ", ".join(f"{c} {difference(forest, c, options.dim):.1e}" for c in ALGEBRAS)
        print(f"{name}: {found}", flush=True)


if __name__ == "__main__":
    main()
