"""Make tables of labelled trees from code and pages: ``python -m benchmarks.code_and_pages FOLDER``.

``bash benchmarks/code_and_pages.sh FOLDER`` collects the sources, some Python packages and sites of
documentation. The tables are ``packages.parquet``, ``tests.parquet``, ``names.parquet`` and ``pages.parquet``
in the folder: functions by package, by whether they are in tests, and by their name; pages by site. Each has
the trees, their ``class``, the ``text`` that they were read from, and their ``file``.

A function's own name is replaced by ``_`` wherever it occurs in it. Of functions that are near-duplicates of
each other when names and literals are blurred, one is kept, and of pages with equal trees.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treedot import Forest, read_code
from treedot.clones.production_keys import tree_keys
from treedot.clones.similarity import production_multisets, similar_pairs
from treedot.readers import read_html

TESTED = {"dask", "matplotlib", "networkx", "pandas", "sklearn", "statsmodels", "sympy", "twisted"}
NODES = 30, 1000  # of a function: the least and the most
PAGE_NODES = 1000  # the most
SIMILAR = 0.8  # functions that are similar to this degree are near-duplicates
HIDDEN = "_"  # stands for a function's own name
SEED = 0

Classes = Callable[[Forest], list[str | None]]  # None: left out


def by_package(functions: Forest) -> list[str | None]:
    """Return the package of every function that is not in tests."""
    return [None if in_tests(file) else package(file) for file in functions.columns["file"]]


def by_tests(functions: Forest) -> list[str | None]:
    """Return whether a function is in tests, for packages that have tests."""
    named = {True: "test", False: "other"}
    return [named[in_tests(file)] if package(file) in TESTED else None for file in functions.columns["file"]]


def by_name(functions: Forest) -> list[str | None]:
    """Return the name of every function that is not in tests, without the class that it belongs to."""
    columns = functions.columns["file"], functions.columns["name"]
    return [None if in_tests(file) else name.split(".")[-1] for file, name in zip(*columns, strict=True)]


def package(file: str) -> str:
    """Return the first folder of a path.

    Examples
    --------
    >>> package("dask/array/core.py"), in_tests("dask/array/core.py"), in_tests("dask/tests/test_a.py")
    ('dask', False, True)
    """
    return file.split("/")[0]


def in_tests(file: str) -> bool:
    """Return whether a file is part of tests."""
    return re.search(r"(^|/)(tests?|testing|test_[^/]*|conftest)(/|\.py$)", file) is not None


class Sample(NamedTuple):
    """The functions of a table: their classes, and how many there are of them."""

    classes_of: Classes
    n_classes: int
    n_each: int
    per_file: int  # functions of one class and file, so that a class is in many files


SAMPLES = {
    "packages": Sample(by_package, 12, 200, 5),
    "tests": Sample(by_tests, 2, 1000, 5),
    "names": Sample(by_name, 100, 20, 2),
}
SITES, PAGES = 10, 60


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.code_and_pages", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder that code_and_pages.sh filled")
    folder = parser.parse_args(arguments).folder
    made = {name: partial(sampled, folder / "code", sample) for name, sample in SAMPLES.items()}
    for name, make in {**made, "pages": partial(sampled_pages, folder / "pages")}.items():
        forest = make()
        forest.save(folder / f"{name}.parquet")
        print(f"{name}: {len(forest)} trees, {forest.n_nodes / len(forest):.0f} nodes on average", flush=True)


def sampled(folder: Path, sample: Sample) -> Forest:
    """Return a sample of functions, none of them near-duplicates."""
    functions = all_functions(folder)
    classes = np.array(sample.classes_of(functions), object)
    # Some of the first choice are near-duplicates.
    first = chosen(classes, functions.columns["file"], sample._replace(n_each=5 * sample.n_each))
    first = first[distinct(functions[first])]
    files = [functions.columns["file"][k] for k in first.tolist()]
    which = first[chosen(classes[first], files, sample)]
    return with_source(functions[which], folder, classes[which].tolist())


@lru_cache(maxsize=1)
def all_functions(folder: Path) -> Forest:
    """Return all functions but nested ones, with blurred names and literals."""
    low, high = NODES
    found = read_code(folder, identifiers="blur", literals="blur", min_nodes=low, n_jobs=-1)
    found.columns["file"] = [Path(file).relative_to(folder).as_posix() for file in found.columns["file"]]
    return found[np.flatnonzero((found.sizes <= high) & ~nested(found))]


def nested(functions: Forest) -> np.ndarray:
    """Return whether each function lies inside another one of its file."""
    columns = (functions.columns[name] for name in ("file", "start", "end"))
    found, seen = [], ("", 0)
    for file, start, end in zip(*columns, strict=True):
        found.append(file == seen[0] and start <= seen[1])
        seen = (file, max(end, seen[1] if file == seen[0] else 0))
    return np.array(found, bool)


def chosen(classes: np.ndarray, files: Sequence[str], sample: Sample) -> np.ndarray:
    """Return the positions of random trees of the most frequent classes, in ascending order.

    Examples
    --------
    >>> chosen(np.array(["a", "b", "a", None, "a"]), ["f", "f", "f", "f", "g"], Sample(list, 1, 2, 1))
    array([2, 4])
    """
    by_class: dict[str, list[int]] = {}
    taken: Counter[tuple[str, str]] = Counter()
    for k in np.random.default_rng(SEED).permutation(classes.size).tolist():
        name = classes[k]
        if name is not None and name != HIDDEN and taken[name, files[k]] < sample.per_file:
            taken[name, files[k]] += 1
            by_class.setdefault(name, []).append(k)
    largest = sorted(by_class, key=lambda name: (-len(by_class[name]), name))[: sample.n_classes]
    return np.array(sorted(k for name in largest for k in by_class[name][: sample.n_each]), np.int64)


def distinct(functions: Forest) -> np.ndarray:
    """Return the positions of functions of which none is a near-duplicate of an earlier one of them."""
    pairs = similar_pairs(production_multisets(functions), SIMILAR)
    kept = np.ones(len(functions), bool)
    for k in np.lexsort((pairs.a, pairs.b)).tolist():
        if kept[pairs.a[k]]:
            kept[pairs.b[k]] = False
    return np.flatnonzero(kept)


def with_source(functions: Forest, folder: Path, classes: Sequence[str]) -> Forest:
    """Return the functions with their names and literals, and with their text; without their own names."""
    with tempfile.TemporaryDirectory() as aside:
        texts = []
        columns = (functions.columns[name] for name in ("file", "start", "end", "name"))
        for k, (file, start, end, name) in enumerate(zip(*columns, strict=True)):
            lines = (folder / file).read_text(errors="replace").split("\n")[start - 1 : end]
            source = textwrap.dedent("\n".join(lines) + "\n")
            texts.append(re.sub(rf"\b{re.escape(name.split('.')[-1])}\b", HIDDEN, source))
            Path(aside, f"{k:06d}.py").write_text(texts[-1])
        found = read_code(aside, n_jobs=-1)
    number = [int(Path(file).stem) for file in found.columns["file"]]
    outer, first = np.unique(number, return_index=True)
    kept = outer.tolist()  # a few are skipped, such as those that look minified on their own
    columns = classes, texts, functions.columns["file"]
    return labelled(found[first], *([column[k] for k in kept] for column in columns))


def sampled_pages(folder: Path) -> Forest:
    """Return pages of every site, all with different trees."""
    pages = read_html(folder)
    pages = pages[np.flatnonzero(pages.sizes <= PAGE_NODES)]
    pages = pages[np.sort(np.unique(tree_keys(pages), axis=0, return_index=True)[1])]
    files = [Path(file).relative_to(folder).as_posix() for file in pages.columns["file"]]
    sites = np.array([package(file) for file in files], object)
    which = chosen(sites, files, Sample(list, SITES, PAGES, 1))
    files = [files[k] for k in which.tolist()]
    texts = [Path(folder, file).read_text(errors="replace") for file in files]
    return labelled(pages[which], sites[which].tolist(), texts, files)


def labelled(forest: Forest, classes: Sequence[str], texts: Sequence[str], files: Sequence[str]) -> Forest:
    """Return the trees with the columns of the table."""
    columns = {"class": list(classes), "text": list(texts), "file": list(files)}
    return Forest(forest.label, forest.arity, forest.offsets, forest.labels, columns)


if __name__ == "__main__":
    sys.exit(main())
