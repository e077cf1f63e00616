"""Measure models of pairs on RTE-1, -2, -3 and -5: ``python -m benchmarks.entailment``.

As in the paper's section 5.2, settings are chosen once for all four sets, by cross-validation on their
training pairs: λ of 0.1, 0.2 and 0.4, and C of 0.1, 1, 10 and 100. Then every set is trained with them, and
its test pairs are classified.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from paper.classify import classified
from paper.corpora import Corpora
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from paper import fig4
from treedot import DistributedTreeVectorizer, KernelTransformer, SubsetTreeKernel, TreeClassifier
from treedot.kernels import ColumnKernel, Kernel, LinearKernel
from treedot.models import PairTransformer
from treedot.models.inputs.overlap import LexicalOverlap
from treedot.readers import read_trees

SETS = ("rte1", "rte2", "rte3", "rte5")
PAIR = ("text", "hypothesis")
DECAYS, COSTS, FOLDS = (0.1, 0.2, 0.4), (0.1, 1.0, 10.0, 100.0), 5
ROUNDS = 9

Setting = tuple[float | None, float]  # λ and C


class Part(NamedTuple):
    """Pairs with their classes."""

    trees: dict[str, Any]
    y: np.ndarray


class Task(NamedTuple):
    """The training and the test pairs of one challenge."""

    train: Part
    test: Part


class Method(NamedTuple):
    """Returns the accuracy in cross-validation by setting, and the accuracy on test pairs with a setting."""

    tried: Callable[[Task], dict[Setting, float]]
    tested: Callable[[Task, Setting], float]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all methods, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entailment", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
                        help=f"methods, of {', '.join(METHODS)}")  # fmt: skip
    parser.add_argument("--setting", nargs=2, type=float, metavar=("DECAY", "C"),
                        help="use this decay and C, instead of choosing them")  # fmt: skip
    parser.add_argument("--paper", action="store_true", help="instead, train once, beside the steps of "
                        "python -m paper: exact kernel, RTE-3, λ = 0.4, C = 1")  # fmt: skip
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("set TREEDOT_DATA, or give --data: this needs the corpora")
    tasks = [
        Task(*(read_pairs(Path(options.data), f"{name}_{part}") for part in ("dev", "test"))) for name in SETS
    ]
    if options.paper:
        beside_paper(Path(options.data))
        return
    print("| method | λ | C |", " | ".join([*SETS, "mean", "seconds"]), "|")
    print("|---" * (len(SETS) + 5) + "|")
    for name in options.methods:
        start = time.process_time()
        method = METHODS[name]
        decay, cost = options.setting or chosen(method, tasks)
        accuracies = [method.tested(task, (decay, cost)) for task in tasks]
        shown = [f"{x:.3f}".removeprefix("0") for x in (*accuracies, float(np.mean(accuracies)))]
        seconds = time.process_time() - start
        print(
            "|", " | ".join([name, str(decay or ""), f"{cost:g}", *shown, f"{seconds:.0f}"]), "|", flush=True
        )


def beside_paper(folder: Path) -> None:
    """Print accuracy and processor time of training and testing once, in turns."""
    task = Task(*(read_pairs(folder, f"rte3_{part}") for part in ("dev", "test")))
    train, test = Corpora(folder).entailment["rte3"]

    def ours() -> float:
        settings = {"pair_columns": list(PAIR), "kernel": EXACT, "decay": 0.4, "C": 1.0}
        model = TreeClassifier(**settings).fit(task.train.trees, task.train.y)
        return float(model.score(task.test.trees, task.test.y))

    def of_paper() -> float:
        overlap = LexicalOverlap.learned(train.trees)
        pairs = fig4.Task(train.linked(), test.linked(), overlap(train.trees), overlap(test.trees))
        gram, across = fig4.pair_grams(pairs, None, 0.4, 0)["PK_S+Lex"]
        return float(np.mean(classified(gram, train.entailed, across, 1.0) == test.entailed))

    seconds: dict[str, list[float]] = {"TreeClassifier": [], "python -m paper": []}
    for k in range(ROUNDS + 1):  # the first one compiles
        for name, work in zip(seconds, (ours, of_paper), strict=True):
            start = time.process_time()
            accuracy = work()
            seconds[name] += [time.process_time() - start] if k else []
            if k == ROUNDS:
                print(f"{name}: accuracy {accuracy:.4f}, {np.median(seconds[name]):.2f} s of processor time")


def read_pairs(folder: Path, name: str) -> Part:
    """Return the trees of a file, and the classes."""
    text, hypothesis = (read_trees(folder / f"{name}.tsv.gz", column=f"{side}_tree") for side in PAIR)
    return Part({"text": text, "hypothesis": hypothesis}, np.array(text.columns["label"]))


def chosen(method: Method, tasks: Sequence[Task]) -> Setting:
    """Return the setting with the best mean accuracy in cross-validation."""
    tried = [method.tried(task) for task in tasks]
    return max(tried[0], key=lambda setting: float(np.mean([found[setting] for found in tried])))


def classifier(link: bool = True, **settings: Any) -> Method:
    """Return the method of a ``TreeClassifier`` of linked or plain trees and the overlap."""
    plain = {"tree_columns": list(PAIR), "number_columns": ["overlap"]}
    columns: dict[str, Any] = {"pair_columns": list(PAIR)} if link else plain

    def tables(task: Task) -> tuple[Any, Any]:
        if link:
            return task.train.trees, task.test.trees
        transformer = PairTransformer(link=False).fit(task.train.trees)
        return transformer.transform(task.train.trees), transformer.transform(task.test.trees)

    def trained(task: Task, decay: Any, C: Any) -> TreeClassifier:
        return TreeClassifier(**columns, **settings, decay=decay, C=C, cv=FOLDS).fit(
            tables(task)[0], task.train.y
        )

    def tried(task: Task) -> dict[Setting, float]:
        return {(trial.decay, trial.C): trial.score for trial in trained(task, DECAYS, COSTS).selection_}

    def tested(task: Task, setting: Setting) -> float:
        return trained(task, *setting).score(tables(task)[1], task.test.y)

    return Method(tried, tested)


def overlap() -> Method:
    """Return the method that sees the lexical overlap only."""

    def numbers(task: Task) -> tuple[np.ndarray, np.ndarray]:
        transformer = PairTransformer().fit(task.train.trees)
        train, test = (transformer.transform(part.trees)["overlap"][:, None] for part in task)
        return (train - train.mean()) / train.std(), (test - train.mean()) / train.std()

    def tried(task: Task) -> dict[Setting, float]:
        x, _ = numbers(task)
        scores = {C: cross_val_score(LogisticRegression(C=C), x, task.train.y, cv=FOLDS) for C in COSTS}
        return {(None, C): float(np.mean(found)) for C, found in scores.items()}

    def tested(task: Task, setting: Setting) -> float:
        x, z = numbers(task)
        return float(LogisticRegression(C=setting[1]).fit(x, task.train.y).score(z, task.test.y))

    return Method(tried, tested)


def product_of_kernels() -> Method:
    """Return the method of the product of both sides' exact kernels, plus the product of the overlaps."""

    def kernel(decay: float) -> Kernel:
        tree = SubsetTreeKernel(decay, normalize=True)
        return ColumnKernel(tree, "text") * ColumnKernel(tree, "hypothesis") + ColumnKernel(
            LinearKernel(), "overlap"
        )

    def linked(task: Task) -> tuple[Any, Any]:
        transformer = PairTransformer().fit(task.train.trees)
        train, test = (transformer.transform(part.trees) for part in task)
        mean, scale = train["overlap"].mean(), train["overlap"].std()
        for table in (train, test):
            table["overlap"] = (table["overlap"] - mean) / scale
        return train, test

    def tried(task: Task) -> dict[Setting, float]:
        train, _ = linked(task)
        found: dict[Setting, float] = {}
        for decay in DECAYS:
            gram = kernel(decay).gram(train)
            for C in COSTS:
                machine = SVC(kernel="precomputed", C=C)
                found[decay, C] = float(np.mean(cross_val_score(machine, gram, task.train.y, cv=FOLDS)))
        return found

    def tested(task: Task, setting: Setting) -> float:
        train, test = linked(task)
        rows = KernelTransformer(kernel=kernel(setting[0] or 0.0)).fit(train)
        machine = SVC(kernel="precomputed", C=setting[1]).fit(rows.transform(train), task.train.y)
        return float(machine.score(rows.transform(test), task.test.y))

    return Method(tried, tested)


EXACT = SubsetTreeKernel(normalize=True)
FRAGMENTS = {"idf": False, "words": False, "labels": False}
METHODS: dict[str, Method] = {
    "overlap": overlap(),
    "exact, plain": classifier(link=False, kernel=EXACT),
    "exact": classifier(kernel=EXACT),
    "exact, product": product_of_kernels(),
    "rows, plain": classifier(link=False, **FRAGMENTS),
    "rows": classifier(**FRAGMENTS),
    "rows, idf": classifier(**FRAGMENTS | {"idf": True}),
    "dense": classifier(vectorizer=DistributedTreeVectorizer()),
}


if __name__ == "__main__":
    main()
