"""Compare vectors of smoothed partial trees with kernels: ``python -m benchmarks.smoothed_vectors``.

Dot products of these vectors estimate the kernel in which every cosine of word vectors counts, even negative
ones. ``SmoothedPartialTreeKernel`` counts none below its threshold. So there are two comparisons: of the
vectors with the kernel that they estimate, by error over floor and Spearman's correlation, and of the
normalised kernels with each other. It also measures the time of encoding relative to encoding without similar
words and, with ``--accuracy``, the accuracy of linear models on both kinds of vectors for the 500 test
questions. The word vectors are those of ``benchmarks.dependency``, few of which have negative cosines; with
``--centred``, many have.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.dependency import CLASS, read_questions, word_vectors
from benchmarks.ends import sample
from benchmarks.fidelity import measure
from benchmarks.partial_vectors import normalised
from treedot import DistributedTreeVectorizer, Forest, PartialTreeKernel, TreeClassifier, dot_products
from treedot.kernels import SmoothedPartialTreeKernel, WordVectors
from treedot.kernels.label_similarity import similar_labels
from treedot.kernels.partial.gram import Families
from treedot.parameters import GAPS
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.fidelity import different_pairs, projected, spearman

FORMS = ("grct", "lct")
WEIGHTS = (0.4, 0.2, 0.6)  # λ and μ
COST = 100.0  # chosen by cross-validation for exact kernels on LCT
ROUNDS = 5
HEAD = """\
vectors with what they estimate                                  the kernel as defined with (rms, Spearman)
λ=μ  gaps     error/floor  Spearman  of floor  ‖T̃‖²/K11         all cosines       equal words       vectors"""


class UnclippedKernel(SmoothedPartialTreeKernel):
    """The smoothed kernel with unclipped cosines: the kernel whose values are dot products."""

    def _nodes(self, forest: Forest) -> Families:
        labels = similar_labels(forest.labels, self.similarity, -math.inf, self.max_pairs)
        return Families(forest, labels)


def compare(forest: Forest, words: WordVectors, weight: float, gaps: str, seeds: int, size: int) -> str:
    """Compare vectors with the kernel that they estimate, and the normalised kernels with each other."""
    settings = {"decay": weight, "mu": weight, "gaps": gaps}
    exact = UnclippedKernel(words, **settings).gram(forest)
    defined = SmoothedPartialTreeKernel(words, **settings, normalize=True).gram(forest)
    plain = PartialTreeKernel(**settings, normalize=True).gram(forest)
    specs = [
        DenseSpec(
            size, seed=seed, dtype="float64", normalize=False, kernel="smoothed",
            similarity=words.fingerprint, **settings,
        )
        for seed in range(seeds)
    ]  # fmt: skip
    estimates = [dot_products(DenseEncoder(spec, words).encode(forest)) for spec in specs]
    found = measure(exact, estimates, size)
    floor = np.mean([spearman(exact, projected(exact, size, seed)) for seed in range(min(seeds, 3))])
    return (
        f"{weight}  {gaps:<7}  {found.error:11.2f}  {found.rank:8.3f}  {floor:8.3f}  "
        f"{found.norms.min():.2f} … {found.norms.max():.2f}    "
        + "    ".join(_difference(defined, other) for other in (normalised(exact), plain))
        + f"    {np.mean([rms(defined, normalised(each)) for each in estimates]):.4f}  "
        f"{np.mean([spearman(defined, normalised(each)) for each in estimates]):.4f}"
    )


def _difference(defined: np.ndarray, other: np.ndarray) -> str:
    return f"{rms(defined, other):.4f}  {spearman(defined, other):.4f}"


def rms(a: np.ndarray, b: np.ndarray) -> float:
    """Return the root mean square of the differences over pairs of different trees."""
    pairs = different_pairs(len(a))
    return float(np.sqrt(np.mean((a - b)[pairs] ** 2)))


def seconds(forest: Forest, words: WordVectors) -> np.ndarray:
    """Return the processor time of encoding without and with similar words, one row per round.

    The first round includes making the vectors of labels.
    """
    smoothed = DenseSpec(kernel="smoothed", similarity=words.fingerprint)
    DenseEncoder(smoothed, words).encode(forest[:1])  # compiles
    encoders = DenseEncoder(DenseSpec(kernel="partial")), DenseEncoder(smoothed, words)
    out = np.empty((len(forest), smoothed.n_components), np.float32)
    taken = np.empty((ROUNDS, 2))
    for each in taken:
        for k, encoder in enumerate(encoders):
            start = time.process_time()
            encoder.encode(forest, out=out)
            each[k] = time.process_time() - start
    return taken


def accuracy(folder: Path, form: str, vectorizer: DistributedTreeVectorizer) -> float:
    """Return the share of test questions that a linear model on vectors answers correctly."""
    train, test = (read_questions(folder, form, part) for part in ("train", "test"))
    model = TreeClassifier(vectorizer=vectorizer, decay=0.4, C=COST, calibrate=False).fit(
        train, train.columns[CLASS]
    )
    return float(np.mean(model.predict(test) == np.array(test.columns[CLASS])))


def report(folder: Path, form: str, words: WordVectors, options: argparse.Namespace) -> None:
    """Print both comparisons, the time, and the accuracy if requested."""
    whole = read_questions(folder, form, "train")
    forest = sample(whole, options.trees)
    print(f"\nquestions, {form.upper()}: {len(forest)} trees at random, {options.seeds} seeds, "
          f"d = {options.dim}, {words}\n{HEAD}")  # fmt: skip
    for weight in WEIGHTS:
        for gaps in GAPS:
            print(compare(forest, words, weight, gaps, options.seeds, options.dim), flush=True)
    some = whole[: 5 * options.trees]
    taken = seconds(some, words)
    partial, smoothed = taken.min(axis=0)
    per_label = (taken[0, 1] - smoothed) / len(some.labels)
    print(f"encoding takes {smoothed / partial:.2f} times as long as without similar words, and "
          f"{1000 * per_label:.2f} ms for every new label")  # fmt: skip
    for settings in ({"kernel": "partial"}, {"kernel": "smoothed", "similarity": words}):
        if options.accuracy:
            vectorizer = DistributedTreeVectorizer(n_components=options.dim, **settings)
            found = accuracy(folder, form, vectorizer)
            print(f"accuracy with kernel={settings['kernel']!r}: {found:.3f}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.smoothed_vectors", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--dim", type=int, default=8192)
    parser.add_argument("--centred", action="store_true", help="subtract the mean from word vectors")
    parser.add_argument("--accuracy", action="store_true", help="also train models (takes minutes)")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("set TREEDOT_DATA, or give --data: this needs the corpora")
    vectors = word_vectors(Path(options.data))
    mean = np.mean(list(vectors.values()), axis=0) if options.centred else 0.0
    words = WordVectors({word: vector - mean for word, vector in vectors.items()})
    for form in FORMS:
        report(Path(options.data), form, words, options)


if __name__ == "__main__":
    main()
