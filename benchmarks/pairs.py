"""Time kernels and similarities of two trees, one call at a time: ``python -m benchmarks.pairs``.

Kernels compare questions; the similarity and the normalised subtree kernel compare Java functions. If the
corpora are missing, both compare functions of Python's standard library. ``--only subtree`` measures the rows
whose name contains that text.

Every figure is the best of several rounds over the same pairs of trees, in microseconds per call. "Never
seen" trees are new objects in each round; after the first round, their labels are known.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.trees import benchmark_forest
from treedot import Forest, PartialTreeKernel, SubsetTreeKernel, SubtreeKernel, Tree, similarity
from treedot._runtime.timing import Stopwatch
from treedot.kernels import BoundedTreeKernel
from treedot.readers import read_tree, read_trees

N_PAIRS = 500
ROUNDS = 7


def microseconds(work: Callable[..., object], fresh: Callable[[], Iterable[tuple[Any, ...]]]) -> float:
    """Return the time of one call; the arguments of a round are made before it starts."""
    best = np.inf
    for _ in range(ROUNDS):
        arguments = list(fresh())
        watch = Stopwatch()
        for these in arguments:
            work(*these)
        best = min(best, watch.seconds / len(arguments))
    return best * 1e6


Timing = tuple[str, Callable[[], float]]  # the name of a figure, and the function that measures it


def couples(things: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(things[::2], things[1::2], strict=False))


def call_timings(name: str, call: Callable[..., object], forest: Forest) -> Iterator[Timing]:
    """Yield the timings of ``call(a, b)`` for two trees in each form that users have."""
    trees = list(forest)
    texts = [str(tree) for tree in trees]
    ones = [forest[[i]] for i in range(len(forest))]

    def new_trees() -> list[tuple[Tree, Tree]]:
        return couples([Tree.parse(text) for text in texts])

    yield f"{name}(a, b), Forests used before", lambda: microseconds(call, lambda: couples(ones))
    yield f"{name}(a, b), Trees used before", lambda: microseconds(call, lambda: couples(trees))
    yield f"{name}(a, b), texts", lambda: microseconds(call, lambda: couples(texts))
    yield f"{name}(a, b), Trees never seen", lambda: microseconds(call, new_trees)


def kernel_timings(forest: Forest) -> Iterator[Timing]:
    rows, columns = np.arange(0, len(forest) - 1, 2), np.arange(1, len(forest), 2)
    for name, kernel in (
        ("subset", SubsetTreeKernel()),
        ("subset, normalised", SubsetTreeKernel(normalize=True)),
        ("bounded", BoundedTreeKernel()),
        ("partial", PartialTreeKernel()),
        ("subtree", SubtreeKernel()),
        ("subtree, normalised", SubtreeKernel(normalize=True)),
        ("subtree, with leaves", SubtreeKernel(leaves=True)),
        ("subtree, of KeLP", SubtreeKernel(convention="kelp")),
    ):

        def whole(kernel: Any = kernel) -> float:
            return microseconds(kernel.pairs, lambda: [(forest, rows, columns)]) / rows.size

        yield from call_timings(f"{name}: kernel", kernel, forest)
        yield f"{name}: a pair inside pairs", whole


def reading_timings(forest: Forest) -> Iterator[Timing]:
    texts = [str(tree) for tree in forest]
    yield "read_tree(text)", lambda: microseconds(read_tree, lambda: [(text,) for text in texts])
    yield "read_trees([text])", lambda: microseconds(read_trees, lambda: [([text],) for text in texts])
    yield (
        "read_tree(tree), never seen",
        lambda: microseconds(read_tree, lambda: [(Tree.parse(text),) for text in texts]),
    )


def show(forest: Forest, source: str, timings: Iterable[Timing], only: str) -> None:
    print(f"{source}: {len(forest)} trees of {forest.n_nodes / len(forest):.0f} nodes; µs per call")
    for name, measure in timings:
        if only in name:
            print(f"{name:<56}{measure():8.2f}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--only", default="", metavar="TEXT", help="measure rows whose name contains this")
    options = parser.parse_args(arguments)
    forest, source = benchmark_forest(options.data, "questions")
    forest = forest[: 2 * N_PAIRS]
    show(forest, source, [*kernel_timings(forest), *reading_timings(forest)], options.only)
    forest, source = benchmark_forest(options.data, "Java functions")
    forest = forest[: 2 * N_PAIRS]
    kernel = SubtreeKernel(normalize=True)
    timings = [
        *call_timings("similarity", similarity, forest),
        *call_timings("subtree, normalised: kernel", kernel, forest),
    ]
    show(forest, source, timings, options.only)


if __name__ == "__main__":
    main()
