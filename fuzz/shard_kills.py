"""Kill workers, runs and schedulers while parts are made; parts must be the same, and none made twice.

``python -m fuzz.shard_kills [--kills 20] [--work duplicates]``. A run in local processes gets SIGKILL when
some parts are finished: first one of its workers, after which the run must succeed; then the run itself with
all its processes, after which the next run must resume. For a run on Dask, the scheduler is killed: the run
must end in a clear error, and the next one must resume. No other files may be left beside the parts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.grammar import forests

from treedot import FragmentVectorizer, batch
from treedot.batch import liveness
from treedot.batch.engines import LocalProcesses
from treedot.errors import IncompleteError

TREES, SHARDS, WORKERS = 60_000, 24, 2
FILES = ("_treedot.json", "_vectorizer", "_pairs")
WORKS = ("encode", "duplicates")


class KillError(Exception):
    """Parts that differ or were made twice, or other files beside them."""


class Attacked:
    """A file of trees, and the parts that an undisturbed run makes from it."""

    def __init__(self, folder: Path, trees: int, shards: int, work: str) -> None:
        self.folder, self.source, self.work = folder, folder / "trees.mrg", work
        with self.source.open("w") as file:
            for forest in forests("questions", trees):
                file.writelines(f"{tree}\n" for tree in forest)
        self.size = self.source.stat().st_size // shards
        with ThreadPoolExecutor(1) as pool:
            start = time.monotonic()
            self.make(folder / "expected", pool)
        self.expected = self.parts(folder / "expected")
        self.seconds = (time.monotonic() - start) / len(self.expected)  # of a part

    def make(self, out: Path, client: object = None) -> None:
        """Make the parts."""
        workers = WORKERS if client is None else None
        if self.work == "encode":
            vectorizer = FragmentVectorizer()
            batch.encode(self.source, out, vectorizer, client, workers=workers, shard_size=self.size)
        else:
            how: dict[str, Any] = {"workers": workers, "shard_size": self.size, "min_nodes": 10}
            batch.find_duplicates(self.source, out, client, threshold=0.5, **how)

    def parts(self, out: Path) -> dict[str, bytes]:
        """Return the existing parts, those of pairs, and the result."""
        return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.arrow")}

    def check(self, out: Path) -> None:
        """Raise if a folder does not contain the right parts, or contains anything else."""
        if self.parts(out) != self.expected:
            raise KillError(f"the parts of {out} differ")
        hidden = {path.name for path in out.rglob(".*")}
        if left := hidden | set(os.listdir(out)) - {*FILES, *self.expected}:
            raise KillError(f"{left} are left over")

    def wait(self, out: Path, rng: random.Random, ended: Callable[[], bool]) -> bool:
        """Wait until some parts exist, and somewhat longer; return whether the run still continues."""
        wanted = rng.randrange(len(self.expected))
        while not ended() and len(list(out.rglob("part-*"))) < wanted:
            time.sleep(0.002)
        time.sleep(rng.random() * self.seconds)
        return not ended()


def kill_worker(attacked: Attacked, out: Path, pool: LocalProcesses, rng: random.Random) -> bool:
    """Kill one of the workers; the run must succeed, since the shard is repeated."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            attacked.make(out, pool)
        except BaseException as error:
            errors.append(error)

    runner = threading.Thread(target=run)
    runner.start()
    killed = attacked.wait(out, rng, lambda: not runner.is_alive())
    if killed and pool.processes:
        os.kill(rng.choice(pool.processes).pid, signal.SIGKILL)
    runner.join()
    if errors:
        raise KillError(f"the run ends with {errors[0]}") from errors[0]
    attacked.check(out)
    return killed


def kill_run(attacked: Attacked, out: Path, rng: random.Random) -> bool:
    """Kill a run and all its workers; the next run must make only the missing parts."""
    driver = os.fork()
    if not driver:
        code = 1
        try:
            os.setpgid(0, 0)
            attacked.make(out)
            code = 0
        finally:
            os._exit(code)
    done: list[int] = []

    def ended() -> bool:
        if not done and os.waitpid(driver, os.WNOHANG)[0]:
            done.append(driver)
        return bool(done)

    killed = attacked.wait(out, rng, ended)
    if killed:
        os.killpg(driver, signal.SIGKILL)
        os.waitpid(driver, 0)
        wait_for_group(driver)
    before = {path: version(path) for path in out.rglob("part-*")}
    with ThreadPoolExecutor(1) as pool:
        attacked.make(out, pool)
    if again := [path for path, known in before.items() if version(path) != known]:
        raise KillError(f"finished parts were made again: {again}")
    attacked.check(out)
    return killed


def kill_scheduler(attacked: Attacked, out: Path, rng: random.Random) -> bool:
    """Kill the scheduler of a run on Dask; the run must end in a clear error, and the next one resume."""
    errors: list[BaseException] = []
    with dask_cluster(attacked.folder / f"{out.name}.json") as (scheduler, address):
        from distributed import Client

        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it would log tracebacks
        with Client(address) as client, mock.patch.object(liveness, "SCHEDULER_SECONDS", 2.0):

            def run() -> None:
                try:
                    attacked.make(out, client)
                except BaseException as error:
                    errors.append(error)

            runner = threading.Thread(target=run)
            runner.start()
            killed = attacked.wait(out, rng, lambda: not runner.is_alive())
            scheduler.kill()
            runner.join()
    if errors and not isinstance(errors[0], IncompleteError):
        raise KillError(f"the run ends with {errors[0]!r}") from errors[0]
    before = {path: version(path) for path in out.rglob("part-*")}
    with ThreadPoolExecutor(1) as pool:
        attacked.make(out, pool)
    if again := [path for path, known in before.items() if version(path) != known]:
        raise KillError(f"finished parts were made again: {again}")
    attacked.check(out)
    return killed and bool(errors)


@contextlib.contextmanager
def dask_cluster(file: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Start a Dask scheduler and workers; yield the scheduler's process and its address."""
    options = ["--scheduler-file", str(file), "--dashboard-address", ":0"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def start(name: str, *more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{name}", *options, *more]
        return stack.enter_context(ended(subprocess.Popen(command, **quiet)))  # type: ignore[call-overload]

    with contextlib.ExitStack() as stack:
        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
        while not (file.exists() and file.read_text().endswith("}")):
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        start("worker", "--nthreads", "1", "--nworkers", str(WORKERS), "--death-timeout", "5")
        yield scheduler, address


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process, and end it afterwards."""
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def wait_for_group(group: int, seconds: float = 5.0) -> None:
    """Wait until killed processes have ended; on a busy machine they hold their locks for a while."""
    end = time.monotonic() + seconds
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < end:
            os.killpg(group, 0)
            time.sleep(0.01)


def version(path: Path) -> tuple[int, int]:
    """Return a value that changes when a file is written again."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.shard_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, metavar="N", help="kills of each kind (default: 20)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the moments (default: random)")
    parser.add_argument("--only", choices=("runs", "workers", "schedulers"), help="only these (default: all)")
    parser.add_argument("--trees", type=int, default=TREES, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--work", choices=WORKS, default=WORKS[0], help="(default: %(default)s)")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    rng = random.Random(seed)
    print(f"{options.kills} kills of workers, of runs and of schedulers, --seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        attacked = Attacked(Path(folder), options.trees, SHARDS, options.work)
        kinds: dict[str, Callable[[Path], bool]] = {"runs": lambda out: kill_run(attacked, out, rng)}
        if find_spec("distributed"):
            kinds["schedulers"] = lambda out: kill_scheduler(attacked, out, rng)
        try:
            with LocalProcesses(WORKERS) as pool:
                kinds["workers"] = lambda out: kill_worker(attacked, out, pool, rng)
                for kind in [options.only] if options.only else list(kinds):
                    kill, kills, tries = kinds[kind], 0, 0
                    while kills < options.kills:
                        kills += kill(Path(folder, f"{kind}-{tries}"))
                        tries += 1
                    print(f"{kills} {kind} killed in {tries} tries: all parts the same", flush=True)
        except (KillError, IncompleteError) as failure:
            print(f"failed: {failure}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
