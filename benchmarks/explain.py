"""Measure the time of explanations, and whether the node with the largest value matters.

A linear model is trained on the TREC questions. In every test question, the subtree of the node with the
largest value is removed (its label stays, its children go); and separately, that of a random other node with
the same number of inner nodes. Both pruned trees are encoded and normalised again, and the score of the
predicted class is compared with the original one. A second row is limited to subtrees of at least three inner
nodes. The root, whose removal leaves only the bias, is not tried.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.timing import seconds
from treedot import Forest, FragmentVectorizer, explain, read_trees
from treedot.models.explain.linear import LinearFunction
from treedot.models.explain.removal import pruned
from treedot.models.inputs.table import Table

TIMED = 60  # the question with about this number of nodes is timed


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the time of an explanation, and a table of removals."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explain", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("set TREEDOT_DATA, or give --data: this needs the files qc_*.tsv.gz")
    train, test = (read_trees(Path(options.data, f"qc_{part}.tsv.gz")) for part in ("train", "test"))
    model = make_pipeline(FragmentVectorizer(n_features=2**18, decay=0.2), LinearSVC())
    model.fit(train, train.columns["coarse"])
    print(f"accuracy {model.score(test, test.columns['coarse']):.3f}")
    chosen = test[[int(np.abs(test.sizes - TIMED).argmin())]]
    whole = seconds(lambda: explain(model, chosen))
    parts = seconds(lambda: explain(model, chosen, find_flip=False))
    print(f"{chosen.n_nodes} nodes: {1000 * whole:.1f} ms, without removals {1000 * parts:.1f} ms")
    print("\n| inner nodes | questions | top node: falls, by | another: falls, by | top node more |")
    print("|---|---|---|---|---|")
    for least in (1, 3):
        print(f"| at least {least} | {removals(model, test, least)} |")


def removals(model: object, forest: Forest, least: int) -> str:
    """Return cells of the table: how often and by how much the score falls when a subtree is removed."""
    rng = np.random.default_rng(0)
    falls = [_falls(model, forest[[k]], least, rng) for k in range(len(forest))]
    both = np.array([pair for pair in falls if pair is not None]).reshape(-1, 2)
    if not both.size:
        return "0 | | |"
    top, another = (
        f"{share:.3f}, {mean:.3f}"
        for share, mean in zip((both > 0).mean(axis=0), both.mean(axis=0), strict=True)
    )
    return f"{len(both)} | {top} | {another} | {(both[:, 0] > both[:, 1]).mean():.3f}"


def _falls(model: object, tree: Forest, least: int, rng: np.random.Generator) -> tuple[float, float] | None:
    """Return by how much the score falls in both cases; None if there is no other node to compare with."""
    found, function = explain(model, tree, find_flip=False), LinearFunction.of(model)
    inside = np.concatenate([[0], np.cumsum(tree.arity > 0)])
    every = np.arange(tree.n_nodes)
    inner = inside[every + 1] - inside[every - tree.subtree_size + 1]
    nodes = np.flatnonzero((tree.arity > 0) & (inner >= least) & (tree.parent >= 0))
    if not nodes.size:
        return None
    top = nodes[found.node_values[nodes].argmax()]
    others = nodes[(inner[nodes] == inner[top]) & (nodes != top)]
    if not others.size:
        return None
    _, row, sign = function.target(found.target, np.zeros((1, 1)))
    after = sign * function.scores(Table({None: pruned(tree, np.array([top, rng.choice(others)]))}))[:, row]
    return float(found.score - after[0]), float(found.score - after[1])


if __name__ == "__main__":
    main()
