"""Measure how well planted blocks are found: ``python -m benchmarks.blocks``.

Blocks of 10 to 30 lines, runs of consecutive statements, are taken from files of a library that are then
left out. Each is inserted into two long functions of the other files: as it is, with all names and literals
renamed in the second, or renamed and with 15 % of its statements edited there (inserted, deleted or replaced,
a third each). The list is read from the beginning. A pair shows a block if each of its sides shares at least
half of its lines with one of the two copies, and covers at least half of it. A group of k members counts as
k - 1 pairs. jscpd and PMD CPD read the same files where they are installed, with several settings;
their pairs are joined to groups by place and count by the same rule, those with most tokens first.
"""

from __future__ import annotations

import argparse
import ast
import random
import resource
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.duplicates import OTHERS, TESTS, library_files
from benchmarks.lists import Place, is_same, merged, n_pairs, our_list, seen_after
from benchmarks.planting import Names, bodies_of, changed, foreign_statements, statements
from benchmarks.rivals import in_order, installed
from treedot import Forest
from treedot.cli.dups_blocks import units_and_files
from treedot.clones import find_duplicate_blocks
from treedot.readers import CodeSettings, iter_code

KINDS: dict[str, tuple[float, Names]] = {  # share of the statements that are edited, names that change
    "verbatim": (0.0, "kept"),
    "renamed": (0.0, "all"),
    "renamed, 15 % edited": (0.15, "all"),
}
LINES = (10, 30)
LONG = 30  # least statements of a function that a block is planted into
FIRST = 500
HELD_OUT = 0.15  # share of the files that blocks are taken from


@dataclass(frozen=True)
class Host:
    """A place for a block: before a statement in a long function."""

    file: Path
    line: int
    indent: int


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blocks", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1], help="seeds (default: 0 1)")
    parser.add_argument("--blocks", type=int, default=100, help="blocks of each kind (default: 100)")
    parser.add_argument("--folder", type=Path, help="folder of the library (default: the standard library)")
    parser.add_argument("--with-tests", action="store_true", help="include the library's tests")
    parser.add_argument(
        "--times", action="store_true", help="measure only the processor time, on the library"
    )
    parser.add_argument("--growth", action="store_true", help="measure only the growth of the time")
    options = parser.parse_args(arguments)
    root = options.folder or Path(sysconfig.get_paths()["stdlib"])
    files = library_files(root, OTHERS if options.with_tests else TESTS | OTHERS)
    if options.times or options.growth:
        print_times(root) if options.times else print_growth(files)
        return
    for seed in options.seeds:
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                truth = planted(root, files, folder, kind, options.blocks, seed)
                print_found(f"seed {seed}, {kind}", folder, truth)


def planted(
    root: Path, files: Sequence[Path], folder: Path, kind: str, count: int, seed: int
) -> list[tuple[Place, Place]]:
    """Write the library with planted blocks to a folder; return where the copies are."""
    chance = random.Random(f"{seed} {kind}")
    donors = set(chance.sample(files, round(HELD_OUT * len(files))))
    blocks = list(blocks_of([file for file in files if file in donors], chance))
    hosts = list(hosts_of([file for file in files if file not in donors], chance))
    chosen = chance.sample(blocks, min(count, len(blocks), len(hosts) // 2))
    places = chance.sample(hosts, 2 * len(chosen))
    foreign = foreign_statements([ast.Module(block, []) for block in blocks])
    texts = []
    for block in chosen:
        texts += [text_of(block), text_of(changed(ast.Module(block, []), *KINDS[kind], foreign, chance).body)]
    by_file: dict[Path, list[tuple[Host, int]]] = {}
    for number, host in enumerate(places):
        by_file.setdefault(host.file, []).append((host, number))
    found: dict[int, Place] = {}
    for file in files:
        if file in donors:
            continue
        target = folder / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file not in by_file:
            target.write_bytes(file.read_bytes())
            continue
        lines = file.read_text(encoding="utf-8").split("\n")
        shift = 0
        for host, number in sorted(by_file[file], key=lambda pair: pair[0].line):
            text = textwrap.indent(texts[number], " " * host.indent).split("\n")
            start = host.line - 1 + shift
            lines[start:start] = text
            shift += len(text)
            found[number] = Place(target.relative_to(folder).as_posix(), start + 1, start + len(text))
        target.write_text("\n".join(lines), encoding="utf-8")
    return [(found[k], found[k + 1]) for k in range(0, len(texts), 2)]


def functions_of(file: Path) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError):
            return
    yield from (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))


def blocks_of(files: Sequence[Path], chance: random.Random) -> Iterator[list[ast.stmt]]:
    """Yield a random block of each function that has one."""
    for file in files:
        for function in functions_of(file):
            runs = []
            for body in bodies_of(function):
                ends = np.cumsum([0, *(len(ast.unparse(statement).split("\n")) for statement in body)])
                runs += [
                    body[i:j]
                    for i, j in combinations(range(len(body) + 1), 2)
                    if LINES[0] <= ends[j] - ends[i] <= LINES[1]
                ]
            if runs:
                yield chance.choice(runs)


def hosts_of(files: Sequence[Path], chance: random.Random) -> Iterator[Host]:
    """Yield a random place in each long function; no function is inside another."""
    for file in files:
        taken = 0
        text = file.read_bytes().decode(errors="replace")
        if "\r" in text or "\f" in text or "\t" in text:
            continue
        lines = text.split("\n")
        for function in sorted(functions_of(file), key=lambda function: function.lineno):
            if function.lineno <= taken or len(list(statements(function))) < LONG:
                continue
            taken = function.end_lineno or 0
            statement = chance.choice(function.body[1:] or function.body)
            line = lines[statement.lineno - 1]
            if not hasattr(statement, "decorator_list") and not line[: statement.col_offset].strip():
                yield Host(file, statement.lineno, statement.col_offset)


def text_of(block: Sequence[ast.stmt]) -> str:
    return "\n".join(ast.unparse(statement) for statement in block)


def print_found(name: str, folder: Path, truth: Sequence[tuple[Place, Place]]) -> None:
    """Print the share of blocks found by each program."""
    found = {"treedot": our_list(folder, "blocks")}
    for rival, (_, _, run, settings) in installed("python").items():
        for setting in settings if rival in ("jscpd", "PMD CPD") else ():
            reported = in_order(run(folder, "python", setting), "size")
            found[" ".join((rival, *setting))] = merged(reported)
    n_ours = n_pairs(found["treedot"])
    for program, groups in found.items():
        seen = seen_after(groups, truth, is_same)
        pairs = n_pairs(groups)
        first, same, every = (
            np.mean([at is not None and at <= limit for at in seen]) for limit in (FIRST, n_ours, pairs)
        )
        print(
            f"{name}: {program}: {len(truth)} blocks, first {FIRST} pairs {first:.2f}, first {n_ours:,} "
            f"{same:.2f}, all {pairs:,} {every:.2f}",
            flush=True,
        )


def print_growth(files: Sequence[Path]) -> None:
    """Print the processor time of the search for blocks in a quarter, a half and all of the files."""
    settings = CodeSettings("function", "blur", "blur", 40, blurred=True, statements=True)
    every = list(iter_code(files, settings=settings, on_bad=lambda error: None, n_jobs=-1))
    random.Random(0).shuffle(every)
    for part in (64, 4, 2, 1):  # the first one loads compiled code
        functions, units = units_and_files(Forest.concat(every[: len(every) // part]), "function")
        limited = [0]
        start = time.process_time()
        found = find_duplicate_blocks(units, on_limit=limited.append)
        print(
            f"{len(functions):,} functions, {units.n_nodes:,} nodes: {len(found.groups):,} "
            f"groups in {time.process_time() - start:.1f} s; {limited[-1]:,} statements reached the limit",
            flush=True,
        )


def print_times(folder: Path) -> None:
    """Print the processor time of the command with blocks and with functions only, in turns."""
    times: dict[str, list[float]] = {"--no-blocks": [], "--blocks": []}
    for _ in range(3):
        for option, spent in times.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [sys.executable, "-P", "-m", "treedot", "dups", ".", "--no-cache", "--format", "json"]
            subprocess.run([*command, option], cwd=folder, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    functions, blocks = (min(spent) for spent in times.values())
    print(f"functions {functions:.1f} s, with blocks {blocks:.1f} s: {blocks / functions:.2f} times")


if __name__ == "__main__":
    main()
