"""Measure the cost of folders of parts: ``python -m benchmarks.scale [--trees N] [--folder DIR]``.

Trees of a random grammar, as large as parsed questions, are written to a file of brackets and encoded to
sparse rows by local processes. It measures two workers against one (both warmed up), the overhead of a shard,
the cost of writing relative to reading and encoding, the time to the first part, and the peak memory of a
worker for several kinds of vectors and trees. With ``--only duplicates``, it searches for planted
near-duplicates, with two workers and in memory.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.grammar import forests
from treedot import DistributedTreeVectorizer, FragmentVectorizer, batch, find_duplicates
from treedot._runtime.timing import timed
from treedot.batch.engines import LocalProcesses
from treedot.batch.part_file import PartFile
from treedot.batch.plan import Plan
from treedot.batch.shard import do_shard, load_work
from treedot.batch.work import Source
from treedot.readers.on_bad import OnBad
from treedot.readers.ranges import split_file

SMALL = 500  # shards of one tree each
ROUNDS = 3
LOOP = 30_000_000
PARTS = ("plan", "shard", "start", "workers", "memory", "duplicates")
EVERY = 10  # every n-th tree is planted once more, edited
MIN_NODES = 20
LEAF, ZIPF = re.compile(r" [^ ()]+\)"), 1.3  # words by Zipf's law: more trees have more different words


def write_trees(path: Path, kind: str, count: int) -> Path:
    with path.open("w") as file:
        for forest in forests(kind, count):
            file.writelines(f"{tree}\n" for tree in forest)
    return path


def two_against_one(source: Path, folder: Path, trees: int) -> None:
    """Measure alternately on warm workers, beside a loop that never waits."""
    seconds, loops, processor, alone = ({1: [], 2: []} for _ in range(4))  # type: ignore[var-annotated]
    size = max(1, source.stat().st_size // 32)
    with LocalProcesses(1) as one, LocalProcesses(2) as two:
        for turn, (count, pool) in itertools.product(range(ROUNDS + 1), ((1, one), (2, two))):
            out = folder / f"{count}-{turn}"
            before = spent(pool, count)
            encode = partial(batch.encode, source, out, FragmentVectorizer(), pool, shard_size=size)
            begin = time.process_time()
            _, took = timed(encode)
            planned = time.process_time() - begin
            used = spent(pool, count) - before
            _, loop = timed(lambda pool=pool: list(pool.map(count_up, [LOOP] * 8)))  # type: ignore[misc]
            shutil.rmtree(out)
            if turn:  # the first starts the workers
                seconds[count].append(took)
                loops[count].append(loop)
                processor[count].append(used)
                alone[count].append(planned)
    best = {count: min(took) for count, took in seconds.items()}
    rates = ", ".join(f"{trees / took:,.0f} trees/s with {count}" for count, took in best.items())
    print(
        f"workers: {rates}; two against one {ratio(seconds):.2f}, a plain loop {ratio(loops):.2f}; "
        f"processor time of two {1 / ratio(processor):.2f} of one (medians of {ROUNDS} turns)"
    )
    one, both, first = min(processor[1]), min(processor[2]), min(alone[2])
    print(
        f"workers: {first:.2f} s of processor time of the process that plans, {one:.2f} s of one worker, "
        f"{both:.2f} s of both: on two cores of their own {(first + one) / (first + both / 2):.2f} times"
    )


def ratio(taken: dict[int, list[float]]) -> float:
    return statistics.median(a / max(b, 1e-9) for a, b in zip(taken[1], taken[2], strict=True)) or 1e-9


def count_up(steps: int) -> int:
    return sum(range(steps))


def spent(pool: LocalProcesses, workers: int) -> float:
    """Return the processor time of all workers of a pool."""
    barrier = [pool.submit(processor_time) for _ in range(4 * workers)]
    return sum(dict(future.result() for future in barrier).values())


def processor_time() -> tuple[int, float]:
    time.sleep(0.05)  # so that every worker gets one of these tasks
    return os.getpid(), time.process_time()


def start(folder: Path) -> None:
    """Measure the time from the call to the first part, of one tree, with compiled code available."""
    few = folder / "start.mrg"
    few.write_text("(S (NP Ann) (VP runs))\n")
    with LocalProcesses(1) as pool:
        _, took = timed(lambda: batch.encode(few, folder / "start", FragmentVectorizer(), pool))
        _, processor = pool.submit(processor_time).result()
    print(f"start: {took:.1f} s until the first part is there, {processor:.1f} s of processor time")


def planning(source: Path, folder: Path) -> None:
    """Measure the speed of cutting texts into shards."""
    table = folder / "trees.tsv"
    with source.open() as lines, table.open("w") as file:
        file.write("tree\n")
        file.writelines(lines)
    for path, what in ((source, "brackets"), (table, "TSV")):
        split_file(str(path), None, 1 << 24)
        took = min(cpu(partial(split_file, str(path), None, 1 << 24)) for _ in range(ROUNDS))
        print(f"planning: {path.stat().st_size / took / 1e9:.2f} GB a second of {what}, of processor time")


def shard(source: Path, folder: Path) -> None:
    """Measure the overhead of a shard, and of writing."""
    out = folder / "one"
    batch.plan_encode(source, out, FragmentVectorizer(), shard_size=source.stat().st_size // 4)
    do_shard(str(out), 0)
    planned = Plan.load(out)
    work, first = load_work(out, planned.work), planned.shards[1]

    def made() -> tuple[float, float]:
        """Return the time of reading and encoding, and that of writing."""
        begin, writing = time.process_time(), 0.0
        part = PartFile(folder / "part.arrow", work.metadata)
        for rows, columns in work.batches(
            Source(planned.inputs[0].path, first.range, planned.reading, OnBad())
        ):
            writing += cpu(partial(part.write, rows, columns))
        writing += cpu(partial(part.__exit__, None, None, None))
        return time.process_time() - begin - writing, writing

    encoding, writing = min(made() for _ in range(ROUNDS))
    count = planned.shards[2].rows - first.rows
    print(f"reading and encoding: {count / encoding:,.0f} trees a second of processor time")
    print(f"writing: {100 * writing / encoding:.1f} % of reading and encoding, of processor time")

    few = folder / "few.mrg"
    few.write_text("(S (NP Ann) (VP runs))\n" * SMALL)
    shards = batch.plan_encode(few, folder / "few", FragmentVectorizer(), shard_size=1)
    took = cpu(lambda: [do_shard(str(folder / "few"), k) for k in range(shards)])
    print(
        f"overhead: {1000 * took / shards:.2f} ms of processor time for each of {shards} shards of one tree"
    )


def cpu(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def memory(folder: Path, trees: int) -> None:
    """Measure the peak memory of a worker."""
    kinds = {
        "sparse rows of questions": ("questions", trees, FragmentVectorizer()),
        "sparse rows of code": ("code", trees // 5, FragmentVectorizer()),
        "rows with a dense rest, of code": ("code", trees // 50, FragmentVectorizer(rest="dense")),
        "dense vectors of questions": ("questions", trees // 20, DistributedTreeVectorizer()),
        "dense vectors of code": ("code", trees // 50, DistributedTreeVectorizer()),
        "vectors by products, of code": (
            "code",
            max(1, trees // 500),
            DistributedTreeVectorizer(composition="product"),
        ),
    }
    for name, (kind, count, vectorizer) in kinds.items():
        source = write_trees(folder / "memory.mrg", kind, count)
        with LocalProcesses(1) as pool:
            done = batch.encode(source, folder / "memory", vectorizer, pool)
            peak = pool.submit(peak_memory).result()
        size = sum(path.stat().st_size for path in (folder / "memory").iterdir())
        print(f"memory: {peak:.2f} GB at most, {name}, {size / done.rows:,.0f} bytes a row", flush=True)
        shutil.rmtree(folder / "memory")


def peak_memory() -> float:
    """Return the peak memory of this process in GB.

    ``getrusage`` does not work here: it starts from the memory of the parent.
    """
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) * 1024 / 1e9


def duplicates(folder: Path, trees: int, in_memory: bool) -> None:
    """Measure the cost of finding planted near-duplicates, and how many are found."""
    source, random = folder / "planted.mrg", np.random.default_rng(1)
    planted, number = list[int](), 0  # rows of trees before edited copies of them
    with source.open("w") as file:
        for forest in forests("questions", trees):
            for tree, size in zip(forest, forest.sizes.tolist(), strict=True):
                text = LEAF.sub(lambda _: f" w{random.zipf(ZIPF)})", str(tree))
                file.write(f"{text}\n")
                number += 1
                if number % EVERY == 0 and size >= MIN_NODES:
                    file.write(LEAF.sub(" another)", text, count=1) + "\n")
                    planted.append(number - 1)
                    number += 1
    for way in (by_workers, by_itself) if in_memory else (by_workers,):
        with LocalProcesses(1) as apart:
            took, groups, peaks = apart.submit(way, source).result()
            _, processor = apart.submit(processor_time).result()
            peak = apart.submit(peak_memory).result()
        of_group = {i: k for k, group in enumerate(groups) for i in group}
        found = sum(i in of_group and of_group[i] == of_group.get(i + 1) for i in planted)
        print(
            f"duplicates, {way.__name__}: {number:,} trees in {took:.0f} s; {processor:.0f} s of processor "
            f"time and {peak:.2f} GB of the process that is called; "
            + "".join(f"{spent:.0f} s and {held:.2f} GB of a worker; " for spent, held in peaks)
            + f"{len(groups):,} groups, with {found:,} of {len(planted):,} planted ones",
            flush=True,
        )


Found = tuple[
    float, list[list[int]], list[tuple[float, float]]
]  # seconds, groups, times and peaks of workers


def by_workers(source: Path) -> Found:
    """Find near-duplicates with two processes."""
    with LocalProcesses(2) as pool:
        find = partial(batch.find_duplicates, source, source.with_suffix(""), pool, min_nodes=MIN_NODES)
        table, took = timed(find)
        workers = dict(future.result() for future in [pool.submit(time_and_peak) for _ in range(8)])
    row, group = table["row"].to_numpy(), table["group"].to_numpy()
    ends = np.flatnonzero(np.diff(group)) + 1
    return took, [some.tolist() for some in np.split(row, ends)], list(workers.values())


def time_and_peak() -> tuple[int, tuple[float, float]]:
    process, processor = processor_time()
    return process, (processor, peak_memory())


def by_itself(source: Path) -> Found:
    """Find near-duplicates in memory, with two threads."""
    groups, took = timed(lambda: find_duplicates(source, min_nodes=MIN_NODES, n_jobs=2))
    return took, [list(group.members) for group in groups], []


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--trees", type=int, default=1_000_000, help="number of trees (default: 1000000)")
    parser.add_argument("--folder", default=None, help="folder with space for the rows (default: temporary)")
    parser.add_argument("--only", nargs="+", default=PARTS, choices=PARTS, help="part to run (default: all)")
    parser.add_argument("--in-memory", action="store_true", help="also find duplicates in memory")
    options = parser.parse_args(arguments)
    wanted = options.only
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        if set(wanted) & {"plan", "shard", "workers"}:
            source = write_trees(folder / "trees.mrg", "questions", options.trees)
        if "plan" in wanted:
            planning(source, folder)
        if "shard" in wanted:
            shard(source, folder)
        if "start" in wanted:
            start(folder)
        if "workers" in wanted:
            two_against_one(source, folder, options.trees)
        if "memory" in wanted:
            memory(folder, options.trees)
        if "duplicates" in wanted:
            duplicates(folder, options.trees, options.in_memory)
    return 0


if __name__ == "__main__":
    from benchmarks import scale as importable  # workers find functions by the name of their module

    sys.exit(importable.main())
