"""Measure how well ``treedot dups`` finds planted copies: ``python -m benchmarks.duplicates``.

Functions of a library with 10 to 40 statements are copied, edited or renamed to known degrees, and added to
the ends of its files, half of them to the file of the original. The list of groups is read from the
beginning: a group of k members counts as k - 1 pairs, whether it was planted or not. Other programs run on
the same files where they are installed. Their pairs are joined to groups by place and count alike, each cell
of the table is their best one over several settings and orders, and their groups in tests come last, too. A
group shows a copy if it has two places that share at least half of their lines, or half of those of the
functions, with the original and the copy.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from benchmarks.lists import Group, Place, merged, n_pairs, our_list, seen_after, touches, with_tests_last
from benchmarks.planting import KINDS, Planted, plant, statements, variants
from benchmarks.planting_javascript import functions_in
from benchmarks.planting_javascript import plant as plant_javascript
from benchmarks.rivals import ORDERS, Rival, in_order, installed, missing
from treedot import Forest, find_duplicates
from treedot._runtime.timing import timed
from treedot.clones.similarity import production_multisets, similarities
from treedot.languages import LANGUAGES
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


class Options(argparse.Namespace):
    """The options of the command."""

    host: str
    language: str
    seeds: list[int]
    per_kind: int
    with_tests: bool
    only: list[str] | None
    n_jobs: int
    speed: bool
    distances: bool
    variants: list[int] | None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.duplicates", description=__doc__)
    parser.add_argument("--host", default="python", help="the standard library (python), or a folder")
    parser.add_argument(
        "--language", choices=list(PLANTERS), default="python", help="language of the host (default: python)"
    )
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1], help="seeds (default: 0 1)")
    parser.add_argument("--per-kind", type=int, default=40, help="copies of each kind (default: 40)")
    parser.add_argument("--with-tests", action="store_true", help="include the tests of a Python host")
    parser.add_argument("--only", nargs="*", metavar="PROGRAM", help="run only these, such as treedot jscpd")
    parser.add_argument("--n-jobs", type=int, default=-1, help="processes and threads (default: all cores)")
    parser.add_argument(
        "--speed", action="store_true", help="measure only the time, and the similarity of random pairs"
    )
    parser.add_argument(
        "--distances", action="store_true", help="compare only the similarity with edit distances"
    )
    parser.add_argument(
        "--variants",
        type=int,
        nargs="*",
        help="compare only copies of one function, in numbers such as 3000 6000",
    )
    options = parser.parse_args(arguments, Options())
    root = Path(sysconfig.get_paths()["stdlib"] if options.host == "python" else options.host)
    files = library_files(root, OTHERS if options.with_tests else TESTS | OTHERS, options.language)
    if options.variants:
        print_variants(files, options)
    elif options.speed:
        print_speed(files, options.n_jobs)
    elif options.distances:
        print_edit_distances(root, files, options)
    else:
        print_planted(root, files, options)


def library_files(root: Path, without: set[str], language: str = "python") -> list[Path]:
    """Return the source files of a library, except those in some folders."""
    return sorted(
        path
        for path in root.rglob("*")
        if path.suffix in LANGUAGES[language].suffixes
        and not without & set(path.relative_to(root).parts)
        and path.is_file()
    )


def read(paths: Sequence[Path], n_jobs: int) -> Forest:
    """Read functions as ``treedot dups`` does."""
    return read_code(
        paths,
        identifiers="blur",
        literals="blur",
        blurred=True,
        min_nodes=40,
        on_bad=lambda error: None,
        n_jobs=n_jobs,
    )


def print_speed(files: Sequence[Path], n_jobs: int) -> None:
    """Print the time of reading and finding."""
    forest, reading = timed(lambda: read(files, n_jobs))
    groups, finding = timed(lambda: find_duplicates(forest, n_jobs=n_jobs))
    size = sum(path.stat().st_size for path in files) / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{len(files):,} files, {size:.1f} MB, {len(forest):,} functions of 40 nodes or more, "
        f"{forest.n_nodes:,} nodes, {len(groups):,} groups; reading {reading:.1f} s, finding "
        f"{finding:.1f} s, peak {peak:.2f} GB"
    )
    pairs = np.random.default_rng(0).choice(len(forest), (100_000, 2))
    shares = similarities(production_multisets(forest), *pairs[pairs[:, 0] != pairs[:, 1]].T)
    median, high = np.quantile(shares, [0.5, 0.99])
    print(f"similarity of random pairs: median {median:.2f}, 99 % below {high:.2f}")


@dataclass(frozen=True)
class Library:
    """A library in a folder, with planted copies."""

    folder: Path
    files: list[str]
    truth: list[tuple[str, Place, Place]]  # kind, original, copy


class Function(NamedTuple):
    """A function of a file, as its planter takes it."""

    place: Place
    definition: Any


def planted_library(root: Path, files: Sequence[Path], folder: Path, seed: int, options: Options) -> Library:
    """Write the library to a folder, and edited copies of its functions to the ends of its files.

    Half of the copies of each kind go into the file of the original, the others into another one.
    """
    texts = {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
    functions = [
        function for file, text in texts.items() for function in FUNCTIONS[options.language](file, text)
    ]
    copies = PLANTERS[options.language](
        [function.definition for function in functions], options.per_kind, seed
    )
    chance = random.Random(f"{seed} files")
    others = sorted({function.place.file for function in functions})
    truth = []
    for number, planted in enumerate(copies):
        original = functions[planted.original].place
        is_here = number // len(KINDS) % 2 == 0
        file = original.file if is_here else chance.choice([f for f in others if f != original.file])
        before = texts[file].rstrip() + b"\n\n\n"
        start = before.count(b"\n") + 1
        texts[file] = before + planted.source.encode()
        truth.append(
            (planted.kind, original, Place(file, start, start + planted.source.rstrip().count("\n")))
        )
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(text)
    return Library(folder, list(texts), truth)


def python_functions(file: str, text: bytes) -> Iterator[Function]:
    """Yield the functions of a Python file in UTF-8."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = ast.parse(text.decode("utf-8"))
        except (SyntaxError, ValueError):
            return
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            yield Function(Place(file, node.lineno, node.end_lineno or node.lineno), node)


def javascript_functions(file: str, text: bytes) -> Iterator[Function]:
    """Yield the functions and methods of a JavaScript file."""
    for node in functions_in(text):
        yield Function(Place(file, node.start_point[0] + 1, node.end_point[0] + 1), node)


FUNCTIONS = {"python": python_functions, "javascript": javascript_functions}
PLANTERS: dict[str, Callable[[Sequence[Any], int, int], list[Planted]]] = {
    "python": plant,
    "javascript": plant_javascript,
}


def print_planted(root: Path, files: Sequence[Path], options: Options) -> None:
    """Print the table of planted copies, for several seeds."""
    print(f"not installed: {', '.join(missing(options.language)) or 'none'}")
    print(f"planted copies seen within the first {FIRST} pairs (in the whole list), and pairs")
    print(" " * 42 + "".join(f"{kind:>22}" for kind in KINDS))
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as name:
            library = planted_library(root, files, Path(name).resolve(), seed, options)
            programs: dict[str, Callable[[], list[Found]]] = {"treedot": partial(our_lists, library)}
            for rival, how in installed(options.language).items():
                programs[rival] = partial(every_list, how, library, options.language)
            for program, run in programs.items():
                if options.only is None or program in options.only:
                    print_found(f"seed {seed}, {program}", *timed(run))


def our_lists(library: Library) -> list[Found]:
    """Return how treedot finds the copies, as it comes."""
    return [looked_through(our_list(library.folder, "groups", "--no-blocks"), library)]


def every_list(rival: Rival, library: Library, language: str) -> list[Found]:
    """Return how a program finds the copies, with each of its settings in each order."""
    lists = []
    for options in rival.settings:
        reported = rival.run(library.folder, language, options)
        for order in ORDERS:
            groups = with_tests_last(merged(in_order(reported, order)), library.files)
            lists.append(looked_through(groups, library))
    return lists


def looked_through(groups: Sequence[Group], library: Library) -> Found:
    """Return after how many pairs each planted copy is seen by a reader of the groups, in order."""
    seen = seen_after(groups, [(a, b) for _, a, b in library.truth], touches)
    kinds = (kind for kind, _, _ in library.truth)
    return Found(n_pairs(groups), list(zip(kinds, seen, strict=True)))


def print_found(name: str, lists: Sequence[Found], seconds: float) -> None:
    """Print one line of the table: in each cell the best of several lists."""
    first = np.max([found.shares(FIRST) for found in lists], axis=0)
    every = np.max([found.shares(found.pairs) for found in lists], axis=0)
    line = "".join(f"{f'{x:.2f} ({y:.2f})':>22}" for x, y in zip(first, every, strict=True))
    pairs = sorted({found.pairs for found in lists})
    several = f"{pairs[0]:,}" + (f" to {pairs[-1]:,}" if len(pairs) > 1 else "")
    print(f"{name:42}{line}   {several} pairs   {seconds:.1f} s", flush=True)


def print_edit_distances(root: Path, files: Sequence[Path], options: Options) -> None:
    """Print the correlation of the similarity with 1 - edit distance / nodes of the larger tree."""
    with tempfile.TemporaryDirectory() as name:
        library = planted_library(root, files, Path(name), options.seeds[0], options)
        forest = read([library.folder], options.n_jobs)
    inside = [Path(file).relative_to(name).as_posix() for file in forest.columns["file"]]
    ends = zip(inside, forest.columns["end"], strict=True)
    numbers = {place: i for i, place in reversed(list(enumerate(ends)))}  # the outermost ends there
    places = (((a.file, a.end), (b.file, b.end)) for _, a, b in library.truth)
    pairs = [(numbers[a], numbers[b]) for a, b in places if a in numbers and b in numbers]
    small = [(a, b) for a, b in pairs if max(forest.sizes[a], forest.sizes[b]) <= 300]
    rng = np.random.default_rng(0)
    unrelated = rng.choice(np.flatnonzero(forest.sizes <= 300), (len(small), 2))
    a, b = np.concatenate([small, unrelated]).T
    shares = similarities(production_multisets(forest), a, b)
    distances = np.array([edit_distance(forest[int(i)], forest[int(j)]) for i, j in zip(a, b, strict=True)])
    by_distance = 1 - distances / np.maximum(forest.sizes[a], forest.sizes[b])
    print(
        f"similarity beside edit distance, {len(small)} copies and as many unrelated pairs: "
        f"Spearman {spearmanr(shares, by_distance).statistic:.3f}, "
        f"mean difference {np.mean(np.abs(shares - by_distance)):.3f}"
    )


def print_variants(files: Sequence[Path], options: Options) -> None:
    """Print the growth of the time with the number of different copies of one function."""
    functions = [
        function.definition for file in files for function in python_functions(str(file), file.read_bytes())
    ]
    function = max(functions, key=lambda function: min(len(list(statements(function))), 40))
    copies = list(variants(function, max(options.variants or ()), share=0.1))
    with tempfile.TemporaryDirectory() as name:
        for start in range(0, len(copies), 100):
            text = "\n\n".join(copies[start : start + 100])
            (Path(name) / f"{start:06}.py").write_text(text, encoding="utf-8")
        every = read([Path(name)], options.n_jobs)
    for count in sorted(options.variants or ()):
        forest, limited = every[:count], []
        start = time.process_time()
        groups = find_duplicates(forest, n_jobs=1, on_limit=limited.append)
        took, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{len(forest):,} variants of {forest.n_nodes // len(forest)} nodes: {len(groups):,} groups, "
            f"{sum(limited):,} met a limit; {took:.1f} s of one core, peak {peak:.2f} GB",
            flush=True,
        )


if __name__ == "__main__":
    main()
