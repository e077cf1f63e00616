"""End commands at random moments, close their streams and fill their disks; each prints at most one line.

A command gets SIGINT, as from a terminal, SIGTERM or SIGKILL, at some moment between 50 ms and its end. Then
none of its processes may be left, its exit code must be 130 or 143 (or it was killed), and after the next
undisturbed run there must be no temporary file. With a closed standard stream, a full standard output or a
full disk, it must end by itself: with a result, or with one line that gives the reason. This needs Linux.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.trees import json_lists

import treedot as td

PROGRAM = [sys.executable, "-m", "treedot"]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
SOON = 0.05  # seconds after its start; before that, Python itself may not be ready
SERVING = 4.0  # seconds until a server is interrupted
PATIENCE = 120.0  # most seconds of a command on a busy machine
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.(part|old)")
UGLY = re.compile(r"Traceback|Exception|[A-Z]\w+Error\b|leaked|Errno|\.part\b|\x1b")
STREAMS = ("<&-", ">&-", "2>&-", ">/dev/full", "2>/dev/full", "<&- >&- 2>&-")
CODE = """
def mean_{k}(values, weights):
    total, weight = 0.0, 0.0
    for value, part in zip(values, weights):
        total += value * part + {k}
        weight += part
{more}    return total / weight
"""
KINDS = 6  # of functions; a block in more places than are compared would be a remark on standard error


class EndingError(Exception):
    """A command did not end as it should."""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str
    left: int  # processes

    def check(self, what: str, codes: Sequence[int]) -> None:
        """Raise if it did not end well: with one of these codes, and with at most one line."""
        shown = f"{what}: exit code {self.code}, {self.left} processes left, {self.err!r}"
        lines = self.err.count("\n") if self.code else 0  # a successful one may print remarks
        if self.code not in codes or self.left or lines > 1 or UGLY.search(self.err):
            raise EndingError(shown)
        if self.code and self.err and not self.err.endswith("\n"):
            raise EndingError(shown)


class Command(NamedTuple):
    """A command line and the files that it makes, in a folder of results."""

    name: str
    arguments: list[str]
    makes: tuple[str, ...] = ()
    resumes: tuple[str, ...] = ()  # folders in which an interrupted run resumes
    serves: bool = False  # until a signal ends it


def _module(number: int) -> str:
    """Return the source of a module of similar functions."""
    return "".join(CODE.format(k=number + i, more="    weight += 1\n" * (i % KINDS)) for i in range(20))


def make_inputs(folder: Path, trees: int = 400) -> None:
    """Write the inputs of the commands to a folder."""
    forest = json_lists(trees)
    forest.columns["class"] = [str(number % 3) for number in range(len(forest))]
    forest.write_brackets(folder / "trees.mrg")
    forest[:3].write_brackets(folder / "few.mrg")
    vectorizer = td.DistributedTreeVectorizer(n_components=256)
    td.save_vectors(folder / "few.npy", vectorizer.transform(forest[:3]), vectorizer)
    forest.save(folder / "labelled.parquet")
    (folder / "source").mkdir()
    for k in range(12):
        (folder / "source" / f"module_{k}.py").write_text(_module(k))
    td.TreeClassifier(decay=0.4, C=1).fit(forest[:100], forest.columns["class"][:100]).save(folder / "model")
    td.TreeIndex.build(forest, folder / "known.index")
    td.TreeIndex.build(td.iter_code(folder / "source"), folder / "source.index")
    (folder / "out").mkdir()


def commands() -> list[Command]:
    """Return command lines of all commands, to run in the folder of the inputs."""
    train = ["train", "labelled.parquet", "--label", "class", "--overwrite"]
    one = ["--C", "1", "--decay", "0.4"]
    found = [
        Command("info", ["info", "trees.mrg"]),
        Command("convert", ["convert", "trees.mrg", "-o", "out/all.parquet"], ("all.parquet",)),
        Command("convert arrow", ["convert", "trees.mrg", "-o", "out/all.arrow"], ("all.arrow",)),
        Command("convert text", ["convert", "labelled.parquet", "-o", "out/all.klp"], ("all.klp",)),
        Command("encode", ["encode", "trees.mrg", "-o", "out/rows.npz"], ("rows.npz",)),
        Command("encode npy", ["encode", "trees.mrg", "-o", "out/d.npy", "--vectors", "dense"], ("d.npy",)),
        Command(
            "encode parquet",
            ["encode", "trees.mrg", "-o", "out/d.parquet", "--vectors", "dense"],
            ("d.parquet",),
        ),
        Command("encode -", ["encode", "trees.mrg", "-o", "-"]),
        Command(
            "decode",
            ["decode", "few.npy", "--productions", "few.mrg", "-o", "out/decoded.mrg"],
            ("decoded.mrg",),
        ),
        Command("gram", ["gram", "trees.mrg", "-o", "out/gram.npy"], ("gram.npy",)),
        Command("gram -", ["gram", "few.mrg", "-o", "-"]),
        Command("kernel", ["kernel", "few.mrg", "few.mrg"]),
        Command("train", [*train, "-o", "out/made"], ("made",)),
        Command(
            "train --checkpoint",
            [*train, *one, "-o", "out/kept", "--checkpoint", "out/work"],
            ("kept",),
            ("work",),
        ),
        Command("predict", ["predict", "model", "trees.mrg"]),
        Command("predict -o", ["predict", "model", "trees.mrg", "-o", "out/classes.tsv"], ("classes.tsv",)),
        Command(
            "evaluate",
            ["evaluate", "model", "labelled.parquet", "--label", "class", "--html", "out/e.html"],
            ("e.html",),
        ),
        Command("explain", ["explain", "model", "few.mrg", "--html", "out/x.html"], ("x.html",)),
        Command("dups", ["dups", "source"]),
        Command("dups -j 1", ["dups", "source", "-j", "1", "-o", "out/dups.html"], ("dups.html",)),
        Command("index", ["index", "source", "-o", "out/code.index", "--overwrite"], ("code.index",)),
        Command(
            "tune",
            [
                "tune",
                "labelled.parquet",
                "--group",
                "class",
                "--n-columns",
                "256",
                "--shrinkage",
                "1",
                "--overwrite",
                "-o",
                "out/metric",
            ],
            ("metric",),
        ),
        Command("search", ["search", "known.index", "few.mrg"]),
        Command("similar", ["similar", "source/module_0.py", "source/module_1.py"]),
        Command(
            "cluster", ["cluster", "source", "-o", "out/c.csv", "--html", "out/c.html"], ("c.csv", "c.html")
        ),
        *([Command("mcp", ["mcp", "--index", "source.index"])] if find_spec("mcp") else ()),
        *([Command("serve", ["serve", "--port", "0"], serves=True)] if find_spec("uvicorn") else ()),
        Command("demo", ["demo", "--functions", "50", "--out", "out/demo"], ("demo",)),
    ]
    for workers in ("1", "2"):
        by = ["--workers", workers]
        small = [*by, "--shard-size", "4096"]
        found += [
            Command(
                f"batch encode --workers {workers}",
                ["batch", "encode", "trees.mrg", "-o", "out/rows/", *small],
                (),
                ("rows",),
            ),
            Command(
                f"batch predict --workers {workers}",
                ["batch", "predict", "model", "trees.mrg", "-o", "out/said/", *small],
                (),
                ("said",),
            ),
            Command(
                f"batch dups --workers {workers}",
                ["batch", "dups", "trees.mrg", "-o", "out/groups/", *small],
                (),
                ("groups",),
            ),
            Command(
                f"batch fit --workers {workers}",
                ["batch", "fit", *train[1:], *one, "-o", "out/trained", *by],
                ("trained",),
                ("trained.training",),
            ),
        ]
    return found


class Attacked:
    """A command and its duration, in the folder of its inputs."""

    def __init__(self, command: Command, folder: Path) -> None:
        self.command, self.folder = command, folder
        self.found: Counter[str] = Counter()
        self.leave_alone()  # what it caches makes all others faster: they would end before their signal
        start = time.monotonic()
        self.leave_alone()
        self.seconds = time.monotonic() - start

    def end(self, rng: random.Random) -> bool:
        """Start the command and end it; return whether it was still running, raise if it ends badly."""
        number = rng.choice(SIGNALS)
        if rng.random() < 0.5:
            self._remove(self.command.makes + self.command.resumes)
        process = self._start()
        time.sleep(rng.uniform(SOON, max(self.seconds, 2 * SOON)))
        to_all = number == signal.SIGINT or (number == signal.SIGTERM and rng.random() < 0.5)
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if to_all else os.kill)(process.pid, number)
        killed = number == signal.SIGKILL
        ended = _wait(process, 10.0 if killed else 0.5)
        ended.check(f"{self.command.name} after {number.name}", (0, -number if killed else 128 + number))
        self.found[number.name if ended.code else "too late"] += 1
        if rng.random() < 0.25:
            self.leave_alone()
        return ended.code != 0

    def leave_alone(self) -> None:
        """Let the command finish; raise if it fails or leaves temporary files."""
        self._remove(self.command.makes)
        ended = self._wait(self._start())
        ended.check(f"{self.command.name}, left alone", (130 if self.command.serves else 0,))
        left = [path for path in self.folder.rglob("*") if TEMPORARY.fullmatch(path.name)]
        if left:
            raise EndingError(f"{self.command.name}: {left} were left over after the next run")

    def redirect(self, streams: str) -> None:
        """Run the command with closed or full streams; raise if it ends badly."""
        self._remove(self.command.makes + self.command.resumes)
        ended = self._wait(self._start(f"exec {shlex.join([*PROGRAM, *self.command.arguments])} {streams}"))
        codes = 0, 130 if self.command.serves else 0, 2 if self.command.arguments[0] == "dups" else 1
        ended.check(f"{self.command.name} {streams}", codes)
        self.found["redirected"] += 1

    def fill(self, size: int) -> None:
        """Run the command with a disk of ``size`` bytes for its results; raise if it ends badly."""
        mount = f"mount -t tmpfs -o size={size} tmpfs out"
        run = f"exec {shlex.join([*PROGRAM, *self.command.arguments])}"
        ended = _wait(self._start(f"{mount} && TMPDIR=$PWD/out {run}", apart=True))
        ended.check(
            f"{self.command.name}, disk of {size} bytes", (0, 2 if self.command.arguments[0] == "dups" else 1)
        )
        if ended.code and "out" not in ended.err and "standard output" not in ended.err:
            raise EndingError(f"{self.command.name}: names no path: {ended.err!r}")
        self.found["full" if ended.code else "enough"] += 1

    def _start(self, line: str | None = None, apart: bool = False) -> subprocess.Popen[str]:
        shell = ["unshare", "-rm", "sh", "-c"] if apart else ["sh", "-c"]
        return subprocess.Popen(
            [*PROGRAM, *self.command.arguments] if line is None else [*shell, line],
            cwd=self.folder,
            env={**os.environ, "MPLBACKEND": "agg"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )

    def _wait(self, process: subprocess.Popen[str]) -> Ended:
        """Wait for the process; interrupt one that serves after a while."""
        if self.command.serves:
            with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
                process.wait(SERVING)
                return _wait(process)
            os.killpg(process.pid, signal.SIGINT)
        return _wait(process)

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            path = self.folder / "out" / name
            if path.is_dir():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)


def _wait(process: subprocess.Popen[str], grace: float = 0.5) -> Ended:
    """Wait for a process, and somewhat longer for its children."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise EndingError(f"{process.args!r} does not end") from None
    deadline = time.monotonic() + grace
    while (left := _session(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return Ended(process.returncode, out, err, left)


def _session(leader: int) -> int:
    """Return the number of processes left in a session, except zombies."""
    count = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split() if entry.name.isdigit() else []
            count += len(fields) > 3 and fields[0] != "Z" and int(fields[3]) == leader
    return count


def can_mount() -> bool:
    """Return whether a process here can mount its own disk."""
    try:
        return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def attack(rng: random.Random, folder: Path, kills: int, only: Sequence[str] = ()) -> Iterator[str]:
    """End commands ``kills`` times in all, close their streams and fill their disks; yield a line for each.

    Streams and disks of a command are tried about as often as it is ended.
    """
    make_inputs(folder)
    attacked = [Attacked(command, folder) for command in commands() if not only or command.name in only]
    mounts = can_mount()
    left = kills
    while left > 0:
        for one in rng.sample(attacked, len(attacked)):
            if left <= 0:
                break
            left -= one.end(rng)
            if mounts and one.command.makes + one.command.resumes and rng.random() < 0.5:
                one.fill(1 << rng.randrange(12, 22))
            else:
                one.redirect(rng.choice(STREAMS))
    for one in attacked:
        one.leave_alone()
        yield f"{one.command.name:20} " + "  ".join(f"{n:3} {what}" for what, n in sorted(one.found.items()))
    if not mounts:
        yield "full disks were not tried: a process cannot mount its own disk here"
