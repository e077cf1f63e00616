"""Measure whether ``treedot search`` finds planted copies: ``python -m benchmarks.search [FOLDER...]``.

Functions of the folders, by default Python's standard library and the installed packages, are indexed as
``treedot index`` does. Copies of some of them, edited and renamed to known degrees, are queries. A copy is
found if the first result is its original, or a function that equals the original but for names and literals.
The first line is the way before version 0.2: names and literals blurred, no weights, ordered by cosines.
With ``--pairs``, files of GPTCloneBench are read: of every pair the first function is a query, and the second
functions, one of each original, are indexed. With ``--clones``, functions of BigCloneBench are searched for
in all others, and the share is printed whose nearest one is of the same class. With ``--elsewhere``, the
standard library is indexed, and the share of functions of the installed packages is printed that find
anything at the threshold of ``treedot search``, and of edited copies that do.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import sysconfig
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.clones import LITERALS, NAMES, with_other_leaves
from benchmarks.planting import KINDS, is_suitable, plant, statements
from treedot import Forest, TreeIndex, read_trees
from treedot.clones.similarity import similarity
from treedot.readers import CodeSettings, iter_code, parse_code
from treedot.readers.code.blurring import blurred
from treedot.search.matches import CODE_THRESHOLD, find_matches

KEEP = {"identifiers": "keep", "literals": "keep"}
LANGUAGES = {"java": "java", "py": "python"}
CLONES, FOREIGN = 600, 500  # queries
RULE = 40  # characters of the lines that separate functions and pairs


Search = Callable[[Forest], int | None]


class Queries(NamedTuple):
    """Copies of functions: their trees, the numbers of the originals, and the kinds of edits."""

    trees: Forest
    original: list[int]
    kind: list[str]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("folders", nargs="*", help="folders of Python code")
    parser.add_argument("--units", type=int, default=20_000, help="number of functions (default: 20000)")
    parser.add_argument("--per-kind", type=int, default=86, help="copies of each kind (default: 86)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the copies (default: 0)")
    parser.add_argument("--pairs", nargs="*", type=Path, help="files NAME_validate_clone.txt")
    parser.add_argument("--clones", type=Path, metavar="DIR", help="folder of bcb_functions.tsv.gz")
    parser.add_argument("--elsewhere", action="store_true", help="search for functions of other packages")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of sources with odd escapes
    with tempfile.TemporaryDirectory() as folder:
        if options.pairs:
            for path in options.pairs:
                measure_pairs(path, Path(folder))
            return
        if options.clones:
            measure_clones(options.clones, options.seed, Path(folder))
            return
        if options.elsewhere:
            measure_threshold(options.units, options.per_kind, options.seed, Path(folder))
            return
        folders = options.folders or [sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")]
        forest = first_units(folders, options.units)
        queries = planted(forest, options.per_kind, options.seed)
        print(f"{len(forest):,} functions, {len(queries.kind)} copies: the share found first")
        structure = list(blurred(forest))
        times = []
        for title, search in ways(forest, Path(folder)).items():
            first, milliseconds = searched(search, queries.trees)
            times.append(milliseconds)
            right = [
                row is not None and structure[row] == structure[original]
                for row, original in zip(first, queries.original, strict=True)
            ]
            shares = (
                f"{kind} {np.mean([r for r, k in zip(right, queries.kind, strict=True) if k == kind]):.3f}"
                for kind in KINDS
            )
            print(f"{title}: {', '.join(shares)}; {milliseconds:.1f} ms per query")
        print(f"the median query takes {times[1] / times[0]:.2f} times as long as before")


def first_units(folders: Sequence[str], units: int) -> Forest:
    """Return the first functions of the folders, with their names and literals."""
    parts, found = [], 0
    for part in iter_code(folders, settings=CodeSettings(), language="python", n_jobs=-1):
        parts.append(part)
        found += len(part)
        if found >= units:
            break
    return Forest.concat(parts)[:units]


def planted(forest: Forest, per_kind: int, seed: int) -> Queries:
    """Return edited copies of randomly chosen functions."""
    order = np.random.default_rng(seed).permutation(len(forest)).tolist()
    suitable = ((i, parsed) for i in order if (parsed := _function(forest, i)) is not None)
    chosen = list(itertools.islice(suitable, 3 * per_kind * len(KINDS)))
    copies = plant([function for _, function in chosen], per_kind, seed)
    trees = [parse_code(copy.source, "python") for copy in copies]
    outermost = [tree[[int(np.argmax(tree.sizes))]] for tree in trees]
    return Queries(
        Forest.concat(outermost),
        [chosen[copy.original][0] for copy in copies],
        [copy.kind for copy in copies],
    )


def _function(forest: Forest, i: int) -> ast.FunctionDef | None:
    """Return the syntax tree of a function of suitable size, otherwise None."""
    file, start, end = (forest.columns[name][i] for name in ("file", "start", "end"))
    try:
        lines = Path(file).read_text(encoding="utf-8").split("\n")[start - 1 : end]
        body = ast.parse(textwrap.dedent("\n".join(lines))).body
    except (SyntaxError, ValueError):
        return None
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        return None
    return body[0] if is_suitable(len(list(statements(body[0])))) else None


def ways(forest: Forest, folder: Path) -> dict[str, Search]:
    """Return two ways to search: as ``treedot index`` and ``search`` do, and as they did before."""
    old = TreeIndex.build(_as_read(forest, blurred(forest)), folder / "old", overwrite=True)
    new = TreeIndex.build(forest, folder / "new", idf=True, reading=KEEP, overwrite=True)

    def before(query: Forest) -> int:
        rows, _ = old.search(tree := _as_read(query, blurred(query)))
        found = old.forest(rows[0])
        for k in range(len(found)):  # to be printed
            similarity(tree, found[[k]])
        return int(rows[0, 0])

    def now(query: Forest) -> int | None:
        (matches,) = find_matches(new, query)
        return matches[0].row if matches else None

    return {"before": before, "now": now}


def _as_read(forest: Forest, trees: Forest) -> Forest:
    """Return trees with the columns of others."""
    return Forest(trees.label, trees.arity, trees.offsets, trees.labels, forest.columns)


def searched(search: Search, queries: Forest) -> tuple[list[int | None], float]:
    """Return the first result for each query, and the median of the processor time of a query."""
    found, times = [], []
    for i in range(len(queries)):
        query = queries[[i]]
        start = time.process_time()
        found.append(search(query))
        times.append(time.process_time() - start)
    return found, 1000 * float(np.median(times))


def measure_clones(data: Path, seed: int, folder: Path) -> None:
    """Print the share of functions whose nearest other one is of the same class."""
    forest = read_trees(data / "bcb_functions.tsv.gz")
    classes = np.array(forest.columns["clone_class"])
    _, number, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    asked = np.random.default_rng(seed).permutation(np.flatnonzero(sizes[number] > 1))[:CLONES]
    plain = with_other_leaves(forest, (*NAMES, *LITERALS), lambda text: "_")
    for title, trees, idf in (("before", plain, False), ("now", forest, True)):
        index = TreeIndex.build(trees, folder / title, idf=idf)
        rows, _ = index.search(trees[asked], k=2)
        nearest = np.where(rows[:, 0] == asked, rows[:, 1], rows[:, 0])
        print(f"{title}: {np.mean(classes[nearest] == classes[asked]):.3f} of {asked.size} functions")


def measure_threshold(units: int, per_kind: int, seed: int, folder: Path) -> None:
    """Print which share of functions finds anything at the threshold of ``treedot search``."""
    forest = first_units([sysconfig.get_path("stdlib")], units)
    other = first_units([sysconfig.get_path("purelib")], units)
    index = TreeIndex.build(forest, folder / "index", idf=True, reading=KEEP)
    order = np.random.default_rng(seed).permutation(len(other)).tolist()
    foreign = list(itertools.islice((i for i in order if _function(other, i) is not None), FOREIGN))
    copies = planted(forest, per_kind, seed)
    for title, trees in (("functions from elsewhere", other[np.array(foreign)]), ("copies", copies.trees)):
        found = [bool(one) for one in find_matches(index, trees, threshold=CODE_THRESHOLD)]
        print(f"{np.mean(found):.3f} of {len(found)} {title} find something among {len(forest):,} functions")


def measure_pairs(path: Path, folder: Path) -> None:
    """Print the share of rewritten functions that their originals find first."""
    language = LANGUAGES[path.name.partition("_")[0]]
    pairs = dict(reversed(list(_pairs(path))))  # the first pair of every original
    first, second = (
        Forest.concat([parse_code(text, language, settings=CodeSettings(unit="file")) for text in texts])
        for texts in (pairs.keys(), pairs.values())
    )
    for title, search in ways(second, folder).items():
        found, _ = searched(search, first)
        right = np.mean(np.array(found, float) == np.arange(len(found)))
        print(f"{path.name}, {len(found)} pairs, {title}: {right:.3f}")


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    for record in path.read_text(encoding="utf-8", errors="replace").split("$" * RULE):
        parts = record.split("-" * RULE)
        if len(parts) > 2:
            yield parts[1].strip(), parts[2].strip()


if __name__ == "__main__":
    main()
