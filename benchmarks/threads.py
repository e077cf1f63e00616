"""Measure how encoding, exact kernels and reading speed up with threads: ``python -m benchmarks.threads``.

Every line is one kind of work, with its rate on one thread and its speed-up on several. Two figures of the
same run show what the machine allows: an *independent loop*, in which every thread computes on a few numbers
of its own, and as many *processes* as threads, each with its share of the trees. The other figures, all at
the largest number of threads, show where the rest goes: the time that a call runs in the calling thread only,
while the others wait; the *serial* share, which is that time over the processor time of one thread; the
speed-up that this share would allow on sixteen threads (Amdahl's bound: computed, so it needs fewer cores);
the processor time relative to one thread (for shared memory); and the average number of busy threads.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.grammar import forests
from benchmarks.trees import CORPORA, corpus
from treedot import Forest, SubsetTreeKernel
from treedot._runtime.jit import njit
from treedot.parameters import n_threads
from treedot.readers.brackets.reader import read_brackets
from treedot.readers.on_bad import OnBad
from treedot.readers.stream import TreeStream
from treedot.vectors import DenseEncoder, DenseSpec, SparseEncoder, SparseSpec

ROUNDS = 3
QUESTIONS = 5452  # generated if there is no corpus
MANY = 200_000  # generated, for rows that take microseconds
LOOPS = 1 << 28
FEW = 1000

Run = Callable[[int], object]  # number of threads


class Work(NamedTuple):
    """A kind of work: made for some trees, it runs on any number of threads."""

    name: str
    trees: str  # which ones
    make: Callable[[Forest], Run]
    of_pairs: bool = False  # whether it grows with the square of the number of trees


class Cost(NamedTuple):
    """The cost of a call: elapsed seconds, seconds of the calling thread, and of all threads."""

    wall: float
    calling: float
    all: float


def dense(composition: str, forest: Forest) -> Run:
    encoder = DenseEncoder(DenseSpec(composition=composition))
    out = np.empty((len(forest), encoder.spec.n_components), encoder.spec.dtype)
    return lambda jobs: encoder.encode(forest, out=out, n_jobs=jobs)


def sparse(rest: str | None, forest: Forest) -> Run:
    encoder = SparseEncoder(SparseSpec(rest=rest, damping="linear"))
    return lambda jobs: encoder.encode(forest, n_jobs=jobs)


def reading(forest: Forest) -> Run:
    """Read the text of trees in brackets."""
    text = "\n".join(map(str, forest)).encode()

    def run(jobs: int) -> list[Forest]:
        return list(read_brackets(TreeStream(io.BytesIO(text), "text", len(forest) + 1, OnBad()), jobs))

    return run


def fresh_gram(forest: Forest) -> Run:
    """Make Gram matrices of new trees, without cached data."""
    return lambda jobs: SubsetTreeKernel().gram(_copy(forest), n_jobs=jobs)


def next_gram(forest: Forest) -> Run:
    """Make Gram matrices for one λ after another."""
    return lambda jobs: SubsetTreeKernel(normalize=True).gram(forest, n_jobs=jobs)


WORKS = (
    Work("mixed", "questions", partial(dense, "mixed")),
    Work("product", "questions", partial(dense, "product")),
    Work(f"product, {FEW:,} questions", "few", partial(dense, "product")),
    Work("convolution", "few", partial(dense, "convolution")),
    Work("bounded rows", "many", partial(sparse, None)),
    Work("rows with a dense rest", "questions", partial(sparse, "dense")),
    Work("rows with blocks", "many", partial(sparse, "blocks")),
    Work("exact Gram", "questions", fresh_gram, of_pairs=True),
    Work("exact Gram, another λ", "questions", next_gram, of_pairs=True),
    Work("reading brackets", "many", reading),
)


@njit
def _loop(count: int) -> int:
    """Compute on one number, which stays in a register."""
    x = np.uint64(88172645463325252)
    for _ in range(count):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
    return int(x >> np.uint64(1))


def independent_loop(jobs: int) -> None:
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(_loop, [LOOPS // jobs] * jobs))


def _copy(forest: Forest) -> Forest:
    return Forest._trusted(forest.label, forest.arity, forest.offsets, forest.labels)


def cost(run: Run, jobs: int) -> Cost:
    clocks = (time.perf_counter, time.thread_time, time.process_time)
    before = [clock() for clock in clocks]
    run(jobs)
    return Cost(*(clock() - start for clock, start in zip(clocks, before, strict=True)))


def costs(run: Run, counts: Sequence[int]) -> dict[int, Cost]:
    """Return the cheapest call for every number of threads, measured alternately after a warm-up."""
    measured: dict[int, list[Cost]] = {jobs: [] for jobs in counts}
    for _ in range(ROUNDS + 1):
        for jobs in counts:
            measured[jobs].append(cost(run, jobs))
    return {jobs: min(found[1:]) for jobs, found in measured.items()}


class Processes:
    """Processes that do the same work at the same time, each with its share of the trees."""

    def __init__(self, count: int, trees: dict[str, Forest]) -> None:
        context = multiprocessing.get_context("spawn")
        self.count = count
        self._pool = context.Pool(count, _start, (context.Barrier(count), trees))

    def seconds(self, work: int) -> float:
        """Return the time that the processes take together for one kind of work."""
        shares = [(work, part, self.count) for part in range(self.count)]
        rounds = np.array(
            self._pool.starmap(_work_on_share, shares, chunksize=1)
        )  # share, round, begin or end
        return float((rounds[:, 1:, 1].max(axis=0) - rounds[:, 1:, 0].min(axis=0)).min())

    def close(self) -> None:
        """End the processes."""
        self._pool.close()
        self._pool.join()


def _start(barrier: Any, trees: dict[str, Forest]) -> None:
    global _barrier, _trees
    _barrier, _trees = barrier, trees


def _work_on_share(work: int, part: int, parts: int) -> list[tuple[float, float]]:
    run = WORKS[work].make(_share(_trees[WORKS[work].trees], part, parts, WORKS[work].of_pairs))
    times = []
    for _ in range(ROUNDS + 1):
        _barrier.wait()
        start = time.perf_counter()  # one clock for all processes of a machine
        run(1)
        times.append((start, time.perf_counter()))
    return times


def _share(forest: Forest, part: int, parts: int, of_pairs: bool) -> Forest:
    """Return one of ``parts`` equal shares of the trees, or trees with such a share of all pairs."""
    size = len(forest) / (np.sqrt(parts) if of_pairs else parts)
    start = part * (len(forest) - size) / max(1, parts - 1)
    return forest[round(start) : round(start + size)]


def thread_counts(most: int) -> list[int]:
    """Return 1, 2, 4, … and the largest number of threads."""
    return [*(2**k for k in range((most - 1).bit_length())), most] if most > 1 else [1]


def line(name: str, rate: str, found: dict[int, Cost], loop: float, in_processes: float | None) -> str:
    first, last, most = found[1], found[max(found)], max(found)
    ratio = first.wall / last.wall
    parts = [f"{name:<26}{rate:>12} ", *(f"{first.wall / each.wall:6.2f}" for each in found.values())]
    parts.append(f"{ratio / loop:9.2f}")
    parts.append(f"{'':>11}" if in_processes is None else f"{in_processes:11.2f}")
    if most > 1:
        parts.append(f"{last.calling * 1e3:8.1f} ms{last.calling / last.wall:6.0%}")
        parts.append(f"{last.calling / first.all:8.1%}")
        sixteen = last.calling + max(0.0, first.all - last.calling) / 16
        parts.append(f"{first.all / sixteen:9.1f}{last.all / first.all:7.2f}{last.all / last.wall:7.1f}")
    return "".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--threads", type=int, default=-1, help="most threads (default: one per core)")
    parser.add_argument("--only", nargs="+", default=[""], help="measure works whose name contains these")
    parser.add_argument(
        "--no-processes", action="store_true", help="skip the comparison with processes, which takes time"
    )
    options = parser.parse_args(arguments)
    questions = corpus(options.data, "questions")
    source = CORPORA["questions"][0] if questions is not None else "generated"
    if questions is None:
        questions = Forest.concat(forests("questions", QUESTIONS))[:]  # without labels that do not occur
    works = [work for work in WORKS if any(part in work.name for part in options.only)]
    trees = {"questions": questions, "few": questions[:FEW]}
    if any(work.trees == "many" for work in works):
        trees["many"] = Forest.concat(forests("questions", MANY))[:]
    most = n_threads(options.threads)
    counts = thread_counts(most)
    print(f"questions: {source}, {len(questions)} trees, {questions.n_nodes} nodes; {MANY:,} generated ones")
    print("times as fast as one thread; the bar is 1.8 at two, and at 16 either 10 or 0.75 of the loop")
    threads = "".join(f"{jobs:>6}" for jobs in counts)
    print(f"{'threads':<26}{'trees/s at 1':>12} {threads}{'of loop':>9}{'processes':>11}", end="")
    print(f"{'calling thread':>17}{'serial':>8}{'limit 16':>9}{'CPU':>7}{'busy':>7}")
    looped = costs(independent_loop, counts)
    loop = looped[1].wall / looped[most].wall
    print(line("independent loop", "", looped, loop, None), flush=True)
    processes = Processes(most, trees) if most > 1 and not options.no_processes else None
    for work in works:
        forest = trees[work.trees]
        found = costs(work.make(forest), counts)
        shares = None if processes is None else found[1].wall / processes.seconds(WORKS.index(work))
        print(line(work.name, f"{len(forest) / found[1].wall:,.0f}", found, loop, shares), flush=True)
    if processes is not None:
        processes.close()


if __name__ == "__main__":
    main()
