"""Measure reading source code, from bytes to packed trees: ``python -m benchmarks.code [FOLDER]``.

By default the folder is Python's standard library without its tests. Rates are of one process; the last
line is of reading the folder, with processes, their start and the walk included.
"""

from __future__ import annotations

import argparse
import sysconfig
from collections.abc import Sequence
from unittest import mock

from benchmarks.timing import seconds
from treedot.languages import language_of
from treedot.readers.code import CodeSettings, parse_code, read_code, treesitter
from treedot.readers.folders import Skipped, read_file, walk
from treedot.timing import timed

TESTS = ("test", "tests", "idle_test", "lib2to3", "site-packages")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.code", description=__doc__)
    parser.add_argument("folder", nargs="?", help="source code (default: the standard library)")
    parser.add_argument("--files", type=int, default=400, help="how many files to parse (default 400)")
    options = parser.parse_args(arguments)
    folder = options.folder or sysconfig.get_paths()["stdlib"]
    sources = _sources(folder, options.files)
    if not sources:
        parser.error(f"there is no source code in {folder}")
    megabytes = sum(len(content) for _, content in sources) / 1e6
    print(f"{len(sources)} files, {megabytes:.1f} MB, of {folder}\n")
    for what, settings in (
        ("names and literals kept", CodeSettings()),
        ("blurred", CodeSettings(identifiers="blur", literals="blur")),
        ("blurred, with hashes", CodeSettings(identifiers="blur", literals="blur", blurred=True)),
    ):
        took = seconds(
            lambda settings=settings: [parse_code(s, name, settings=settings) for name, s in sources]
        )
        print(f"tree-sitter, {what:24} {megabytes / took:6.2f} MB/s")
    only_python = [(name, content) for name, content in sources if name == "python"]
    with mock.patch.object(treesitter, "is_installed", return_value=False):
        took = seconds(lambda: [parse_code(content, name) for name, content in only_python])
    print(f"ast, {'names and literals kept':32} {sum(len(s) for _, s in only_python) / 1e6 / took:6.2f} MB/s")
    skipped = Skipped()
    forest, took = timed(lambda: read_code(folder, n_jobs=-1, on_skip=skipped))
    found = f"{len(forest):,} functions, {forest.n_nodes:,} nodes"
    print(f"\nread_code(n_jobs=-1): {found} in {took:.1f} s; {skipped}")
    return 0


def _sources(folder: str, n_files: int) -> list[tuple[str, bytes]]:
    """Return the languages and contents of the first files of a folder that are not tests."""
    found: list[tuple[str, bytes]] = []
    for file in walk([folder], lambda name: language_of(name) is not None):
        language = language_of(file.path)
        if language is not None and not set(TESTS) & set(file.path.removeprefix(folder).split("/")):
            found.append((language, read_file(file, 10**7)))
        if len(found) == n_files:
            break
    return found


if __name__ == "__main__":
    raise SystemExit(main())
