"""Measure reading source code, from bytes to packed trees: ``python -m benchmarks.code [FOLDER]``.

By default the folder is Python's standard library without its tests. Rates are processor time of one process;
the last line is the elapsed time of reading all files in several processes, including their start.
"""

from __future__ import annotations

import argparse
import sysconfig
import time
from collections.abc import Callable, Sequence

from treedot._runtime.timing import timed
from treedot.languages import LANGUAGES, language_of
from treedot.readers import CodeSettings, read_code
from treedot.readers.code import treesitter
from treedot.readers.folders import read_file, walk

ROUNDS = 3
TESTS = ("test", "tests", "idle_test", "lib2to3", "site-packages")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.code", description=__doc__)
    parser.add_argument("folder", nargs="?", help="source code (default: the standard library)")
    parser.add_argument("--files", type=int, default=400, help="number of files to parse (default: 400)")
    options = parser.parse_args(arguments)
    folder = options.folder or sysconfig.get_paths()["stdlib"]
    files = _files(folder, options.files)
    if not files:
        parser.error(f"no source code in {folder}")
    sources = [(language, content) for _, language, content in files]
    print(f"{len(sources)} files, {_megabytes(sources):.1f} MB, of {folder}\n")
    for what, settings in (
        ("names and literals kept", CodeSettings()),
        ("blurred", CodeSettings(identifiers="blur", literals="blur")),
        ("blurred, with hashes", CodeSettings(identifiers="blur", literals="blur", blurred=True)),
    ):
        rate = _rate(sources, lambda *source, settings=settings: _by_tree_sitter(*source, settings))
        print(f"tree-sitter, {what:24} {rate:6.2f} MB/s")
    forest, took = timed(lambda: read_code([path for path, _, _ in files], n_jobs=-1))
    found = f"{len(forest):,} functions, {forest.n_nodes:,} nodes"
    print(f"\nread_code(n_jobs=-1): {found} in {took:.1f} s")
    return 0


def _files(folder: str, n_files: int) -> list[tuple[str, str, bytes]]:
    """Return the paths, languages and contents of the first files of a folder that are not tests."""
    found: list[tuple[str, str, bytes]] = []
    for file in walk([folder], lambda name: language_of(name) is not None):
        language = language_of(file.path)
        if language is not None and not set(TESTS) & set(file.path.removeprefix(folder).split("/")):
            found.append((file.path, language, read_file(file, 10**7)))
        if len(found) == n_files:
            break
    return found


def _megabytes(sources: Sequence[tuple[str, bytes]]) -> float:
    return sum(len(content) for _, content in sources) / 1e6


def _rate(sources: Sequence[tuple[str, bytes]], read: Callable[[str, bytes], object]) -> float:
    """Return the MB of source read per second of processor time, the best of several rounds."""
    read(*sources[0])  # compiles
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for language, content in sources:
            read(language, content)
        best = min(best, time.process_time() - start)
    return _megabytes(sources) / best


def _by_tree_sitter(language: str, content: bytes, settings: CodeSettings) -> object:
    """Parse in this process, whose time is measured."""
    return treesitter.parse(content, language, LANGUAGES[language], "", settings)


if __name__ == "__main__":
    raise SystemExit(main())
