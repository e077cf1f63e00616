"""Feed damaged files, odd objects and trees of all shapes to everything in treedot that takes them.

Every case runs in another process, which may take a minute and a gibibyte. An input must be accepted, or
rejected with one of treedot's own errors; anything else is a failure, and so is a wrong result. A failed case
is kept in a folder, and --replay runs it again. A case is determined by the seed, the target and its number.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fuzz.targets import LEFT_OUT, TARGETS, make_case
from fuzz.worker import Worker, run_target
from treedot.cli.compilation import kinds

TURN = 2  # seconds for a target before the next one
OUTCOMES = ("accepted", "refused", "too slow", "failed")
WIDTH = max(map(len, TARGETS))


def fuzz(
    names: Sequence[str],
    seed: int,
    folder: Path,
    *,
    cases: int | None = None,
    minutes: float = 1,
    n_jobs: int = 1,
) -> dict[str, Counter[str]]:
    """Run cases of some targets in turn, until there are ``cases`` of each or the time is up.

    Each of ``n_jobs`` processes takes the next case when it has finished one.
    """
    found = {name: Counter[str]() for name in names}
    turns = _turns(names, cases, minutes)
    lock = threading.Lock()

    def next_turn() -> tuple[str, int] | None:
        with lock:
            return next(turns, None)

    def work() -> None:
        with Worker() as worker:
            while (turn := next_turn()) is not None:
                name, number = turn
                outcome = worker.run(name, seed, number)
                with lock:
                    found[name][outcome.kind] += 1
                if outcome.kind == "failed":
                    path = _keep(folder, name, seed, number)
                    print(f"{name}, case {number}: kept as {path}\n{outcome.reason.rstrip()}\n", flush=True)

    with ThreadPoolExecutor(n_jobs) as pool:
        working = [pool.submit(work) for _ in range(n_jobs)]
        try:
            for future in working:
                future.result()
        except BaseException as error:
            with lock:
                turns.close()
            if not isinstance(error, KeyboardInterrupt):
                raise
    return found


def _turns(names: Sequence[str], cases: int | None, minutes: float) -> Generator[tuple[str, int], None, None]:
    """Yield targets and numbers of cases: ``cases`` of each, or by the clock, all targets in turn."""
    if cases is not None:
        yield from itertools.product(names, range(cases))
        return
    numbers = {name: itertools.count() for name in names}
    end = time.monotonic() + 60 * minutes
    for name in itertools.cycle(names):
        turn = min(end, time.monotonic() + TURN)
        while time.monotonic() < turn:
            yield name, next(numbers[name])
        if turn == end:
            return


def _keep(folder: Path, name: str, seed: int, number: int) -> Path:
    """Write a case to a file named after its target, seed and number."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}_{seed}_{number}"
    path.write_bytes(make_case(name, seed, number))
    return path


def replay(path: Path) -> bool:
    """Run a case that was kept; return whether it fails."""
    name = path.name.rsplit("_", 2)[0]
    if name not in TARGETS:
        sys.exit(f"{path}: the name of a case is TARGET_SEED_NUMBER, but there is no target {name!r}")
    with Worker(run_target) as worker:
        outcome = worker.run(name, path.read_bytes())
    print(f"{outcome.kind} {outcome.reason}".rstrip())
    return outcome.kind == "failed"


def show(found: dict[str, Counter[str]], seed: int) -> None:
    """Print the outcomes of the cases of each target."""
    print(f"{f'seed {seed}':<{WIDTH}} {'cases':>9} " + " ".join(f"{kind:>9}" for kind in OUTCOMES))
    everything: Counter[str] = sum(found.values(), Counter())
    for name, counts in [*found.items(), ("all", everything)]:
        numbers = (counts.total(), *(counts[kind] for kind in OUTCOMES))
        print(f"{name:<{WIDTH}} " + " ".join(f"{number:>9,}" for number in numbers))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=f"all by default: {', '.join(TARGETS)}")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=1, help="duration (default: %(default)s)")
    length.add_argument("--cases", type=int, help="number of cases of each target, without a time limit")
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (default: all cores)"
    )
    parser.add_argument("--seed", type=int, help="seed of the cases (default: from the clock)")
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="folder of failed cases")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run a kept case again")
    options = parser.parse_args(arguments)
    if options.replay is not None:
        return replay(options.replay)
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    for compile_kind in kinds().values():  # before the time starts
        compile_kind()
    for name, modules in LEFT_OUT.items():
        print(f"{name} is skipped, not installed: {', '.join(modules)}")
    seed = int(time.time()) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    names = options.targets or list(TARGETS)
    begin = time.monotonic()
    found = fuzz(
        names,
        seed,
        options.failures,
        cases=options.cases,
        minutes=options.minutes,
        n_jobs=options.jobs,
    )
    show(found, seed)
    print(f"{time.monotonic() - begin:.0f} seconds")
    return int(any(counts["failed"] for counts in found.values()))


if __name__ == "__main__":
    sys.exit(main())
