"""Measure what ``TreeClassifier()`` chooses by default: ``python -m benchmarks.defaults``.

The default is compared with fragments only, for which cross-validation chooses just the decay and C. For each
task, the table gives the accuracy in the cross-validation on the training set, the accuracy on the test set
with its 95 % interval and McNemar's test of the difference, and the processor time of the fit. The task
``functions`` is to name functions of installed packages by their syntax: 100 names with 20 functions each.

``--damping`` compares the default with one that also chooses among all kinds of damping. ``--text`` compares
n-grams of the text, with tf-idf and the same support vector machine, with the default and with the default on
the text beside the tree; it takes questions and films, since RNA is a single word and glycans have no text.

``--rare`` instead takes questions of one class against all others, at 1 to 100, and prints the recall,
precision and average precision of the rare class, as means over several samples, for fixed C and by default.
"""

from __future__ import annotations

import argparse
import os
import sysconfig
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from published.methods import FRAGMENTS, n_grams
from published.tasks import TASKS, Task, all_labels, read_task
from sklearn.metrics import average_precision_score

from treedot import Forest, TreeClassifier, read_code
from treedot.models.evaluation import mcnemar, wilson
from treedot.parameters import DAMPINGS, SCORINGS

BESIDE = ("idf", "words", "labels", "balanced")
PACKAGES = ("numba", "pandas", "scipy", "sklearn")
DEFAULT: dict[str, dict[str, Any]] = {"default": {}}
WAYS = {"fragments": FRAGMENTS} | DEFAULT
BOTH = {"tree_columns": ["tree"], "text_columns": ["text"]}
WITH_TEXT = ("QC coarse", "QC fine", "SST 2", "SST 5")
DAMPED = DEFAULT | {"damping": {"damping": DAMPINGS}}
N_NAMES, N_EACH, SIZES = 100, 20, (20, 400)
RARE = ("ABBR", "LOC")
N_RARE, RATIO, SEEDS = 20, 100, 2


def compare(task: Task, ways: dict[str, dict[str, Any]]) -> list[str]:
    """Return a line for each of two settings, and one for the test of their difference."""
    y_train, y_test = task.classes
    lines, predicted = [], []
    for name, settings in ways.items():
        start = time.process_time()
        model = TreeClassifier(n_jobs=1, **settings).fit(task.train, y_train)
        took = time.process_time() - start
        predicted.append(model.predict(task.test))
        right = int((predicted[-1] == y_test).sum())
        low, high = wilson(right, y_test.size)
        folds = model.selection_[0].score
        lines.append(
            f"{task.name:10}  {name:10}  {folds:.4f}  {right / y_test.size:.4f} ({low:.3f} to "
            f"{high:.3f})  {took:6.1f} s  {described(model)}"
        )
    test = mcnemar(y_test, *predicted)
    return [*lines, f"{'':10}  McNemar {test.only_first} : {test.only_second}, p = {test.p_value:.3g}"]


def compare_text(task: Task) -> list[str]:
    """Return lines for n-grams, the default, and the default with the text beside the tree, and tests."""
    y_train, y_test = task.classes
    train, test = (with_text(part, task) for part in (task.train, task.test))
    found = n_grams(task)
    ways = {"n-grams": (np.array(found.predicted), found.seconds, f"C {found.C:g}")}
    for name, settings in (("default", {}), ("both", BOTH)):
        start = time.process_time()
        model = TreeClassifier(n_jobs=1, **settings).fit(train, y_train)
        took = time.process_time() - start
        ways[name] = model.predict(test), took, described(model)
    lines = [
        f"{task.name:10}  {name:10}  {np.mean(predicted == y_test):.4f}  {took:6.1f} s  {chosen}"
        for name, (predicted, took, chosen) in ways.items()
    ]
    for other in ("n-grams", "default"):
        result = mcnemar(y_test, ways["both"][0], ways[other][0])
        lines.append(
            f"{'':10}  both against {other}: {result.only_first} : {result.only_second}, "
            f"McNemar's p = {result.p_value:.3g}"
        )
    return lines


def with_text(forest: Forest, task: Task) -> Forest:
    """Return the same trees with their words as a column of texts, unless they have one."""
    texts = forest.columns.get("text") or [" ".join(words) for words in task.tokens(forest)]
    parts = forest.label, forest.arity, forest.offsets, forest.labels
    return Forest(*parts, {"text": list(texts)})


def described(model: TreeClassifier) -> str:
    """Return the chosen settings."""
    beside = [name for name in BESIDE if getattr(model, f"{name}_")]
    beside = [*beside, model.damping_] if model.damping_ else beside
    return ", ".join([f"decay {model.decay_:g}", f"C {model.C_:g}", *beside])


def functions() -> Task:
    """Return functions of installed packages with their names as classes; names and literals are removed."""
    installed = Path(sysconfig.get_paths()["purelib"])
    code = read_code(
        [installed / name for name in PACKAGES if (installed / name).exists()],
        language="python", exclude=("test", "tests"), identifiers="blur", literals="blur",
    )  # fmt: skip
    code = code[(code.sizes > SIZES[0]) & (code.sizes < SIZES[1])]
    name = np.array([qualified.split(".")[-1] for qualified in code.columns["name"]])
    shuffled = np.random.default_rng(0).permutation(name.size)
    parts: tuple[list[int], list[int]] = ([], [])
    for each, _ in Counter(name.tolist()).most_common(N_NAMES):
        own = shuffled[name[shuffled] == each]
        parts[0].extend(own[:N_EACH])
        parts[1].extend(own[N_EACH : 2 * N_EACH])
    code.columns["label"] = name.tolist()
    return Task("functions", *(code[np.array(part)] for part in parts), all_labels)


def rare(task: Task) -> list[str]:
    """Return a line of figures for each classifier, with one class made rare."""
    classes = task.classes[0]
    ways: dict[str, dict[str, Any]] = {f"C = {C}": {"decay": 0.4, "C": C} for C in (1.0, 10.0)}
    ways |= {f"scoring={scoring!r}": {"scoring": scoring} for scoring in SCORINGS}
    found: dict[str, list[Any]] = {way: [] for way in ways}
    for name, seed in ((name, seed) for name in RARE for seed in range(SEEDS)):
        random = np.random.default_rng(seed)
        few, many = (random.permutation(np.flatnonzero((classes == name) == side)) for side in (True, False))
        cut = N_RARE * RATIO
        train = np.concatenate([few[:N_RARE], many[:cut]])
        test = np.concatenate([few[N_RARE:], many[cut:]])
        for way, settings in ways.items():
            model = TreeClassifier(n_jobs=1, **settings).fit(task.train[train], classes[train] == name)
            scores, truth = model.decision_function(task.train[test]), classes[test] == name
            positive = scores > 0
            recall, precision = positive[truth].mean(), truth[positive].mean() if positive.any() else 0.0
            found[way].append((recall, precision, average_precision_score(truth, scores)))
    return [
        f"{way:28}  " + "  ".join(f"{x:.3f}" for x in np.mean(figures, axis=0))
        for way, figures in found.items()
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of the tasks, or of rare classes."""
    parser = argparse.ArgumentParser("python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--text", action="store_true", help="compare with texts beside the trees")
    parser.add_argument("--rare", action="store_true", help="measure rare classes")
    parser.add_argument("--damping", action="store_true", help="compare the default with a choice of damping")
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help=f"of {', '.join(TASKS)}, functions (default: seven of them)"
    )
    options = parser.parse_args(arguments)
    if options.data is None:
        raise SystemExit("the corpora are needed: give --data DIR, or set TREEDOT_DATA")
    folder = Path(options.data)
    if options.rare:
        print(f"{'':28}  recall precision average precision")
        print(*rare(read_task(folder, "QC coarse")), sep="\n")
        return
    if options.text:
        for name in options.tasks or WITH_TEXT:
            print(*compare_text(read_task(folder, name)), sep="\n", flush=True)
        return
    print("task        columns     folds   test                     fit      chosen")
    for name in options.tasks or ("QC coarse", "QC fine", "glycans", "RNA", "SST 2", "SST 5", "functions"):
        task = functions() if name == "functions" else read_task(folder, name)
        print(*compare(task, DAMPED if options.damping else WAYS), sep="\n", flush=True)


if __name__ == "__main__":
    main()
