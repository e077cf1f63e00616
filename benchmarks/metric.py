"""Measure how long a metric takes to learn: ``python -m benchmarks.metric [--device cuda] [--columns N]``.

The trees are generated programs in groups: the programs of a group share most of their statements, with
variants, between statements that have nothing to do with the group. Printed are wall and processor time of
``TreeMetric.fit`` with its choice of the shrinkage, of its parts, the peak memory, the trees per second of
``transform`` on one core, and the mean average precision at R on groups that were not used for training.
``--data FOLDER`` reads source code instead: each folder is a group, and a fifth of them is for the test.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treedot import Forest, FragmentVectorizer, read_code, read_trees
from treedot.models import TreeMetric
from treedot.models.training.metric_choice import MOST_HELD_OUT, Examples
from treedot.models.training.retrieval import map_at_r
from treedot.models.training.scatter import ScatterInMemory
from treedot.vectors.metric.folding import Folding

GROUP = 500  # programs of a group
STATEMENTS, VARIANTS = 600, 6  # distinct statements, and the forms of each
OWN, KEPT, OTHERS = 14, 10, 11  # statements of a group, those in one program, and further ones
TEST = 0.2  # share of groups for the test
TIMED = 4000  # trees whose transformation is timed


class Labelled(NamedTuple):
    """Trees with their groups."""

    trees: Forest
    groups: np.ndarray

    def take(self, chosen: np.ndarray) -> Labelled:
        """Return some of the trees."""
        return Labelled(self.trees[np.flatnonzero(chosen)], self.groups[chosen])


def programs(count: int, seed: int = 0) -> Labelled:
    """Return generated programs, in groups of up to 500."""
    rng = np.random.default_rng(seed)
    texts = [[_statement(rng) for _ in range(VARIANTS)] for _ in range(STATEMENTS)]
    groups = np.arange(count) // GROUP
    own = rng.integers(0, STATEMENTS, (groups[-1] + 1, OWN))
    common = 1 / np.arange(1, STATEMENTS + 1)
    noise = rng.choice(STATEMENTS, (count, OTHERS), p=common / common.sum())
    lines = []
    for program, group in enumerate(groups):
        chosen = np.concatenate([rng.choice(own[group], KEPT, replace=False), noise[program]])
        variants = rng.integers(0, VARIANTS, chosen.size)
        body = " ".join(texts[k][v] for k, v in zip(rng.permutation(chosen), variants, strict=True))
        lines.append(f"(unit (function (type int) (body {body})))")
    return Labelled(read_trees(lines), groups)


def _statement(rng: np.random.Generator) -> str:
    """Return a statement in brackets: a kind, and two random expressions."""
    kind = f"kind{rng.integers(12)}"
    return f"({kind} {_expression(rng, 2)} {_expression(rng, 2)})"


def _expression(rng: np.random.Generator, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return f"(leaf{rng.integers(4)} v{rng.integers(30)})"
    parts = " ".join(_expression(rng, depth - 1) for _ in range(rng.integers(1, 4)))
    return f"(op{rng.integers(15)} {parts})"


def code(folder: Path) -> Labelled:
    """Return the source files of the folders in a folder, each of which is a group."""
    trees = read_code(folder, unit="file", identifiers="blur", n_jobs=-1)
    return Labelled(trees, np.array([Path(file).parent.name for file in trees.columns["file"]]))


@contextmanager
def timed(what: str, device: str = "cpu") -> Iterator[None]:
    """Print the wall and processor time of a block, including the work that a GPU does meanwhile."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    if device != "cpu":
        import torch

        torch.cuda.synchronize(device)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:<46} {wall:8.1f} s wall {cpu:8.1f} s of processors", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metric", description=__doc__)
    parser.add_argument("--trees", type=int, default=32_000, metavar="N", help="generated training programs")
    parser.add_argument("--columns", type=int, default=2**13, metavar="N")
    parser.add_argument("--device", default="cpu", metavar="NAME")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folders of source code, a group each")
    options = parser.parse_args(arguments)
    with timed("read or generate the trees"):
        every = code(options.data) if options.data else programs(round(options.trees / (1 - TEST)))
    names = np.unique(every.groups)
    is_test = np.isin(every.groups, names[names.size - max(1, round(TEST * names.size)) :])
    known, new = every.take(~is_test), every.take(is_test)
    print(f"{len(known.trees):,} training trees of {known.trees.sizes.mean():.0f} nodes")
    with timed("load compiled code and the device"):
        _learn(options.device, 256, programs(200, 1))
    with timed(f"fit, {options.columns} columns, on {options.device}"):
        model = _learn(options.device, options.columns, known)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB; shrinkage {model.shrinkage_:g} of {[a for _, a in model.scores_]}")
    _parts(options.device, options.columns, known)
    _transform(model, new)


def _learn(device: str, columns: int, known: Labelled) -> TreeMetric:
    groups = known.groups if len(known.trees) > GROUP else np.arange(len(known.trees)) % 8
    return TreeMetric(n_columns=columns, device=device, n_jobs=-1).fit(known.trees, groups)


def _parts(device: str, columns: int, known: Labelled) -> None:
    """Print the time of each part of ``fit``."""
    make: Callable[[int], object] = ScatterInMemory
    if device != "cpu":
        from treedot.models.training.scatter_on_gpu import ScatterOnGpu

        make = lambda size: ScatterOnGpu(size, device)  # noqa: E731
    with timed("  count idf, make rows"):
        vectorizer = FragmentVectorizer(n_features=2**30, idf=True, n_jobs=-1).fit(known.trees)
        rows = vectorizer.transform(known.trees)
    numbers = np.unique(known.groups, return_inverse=True)[1]
    with timed("  hash rows"):
        examples = Examples.folded(rows, numbers, Folding.of(rows.shape[1], columns))
    print(f"  {examples.rows.nnz / len(known.trees):.0f} non-zeros in a row")
    with timed("  sum the covariance", device):
        scatter = make(columns)
        scatter.add(*examples)
    with timed("  factorise it, once for each shrinkage", device):
        factor = scatter.factor(1.0)
    with timed(f"  map {MOST_HELD_OUT} held-out trees, likewise"):
        vectors = factor.mapped(examples.rows[:MOST_HELD_OUT].toarray()).astype(np.float32)
    with timed("  mean average precision at R, likewise"):
        map_at_r(vectors, numbers[:MOST_HELD_OUT])
    with timed("  invert the factor, once"):
        factor.tiles()


def _transform(model: TreeMetric, new: Labelled) -> None:
    """Print the speed of ``transform`` on one core, and how well unseen groups are found."""
    metric = model.metric_
    some = new.take(np.arange(len(new.trees)) < TIMED)
    metric.transform(some.trees[:64])
    start = time.process_time()
    metric.transform(some.trees, n_jobs=1)
    print(f"transform: {len(some.trees) / (time.process_time() - start):,.0f} trees/s of one core")
    part = new.take(np.random.default_rng(0).permutation(len(new.trees)) < TIMED)
    rows = metric.folding.sparse(metric.rows_of(part.trees)).toarray().astype(np.float32)
    plain, learned = map_at_r(rows, part.groups), map_at_r(metric.transform(part.trees), part.groups)
    print(f"MAP@R on {np.unique(part.groups).size} unseen groups: rows {plain:.3f}, learned {learned:.3f}")


if __name__ == "__main__":
    main()
