"""Compare ways to learn from trees and texts on more tasks: ``python -m benchmarks.beyond``.

Each table of ``code_and_pages`` is split into five folds, stratified by class; all functions of a file are in
the same fold. Every method chooses its settings by a cross-validation within the training set, whose folds
keep files together, too; only ``old``, which is slow, keeps the settings that it chose in the first fold.
``fixed`` chooses nothing. All methods train the same support vector machine. The first table gives the mean
accuracy over the folds with its standard error, and the processor time of a fit with its choice of settings
in the first fold. The second compares pairs of methods: the mean difference over the folds with its standard
error, and McNemar's test on the predictions for all folds together, in which every example is tested once.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from published.tasks import bracket_tokens
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.model_selection import StratifiedGroupKFold

from treedot import Forest, TreeClassifier, read_trees
from treedot._storage.files import write_whole
from treedot.models import DualLinearSVC
from treedot.models.evaluation import mcnemar
from treedot.parameters import DAMPINGS

TASKS = ("packages", "tests", "names", "pages")
FOLDS = 5  # outer and inner
COSTS = (1.0, 10.0)
WORDS = re.compile(r"\w+|[^\w\s]")
OLD: dict[str, Any] = {
    "decay": (0.1, 0.2, 0.4), "C": (1.0, 10.0, 100.0), "idf": None, "words": False, "labels": False,
}  # fmt: skip
BOTH = {"tree_columns": ["tree"], "text_columns": ["text"]}
FIXED = {"decay": 0.4, "C": 10.0, "idf": True, "words": True}
PAIRS = (
    ("new", "old"), ("new", "brackets"), ("both", "text"), ("both", "new"), ("damping", "new"),
    ("fixed", "new"),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Table:
    """Trees with their columns; equal only to itself, so that results for it can be cached."""

    forest: Forest

    @property
    def classes(self) -> np.ndarray:
        """The classes of all examples."""
        return np.array(self.forest.columns["class"])

    @property
    def files(self) -> np.ndarray:
        """The files of all examples."""
        return np.array(self.forest.columns["file"])


class Split(NamedTuple):
    """A table, and the positions of its training and test examples in one of the folds."""

    table: Table
    number: int
    train: np.ndarray
    test: np.ndarray

    @property
    def truth(self) -> np.ndarray:
        """The classes of the test examples."""
        return self.table.classes[self.test]


class Result(NamedTuple):
    """The predictions for a test set, the processor time of the training, and the settings chosen."""

    predicted: list[str]
    seconds: float
    chosen: dict[str, Any]


def splits(table: Table) -> Iterator[Split]:
    """Yield the folds; no file is on both sides of one."""
    kept = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)
    for number, (train, test) in enumerate(kept.split(table.classes, table.classes, table.files)):
        yield Split(table, number, train, test)


def text_tokens(forest: Forest) -> list[list[str]]:
    """Return the words and other signs of every text, in lower case.

    Examples
    --------
    >>> text_tokens(Forest([0], [0], [0, 1], ["S"], {"text": ["Is it?"]}))
    [['is', 'it', '?']]
    """
    return [WORDS.findall(text.lower()) for text in forest.columns["text"]]


def n_grams(tokens: Callable[[Forest], list[list[str]]], split: Split) -> Result:
    """Use one to three neighbouring tokens, weighted by tf-idf."""
    counts, counting = counted(tokens, split.table)
    start = time.process_time()
    own, y, files = split.train, split.table.classes, split.table.files[split.train]
    right = np.zeros(len(COSTS))
    for some, others in StratifiedGroupKFold(FOLDS).split(own, y[own], files):
        rows, left_out = weighted(counts, own[some], own[others])
        for k, cost in enumerate(COSTS):
            right[k] += np.sum(
                DualLinearSVC(C=cost).fit(rows, y[own[some]]).predict(left_out) == y[own[others]]
            )
    best = COSTS[int(right.argmax())]
    rows, tested = weighted(counts, own, split.test)
    model = DualLinearSVC(C=best).fit(rows, y[own])
    seconds = time.process_time() - start + counting * own.size / y.size
    return Result(model.predict(tested).tolist(), seconds, {"C": best})


@cache
def counted(tokens: Callable[[Forest], list[list[str]]], table: Table) -> tuple[csr_matrix, float]:
    """Return how often each n-gram is in each example, and the time that it took to count them."""
    start = time.process_time()
    counter = CountVectorizer(analyzer=lambda words: words, dtype=np.float32)
    counts = counter.fit_transform(map(grams, tokens(table.forest)))
    return counts, time.process_time() - start


def grams(words: Sequence[str]) -> Iterator[str]:
    """Yield words, pairs and triples of neighbouring words."""
    for size in (1, 2, 3):
        yield from map(" ".join, zip(*(words[k:] for k in range(size)), strict=False))


def weighted(counts: csr_matrix, train: np.ndarray, test: np.ndarray) -> tuple[csr_matrix, csr_matrix]:
    """Return the rows of training and test examples, of length 1, with the n-grams of the training set."""
    own = counts[train]
    known = np.unique(own.indices)
    scale = TfidfTransformer(sublinear_tf=True).fit(own[:, known])
    return scale.transform(own[:, known]), scale.transform(counts[test][:, known])


def classifier(settings: dict[str, Any], split: Split) -> Result:
    """Use a TreeClassifier with some settings."""
    train = split.table.forest[split.train]
    start = time.process_time()
    model = TreeClassifier(n_jobs=1, **settings)
    model.fit(train, train.columns["class"], groups=train.columns["file"])
    seconds = time.process_time() - start
    names = ("decay", "C", "idf", "damping", "words", "labels")
    chosen = {name: getattr(model, f"{name}_") for name in names}
    return Result(model.predict(split.table.forest[split.test]).tolist(), seconds, chosen)


METHODS: dict[str, Callable[[Split], Result]] = {
    "old": partial(classifier, OLD),
    "new": partial(classifier, {}),
    "brackets": partial(n_grams, bracket_tokens),
    "text": partial(n_grams, text_tokens),
    "both": partial(classifier, BOTH),
    "damping": partial(classifier, {"damping": DAMPINGS}),
    "fixed": partial(classifier, FIXED),
}
MEASURED = [method for method in METHODS if method not in ("damping", "fixed")]  # by default


def measured(folder: Path, task: str, method: str, split: Split) -> Result:
    """Return the result of a method on a fold, from the folder if it is there."""
    path = folder / f"{task}-{method}-{split.number}.json"
    if path.exists():
        return Result(**json.loads(path.read_text(encoding="utf-8")))
    run = METHODS[method]
    if method == "old" and split.number:
        first = next(splits(split.table))
        run = partial(classifier, measured(folder, task, method, first).chosen)
    result = run(split)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_whole(path) as aside:
        aside.write_text(json.dumps(result._asdict()), encoding="utf-8")
    line = (
        task,
        method,
        split.number,
        f"{accuracy(split, result):.4f}",
        f"{result.seconds:.1f} s",
        result.chosen,
    )
    print(*line, file=sys.stderr, flush=True)
    return result


def accuracy(split: Split, result: Result) -> float:
    """Return the share of the test examples whose class was predicted."""
    return float(np.mean(split.truth == result.predicted))


def with_error(values: Sequence[float], sign: str = "") -> str:
    """Return a mean with its standard error.

    Examples
    --------
    >>> with_error([0.5, 0.6, 0.7])
    '.600 ± .058'
    """
    mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{mean:{sign}.3f} ± {error:.3f}".replace("0.", ".")


def compare(task: str, found: dict[str, list[Result]], parts: Sequence[Split]) -> Iterator[str]:
    """Yield a line for every pair of methods."""
    truth = np.concatenate([split.truth for split in parts])
    for first, second in PAIRS:
        if first in found and second in found:
            shares = [
                [accuracy(s, r) for s, r in zip(parts, found[name], strict=True)] for name in (first, second)
            ]
            differences = np.subtract(*shares).tolist()
            both = (np.concatenate([r.predicted for r in found[name]]) for name in (first, second))
            test = mcnemar(truth, *both)
            yield (
                f"| {task} | {first} − {second} | {with_error(differences, '+')} | "
                f"{test.only_first} : {test.only_second} | {test.p_value:.2g} |"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.beyond",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="the folder of the tables")
    parser.add_argument(
        "--cache", type=Path, required=True, help="folder of results; a later run resumes from it"
    )
    parser.add_argument("--only", nargs="+", choices=TASKS, default=TASKS, metavar="TASK", help="tables")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=MEASURED, metavar="METHOD",
                        help=f"methods, of {', '.join(METHODS)} (default: all but the last two)")  # fmt: skip
    parser.add_argument(
        "--first", type=int, default=FOLDS, metavar="N", help="measure only the first N folds"
    )
    options = parser.parse_args(arguments)
    lines, comparisons = [], []
    for task in options.only:
        parts = list(splits(Table(read_trees(options.folder / f"{task}.parquet"))))[: options.first]
        found = {
            name: [measured(options.cache, task, name, split) for split in parts] for name in options.methods
        }
        cells = [
            f"{with_error([accuracy(s, r) for s, r in zip(parts, results, strict=True)])}; "
            f"{results[0].seconds:.0f} s"
            for results in found.values()
        ]
        lines.append(f"| {' | '.join([task, *cells])} |")
        comparisons += compare(task, found, parts)
    print(f"| {' | '.join(['task', *options.methods])} |", *lines, "", *comparisons, sep="\n")


if __name__ == "__main__":
    main()
