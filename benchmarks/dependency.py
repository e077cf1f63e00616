"""Classify questions as dependency trees: ``python -m benchmarks.dependency --cache results/dependency``.

The task is the six classes of the TREC questions, with support vector machines and the subset tree kernel,
the partial tree kernel and the smoothed one, on constituency trees and on the dependency trees of KeLP (GRCT,
LCT, LOCT). λ, μ and C are chosen by cross-validation on 2,000 of the 5,452 training questions. Then a model
is trained on all of them, and its correct answers to the 500 test questions are counted. For the smoothed
kernel, word similarities come from latent semantic analysis of word co-occurrences in all available corpora
except the test sets.

With ``--kelp``, use the settings of KeLP's demonstration instead, and print the accuracies that it reports
beside ours.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.decomposition import TruncatedSVD
from sklearn.svm import SVC

from treedot import Forest, PartialTreeKernel, SubsetTreeKernel, TreeClassifier, read_trees
from treedot._storage.files import write_whole
from treedot.kernels import SmoothedPartialTreeKernel
from treedot.kernels.tree_kernel import TreeKernel
from treedot.models.evaluation import wilson

SAMPLE = 2000  # questions for choosing the settings
DECAYS = (0.05, 0.1, 0.2, 0.4, 0.8)
MUS = (0.05, 0.1, 0.2, 0.4, 0.8)
COSTS = (1.0, 10.0, 100.0)
KELP_COST = 3.0  # C in KeLP's demonstration
DIMENSIONS, WINDOW, MIN_COUNT = 250, 3, 3  # of word vectors: dimensions, window, least frequency
CLASS = "coarse"  # the column
TEXTS = {"text": ("qc_train", "questionbank", "ptb_sample", "craft", "gum_permissive", "sst_train"),
         "hypothesis": ("rte1_dev", "rte2_dev", "rte3_dev", "rte5_dev")}  # fmt: skip
_TYPE = re.compile(r"(?<=\()[A-Z]+##")  # of nodes, in KeLP


class Method(NamedTuple):
    """A kernel on one form of trees; cross-validation chooses among its settings."""

    form: str
    kernel: Callable[..., TreeKernel]
    settings: Sequence[dict[str, float]]


class Result(NamedTuple):
    """The chosen kernel and C, their accuracy in cross-validation, and the number of correct answers."""

    kernel: str
    C: float
    accuracy: float
    right: int
    questions: int
    seconds: float  # processor time in total


def methods(folder: Path) -> dict[str, Method]:
    """Return the methods to measure, by name."""
    partial_settings = [{"mu": mu} for mu in MUS]
    kernels: dict[str, tuple[Callable[..., TreeKernel], list[dict[str, float]]]] = {
        "subset trees": (SubsetTreeKernel, [{}]),
        "partial trees": (PartialTreeKernel, partial_settings),
        "smoothed partial trees": (partial(_smoothed, folder), partial_settings),
    }
    forms = {"constituency": "tree", "GRCT": "grct", "LCT": "lct", "LOCT": "loct"}
    return {
        f"{trees}, {name}": Method(form, *kernel)
        for trees, form in forms.items()
        for name, kernel in kernels.items()
        if form != "tree" or not name.startswith("smoothed")  # whose leaves have no parts of speech
    }


def demonstration(folder: Path) -> Iterator[tuple[str, float, float]]:
    """Yield the measurements of KeLP's demonstration: a name, the accuracy here, and the reported one.

    It uses KeLP's kernels and support vector machines of LIBSVM, one per class, whose examples weigh as much
    as all others together. The word vectors come from the corpora; they are not KeLP's own.
    """
    toolkit: dict[str, Any] = {"decay": 0.4, "normalize": True}
    subset = SubsetTreeKernel(convention="collins-duffy", leaves=True, **toolkit)
    whole = PartialTreeKernel(mu=0.4, terminal_factor=5, **toolkit)
    smoothed = _smoothed(folder, mu=0.4, terminal_factor=0.2, threshold=0.01, max_length=20, **toolkit)
    for name, form, kernel, expected in (
        ("GRCT, subset trees", "grct", subset, 0.914),
        ("GRCT, partial trees", "grct", whole, 0.910),
        ("LCT, smoothed partial trees", "lct", smoothed, 0.940),
    ):
        train, test = (read_questions(folder, form, part) for part in ("train", "test"))
        yield name, _fair_accuracy(kernel, train, test), expected


def _fair_accuracy(kernel: TreeKernel, train: Forest, test: Forest) -> float:
    classes, truth = np.array(train.columns[CLASS]), np.array(test.columns[CLASS])
    known, new = kernel.gram(train, n_jobs=-1), kernel.gram(test, train, n_jobs=-1)
    names, scores = np.unique(classes), []
    for name in names:
        own = classes == name
        weights = {True: np.count_nonzero(~own) / np.count_nonzero(own), False: 1.0}
        svm = SVC(kernel="precomputed", C=KELP_COST, class_weight=weights).fit(known, own)
        scores.append(svm.decision_function(new))
    return float(np.mean(names[np.argmax(scores, axis=0)] == truth))


def _smoothed(folder: Path, **settings: Any) -> TreeKernel:
    kernel: TreeKernel = SmoothedPartialTreeKernel(word_vectors(folder), **settings)
    return kernel


@cache
def word_vectors(folder: Path) -> dict[str, np.ndarray]:
    """Return word vectors of the corpora: singular vectors of a co-occurrence matrix.

    The matrix contains the positive pointwise mutual information of words at most three apart.
    """
    texts = [re.findall(r"\w+", text.lower()) for text in sentences(folder)]
    counts = Counter(itertools.chain.from_iterable(texts))
    words = {word: k for k, word in enumerate(w for w, count in counts.items() if count >= MIN_COUNT)}
    gap = [-1] * WINDOW  # between sentences; rare words are -1, too
    ids = np.array([words.get(word, -1) for text in texts for word in [*text, *gap]])
    first = np.concatenate([ids[:-shift] for shift in range(1, WINDOW + 1)])
    second = np.concatenate([ids[shift:] for shift in range(1, WINDOW + 1)])
    both = (first >= 0) & (second >= 0)
    near = csr_array((np.ones(both.sum()), (first[both], second[both])), shape=(len(words), len(words)))
    pairs = (near + near.T).tocoo()
    often = pairs.sum(axis=0)
    pairs.data = np.maximum(np.log(pairs.data * often.sum() / often[pairs.row] / often[pairs.col]), 0)
    size = min(DIMENSIONS, len(words) - 1)
    vectors = TruncatedSVD(size, random_state=0).fit_transform(pairs.tocsr())
    return dict(zip(words, vectors, strict=True))


def sentences(folder: Path) -> Iterator[str]:
    """Yield the sentences of the available corpora, except the test sets."""
    for column, names in TEXTS.items():
        for path in (folder / f"{name}.tsv.gz" for name in names):
            if path.exists():
                with gzip.open(path, "rt", encoding="utf-8") as file:
                    rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
                    yield from (row[column] for row in rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the methods that are not in the cache, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dependency", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--only", help="measure methods whose name contains this, such as GRCT")
    parser.add_argument("--kelp", action="store_true", help="use the settings of KeLP's demonstration")
    parser.add_argument("--cache", type=Path, help="folder of results; a later run resumes from it")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("set TREEDOT_DATA, or give --data: this needs the corpora")
    if options.kelp:
        print("| trees, kernel | here | KeLP |\n|---|---|---|")
        for name, here, expected in demonstration(Path(options.data)):
            print(f"| {name} | {_short(here)} | {_short(expected)} |", flush=True)
        return
    print("| trees, kernel | chosen | cross-validation | test | 95 % | seconds |\n|---|---|---|---|---|---|")
    every = methods(Path(options.data))
    for name in (name for name in every if (options.only or "") in name):
        result = measured(Path(options.data), name, every[name], options.cache)
        low, high = wilson(result.right, result.questions)
        print(f"| {name} | {result.kernel}, C {result.C:g} | {_short(result.accuracy)} | "
              f"{_short(result.right / result.questions)} | {_short(low)}–{_short(high)} | "
              f"{result.seconds:.0f} |", flush=True)  # fmt: skip


def measured(folder: Path, name: str, method: Method, cache: Path | None) -> Result:
    """Return the result of a method, from the cache if it is there."""
    path = None if cache is None else cache / f"{name}.json".replace(", ", "-").replace(" ", "-")
    if path is not None and path.exists():
        return Result(**json.loads(path.read_text(encoding="utf-8")))
    result = measure(method, *(read_questions(folder, method.form, part) for part in ("train", "test")))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as aside:
            aside.write_text(json.dumps(result._asdict()), encoding="utf-8")
    return result


def read_questions(folder: Path, form: str, part: str) -> Forest:
    """Return the trees of one form with their classes; KeLP's trees without node types."""
    if form == "tree":
        return read_trees(folder / f"qc_{part}.tsv.gz")
    forest = read_trees(folder / f"qc_{part}_dep.tsv.gz", column="loct" if form != "loct" else "grct")
    trees = read_trees([_TYPE.sub("", text) for text in forest.columns[form]])
    trees.columns[CLASS] = forest.columns[CLASS]
    return trees


def measure(method: Method, train: Forest, test: Forest) -> Result:
    """Choose the settings on a sample, train on all questions, and count the correct answers in the test."""
    start = time.process_time()
    order = np.random.default_rng(0).permutation(len(train))[:SAMPLE]
    sample, classes = train[order], np.array(train.columns[CLASS])
    trials = []
    for settings in method.settings:
        kernel = method.kernel(**settings, normalize=True)
        model = TreeClassifier(kernel=kernel, decay=DECAYS, C=COSTS, class_weight=None, n_jobs=-1).fit(
            sample, classes[order]
        )
        trials += [(trial, kernel, settings) for trial in model.selection_]
    best, kernel, settings = max(trials, key=lambda found: found[0].score)
    model = TreeClassifier(kernel=kernel, decay=best.decay, C=best.C, calibrate=False, n_jobs=-1).fit(
        train, classes
    )
    right = int(np.count_nonzero(model.predict(test) == np.array(test.columns[CLASS])))
    shown = ", ".join([f"λ {best.decay:g}", *(f"μ {mu:g}" for mu in settings.values())])
    return Result(shown, best.C, best.score, right, len(test), time.process_time() - start)


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


if __name__ == "__main__":
    main()
