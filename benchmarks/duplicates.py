"""Measure how well ``find_duplicates`` finds planted copies: ``python -m benchmarks.duplicates``.

Functions of a library, by default Python's standard library without its tests, are copied, reformatted, and
edited or renamed to known degrees. Each copy is added to the library in its own file, and the list of groups
is read from the beginning. A group of k members counts as k - 1 pairs to read, whether it was planted or not.
jscpd and pyscn run on the same files if they are installed; any of their pairs that touches both functions
counts. With ``--variants``, only the growth of the time is measured, for many different copies of one
function.
"""

from __future__ import annotations

import argparse
import ast
import random
import resource
import sysconfig
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from benchmarks.planting import KINDS, plant, statements, variants
from benchmarks.rivals import Pairs, Place, installed
from treedot import Forest, find_duplicates
from treedot._runtime.timing import timed
from treedot.clones import DuplicateGroup
from treedot.clones.duplicates import near_duplicates
from treedot.clones.groups import all_groups, groups_of
from treedot.clones.near_duplicates import NearDuplicates
from treedot.clones.similarity import production_multisets, similarities
from treedot.readers import read_code
from treedot.search.tree_edit_distance import edit_distance

TESTS = {"test", "tests", "idle_test"}
OTHERS = {"site-packages", "dist-packages", "__pycache__"}
FIRST = 500  # pairs of the list


@dataclass(frozen=True)
class Found:
    """The number of pairs read before each planted copy was seen; None for copies not in the list."""

    pairs: int
    seen: list[tuple[str, int | None]]

    def shares(self, within: int) -> list[float]:
        """Return for every kind the share of copies seen within the first ``within`` pairs."""
        return [
            float(np.mean([at is not None and at <= within for k, at in self.seen if k == kind]))
            for kind in KINDS
        ]

    def pairs_for(self, share: float) -> int | None:
        """Return the number of pairs after which a share of all copies has been seen."""
        at = sorted(n for _, n in self.seen if n is not None)
        wanted = int(np.ceil(share * len(self.seen)))
        return at[wanted - 1] if len(at) >= wanted else None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.duplicates", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="number of repetitions (default: 3)")
    parser.add_argument("--per-kind", type=int, default=50, help="copies of each kind (default: 50)")
    parser.add_argument("--folder", type=Path, help="folder of the library (default: the standard library)")
    parser.add_argument("--with-tests", action="store_true", help="include the library's tests")
    parser.add_argument(
        "--functions", type=int, help="number of functions to use, in randomly chosen files (default: all)"
    )
    parser.add_argument(
        "--smallest", type=int, default=15, help="least statements of a copied function (default: 15)"
    )
    parser.add_argument(
        "--min-nodes", type=int, default=40, help="least nodes of a compared function (default: 40)"
    )
    parser.add_argument("--n-jobs", type=int, default=-1, help="processes and threads (default: all cores)")
    parser.add_argument(
        "--variants",
        type=int,
        nargs="*",
        help="numbers of copies of one function to compare, such as 3000 6000",
    )
    options = parser.parse_args(arguments)
    root = options.folder or Path(sysconfig.get_paths()["stdlib"])
    files = library_files(root, OTHERS if options.with_tests else TESTS | OTHERS)
    if options.variants:
        print_variants(files, options)
        return
    if options.functions is None:
        print_speed("the library", files, options.n_jobs)
        if not options.with_tests:
            print_speed("with its tests", library_files(root, OTHERS), options.n_jobs)
    print_planted(root, files, options)


def library_files(root: Path, without: set[str]) -> list[Path]:
    """Return the source files of a library, except those in some folders."""
    return sorted(p for p in root.rglob("*.py") if not without & set(p.relative_to(root).parts))


def some_files(sizes: Mapping[Path, int], functions: int | None, seed: int) -> list[Path]:
    """Return random files with at least ``functions`` functions, or all; ``sizes`` counts those of each."""
    if functions is None:
        return list(sizes)
    chosen = random.Random(seed).sample(list(sizes), len(sizes))
    before = np.cumsum([0, *(sizes[path] for path in chosen)])
    return sorted(chosen[: int(np.searchsorted(before, functions))])


def read(paths: Sequence[Path], min_nodes: int, n_jobs: int) -> Forest:
    """Read functions as ``treedot dups`` does."""
    return read_code(
        paths,
        identifiers="blur",
        literals="blur",
        blurred=True,
        min_nodes=min_nodes,
        on_bad=lambda error: None,
        n_jobs=n_jobs,
    )


def print_speed(name: str, files: Sequence[Path], n_jobs: int) -> None:
    """Print the time of reading and finding."""
    forest, reading = timed(lambda: read(files, 40, n_jobs))
    found, finding = timed(lambda: near_duplicates(forest, n_jobs=n_jobs))
    groups, grouping = timed(lambda: groups_of(found))
    size = sum(path.stat().st_size for path in files) / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{name}: {len(files):,} files, {size:.1f} MB, {len(forest):,} functions of 40 nodes or more, "
        f"{forest.n_nodes:,} nodes, {len(groups):,} groups; reading {reading:.1f} s, finding "
        f"{finding + grouping:.1f} s"
        f", peak {peak:.2f} GB"
    )
    print_apart(found, groups)
    pairs = np.random.default_rng(0).choice(len(forest), (100_000, 2))
    shares = similarities(production_multisets(forest), *pairs[pairs[:, 0] != pairs[:, 1]].T)
    median, high = np.quantile(shares, [0.5, 0.99])
    print(f"similarity of random pairs: median {median:.2f}, 99 % below {high:.2f}")


def near_pairs(found: NearDuplicates) -> set[tuple[int, int]]:
    """Return all pairs of near-duplicate trees, including equal ones."""
    copies, overlap = found.trees.copies, found.places.overlap
    kinds = [*zip(found.near.a.tolist(), found.near.b.tolist(), strict=True)]
    pairs = {(min(i, j), max(i, j)) for a, b in kinds for i in copies[a] for j in copies[b]}
    pairs.update(pair for numbers in copies for pair in combinations(numbers, 2))
    return {pair for pair in pairs if not overlap(*pair)}


def print_apart(found: NearDuplicates, groups: Sequence[DuplicateGroup]) -> None:
    """Print the number of near-duplicate pairs that no group of the list contains together."""
    every, linked = near_pairs(found), all_groups(found)
    apart, split = (
        every.difference(pair for group in some for pair in combinations(group.members, 2))
        for some in (groups, linked)
    )
    print(
        f"{len(every):,} pairs of near-duplicates, {len(apart) / max(1, len(every)):.0%} of them in no group "
        f"together: {len(split):,} because not all members of the group would be alike, "
        f"{len(apart) - len(split):,} because the group is inside another one"
    )


def print_edit_distances(planted: Forest, truth: Sequence[tuple[str, int, int]]) -> None:
    """Print the correlation of the similarity with 1 - edit distance / nodes of the larger tree."""
    rng = np.random.default_rng(0)
    small = [(a, b) for _, a, b in truth if max(planted.sizes[a], planted.sizes[b]) <= 300]
    unrelated = rng.choice(np.flatnonzero(planted.sizes <= 300), (len(small), 2))
    a, b = np.concatenate([small, unrelated]).T
    shares = similarities(production_multisets(planted), a, b)
    distances = np.array([edit_distance(planted[int(i)], planted[int(j)]) for i, j in zip(a, b, strict=True)])
    by_distance = 1 - distances / np.maximum(planted.sizes[a], planted.sizes[b])
    print(
        f"similarity beside edit distance, {len(small)} copies and as many unrelated pairs: "
        f"Spearman {spearmanr(shares, by_distance).statistic:.3f}, "
        f"mean difference {np.mean(np.abs(shares - by_distance)):.3f}"
    )


@dataclass(frozen=True)
class Library:
    """A library with planted copies."""

    forest: Forest
    truth: list[tuple[str, int, int]]  # kind, original, copy
    seconds: float  # for inspection


def planted_library(
    root: Path, files: Sequence[Path], folder: Path, seed: int, options: argparse.Namespace
) -> Library:
    """Write the library and edited copies of its functions to a folder, and read all of it."""
    inside = [folder / "library" / path.relative_to(root) for path in files]
    for path, target in zip(files, inside, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    functions = list(library_functions(inside))
    copies = plant([function for _, function in functions], options.per_kind, seed, options.smallest)
    places = [folder / f"copy_{number}.py" for number in range(len(copies))]
    for path, copy in zip(places, copies, strict=True):
        path.write_text(copy.source, encoding="utf-8")
    forest, seconds = timed(lambda: read([*inside, *places], options.min_nodes, options.n_jobs))
    ends = zip(forest.columns["file"], forest.columns["end"], strict=True)
    numbers = {place: i for i, place in reversed(list(enumerate(ends)))}  # the outermost ends there
    truth = []
    for path, copy in zip(places, copies, strict=True):
        of, function = functions[copy.original]
        original = numbers.get((of.as_posix(), function.end_lineno))
        planted = numbers.get((path.as_posix(), copy.source.count("\n")))
        if original is not None and planted is not None:
            truth.append((copy.kind, original, planted))
    return Library(forest, truth, seconds)


def library_functions(files: Sequence[Path]) -> Iterator[tuple[Path, ast.FunctionDef]]:
    """Yield the functions of files, with their file."""
    for path in files:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                module = ast.parse(path.read_bytes())
            except (SyntaxError, ValueError):
                continue
        yield from ((path, node) for node in ast.walk(module) if isinstance(node, ast.FunctionDef))


def looked_through(groups: Sequence[DuplicateGroup], truth: Sequence[tuple[str, int, int]]) -> Found:
    """Return after how many pairs each planted copy is seen by a reader of the groups, in order."""
    pairs = 0
    seen: dict[int, tuple[int, int]] = {}  # the group of every function, and the pairs read up to it
    for number, group in enumerate(groups):
        pairs += len(group.members) - 1
        seen.update(dict.fromkeys(group.members, (number, pairs)))
    nowhere = (-1, 0)
    together = [(kind, seen.get(a, nowhere), seen.get(b, nowhere)) for kind, a, b in truth]
    return Found(pairs, [(kind, x[1] if x == y and x != nowhere else None) for kind, x, y in together])


def looked_through_pairs(pairs: Pairs, library: Library, folder: Path) -> Found:
    """Return the same for a list of pairs of places; a pair shows a copy if it touches both functions."""
    columns = library.forest.columns
    places = [
        Place(Path(file).relative_to(folder).as_posix(), start, end)
        for file, start, end in zip(columns["file"], columns["start"], columns["end"], strict=True)
    ]
    by_file: dict[str, list[int]] = {}
    for number, pair in enumerate(pairs):
        for place in pair:
            by_file.setdefault(place.file, []).append(number)
    seen = []
    for kind, a, b in library.truth:
        at = next(
            (
                number + 1
                for number in by_file.get(places[b].file, ())
                for x, y in (pairs[number], pairs[number][::-1])
                if x.touches(places[a]) and y.touches(places[b])
            ),
            None,
        )
        seen.append((kind, at))
    return Found(len(pairs), seen)


def print_planted(root: Path, files: Sequence[Path], options: argparse.Namespace) -> None:
    """Print the table of planted copies, for several seeds."""
    print(f"planted copies seen within the first {FIRST} pairs (in the whole list); pairs for 50 %, 90 %")
    print(" " * 34 + "".join(f"{kind:>22}" for kind in KINDS))
    found = Counter(
        read(files, options.min_nodes, options.n_jobs).columns["file"] if options.functions else ()
    )
    sizes = {path: found[path.as_posix()] for path in files}
    for seed in range(options.seeds):
        chosen = some_files(sizes, options.functions, seed)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            library = planted_library(root, chosen, folder, seed, options)
            groups, seconds = timed(
                partial(find_duplicates, library.forest, min_nodes=options.min_nodes, n_jobs=options.n_jobs)
            )
            print_found(
                f"seed {seed}, {len(library.forest):,} functions",
                looked_through(groups, library.truth),
                library.seconds + seconds,
            )
            for rival, run in installed():
                pairs, seconds = timed(partial(run, folder))
                print_found(f"seed {seed}, {rival}", looked_through_pairs(pairs, library, folder), seconds)
        if seed == 0:
            print_edit_distances(library.forest, library.truth)


def print_variants(files: Sequence[Path], options: argparse.Namespace) -> None:
    """Print the growth of the time with the number of different copies of one function."""
    functions = [function for _, function in library_functions(files)]
    function = max(functions, key=lambda function: min(len(list(statements(function))), 40))
    copies = list(variants(function, max(options.variants), share=0.1))
    with tempfile.TemporaryDirectory() as name:
        for start in range(0, len(copies), 100):
            text = "\n\n".join(copies[start : start + 100])
            (Path(name) / f"{start:06}.py").write_text(text, encoding="utf-8")
        every = read([Path(name)], options.min_nodes, options.n_jobs)
    for count in sorted(options.variants):
        forest, limited = every[:count], []
        start = time.process_time()
        groups = find_duplicates(forest, n_jobs=1, on_limit=limited.append)
        took, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{len(forest):,} variants of {forest.n_nodes // len(forest)} nodes: {len(groups):,} groups, "
            f"{sum(limited):,} met a limit; {took:.1f} s of one core, peak {peak:.2f} GB",
            flush=True,
        )


def print_found(name: str, found: Found, seconds: float) -> None:
    """Print one line of the table."""
    shares = zip(found.shares(FIRST), found.shares(found.pairs), strict=True)
    line = "".join(f"{f'{first:.2f} ({all_:.2f})':>22}" for first, all_ in shares)
    needed = f"{found.pairs_for(0.5)}, {found.pairs_for(0.9)} of {found.pairs}"
    print(f"{name:34}{line}   {needed}   {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
