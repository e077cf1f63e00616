"""Measure an index of many trees: ``python -m benchmarks.index [--trees N] [--kind questions|code]``.

Trees of a random grammar, as large as parsed questions or as functions of code, are indexed in a temporary
folder and searched: the time to build, the size of the file, memory, and the time per query.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.grammar import KINDS, forests
from treedot import Forest, FragmentVectorizer, TreeIndex
from treedot._runtime.timing import timed

QUERIES = 50


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index", description=__doc__)
    parser.add_argument("--trees", type=int, default=100_000, help="number of trees (default: 100000)")
    parser.add_argument("--kind", choices=list(KINDS), default="questions", help="size of the trees")
    parser.add_argument("--budget", type=int, default=4, help="budget of the vectorizer (default: 4)")
    parser.add_argument("--n-jobs", type=int, default=None, help="threads (default: 1)")
    parser.add_argument("--folder", default=None, help="folder with space for the index")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        vectorizer = FragmentVectorizer(n_features=2**30, budget=options.budget)
        measure(Path(folder, "trees.index"), vectorizer, options.kind, options.trees, options.n_jobs)


def measure(path: Path, vectorizer: FragmentVectorizer, kind: str, trees: int, n_jobs: int | None) -> None:
    warm = path.with_name("warm.index")
    TreeIndex.build(forests(kind, 10), warm, vectorizer, n_jobs=n_jobs).search(["(A b)"])  # compiles
    nodes, generating = timed(lambda: sum(forest.n_nodes for forest in forests(kind, trees)))
    built, both = timed(lambda: TreeIndex.build(forests(kind, trees), path, vectorizer, n_jobs=n_jobs))
    seconds = both - generating
    size = path.stat().st_size
    print(f"{trees} trees like {kind}, {nodes / trees:.0f} nodes each: {built!r}")
    print(f"non-zeros per tree: {built.nnz / trees:.0f}")
    print(f"build: {seconds:.1f} s, {trees / seconds:.0f} trees/s; {size / 1e9:.2f} GB; peak {peak():.2f} GB")
    index, opening = timed(lambda: TreeIndex.open(path))
    print(f"open: {1000 * opening:.1f} ms")
    random = np.random.default_rng(1)
    rows = random.choice(trees, size=min(QUERIES, trees), replace=False)
    taken = []
    for i, row in enumerate(rows):
        query = index.forest([row])
        if i % 2:
            query = changed(query, random)
        (found, values), took = timed(partial(index.search, query, n_jobs=n_jobs))
        taken.append(took)
        if not i % 2:
            assert abs(values[0, 0] - 1) < 1e-5, f"tree {row} does not find itself"
            assert index.forest(found[0, :1]) == query, f"tree {row} finds another"
    print(
        f"query: median {1000 * np.median(taken):.1f} ms, worst {1000 * max(taken):.1f} ms of {len(taken)}; "
        f"peak {peak():.2f} GB"
    )


def changed(tree: Forest, random: np.random.Generator) -> Forest:
    """Return a tree with another word in one place."""
    leaves = np.flatnonzero(tree.arity == 0)
    label = tree.label.copy()
    label[random.choice(leaves)] = len(tree.labels)
    return Forest(label, tree.arity, tree.offsets, [*tree.labels, "another"])


def peak() -> float:
    """Return the peak memory of the process in GB, including mapped files."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
