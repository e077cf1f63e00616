"""Measure rows of fragments at both ends of similarity: ``python -m benchmarks.rows``.

Bounded rows with hashed columns are compared with the kernel of bounded fragments, normalised, for random
pairs and for near-duplicates (trees with one leaf in 25 renamed), by corpus. Further parts measure the
ranking by blocks, the use of rows (classes of questions, nearest neighbours of functions, RNA and glycans),
the speed of encoding and the speed of training. For rows of the full kernel, see ``benchmarks.fidelity``.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.__main__ import encode_seconds
from benchmarks.ends import SENTENCES, cells, compare, header, line, over_seeds, sample, with_near_duplicates
from benchmarks.timing import seconds
from benchmarks.trees import JSON, PYTHON, benchmark_forest
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    FragmentVectorizer,
    SubsetTreeKernel,
    dot_products,
    nearest,
)
from treedot._runtime.jit import njit
from treedot.models import DualLinearSVC
from treedot.models.linear_model import best_class
from treedot.models.training.one_vs_rest import one_vs_rest, train_svms
from treedot.vectors import SparseEncoder, SparseSpec
from treedot.vectors.fidelity import spearman
from treedot.vectors.sparse.bounded import FoundFragments, find_fragments, hash_productions

WIDE = 2**30
COST = 10.0


def hashed(options: argparse.Namespace) -> None:
    """Compare bounded rows: hashed columns (the default) and a dictionary of columns."""
    header(
        "bounded rows, default", "columns", "random rms / max", "near-dup rms / max", "false, lost", "nearest"
    )
    for name, both in with_near_duplicates(options):
        settings = {"dtype": "float64"}
        exact = dot_products(FragmentVectorizer(n_features=None, **settings).fit_transform(both))
        for bits in (30, 20):
            runs = [
                compare(
                    exact,
                    dot_products(
                        FragmentVectorizer(n_features=2**bits, random_state=s, **settings).transform(both)
                    ),
                )
                for s in range(options.seeds)
            ]
            line(name, f"2^{bits}", *cells(over_seeds(runs)))


def blocks(options: argparse.Namespace) -> None:
    """Spearman's correlation of rows with blocks and the full kernel, for random pairs."""
    decays = (0.2, 0.4, 0.6, 0.8, 1.0)
    header(
        "blocks",
        "budget",
        "non-zeros",
        *(f"ρ at λ = {decay}" for decay in decays),
        "norm² at 0.4 (5 %, 95 %)",
    )
    for name in ("questions", "Penn sentences"):
        forest = sample(benchmark_forest(options.data, name)[0], options.trees)
        for budget in (4, 8, 10, 12):
            ranks, scatter, non_zeros = [], np.zeros(0), 0.0
            for decay in decays:
                exact = SubsetTreeKernel(decay).gram(forest)
                found = []
                for seed in range(options.seeds):
                    rows = FragmentVectorizer(
                        n_features=WIDE,
                        decay=decay,
                        budget=budget,
                        rest="blocks",
                        random_state=seed,
                        normalize=False,
                        dtype="float64",
                    ).transform(forest)
                    estimate = dot_products(rows)
                    found.append(spearman(exact, estimate))
                    non_zeros = rows.nnz / len(forest)
                    if decay == 0.4:
                        scatter = np.append(scatter, np.diagonal(estimate) / np.diagonal(exact))
                ranks.append(f"{np.mean(found):.4f}")
            low, middle, high = np.quantile(scatter, (0.05, 0.5, 0.95))
            line(name, budget, f"{non_zeros:.0f}", *ranks, f"{middle:.2f} ({low:.2f}, {high:.2f})")


def useful(options: argparse.Namespace) -> None:
    """Compare the accuracy of the default rows with the full kernel at two λ."""
    decays = (0.1, 0.2, 0.4)
    header("task", "default rows, mean over seeds", *(f"full kernel, λ = {decay}" for decay in decays))
    train, name = benchmark_forest(options.data, "questions")
    if name == "questions":
        test, _ = benchmark_forest(options.data, "test questions")
        classes, answers = (np.array(forest.columns["coarse"]) for forest in (train, test))
        for cost in (1.0, COST):
            scores = []
            for seed in range(options.seeds):
                vectorizer = FragmentVectorizer(random_state=seed)
                rows, others = vectorizer.transform(train), vectorizer.transform(test)
                products = dot_products(rows), dot_products(others, rows)
                scores.append(_svm_score(*products, classes, answers, cost))
            exact = [
                f"{_svm_score(*_exact_grams(train, test, decay), classes, answers, cost):.3f}"
                for decay in decays
            ]
            line(f"question classes, C = {cost:g}", f"{np.mean(scores):.4f} ± {np.std(scores):.4f}", *exact)
    for name, column in (("Java functions", "clone_class"), ("RNA", "family"), ("glycans", "kingdom")):
        forest, found = benchmark_forest(options.data, name)
        if found != name:
            continue
        labels = np.array(forest.columns[column])
        _, group, size = np.unique(labels, return_inverse=True, return_counts=True)
        chosen = np.flatnonzero(size[group] >= 20)  # classes with at least two members
        chosen = chosen[np.sort(np.random.default_rng(0).permutation(chosen.size)[: options.neighbours])]
        forest, labels = forest[chosen], labels[chosen]
        scores = []
        for seed in range(options.seeds):
            rows = FragmentVectorizer(n_features=WIDE, random_state=seed).transform(forest)
            scores.append(np.mean(labels[nearest(rows, k=1, n_jobs=-1)[0][:, 0]] == labels))
        exact = []
        for decay in decays:
            gram = SubsetTreeKernel(decay, normalize=True).gram(forest)
            np.fill_diagonal(gram, -1)
            exact.append(f"{np.mean(labels[gram.argmax(axis=1)] == labels):.3f}")
        line(f"{name}, nearest of {len(forest)}", f"{np.mean(scores):.4f} ± {np.std(scores):.4f}", *exact)


def _exact_grams(train: Forest, test: Forest, decay: float) -> tuple[np.ndarray, np.ndarray]:
    kernel = SubsetTreeKernel(decay, normalize=True)
    return kernel.gram(train), kernel.gram(test, train)


def _svm_score(
    gram: np.ndarray, across: np.ndarray, classes: np.ndarray, answers: np.ndarray, cost: float
) -> float:
    """Return the accuracy of SVMs trained on a Gram matrix."""
    names, sides = one_vs_rest(classes, len(gram))
    test = np.ascontiguousarray(across, float)
    scores = [svm.decision_function(test) for svm in train_svms(gram, sides, cost, -1)]
    return float(np.mean(best_class(names, np.stack(scores, 1)) == answers))


def speed(options: argparse.Namespace) -> None:
    """Trees encoded per second on one core, relative to dense vectors of 8192 numbers."""
    header(
        "encoding, one core",
        "nodes",
        "mixed, d = 8192, µs",
        "bounded rows",
        "dense rest",
        "blocks, budget 12",
    )
    for name in (*SENTENCES[:2], "Java functions", PYTHON, JSON):
        forest = sample(benchmark_forest(options.data, name)[0], options.trees)
        whole = encode_seconds(forest, "mixed")
        found = []
        for vectorizer in (
            FragmentVectorizer(),
            FragmentVectorizer(budget=options.budget, rest="dense", rest_size=options.rest_size),
            FragmentVectorizer(n_features=WIDE, budget=12, rest="blocks"),
        ):
            took = seconds(partial(vectorizer.transform, forest[:]))
            found.append(f"{1e6 * took / len(forest):.1f} µs, {whole / took:.2f} times")
        line(name, f"{forest.n_nodes / len(forest):.0f}", f"{1e6 * whole / len(forest):.1f}", *found)
    print()
    for name in (*SENTENCES[:2], "Java functions"):
        forest = sample(benchmark_forest(options.data, name)[0], options.trees)
        print(f"{name}, bounded rows, us per tree: {stages(forest)}")
    forest = sample(benchmark_forest(options.data, "questions")[0], options.trees)
    one = [str(tree) for tree in forest][:50]
    print()
    for label, vectorizer in (
        ("bounded rows", FragmentVectorizer()),
        ("dense rest", FragmentVectorizer(rest="dense")),
    ):
        took = seconds(lambda vectorizer=vectorizer: [vectorizer.transform([text]) for text in one])  # type: ignore[misc]
        print(f"one question, text to row, {label}: {1e6 * took / len(one):.0f} µs")


def stages(forest: Forest) -> str:
    """Return the time of each stage of the encoder of bounded rows."""
    encoder = SparseEncoder(SparseSpec())
    found = FoundFragments.make(int(forest.sizes.max()), 1 << 14)
    trees = forest.offsets, forest.arity, forest.label, encoder.label_keys(forest.labels)
    budget = SparseSpec.budget
    fragments = _find(2, *trees, budget, found) / len(forest)
    took = [0.0, *(seconds(partial(_find, last, *trees, budget, found)) for last in (1, 2))]
    took.append(seconds(partial(encoder.encode, forest, n_jobs=1)))
    names = ("hashes of productions", f"{fragments:.0f} fragments", "counting, sorting, values, output")
    parts = zip(names, took[:-1], took[1:], strict=True)
    return ", ".join(f"{name} {1e6 * (b - a) / len(forest):.2f}" for name, a, b in parts)


@njit
def _find(last: int, offsets: Any, arity: Any, label: Any, keys: Any, budget: int, found: Any) -> int:
    """Run the first one or two stages without storing results; return the number of fragments."""
    count = 0
    for tree in range(offsets.size - 1):
        here = slice(offsets[tree], offsets[tree + 1])
        hash_productions(arity[here], label[here], keys, found.stack, found.hash)
        if last > 1:
            count += find_fragments(arity[here], budget, found).n_fragments
    return count


def training(options: argparse.Namespace) -> None:
    """Seconds of processor time to train linear SVMs on sparse rows and on dense vectors."""
    train, name = benchmark_forest(options.data, "questions")
    if name != "questions":
        return
    test, _ = benchmark_forest(options.data, "test questions")
    classes, answers = (np.array(forest.columns["coarse"]) for forest in (train, test))
    models = {
        "LinearSVC": LinearSVC(C=COST),
        "DualLinearSVC": DualLinearSVC(C=COST),
        "DualLinearSVC, tol=1e-16": DualLinearSVC(C=COST, tol=1e-16),
    }
    header("vectors", *models)
    for vectorizer in (FragmentVectorizer(), DistributedTreeVectorizer()):
        rows, others = vectorizer.transform(train), vectorizer.transform(test)
        found = []
        for model in models.values():
            spent = min(_processor_seconds(model, rows, classes) for _ in range(2))
            found.append(f"{spent:.1f} s, {model.score(others, answers):.3f}")
        line(type(vectorizer).__name__, *found)


def _processor_seconds(model: Any, rows: Any, classes: np.ndarray) -> float:
    start = time.process_time()
    model.fit(rows, classes)
    return time.process_time() - start


PARTS = {"hashed": hashed, "blocks": blocks, "useful": useful, "speed": speed, "training": training}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rows", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        default="all",
        choices=[*PARTS, "all"],
        metavar="PART",
        help=f"{', '.join(PARTS)}, or all (default)",
    )
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--html", help="folder of HTML pages to measure on, too")
    parser.add_argument("--json", help="folder of JSON files to measure on, too")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=4, help="of the rows with a dense rest")
    parser.add_argument("--rest-size", type=int, default=6144)
    parser.add_argument("--neighbours", type=int, default=4000, help="trees whose neighbours are searched")
    options = parser.parse_args(arguments)
    for part in PARTS if "all" in options.parts else options.parts:
        PARTS[part](options)


if __name__ == "__main__":
    main()
