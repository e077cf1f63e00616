"""Compare ways to train on files: ``python -m benchmarks.fit [--data DIR] [--trees N] [--splits N]``.

The first part prints the accuracy of ``train_files`` after five passes, and of ``treedot.batch.fit`` after
ten rounds of four partitions, relative to ``LinearSVC`` on the same rows: for the TREC questions if a folder
of corpora is given, and for generated trees with errors, over several splits. The second part measures the
cost of partitions: two workers against one, bytes, and memory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import LinearSVC

from benchmarks.scale import LOOP, count_up, peak_memory, ratio, spent
from benchmarks.streaming import labelled
from treedot import Forest, FragmentVectorizer, LinearModel, batch, read_trees, train_files
from treedot._runtime.timing import Stopwatch, timed
from treedot.batch.engines import LocalProcesses
from treedot.batch.streaming import Progress
from treedot.trees.writers import forest_file

PARTITIONS, ROUNDS, PASSES = 4, 10, 5
COSTS = {"questions": (1.0, 10.0), "generated": (1.0,)}  # with 10, LinearSVC takes minutes
TEST = 0.2  # share of the trees
TURNS = 3
DECAY = 0.2
ROWS = FragmentVectorizer(n_features=2**20)
WHAT = ("accuracy", "workers")


class Labelled(NamedTuple):
    """Trees with their classes."""

    trees: Forest
    classes: Any


def questions(data: str) -> Labelled:
    """Return the TREC questions for training and for testing."""
    both = [read_trees(Path(data, f"qc_{part}.tsv.gz")) for part in ("train", "test")]
    classes = [name for forest in both for name in forest.columns["coarse"]]
    return Labelled(Forest.concat(forest[:] for forest in both), np.array(classes))


def generated(count: int) -> Labelled:
    """Return generated trees."""
    forest = Forest.concat(labelled(count))
    return Labelled(forest, np.array(forest.columns["class"]))


def accuracy(name: str, what: Labelled, splits: int, folder: Path) -> None:
    """Print the differences to ``LinearSVC``."""
    rows = clone(ROWS).set_params(decay=DECAY).transform(what.trees)
    rows = rows[:, np.unique(rows.indices)]
    cuts = list(StratifiedShuffleSplit(splits, test_size=TEST, random_state=0).split(rows, what.classes))
    for C in COSTS[name]:
        exact = [
            LinearSVC(C=C).fit(rows[train], what.classes[train]).score(rows[test], what.classes[test])
            for train, test in cuts
        ]
        found = np.array([trained(what, train, test, C, folder) for train, test in cuts])
        points = 100 * (found - np.array(exact)[:, None])
        error = points.std(axis=0) / len(cuts) ** 0.5
        print(
            f"{name}, C = {C:g}, {splits} splits: LinearSVC {np.mean(exact):.4f}; after {PASSES} passes "
            f"{points.mean(axis=0)[0]:+.2f} ± {error[0]:.2f} points, after {ROUNDS} rounds of {PARTITIONS} "
            f"partitions {points.mean(axis=0)[1]:+.2f} ± {error[1]:.2f}",
            flush=True,
        )


def trained(what: Labelled, train: Any, test: Any, C: float, folder: Path) -> list[float]:
    """Return the accuracy of streaming, and of training by partitions."""
    table = folder / "trees.tsv"
    with table.open("w", encoding="utf-8") as file:
        file.write("class\ttree\n")
        file.writelines(f"{what.classes[i]}\t{what.trees[int(i)]}\n" for i in train)
    settings: dict[str, Any] = {"decay": DECAY, "C": C, "vectorizer": ROWS}
    streamed = train_files(table, "class", checkpoint=folder / "training", max_passes=PASSES, **settings)
    settings |= {"partitions": PARTITIONS, "rounds": ROUNDS}
    with ThreadPoolExecutor(1) as pool:  # any engine trains the same model
        fitted = batch.fit(table, folder / "model", client=pool, label="class", **settings)
    shutil.rmtree(folder / "training")
    shutil.rmtree(folder / "model")
    others, truth = what.trees[test], what.classes[test]
    return [float(np.mean(model.predict(others) == truth)) for model in (streamed, fitted)]


class Watch:
    """Measures rounds; pass it as ``progress``."""

    def __init__(self, work: Path) -> None:
        self._work, self._watch = work, Stopwatch()
        self.seconds: list[float] = []
        self.read: list[int] = []
        self.written: list[float] = []

    def __call__(self, at: Progress) -> None:
        """Record the time of a round, and the size of its files."""
        if at.trees or at.passes < 0:
            return
        took = self._watch.lap()
        if at.passes:
            self.seconds.append(took)
            self.read.append(sum(path.stat().st_size for path in self._work.glob("weights-*")))
            sizes = [path.stat().st_size for path in self._work.glob(f"partition-{at.passes:04d}-*")]
            self.written.append(sum(sizes) / len(sizes))


def workers(folder: Path, count: int) -> None:
    """Print the speed-up of two workers, and what a partition reads, writes and keeps in memory."""
    source = folder / "trees.parquet"
    with forest_file(source) as writer:
        for batch in labelled(count):
            writer.write(batch)
    seconds, loops, processor = ({1: [], 2: []} for _ in range(3))  # type: ignore[var-annotated]
    with LocalProcesses(1) as one, LocalProcesses(2) as two:
        for turn in range(TURNS + 1):
            for number, pool in ((1, one), (2, two)):
                watch, before = Watch(folder / "model.training"), spent(pool, number)
                model = fit(source, folder / "model", pool, watch)
                used = spent(pool, number) - before
                _, loop = timed(partial(list, pool.map(count_up, [LOOP] * 8)))
                shutil.rmtree(folder / "model")
                if turn:  # the first starts the workers
                    seconds[number].append(min(watch.seconds))
                    loops[number].append(loop)
                    processor[number].append(used)
        memory = one.submit(peak_memory).result()
    trees = model.facts["data"]["trees"]
    print(
        f"{trees:,} trees, {PARTITIONS} partitions: {min(seconds[1]):.1f} s a round with one worker, "
        f"{min(seconds[2]):.1f} s with two; two against one {ratio(seconds):.2f}, a plain loop "
        f"{ratio(loops):.2f}; processor time of two {1 / ratio(processor):.2f} of one"
    )
    print(f"processor time: {min(processor[1]):.1f} s of one worker, reading and {len(watch.seconds)} rounds")
    print(
        f"a partition reads {watch.read[0] / 1e6:.1f} MB of weights, and writes {watch.written[0] / 1e6:.1f} "
        f"MB in the first round, {watch.written[-1] / 1e6:.1f} MB in the last"
    )
    print(f"a worker holds at most {memory:.2f} GB")


def fit(source: Path, out: Path, pool: Any, watch: Watch) -> LinearModel:
    settings: dict[str, Any] = {"decay": DECAY, "C": 1.0, "partitions": PARTITIONS, "rounds": 3}
    return batch.fit(source, out, None, pool, label="class", progress=watch, **settings)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--trees", type=int, default=200_000, metavar="N", help="number of generated trees")
    parser.add_argument("--splits", type=int, default=5, metavar="N")
    parser.add_argument("--only", nargs="+", default=WHAT, choices=WHAT, help="part to run (default: all)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        if "accuracy" in options.only:
            if options.data is not None:
                accuracy("questions", questions(options.data), options.splits, Path(name))
            accuracy("generated", generated(options.trees // 4), options.splits, Path(name))
        if "workers" in options.only:
            workers(Path(name), options.trees)


if __name__ == "__main__":
    sys.exit(main())
