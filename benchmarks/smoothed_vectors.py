"""Vectors of partial trees of similar words: ``python -m benchmarks.smoothed_vectors``.

Dot products of vectors estimate the kernel in which every cosine of word vectors counts as it is, negative
ones too. ``SmoothedPartialTreeKernel`` counts none below its threshold. So there are two comparisons: of the
vectors with what they estimate, by error over floor and Spearman's correlation, and of both kernels; and how
much longer encoding takes than without similar words. Word vectors are those of ``benchmarks.dependency``.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.dependency import read_questions, word_vectors
from benchmarks.fidelity import measure, sample
from benchmarks.partial_vectors import normalised
from treedot import Forest, SmoothedPartialTreeKernel, WordVectors, dot_products
from treedot.encode import DenseEncoder, DenseSpec
from treedot.kernels.partial_delta import Families
from treedot.kernels.similarity import similar_labels
from treedot.parameters import GAPS
from treedot.vectors.fidelity import different_pairs, projected, spearman

FORMS = ("grct", "lct")
ROUNDS = 5


class UnclippedKernel(SmoothedPartialTreeKernel):
    """The smoothed kernel with every cosine as it is: the one whose values are dot products."""

    def _nodes(self, forest: Forest) -> Families:
        labels = similar_labels(forest.labels, self.similarity, -math.inf, self.max_pairs)
        return Families(forest, labels)


def compare(forest: Forest, words: WordVectors, weight: float, gaps: str, seeds: int, size: int) -> str:
    """Return how vectors compare with what they estimate, and both with the kernel as it is defined."""
    settings = {"decay": weight, "mu": weight, "gaps": gaps}
    exact = UnclippedKernel(words, **settings).gram(forest)
    unclipped = normalised(exact)
    defined = SmoothedPartialTreeKernel(words, **settings, normalize=True).gram(forest)
    specs = [
        DenseSpec(
            size, seed=seed, dtype="float64", normalize=False, kernel="smoothed",
            similarity=words.fingerprint, **settings,
        )
        for seed in range(seeds)
    ]  # fmt: skip
    estimates = [dot_products(DenseEncoder(spec, words).encode(forest, n_jobs=-1)) for spec in specs]
    found = measure(exact, estimates, size)
    cosines = [normalised(estimate) for estimate in estimates]
    floor = np.mean([spearman(exact, projected(exact, size, seed)) for seed in range(min(seeds, 3))])
    return (
        f"{weight}  {gaps:<7}  {found.error:11.2f}  {found.rank:8.3f}  {floor:8.3f}  "
        f"{found.norms.min():.2f} … {found.norms.max():.2f}   "
        f"{rms(unclipped, defined):.4f}  {spearman(defined, unclipped):.3f}      "
        f"{np.mean([rms(each, defined) for each in cosines]):.4f}  "
        f"{np.mean([spearman(defined, each) for each in cosines]):.3f}"
    )


def rms(a: np.ndarray, b: np.ndarray) -> float:
    """Return the root of the mean square of differences over pairs of different trees."""
    pairs = different_pairs(len(a))
    return float(np.sqrt(np.mean((a - b)[pairs] ** 2)))


def seconds(forest: Forest, words: WordVectors) -> tuple[float, float, float]:
    """Return the processor time of encoding without and with similar words, and of the first call with them.

    The former are the best of some rounds in turn; in the first call, the vectors of labels are made.
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
    return (*taken.min(axis=0).tolist(), float(taken[0, 1]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.smoothed_vectors", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--dim", type=int, default=8192)
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("set TREEDOT_DATA, or give --data: this needs the corpora")
    words = WordVectors(word_vectors(Path(options.data)))
    for form in FORMS:
        whole = read_questions(Path(options.data), form, "train")
        forest = sample(whole, options.trees)
        print(f"\nquestions, {form.upper()}: {len(forest)} trees at random, {options.seeds} seeds, "
              f"d = {options.dim}, {words}")  # fmt: skip
        print("vectors with what they estimate                                     "
              "kernels: rms, Spearman  vectors with the kernel as defined")  # fmt: skip
        print("λ=μ  gaps     error/floor  Spearman  of floor  ‖T̃‖²/K11")
        for weight in (0.4, 0.2, 0.6):
            for gaps in GAPS:
                print(compare(forest, words, weight, gaps, options.seeds, options.dim), flush=True)
        partial, smoothed, first = seconds(whole[: 5 * options.trees], words)
        print(f"encoding takes {smoothed / partial:.2f} times as long as without similar words; the first "
              f"call, which makes the vectors of labels, {first / partial:.2f} times")  # fmt: skip


if __name__ == "__main__":
    main()
