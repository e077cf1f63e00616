"""Errors of normalised kernels at both ends of similarity: random pairs and near-duplicates."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.trees import CORPORA, HTML, JSON, JSON_FILES, PYTHON, benchmark_forest, documents
from treedot import Forest

SENTENCES = ("questions", "Penn sentences", "GUM sentences", "CRAFT sentences")
OTHERS = (PYTHON, JSON, "Java functions", "RNA", "glycans")
RENAMED = 25  # one leaf in this many is renamed


class Ends(NamedTuple):
    """Errors of normalised kernels for random pairs and for near-duplicates."""

    random: float  # root mean square
    random_max: float
    near: float
    near_max: float
    false: int  # estimated above 0.8, exact below 0.3
    lost: int  # estimated below 0.5, exact above 0.8
    nearest: float  # the share of trees whose nearest neighbour is the exact one


def renamed(forest: Forest, seed: int = 1) -> Forest:
    """Return the same trees with one leaf in 25 (at least one) renamed at random."""
    rng = np.random.default_rng(seed)
    label, new = forest.label.copy(), [f"renamed {k}" for k in range(50)]
    for first, last in zip(forest.offsets, forest.offsets[1:], strict=False):
        leaves = first + np.flatnonzero(forest.arity[first:last] == 0)
        chosen = rng.choice(leaves, max(1, round(leaves.size / RENAMED)), replace=False)
        label[chosen] = len(forest.labels) + rng.integers(len(new), size=chosen.size)
    return Forest(label, forest.arity, forest.offsets, [*forest.labels, *new])


def compare(exact: np.ndarray, estimate: np.ndarray) -> Ends:
    """Compare the kernels of trees and of their near-duplicates, which follow them."""
    n = len(exact) // 2
    pairs, twins = np.triu_indices(n, 1), (np.arange(n), np.arange(n, 2 * n))
    error = estimate - exact
    both = np.concatenate([np.stack(pairs), np.stack(twins)], axis=1)
    found, true = estimate[tuple(both)], exact[tuple(both)]
    own, guess = exact[:n, :n].copy(), estimate[:n, :n].copy()
    np.fill_diagonal(own, -1)
    np.fill_diagonal(guess, -1)
    return Ends(
        float(np.sqrt(np.mean(error[pairs] ** 2))),
        float(np.abs(error[pairs]).max()),
        float(np.sqrt(np.mean(error[twins] ** 2))),
        float(np.abs(error[twins]).max()),
        int(((found > 0.8) & (true < 0.3)).sum()),
        int(((found < 0.5) & (true > 0.8)).sum()),
        float(np.mean(own[np.arange(n), guess.argmax(axis=1)] >= own.max(axis=1) - 1e-9)),
    )


def over_seeds(runs: list[Ends]) -> Ends:
    """Combine seeds: means of root mean squares and of ``nearest``, the worst value of the others."""
    random, random_max, near, near_max, false, lost, nearest = (np.array(c) for c in zip(*runs, strict=True))
    return Ends(
        float(random.mean()), float(random_max.max()), float(near.mean()), float(near_max.max()),
        int(false.max()), int(lost.max()), float(nearest.mean()),
    )  # fmt: skip


def cells(ends: Ends) -> Iterator[str]:
    """Yield the cells of a row."""
    yield f"{ends.random:.2g} / {ends.random_max:.2g}"
    yield f"{ends.near:.2g} / {ends.near_max:.2g}"
    yield f"{ends.false}, {ends.lost}"
    yield f"{ends.nearest:.2f}"


def line(*values: Any) -> None:
    print("| " + " | ".join(map(str, values)) + " |", flush=True)


def header(*names: str) -> None:
    print()
    line(*names)
    print("|---" * len(names) + "|")


def sample(forest: Forest, trees: int) -> Forest:
    """Return a random sample of trees, always the same."""
    chosen = forest[np.random.default_rng(0).choice(len(forest), min(trees, len(forest)), replace=False)]
    return Forest(chosen.label, chosen.arity, chosen.offsets, chosen.labels)


def with_near_duplicates(options: argparse.Namespace) -> Iterator[tuple[str, Forest]]:
    """Yield the available corpora: trees, followed by their near-duplicates."""
    for name in (*SENTENCES, *OTHERS):
        forest, found = benchmark_forest(options.data, name)
        if found == name or name not in CORPORA:
            some = sample(forest, options.trees)
            yield name, some + renamed(some)
    for name, folder in ((JSON_FILES, options.json), (HTML, options.html)):
        if folder is not None:
            some = sample(documents(name, folder), options.trees)
            yield name, some + renamed(some)
