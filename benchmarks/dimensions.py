"""Choose the dimension of dense vectors for a search: the true neighbours that each finds, and the time.

``python -m benchmarks.dimensions FOLDER...`` reads functions of source code, by default those of Python's
standard library and of the installed packages, and keeps 100 of them as queries. For each it takes the ten
functions with the largest subset tree kernel (normalised, λ = 0.4), and prints how many are among the ten
with the largest dot products of dense vectors, and of sparse rows; also only of those whose kernel is at
least 0.5. Equal kernels count as equally near. All times are processor seconds.
"""

from __future__ import annotations

import argparse
import sysconfig
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.find import first_units
from treedot import DistributedTreeVectorizer, Forest, FragmentVectorizer, SubsetTreeKernel, nearest
from treedot.readers import CodeSettings

K = 10
NEAR = 0.5  # the kernel of trees that share much
SIZES = (256, 512, 1024, 2048, 8192)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dimensions", description=__doc__)
    parser.add_argument("folders", nargs="*", help="folders of source code")
    parser.add_argument("--units", type=int, default=10_000, help="number of functions (default: 10000)")
    parser.add_argument("--queries", type=int, default=100, help="number of queries (default: 100)")
    options = parser.parse_args(arguments)
    folders = options.folders or [sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")]
    forest = first_units(folders, CodeSettings(), options.units, None)
    is_query = np.zeros(len(forest), bool)
    is_query[np.linspace(0, len(forest) - 1, options.queries).astype(int)] = True
    stored, queries = forest[~is_query], forest[is_query]
    start = time.process_time()
    kernels = SubsetTreeKernel(normalize=True).gram(queries, stored)
    print(f"{len(stored):,} functions, {len(queries)} queries, seconds of processor time")
    print(f"the exact kernel: {per_query(start, queries):.4f} for a query")
    print(f"{'':<15} recall at {K}  of kernels ≥ {NEAR}  encoding  per query  bytes")
    for size in SIZES:
        measure(f"dense, d = {size}", DistributedTreeVectorizer(n_components=size), stored, queries, kernels)
    measure("rows, sqrt", FragmentVectorizer(), stored, queries, kernels)
    measure("rows, linear", FragmentVectorizer(damping="linear"), stored, queries, kernels)


def measure(name: str, vectorizer: Any, stored: Forest, queries: Forest, kernels: np.ndarray) -> None:
    """Print the recall of exact search by the vectors of a vectorizer, and their times and size."""
    start = time.process_time()
    rows = vectorizer.transform(stored)
    encoding = time.process_time() - start
    asked = vectorizer.transform(queries)
    start = time.process_time()
    found, _ = nearest(asked, rows, k=K)
    took = per_query(start, queries)
    size = (rows.data.nbytes + rows.indices.nbytes if hasattr(rows, "tocsr") else rows.nbytes) // len(stored)
    shares = f"{recall(found, kernels):>12.3f} {recall(found, kernels, NEAR):>16.3f}"
    print(f"{name:<15} {shares} {encoding:>9.1f} {took:>10.4f} {size:>6}")


def recall(found: np.ndarray, kernels: np.ndarray, least: float = 0.0) -> float:
    """Return the share of the K true neighbours, or of those with such a kernel, among the rows found."""
    bounds = np.maximum(np.partition(kernels, -K, axis=1)[:, -K], least) - 1e-9
    there = np.minimum((kernels >= bounds[:, None]).sum(axis=1), K)
    right = (np.take_along_axis(kernels, found, axis=1) >= bounds[:, None]).sum(axis=1)
    return right.sum() / there.sum() if there.any() else np.nan


def per_query(start: float, queries: Forest) -> float:
    return (time.process_time() - start) / len(queries)


if __name__ == "__main__":
    main()
