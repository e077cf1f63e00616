"""Kill everything that writes files at random moments; every file must be the complete old or new one.

A third of the kills hit commands, see ``fuzz.endings``. The others hit writers. Each writer makes one of two
files, whose bytes are known. It runs in a forked process that gets SIGKILL or SIGTERM at some moment, with or
without an existing file. Afterwards the file must be the old one or the new one. After the next undisturbed
run, there must be no other file beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.trees import json_lists

import treedot as td
from fuzz import endings
from treedot import cli
from treedot._runtime.ending import take_signals
from treedot._storage.files import remove_folder, write_whole
from treedot.models import TreeMetric
from treedot.vectors import Metric

DECAYS = (0.3, 0.6)  # the number of the file: each writer makes two
COMPILATIONS = 25  # one kill in this many hits ``treedot compile``, which takes long
PAIR = ["(S (NP a) (VP b))", "(S (NP a) (VP c))"]


Content = bytes | dict[str, bytes]  # of a file, or of the files of a folder


class Writer(NamedTuple):
    """Code that writes one of two files, or folders of files."""

    name: str  # of the file
    write: Callable[[Path, int], int | None]  # returns an exit code, if it has one
    check: Callable[[Path], object]  # raises if a file is incomplete
    cleans_up: bool = False  # whether SIGTERM leaves nothing behind either
    same_bytes: bool = True
    has_steps: bool = False  # whether it writes complete files that are neither the old one nor the final one


class WriterError(Exception):
    """A file that is neither the old nor the new one, or that should not exist."""


def writers(folder: Path) -> list[Writer]:
    """Return everything that writes files, with inputs in a folder."""
    forest = json_lists(1000)
    forest.columns["class"] = [str(number % 3) for number in range(len(forest))]
    trees, few, labelled = folder / "trees.mrg", folder / "few.mrg", folder / "labelled.parquet"
    forest.write_brackets(trees)
    forest[:100].write_brackets(few)
    forest[:200].save(labelled)

    def command(name: str, *options: str | Path, check: Callable[[Path], object]) -> Writer:
        def write(path: Path, which: int) -> int:
            return cli.main([*map(str, options), "-o", str(path), "--decay", str(DECAYS[which])])

        return Writer(name, write, check, True)

    def encode(name: str, *options: str) -> Writer:
        return command(name, "encode", trees, *options, check=td.load_vectors)

    def report(path: Path, which: int) -> int:
        return cli.main(["demo", "--functions", str((50, 55)[which]), "--out", str(path.parent)])

    def build(path: Path, which: int) -> None:
        vectorizer = td.FragmentVectorizer(n_features=2**30, decay=DECAYS[which])
        td.TreeIndex.build(forest, path, vectorizer, overwrite=True)

    def change(path: Path, which: int) -> None:
        """Build an index, then change it in every way; the result does not depend on the existing file."""
        own = forest[:50]
        own.columns["file"] = [str(number % 5) for number in range(50)]
        vectorizer = td.FragmentVectorizer(n_features=2**16, decay=DECAYS[which])
        index = td.TreeIndex.build(own, path, vectorizer, overwrite=True)
        with index.locked():
            index.add(forest[50:100])
            index.remove([0, 1, 2])
        index.update(own[:10], files=["1", "2"])

    def opened(path: Path) -> None:
        td.TreeIndex.open(path).search(forest[:2], k=3)

    def train_on(path: Path, which: int) -> None:
        """Resume the last training if it was killed; the model must be the same."""
        checkpoint = folder / f"training {which}"
        model = td.train_files(
            labelled,
            "class",
            checkpoint=checkpoint,
            vectorizer=td.FragmentVectorizer(n_features=2**16),
            decay=DECAYS[which],
            C=1,
            max_passes=10,
        )
        with write_whole(path) as aside:
            aside.write_bytes(model.weights.tobytes() + model.bias.tobytes())
        remove_folder(checkpoint)

    def saved(name: str, vectorizers: Sequence[Any]) -> Writer:
        @cache
        def made(which: int) -> Any:
            return vectorizers[which].transform(forest)

        def write(path: Path, which: int) -> None:
            td.save_vectors(path, made(which), vectorizers[which])

        return Writer(name, write, td.load_vectors)

    @cache
    def trained(which: int) -> td.TreeClassifier:
        classes = [k % 3 for k in range(100)]
        return td.TreeClassifier(decay=DECAYS[which], C=1).fit(forest[:100], classes)

    def train(path: Path, which: int) -> None:
        trained(which).save(path, overwrite=True)

    @cache
    def tuned(which: int) -> TreeMetric:
        groups = [k % 3 for k in range(100)]
        return TreeMetric(n_columns=256, shrinkage=DECAYS[which]).fit(forest[:100], groups)

    def tune(path: Path, which: int) -> None:
        tuned(which).save(path, overwrite=True)

    sparse = [td.FragmentVectorizer(decay=decay) for decay in DECAYS]
    dense = [td.DistributedTreeVectorizer(n_components=256, decay=decay) for decay in DECAYS]
    return [
        encode("rows.npz"),
        encode("rest.npz", "--rest", "blocks"),
        encode("dense.npy", "--vectors", "dense", "-d", "1024"),
        encode("dense.parquet", "--vectors", "dense", "-d", "1024"),
        command("gram.npy", "gram", few, check=np.load),
        Writer("index.html", report, _whole_page, True, same_bytes=False),
        Writer("trees.index", build, td.TreeIndex.open),
        Writer("changed.index", change, opened, has_steps=True),
        Writer("brackets.mrg", lambda path, which: forest[which:].write_brackets(path), td.read_trees),
        Writer("forest.parquet", lambda path, which: forest[which:].save(path), td.Forest.load),
        Writer("forest.arrow", lambda path, which: forest[which:].save(path), td.Forest.load),
        Writer("vectorizer", lambda path, which: sparse[which].save(path), td.FragmentVectorizer.load),
        Writer("model", train, td.LinearModel.load),
        Writer("metric", tune, Metric.load),
        Writer("weights", train_on, Path.read_bytes),
        saved("saved.npz", sparse),
        saved("saved.npy", dense),
        saved("saved.parquet", dense),
    ]


def _whole_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if not text.startswith("<!") or not text.endswith("</html>\n"):
        raise WriterError(f"{path} is half a page")


class Attacked:
    """A writer with its own folder, and the results of undisturbed runs."""

    def __init__(self, writer: Writer, folder: Path) -> None:
        self.writer, self.target = writer, folder / writer.name
        self.found: Counter[str] = Counter()
        folder.mkdir()
        with contextlib.redirect_stdout(None):
            for which in (0, 1):  # so that forked processes have the compiled code and write soon
                writer.write(self.target, which)
        alone = [self._left_alone(which) for which in (0, 1)]
        self.seconds = sum(seconds for seconds, _ in alone) / 2
        self._whole = [content for _, content in alone]

    def kill(self, rng: random.Random) -> bool:
        """Start the writer and kill it; return whether it was still running, raise if it did harm."""
        which, number = rng.randrange(2), rng.choice((signal.SIGKILL, signal.SIGTERM))
        old = rng.choice((None, self._whole[1 - which]))
        _put(self.target, old)
        others = self._others()
        process = self._start(which)
        time.sleep(rng.random() * self.seconds)
        os.kill(process, number)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        killed = code in (-number, 128 + number)
        if code and not killed:
            raise WriterError(f"{self.target}: after {number.name} the writer ends with {code}")
        self.found[self._state(old, which)] += killed
        if killed and number == signal.SIGTERM and self.writer.cleans_up and self._others() - others:
            raise WriterError(f"SIGTERM left {self._others() - others}")
        if rng.random() < 0.25:
            self.leave_alone(rng.randrange(2))
        return killed

    def leave_alone(self, which: int) -> None:
        """Let the writer finish; raise if the file is not the new one, or not the only one."""
        _, content = self._left_alone(which)
        if self.writer.same_bytes and content != self._whole[which]:
            raise WriterError(f"{self.target} is not the expected file")
        if left := self._others():
            raise WriterError(f"{left} are left over after the next run")

    def _left_alone(self, which: int) -> tuple[float, Content | None]:
        start = time.monotonic()
        code = os.waitstatus_to_exitcode(os.waitpid(self._start(which), 0)[1])
        seconds = time.monotonic() - start
        if code:
            raise WriterError(f"{self.target} cannot be written: the writer ends with {code}")
        self.writer.check(self.target)
        return seconds, _content(self.target)

    def _start(self, which: int) -> int:
        process = os.fork()
        if process:
            return process
        code = 1
        try:
            take_signals()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = self.writer.write(self.target, which) or 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _state(self, old: Content | None, which: int) -> str:
        """Return whether the old file, the new one or none exists; raise if it is another one."""
        content = _content(self.target)
        if content == old:
            return "none" if old is None else "old"
        if content is None:
            raise WriterError(f"{self.target} is gone")
        is_new = content == self._whole[which]
        if self.writer.same_bytes and not (is_new or self.writer.has_steps):
            raise WriterError(f"{self.target} is neither the old one nor the new one")
        self.writer.check(self.target)
        return "new" if is_new or not self.writer.has_steps else "between"

    def _others(self) -> set[str]:
        return set(os.listdir(self.target.parent)) - {self.writer.name}


def _content(path: Path) -> Content | None:
    """Return the content of a file or a folder; None if it does not exist."""
    if path.is_dir():
        return {file.name: file.read_bytes() for file in path.iterdir()}
    return path.read_bytes() if path.exists() else None


def _put(path: Path, content: Content | None) -> None:
    """Set the content of a file or a folder, or remove it."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if isinstance(content, dict):
        path.mkdir()
        for name, data in content.items():
            (path / name).write_bytes(data)
    elif content is not None:
        path.write_bytes(content)


def kill_compilations(rng: random.Random, folder: Path, count: int) -> None:
    """Kill ``treedot compile``; raise if a command cannot use the compiled code that it left."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-m", "treedot"]
    for _ in range(count):
        with subprocess.Popen([*command, "compile"], env=environment, stdout=subprocess.DEVNULL) as process:
            time.sleep(rng.uniform(2, 15))
            process.send_signal(rng.choice((signal.SIGKILL, signal.SIGTERM)))
        done = subprocess.run([*command, "kernel", *PAIR], env=environment, capture_output=True, text=True)
        if (done.returncode, done.stdout) != (0, "2.4\n"):
            raise WriterError(f"after compiling was killed, a kernel is {done.stdout!r} {done.stderr}")


def kill_all(rng: random.Random, folder: Path, kills: int, only: Sequence[str]) -> Iterator[str]:
    """Kill all writers in turn, or those of some files, ``kills`` times in all; yield a line for each."""
    compilations = 0 if only else kills // COMPILATIONS
    attacked = [
        Attacked(writer, folder / f"of {writer.name}")
        for writer in writers(folder)
        if not only or writer.name in only
    ]
    left = kills - compilations
    weights = [one.seconds**-0.5 for one in attacked]  # fast ones more often
    turns = iter(lambda: rng.choices(attacked, weights)[0], None)
    for one in itertools.chain(attacked, turns):
        if left <= 0:
            break
        left -= one.kill(rng)
    for one in attacked:
        one.leave_alone(0)
        yield f"{one.writer.name:16} " + "  ".join(f"{n:3} {state}" for state, n in sorted(one.found.items()))
    if compilations:
        kill_compilations(rng, folder / "compiled", compilations)
        yield f"{'compiled code':16} {compilations:3} killed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    commands = [command.name for command in endings.commands()]
    parser = argparse.ArgumentParser(prog="python -m fuzz.kills", description=__doc__)
    parser.add_argument(
        "--kills", type=int, default=200, metavar="N", help="kills in all (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the kills (default: random)")
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="NAME", help="files to write, or commands (default: all)"
    )
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    os.environ["MPLBACKEND"] = "agg"
    print(f"{options.kills} kills, --seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        rng, inputs = random.Random(seed), Path(folder, "commands")
        files = [name for name in options.only if name not in commands]
        named = [name for name in options.only if name in commands]
        ends = options.kills // 3 if not options.only else options.kills if not files else 0
        inputs.mkdir()
        try:
            for line in endings.attack(rng, inputs, ends, named) if ends else ():
                print(line, flush=True)
            if ends < options.kills:
                for line in kill_all(rng, Path(folder), options.kills - ends, files):
                    print(line, flush=True)
        except (WriterError, endings.EndingError) as failure:
            print(f"failed: {failure}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
