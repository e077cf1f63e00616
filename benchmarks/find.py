"""Measure building, changing and searching an index of many functions; and nearest-neighbour classes.

``python -m benchmarks.find FOLDER...`` indexes the functions of source code as ``treedot index`` does, by
default those of Python's standard library and of the installed packages. With ``--data`` (or
``TREEDOT_DATA``) it also prints the share of glycans and RNA molecules whose nearest neighbour has the same
class (leave-one-out). All times are processor seconds, which hardly depend on the load of the machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from published.cost import spent

from treedot import Forest, FragmentVectorizer, TreeIndex, nearest, read_trees
from treedot.readers import CodeSettings, iter_code
from treedot.search.matches import find_matches

T = TypeVar("T")

KEEP = {"identifiers": "keep", "literals": "keep"}
QUERIES = 200
CHANGED = 100  # trees per update
CLASSES = {"glycans.tsv.gz": "kingdom", "rna_archive2.tsv.gz": "family"}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.find", description=__doc__)
    parser.add_argument("folders", nargs="*", help="folders of source code")
    parser.add_argument("--units", type=int, default=100_000, help="number of functions (default: 100000)")
    parser.add_argument("--min-nodes", type=int, default=40, help="least nodes of a function (default: 40)")
    parser.add_argument("--n-jobs", type=int, default=None, help="processes and threads (default: 1)")
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    options = parser.parse_args(arguments)
    folders = options.folders or [sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")]
    with tempfile.TemporaryDirectory() as folder:
        measure(folders, Path(folder), options.units, options.min_nodes, options.n_jobs)
    if options.data:
        classify(Path(options.data))


def measure(folders: Sequence[str], folder: Path, units: int, min_nodes: int, n_jobs: int | None) -> None:
    settings = CodeSettings(**KEEP, min_nodes=min_nodes)
    warm = TreeIndex.build(["(A (B c) d)"] * 3, folder / "warm", idf=True, n_jobs=n_jobs)  # compiles
    warm.add(["(A b)"])
    warm.search(["(A b)"])
    forest, reading = timed(lambda: first_units(folders, settings, units, n_jobs))
    index, building = timed(
        lambda: TreeIndex.build(forest, folder / "units", idf=True, reading=KEEP, n_jobs=n_jobs)
    )
    size = (folder / "units").stat().st_size
    print(f"{len(index):,} functions, {forest.n_nodes / len(index):.0f} nodes and "
          f"{index.nnz / len(index):.0f} non-zeros each")  # fmt: skip
    print(f"read: {reading:.1f} s; index: {building:.1f} s, {size / 1e6:.0f} MB; peak {peak():.2f} GB")
    changed = index.forest(np.arange(min(CHANGED, len(index) // 2)))
    _, removing = timed(lambda: index.remove(np.arange(len(changed))))
    _, adding = timed(lambda: index.add(changed, n_jobs=n_jobs))
    print(f"remove {len(changed)}: {removing:.1f} s; add them again: {adding:.1f} s")
    rows = np.random.default_rng(0).choice(len(index), size=min(QUERIES, len(index)), replace=False)
    queries = [index.forest([row]) for row in rows]
    _, searching = timed(lambda: [find_matches(index, query) for query in queries])
    print(f"10 best matches, exact: {1000 * searching / len(queries):.1f} ms per query; peak {peak():.2f} GB")


def first_units(folders: Sequence[str], settings: CodeSettings, units: int, n_jobs: int | None) -> Forest:
    """Return the first ``units`` functions, or all if there are fewer."""
    parts, found = [], 0
    for part in iter_code(folders, settings=settings, n_jobs=n_jobs):
        parts.append(part)
        found += len(part)
        if found >= units:
            break
    return Forest.concat(parts)[:units]


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a call, and the seconds of all processors for it, also of processes that parse."""
    before = spent()
    result = work()
    return result, spent() - before


def classify(data: Path) -> None:
    """Print the share of trees whose nearest neighbour has their class, and that of the largest class."""
    for name, column in CLASSES.items():
        forest = read_trees(data / name)
        classes = np.array(forest.columns[column])
        rows = FragmentVectorizer(n_features=2**30, damping="sqrt").transform(forest)
        neighbours, _ = nearest(rows, k=1)
        right = np.mean(classes[neighbours[:, 0]] == classes)
        largest = Counter(classes.tolist()).most_common(1)[0][1] / len(classes)
        print(f"{name}: {len(forest):,} trees, {len(set(classes.tolist()))} classes; "
              f"nearest neighbour {right:.3f}, largest class {largest:.3f}")  # fmt: skip


def peak() -> float:
    """Return the peak memory of the process in GB, including mapped files."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
