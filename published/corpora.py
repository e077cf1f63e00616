"""Labelled trees of seven corpora: classification with and without trees, by one support vector machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from paper.record import Record, Step
from paper.section import Section, Table

from published.files import checked_files, digest_of
from published.methods import KERNELS, METHODS, applies
from published.tasks import FILES, TASKS, read_task
from treedot.models.evaluation import mcnemar, wilson

LARGE = 6000  # trees; kernels and dense vectors of more use the λ and C of the sparse rows
LAYOUT = (
    "DIR holds TREC questions, SST, RTE, RNA and glycans, as tables of trees; "
    "python -m paper.prepare makes them"
)
SLOW = ("dense", "exact")  # measured last
SIGNIFICANT = 0.05
TESTED = ("default", "n-grams"), ("default", "brackets"), ("sparse", "exact"), ("sparse", "n-grams")


class Corpora:
    """The corpora of the tasks.

    Parameters
    ----------
    data : Path
        The folder of the data.
    out : Path
        The folder of the results; nothing is kept there.
    """

    def __init__(self, data: Path, out: Path) -> None:
        self._files = checked_files(data, FILES, LAYOUT)
        self.task = lru_cache(maxsize=1)(partial(read_task, data))

    @cached_property
    def digest(self) -> str:
        """A name for the content of the files."""
        return digest_of(self._files)


read = Corpora


def steps(corpora: Corpora) -> dict[str, Step]:
    """Return what is to be measured, by name; what is slow comes last."""
    found: dict[str, Step] = {task: partial(_facts, corpora, task) for task in TASKS}
    for method in sorted(METHODS, key=SLOW.count):
        for task in TASKS:
            if applies(method, task):
                found[f"{task}, {method}"] = partial(_measured, corpora, task, method)
    return found


def required(corpora: Corpora) -> Iterator[str]:
    """Yield the names of the steps that the page needs; it shows the others if they were measured."""
    for task in TASKS:
        yield from (task, f"{task}, n-grams", f"{task}, default")


def _facts(corpora: Corpora, name: str, record: Record) -> dict[str, Any]:
    """Return the sizes of a task, and the classes of its test trees."""
    task = corpora.task(name)
    sizes = {"training": len(task.train), "test": len(task.test), "repeated": task.n_repeated}
    return {**sizes, "classes": task.classes[1].tolist()}


def _measured(corpora: Corpora, name: str, method: str, record: Record) -> dict[str, Any]:
    """Return the result of a method on a task."""
    settings = {}
    if method in KERNELS and record[name]["training"] > LARGE:
        chosen = record[f"{name}, sparse"]
        settings = {"decay": chosen["decay"], "C": chosen["C"]}
    return METHODS[method](corpora.task(name), **settings)._asdict()


def section(record: Record) -> Section:
    """Return what was found."""
    tasks = [name for name in TASKS if name in record]
    sizes = [f"{record[name]['training']:,}, {record[name]['test']:,}" for name in tasks]
    accuracies, costs, tests = [], [], []
    for name, size in zip(tasks, sizes, strict=True):
        found = [record.get(f"{name}, {method}") for method in METHODS]
        truth = np.array(record[name]["classes"])
        accuracies.append(
            [name, size, *(_accuracy(truth, each) for each in found), _margin(truth, record, name)]
        )
        costs.append([name, *map(_cost, found)])
        tests.append([name, str(record[name]["repeated"]), *_tests(truth, record, name)])
    return Section(
        "corpora",
        "Sentences, molecules and sugars: with and without trees",
        _headline(record, tasks),
        [
            "The same support vector machine for all, with its settings chosen by cross-validation on the "
            "training set. n-grams: one to three neighbouring words (bases of RNA; sugars and bonds of "
            "glycans), with tf-idf; brackets: the same of the tree written with brackets; default: "
            "`TreeClassifier()`; sparse: rows of bounded fragments only; exact: the subset tree kernel. With "
            f"more than {LARGE:,} training trees, dense vectors and the exact kernel take λ and C of the "
            "sparse rows. An empty cell was not measured. ± is half of the 95 % Wilson interval of the "
            "default.",
            Table(["task", "training, test", *METHODS, "±"], accuracies),
            "McNemar's p, and how many test trees only the first gets right, and only the second:",
            Table(["task", "test trees in training, too", *(f"{a}, {b}" for a, b in TESTED)], tests),
            "Training, with the choice of settings, in seconds of processor time:",
            Table(["task", *METHODS], costs),
        ],
    )


def _headline(record: Mapping[str, Any], tasks: list[str]) -> str:
    """Return in which tasks the default is better or worse than n-grams beyond chance."""
    better, worse = list[str](), list[str]()
    for name in tasks:
        truth = np.array(record[name]["classes"])
        predicted = (np.array(record[f"{name}, {method}"]["predicted"]) for method in TESTED[0])
        test = mcnemar(truth, *predicted)
        if test.p_value < SIGNIFICANT:
            (better if test.only_first > test.only_second else worse).append(name)
    return (
        f"Of {len(tasks)} tasks, `TreeClassifier()` is significantly better than n-grams in {len(better)} "
        f"({', '.join(better) or 'none'}) and significantly worse in {len(worse)} "
        f"({', '.join(worse) or 'none'})."
    )


def _right(record: Mapping[str, Any], name: str, method: str) -> int:
    return int(
        np.count_nonzero(np.array(record[f"{name}, {method}"]["predicted"]) == record[name]["classes"])
    )


def _accuracy(truth: np.ndarray, result: Mapping[str, Any] | None) -> str:
    return "" if result is None else _short(float(np.mean(np.array(result["predicted"]) == truth)))


def _margin(truth: np.ndarray, record: Mapping[str, Any], name: str) -> str:
    low, high = wilson(_right(record, name, "default"), truth.size)
    return _short((high - low) / 2)


def _tests(truth: np.ndarray, record: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield McNemar's p for each pair of methods."""
    for pair in TESTED:
        found = [record.get(f"{name}, {method}") for method in pair]
        if None in found:
            yield ""
        else:
            test = mcnemar(truth, *(np.array(each["predicted"]) for each in found if each))
            yield f"{test.p_value:.2g} ({test.only_first} : {test.only_second})"


def _cost(result: Mapping[str, Any] | None) -> str:
    """Return the seconds of training, and the chosen settings."""
    if result is None or result["C"] is None:
        return ""
    decay = "" if result["decay"] is None else f"λ {result['decay']:g}, "
    return f"{result['seconds']:.0f} s; {decay}C {result['C']:g}"


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")
