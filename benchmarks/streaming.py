"""Train on a stream of generated trees: ``python -m benchmarks.streaming --trees 1000000``.

The classes depend on small fragments, with errors, so no model can be perfect. ``treedot train --checkpoint``
runs in its own process, whose time and peak memory are measured. It runs again, killed at random moments and
restarted until it finishes: the models must have equal bytes. Finally the accuracy on other trees is printed,
and that of ``TreeClassifier`` if there are few enough trees.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.grammar import BATCH, forests
from treedot import Forest, LinearModel, TreeClassifier, read_trees
from treedot.trees.writers import forest_file
from treedot.vectors import SparseEncoder, SparseSpec

CLASSES = 6
COMMON = 0.01  # a fragment that matters is in at least this share of trees
ERRORS = 0.2  # standard deviation of the noise, relative to that of the scores
IN_MEMORY = 200_000  # trees
TESTED = 12 * BATCH  # trees


def labelled(count: int) -> Iterator[Forest]:
    """Yield trees with a column of classes; a smaller count yields the first of the same trees."""
    encoder = SparseEncoder(SparseSpec(n_features=2**16, budget=2, decay=1.0))
    rows = encoder.encode(Forest.concat(forests("questions", 16_384)))
    weights = np.random.default_rng(0).normal(size=(rows.shape[1], CLASSES))
    weights[np.bincount(rows.indices, minlength=len(weights)) < COMMON * rows.shape[0]] = 0
    usual = rows @ weights
    random = np.random.default_rng(1)
    for forest in forests("questions", count):
        scores = encoder.encode(forest) @ weights - usual.mean(axis=0)
        scores += random.normal(scale=ERRORS * usual.std(), size=scores.shape)
        forest.columns["class"] = [f"c{k}" for k in scores.argmax(axis=1)]
        yield forest


class Run:
    """``treedot train`` in its own process."""

    def __init__(self, trees: Path, folder: Path, options: argparse.Namespace) -> None:
        self.model, self.checkpoint = folder / "model", folder / "checkpoint"
        self.command = [
            sys.executable, "-m", "treedot", "train", str(trees), "--class", "class", "-o", str(self.model),
            "--checkpoint", str(self.checkpoint), "--decay", "0.2", "--C", "1",
            "--passes", str(options.passes), "-j", str(options.jobs),
        ]  # fmt: skip

    def to_end(self) -> tuple[float, float, float]:
        """Return seconds, processor seconds and peak memory in GB."""
        start = time.monotonic()
        process = subprocess.Popen(self.command)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit("the training failed")
        return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6

    def killed(self, seconds: float) -> None:
        """Kill it after some seconds."""
        process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description=__doc__)
    parser.add_argument("--trees", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--passes", type=int, default=5, metavar="N")
    parser.add_argument("--kills", type=int, default=3, metavar="N")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the moments of kills")
    parser.add_argument("--folder", metavar="DIR", help="folder for all files (default: temporary)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(Path(folder), options)


def measure(folder: Path, options: argparse.Namespace) -> None:
    batches = labelled(TESTED + options.trees)
    others = Forest.concat(itertools.islice(batches, TESTED // BATCH))
    trees = folder / "trees.parquet"
    with forest_file(trees) as writer:
        for batch in batches:
            writer.write(batch)
    print(f"{options.trees:,} trees, {trees.stat().st_size / options.trees:.0f} bytes each in a Parquet file")
    run = Run(trees, folder, options)
    seconds, processor, memory = run.to_end()
    print(
        f"trained: {seconds:.1f} s, {processor:.1f} s of processor time, at most {memory:.2f} GB of memory",
        flush=True,
    )
    alone = {path.name: path.read_bytes() for path in run.model.iterdir()}
    accuracy(LinearModel.load(run.model), others, trees)
    if options.kills:
        shutil.rmtree(run.model)
        moments = random.Random(options.seed)
        for _ in range(options.kills):
            if not run.model.exists():
                run.killed(seconds * moments.uniform(0.5, 1.1) / (options.kills + 1))
        if not run.model.exists():
            run.to_end()
        same = {path.name: path.read_bytes() for path in run.model.iterdir()} == alone
        print(f"killed {options.kills} times: the model is {'the same' if same else 'DIFFERENT'}")


def accuracy(model: LinearModel, others: Forest, trees: Path) -> None:
    truth = np.array(others.columns["class"])
    print(f"accuracy on {truth.size:,} other trees: {np.mean(model.predict(others) == truth):.4f}")
    if model.facts["data"]["trees"] <= IN_MEMORY:
        known = read_trees(trees)
        exact = TreeClassifier(decay=0.2, C=1, tol=1e-3, calibrate=False).fit(known, known.columns["class"])
        print(f"of TreeClassifier, to a gap of 0.1 %: {exact.score(others, truth):.4f}")


if __name__ == "__main__":
    main()
