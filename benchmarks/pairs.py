"""Time the exact kernel of two trees, one call at a time: ``python -m benchmarks.pairs``.

Every figure is the best of several rounds over the same pairs of trees, in microseconds per call. Trees that
were never seen are new objects in each round; their labels are not new to the process after the first.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.trees import benchmark_forest
from treedot import BoundedTreeKernel, Forest, PartialTreeKernel, SubsetTreeKernel, Tree
from treedot.readers import read_tree, read_trees
from treedot.timing import Stopwatch

N_PAIRS = 500
ROUNDS = 7


def microseconds(work: Callable[..., object], fresh: Callable[[], Iterable[tuple[Any, ...]]]) -> float:
    """Return the time of one call; each round calls with arguments that are made before it starts."""
    best = np.inf
    for _ in range(ROUNDS):
        arguments = list(fresh())
        watch = Stopwatch()
        for these in arguments:
            work(*these)
        best = min(best, watch.seconds / len(arguments))
    return best * 1e6


def figures(forest: Forest) -> Iterable[tuple[str, float]]:
    trees = list(forest)
    texts = [str(tree) for tree in trees]
    ones = [forest[[i]] for i in range(len(forest))]
    rows, columns = np.arange(0, len(forest) - 1, 2), np.arange(1, len(forest), 2)

    def couples(things: list[Any]) -> list[tuple[Any, Any]]:
        return list(zip(things[::2], things[1::2], strict=False))

    def new_trees() -> list[tuple[Tree, Tree]]:
        return couples([Tree.parse(text) for text in texts])

    for name, kernel in (
        ("subset", SubsetTreeKernel()),
        ("subset, normalised", SubsetTreeKernel(normalize=True)),
        ("bounded", BoundedTreeKernel()),
        ("partial", PartialTreeKernel()),
    ):
        yield f"{name}: kernel(a, b), Forests used before", microseconds(kernel, lambda: couples(ones))
        yield f"{name}: kernel(a, b), Trees used before", microseconds(kernel, lambda: couples(trees))
        yield f"{name}: kernel(a, b), texts", microseconds(kernel, lambda: couples(texts))
        yield f"{name}: kernel(a, b), Trees never seen", microseconds(kernel, new_trees)
        whole = microseconds(kernel.pairs, lambda: [(forest, rows, columns)])
        yield f"{name}: a pair inside pairs", whole / rows.size
    yield "read_tree(text)", microseconds(read_tree, lambda: [(text,) for text in texts])
    yield "read_trees([text])", microseconds(read_trees, lambda: [([text],) for text in texts])
    yield (
        "read_tree(tree), never seen",
        microseconds(read_tree, lambda: [(Tree.parse(text),) for text in texts]),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    options = parser.parse_args(arguments)
    forest, source = benchmark_forest(options.data, "questions")
    forest = forest[: 2 * N_PAIRS]
    print(f"{source}: {len(forest)} trees of {forest.n_nodes / len(forest):.0f} nodes; µs per call")
    for what, value in figures(forest):
        print(f"{what:<56}{value:8.2f}", flush=True)


if __name__ == "__main__":
    main()
