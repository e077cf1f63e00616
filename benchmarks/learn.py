"""Measure classification with and without trees: ``python -m benchmarks.learn --cache results/learn``.

For every corpus of labelled trees, a support vector machine sees the labels of the nodes, n-grams of the
words, dense vectors, sparse rows of bounded fragments, or the exact subset tree kernel. The machine is the
same for all, and C and λ are chosen by cross-validation on the training set. For more than 6,000 trees that
would take hours, so kernels and dense vectors use the λ and C of the sparse rows.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.methods import KERNELS, METHODS, Result, applies
from benchmarks.tasks import TASKS, Task, read_task
from treedot._storage.files import write_whole
from treedot.models.evaluation import mcnemar, wilson

LARGE = 6000  # trees


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the results that are not in the cache, and print two tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learn", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK",
                        help=f"tasks, of {', '.join(TASKS)}")  # fmt: skip
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
                        help=f"methods, of {', '.join(METHODS)}")  # fmt: skip
    parser.add_argument("--cache", type=Path, help="folder of results; a later run resumes from it")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("set TREEDOT_DATA, or give --data: this needs the corpora")
    accuracies, costs = [], []
    for name in options.only:
        task = read_task(Path(options.data), name)
        chosen = [method for method in options.methods if applies(method, task)]
        found = {method: measured(task, method, options.cache) for method in chosen}
        shown = [found.get(method) for method in options.methods]
        accuracies.append([name, *_sizes(task), *(_accuracy(task, result) for result in shown)])
        costs.append([name, *_tests(task, found), *map(_cost, shown)])
    _print_table(["task", "training", "test", "of these in training too", *options.methods], accuracies)
    _print_table(["task", "p against exact", "p against n-grams", *options.methods], costs)


def measured(task: Task, method: str, cache: Path | None) -> Result:
    """Return the result of a method on a task, from the cache if it is there."""
    settings = {}
    if method in KERNELS and len(task.train) > LARGE:
        chosen = measured(task, "sparse", cache)
        settings = {"decay": chosen.decay, "C": chosen.C}
    path = None if cache is None else cache / f"{task.name} {method}.json".replace(" ", "-")
    if path is not None and path.exists():
        return Result(**json.loads(path.read_text(encoding="utf-8")))
    result = METHODS[method](task, **settings)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as aside:
            aside.write_text(json.dumps(result._asdict()), encoding="utf-8")
    return result


def _sizes(task: Task) -> list[str]:
    return [f"{len(task.train):,}", f"{len(task.test):,}", f"{task.n_repeated:,}"]


def _accuracy(task: Task, result: Result | None) -> str:
    """Return the accuracy with its 95 % interval."""
    if result is None:
        return ""
    right = int(np.count_nonzero(np.array(result.predicted) == task.classes[1]))
    low, high = wilson(right, len(task.test))
    return f"{_short(right / len(task.test))} ({_short(low)}–{_short(high)})"


def _tests(task: Task, found: Mapping[str, Result]) -> Iterator[str]:
    """Yield McNemar's p of sparse rows against the exact kernel, and against n-grams."""
    truth = task.classes[1]
    for other in ("exact", "n-grams"):
        if "sparse" in found and other in found:
            first, second = (np.array(found[method].predicted) for method in ("sparse", other))
            test = mcnemar(truth, first, second)
            yield f"{test.p_value:.2g} ({test.only_first} : {test.only_second})"
        else:
            yield ""


def _cost(result: Result | None) -> str:
    """Return the seconds of training, and the chosen settings."""
    if result is None or result.C is None:
        return ""
    decay = "" if result.decay is None else f"λ {result.decay:g}, "
    return f"{result.seconds:.0f} s; {decay}C {result.C:g}"


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print()
    for cells in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
