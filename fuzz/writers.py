"""Change one index from many processes and threads at once; no acknowledged change may be lost.

In each round, writers start together: they add trees, update the trees of a file, remove rows, and run
``treedot index --update`` on changed source code. Some are threads that share an open index, and some are
killed. Meanwhile a reader searches. In the end the index must contain every change whose call returned, and
nothing else, and no other file may be left beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import secrets
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot import Forest, Tree, TreeIndex
from treedot.cli import main as treedot
from treedot.errors import SourceError

KINDS = ("add", "update", "remove", "remove locked", "command")
WEIGHTS = (5, 3, 2, 2, 1)  # a command takes longest
MOST_WRITERS = 6
SECONDS = 120  # before a round counts as hanging
AHEAD = 0.05  # seconds to start all processes
INDEX, CODE = "x.index", "code"

FORK: Any = multiprocessing.get_context("fork") if hasattr(os, "fork") else None


class LostError(Exception):
    """An index with wrong content, or a file that should not exist."""


class Change(NamedTuple):
    """The change of one writer to its own trees; ``number`` is in all their names."""

    kind: str
    number: int
    in_thread: bool
    killed: bool

    @property
    def file(self) -> str:
        """The value of the column ``file`` of its trees."""
        return f"{CODE}/f{self.number}.py" if self.kind == "command" else f"{self.kind}/{self.number}"


def _trees(file: str, label: str) -> Forest:
    return Forest.from_trees([Tree.parse(f"(S ({label} a) (B b))")], {"file": [file]})


def _function(number: int, word: str) -> str:
    return f"def {word}{number}(a, b):\n    return [a + {number}, b, '{word}']\n"


def _begin(folder: Path, changes: Sequence[Change]) -> None:
    """Build the index of a round: the source code, and the trees to be updated or removed."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / CODE).mkdir(parents=True)
    os.chdir(folder)
    for change in changes:
        if change.kind == "command":
            Path(change.file).write_text(_function(change.number, "old"))
    old = [change for change in changes if change.kind not in ("add", "command")]
    forests = [_trees("same", "same"), *(_trees(change.file, f"old{change.number}") for change in old)]
    if any(change.kind == "command" for change in changes):
        _command()
        TreeIndex.open(INDEX).add(iter(forests))
    else:
        TreeIndex.build(iter(forests), INDEX)


def _command() -> None:
    with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
        code = treedot(["index", CODE, "-o", INDEX, "--update", "--jobs", "1"])
    if code:
        raise LostError(f"treedot index --update ends with {code}")


def _apply(change: Change, index: TreeIndex) -> None:
    """Make the change; it is acknowledged when this returns."""
    new = _trees(change.file, f"new{change.number}")
    match change.kind:
        case "add":
            index.add(new)
        case "update":
            index.update(new)
        case "remove":
            _remove(change, index)
        case "remove locked":
            with index.locked():
                index.remove([index.column("file").index(change.file)])
        case _:
            Path(change.file).write_text(_function(change.number, "new"))
            _command()


def _remove(change: Change, index: TreeIndex) -> None:
    """Remove a row by its number; look it up again whenever another writer was faster."""
    while True:
        try:
            index.remove([index.column("file").index(change.file)])
        except SourceError as error:
            if "changed by another process" not in str(error):
                raise
            index = TreeIndex.open(INDEX)
        else:
            return


def _expected(change: Change) -> set[tuple[str, ...]]:
    """Return what the index may contain for a file: labels of its trees, or names of its functions."""
    number = change.number
    new: tuple[str, ...] = () if change.kind.startswith("remove") else (f"new{number}",)
    old: tuple[str, ...] = () if change.kind == "add" else (f"old{number}",)
    return {old, new} if change.killed else {new}


def _check(changes: Sequence[Change]) -> None:
    TreeIndex.open(INDEX).add(_trees("last", "last"))  # removes the remains of killed writers
    index = TreeIndex.open(INDEX)
    found: dict[str, list[str]] = {}
    forest = index.forest(np.arange(len(index)))
    names = index.column("name")
    for i, file in enumerate(index.column("file")):
        label = names[i] or str(forest[i].children[0].label)
        found.setdefault(file, []).append(label)
    for change in changes:
        has = tuple(found.pop(change.file, ()))
        if has not in _expected(change):
            raise LostError(f"{change}: the index has {has}, not one of {_expected(change)}")
    if found != {"same": ["same"], "last": ["last"]}:
        raise LostError(f"other trees are in the index: {found}")
    if left := set(os.listdir()) - {INDEX, CODE}:
        raise LostError(f"{left} were left over")


def _in_process(work: Callable[[], None], start: float) -> Any:
    """Start a forked process that works from some moment on; its exit code is 0 if it succeeded.

    The moment is fixed beforehand: a killed process could leave a barrier locked.
    """

    def run() -> None:
        try:
            time.sleep(max(0, start - time.monotonic()))
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    process = FORK.Process(target=run)
    process.start()
    return process


def _in_threads(changes: Sequence[Change]) -> None:
    """Make changes in threads of one process, some of which share an open index."""
    shared, errors = TreeIndex.open(INDEX), list[BaseException]()

    def run(change: Change) -> None:
        try:
            _apply(change, shared if change.number % 2 else TreeIndex.open(INDEX))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(change,)) for change in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _read_until(done: Path) -> None:
    while not done.exists():
        index = TreeIndex.open(INDEX)
        rows, _ = index.search(["(S (same a) (B b))"], k=1)
        if str(index.forest(rows[0])[0]) != "(S (same a) (B b))":
            raise LostError("a search does not find the tree that is always there")


def run_round(rng: random.Random, folder: Path) -> list[Change]:
    """Run one round; return the changes made, raise if something was lost or left over."""
    count = rng.randint(2, MOST_WRITERS)
    changes = []
    for number, kind in enumerate(rng.choices(KINDS, WEIGHTS, k=count), 1):
        in_thread = kind != "command" and rng.random() < 0.4  # a command redirects the output of its process
        changes.append(Change(kind, number, in_thread, not in_thread and rng.random() < 0.15))
    _begin(folder, changes)
    together = [change for change in changes if change.in_thread]
    apart = [change for change in changes if not change.in_thread]
    done, start = folder.with_suffix(".done"), time.monotonic() + AHEAD
    done.unlink(missing_ok=True)
    works = [lambda change=change: _apply(change, TreeIndex.open(INDEX)) for change in apart]
    reader = _in_process(lambda: _read_until(done), start)
    processes = [_in_process(work, start) for work in works]
    if together:
        processes.append(_in_process(lambda: _in_threads(together), start))
    try:
        _kill([process for process, change in zip(processes, apart, strict=False) if change.killed], rng)
        for process in processes:
            process.join(SECONDS)
        done.touch()
        reader.join(SECONDS)
        _check_ends([reader, *processes], {p.pid for p, c in zip(processes, apart, strict=False) if c.killed})
    finally:
        for process in (reader, *processes):
            process.kill()
            process.join()
    _check(changes)
    return changes


def _kill(processes: Sequence[Any], rng: random.Random) -> None:
    for process in processes:
        time.sleep(rng.random() * 2 * AHEAD)
        process.kill()


def _check_ends(processes: Sequence[Any], killed: set[int | None]) -> None:
    if any(process.exitcode is None for process in processes):
        raise LostError(f"a process still waits after {SECONDS} seconds")
    if any(process.exitcode and process.pid not in killed for process in processes):
        raise LostError("a writer or the reader failed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.writers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the changes (default: random)")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"{options.rounds} rounds, --seed {seed}", flush=True)
    rng, kinds, before = random.Random(seed), Counter[str](), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        try:
            for _ in range(options.rounds):
                for change in run_round(rng, Path(folder, "round")):
                    kinds[f"{change.kind} killed" if change.killed else change.kind] += 1
        except LostError as failure:
            print(f"failed: {failure}", file=sys.stderr)
            return 1
        finally:
            os.chdir(before)
    print("no change was lost: " + ", ".join(f"{n} × {kind}" for kind, n in sorted(kinds.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
