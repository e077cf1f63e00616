"""Trees read back from their vectors: how many, how fast, and whether a certificate is ever wrong.

``TREEDOT_DATA=… python -m benchmarks.decoding`` prints one line per setting and writes
``results/decoding.json``, from which ``docs/images/make_decoding.py`` draws the figure. ``--parts``
chooses what to measure.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from treedot import Forest, read_trees
from treedot.vectors import DenseEncoder, DenseSpec, clear_encoders
from treedot.vectors.decoding.decoder import DecodedTree, Decoder
from treedot.vectors.decoding.fragments import estimate_counts
from treedot.vectors.decoding.productions import Productions

PARTS = ("bars", "grid", "compositions", "certificates", "unknown", "growth", "fragments")
SEEDS = 10  # of the label vectors


def corpus(data: Path, name: str) -> Forest:
    """Return the trees of a corpus."""
    return read_trees(data / f"{name}.tsv.gz")


def questions(data: Path) -> tuple[Forest, Productions]:
    """Return the test questions, and the productions of all questions."""
    test = corpus(data, "qc_test")
    return test, Productions.of(corpus(data, "qc_train") + test)


def sentences(data: Path, seed: int = 0) -> tuple[Forest, Productions]:
    """Return 200 random Penn sentences, and the productions of all of them."""
    every = corpus(data, "ptb_sample")
    chosen = np.random.default_rng(seed).choice(len(every), min(200, len(every)), replace=False)
    return every[np.sort(chosen)], Productions.of(every)


def decoded(
    trees: Forest, known: Productions, spec: DenseSpec, half: bool
) -> tuple[list[DecodedTree], float]:
    """Return decoded trees and the processor time; the first vector is decoded once before."""
    vectors = DenseEncoder(spec).encode(trees)
    given = vectors.astype(np.float16) if half else vectors
    decoder = Decoder(spec, known)
    list(decoder.decode(given[:1]))
    start = time.process_time()
    return list(decoder.decode(given)), time.process_time() - start


def measure(
    what: str, trees: Forest, known: Productions, *, half: bool = False, **settings: Any
) -> dict[str, Any]:
    """Decode the vectors of trees; return and print the figures."""
    found, seconds = decoded(trees, known, DenseSpec(**settings), half)
    exact = np.array([one.tree == tree for one, tree in zip(found, trees, strict=True)])
    certified = np.array([one.is_certified for one in found])
    line = {
        "what": what, **settings, "float16": half, "trees": len(trees), "productions": len(known),
        "exact": float(exact.mean()), "certified": float(certified.mean()),
        "wrong certificates": int((certified & ~exact).sum()),
        "processor ms per tree": round(1000 * seconds / len(trees), 1),
    }  # fmt: skip
    print(json.dumps(line), flush=True)
    return line


def bars(data: Path) -> Iterator[dict[str, Any]]:
    """Yield the settings that have a bar."""
    test, known = questions(data)
    for size in (4096, 1024):
        yield measure("questions", test, known, n_components=size, decay=0.2, normalize=False)
        yield measure("questions", test, known, n_components=size, decay=0.2)
    some, known = sentences(data)
    for decay in (0.2, 0.4):
        yield measure("Penn sentences", some, known, n_components=8192, decay=decay, normalize=False)


def grid(data: Path) -> Iterator[dict[str, Any]]:
    """Yield the settings of the figure, with 50 questions and 20 sentences."""
    of_questions = (512, 1024, 2048, 4096)
    for name, (trees, known), decay, sizes in (
        ("questions", questions(data), 0.2, of_questions),
        ("questions", questions(data), 0.4, of_questions),
        ("Penn sentences", sentences(data), 0.2, (2048, 4096, 8192)),
        ("Penn sentences", sentences(data), 0.4, (4096, 8192)),  # at 2048, searches take long
    ):
        for size in sizes:
            yield measure(name, trees[::10], known, n_components=size, decay=decay, normalize=False)


def compositions(data: Path) -> Iterator[dict[str, Any]]:
    """Yield the three compositions, normalised, in float32 and float16."""
    test, known = questions(data)
    for composition in ("mixed", "product", "convolution"):
        for half in (False, True):
            settings = {"n_components": 4096, "decay": 0.2, "composition": composition}
            yield measure("questions", test[::5], known, half=half, **settings)


def certificates(data: Path) -> Iterator[dict[str, Any]]:
    """Yield the certificates of more than 10,000 trees, and of the test questions where it is harder."""
    test, known = questions(data)
    bank, penn = corpus(data, "questionbank"), corpus(data, "ptb_sample")
    settings = {"n_components": 4096, "decay": 0.2, "normalize": False}
    yield measure("test questions", test, known, **settings)
    yield measure("training questions", corpus(data, "qc_train"), known, **settings)
    yield measure("QuestionBank", bank, Productions.of(bank), **settings)
    large = {"n_components": 8192, "decay": 0.2, "normalize": False}
    yield measure("Penn sentences", penn[::13], Productions.of(penn), **large)
    for harder in ({"n_components": 1024}, {"decay": 0.4}, {"composition": "product", "decay": 0.4}):
        yield measure("test questions", test, known, **settings | harder)


def renamed(tree_number: int, forest: Forest, count: int, rng: np.random.Generator) -> Forest:
    """Return a tree in which some productions are unknown, because a child got another label."""
    one = forest[[tree_number]]
    label = one.label.copy()
    others = [k for k in range(one.n_nodes - 1) if one.arity[k] == 0]
    chosen = rng.choice(others, min(count, len(others)), replace=False)
    label[chosen] = len(one.labels) + np.arange(chosen.size)
    return Forest(label, one.arity, one.offsets, [*one.labels, *(f"new {k}" for k in range(chosen.size))])


def occurrences(forest: Forest) -> Counter[str]:
    """Return how often each production occurs in one tree, as bracket text."""
    known = Productions.of(forest)
    return Counter(
        dict(
            zip(
                map(str, known.forest),
                np.bincount(forest.production[forest.production >= 0]).tolist(),
                strict=True,
            )
        )
    )


def unknown(data: Path) -> Iterator[dict[str, Any]]:
    """Yield vectors with unknown productions: certificates, and the counts of the known ones."""
    rng = np.random.default_rng(0)
    test, known = questions(data)
    texts = set(map(str, known.forest))
    for count in (1, 3, 10):
        trees = Forest.concat([renamed(i, test, count, rng) for i in range(0, len(test), 5)])
        spec = DenseSpec(n_components=4096, decay=0.2, normalize=False)
        found, _ = decoded(trees, known, spec, half=False)
        right = total = extra = 0
        for i, one in enumerate(found):
            true = Counter({text: n for text, n in occurrences(trees[[i]]).items() if text in texts})
            right += sum(one.counts.get(text) == n for text, n in true.items())
            total += len(true)
            extra += sum(text not in true for text in one.counts)
        line = {
            "what": "unknown productions", "unknown": count, "trees": len(trees),
            "certified": sum(one.is_certified for one in found),
            "known counts right": right / total, "productions that are not there": extra / total,
            "least remainder": round(min(one.remainder for one in found), 3),
        }  # fmt: skip
        print(json.dumps(line), flush=True)
        yield line


def apart(trees: Forest, known: Productions, spec: DenseSpec) -> dict[str, float]:
    """Return the processor time of the first vector, and of one more, each in a call of its own."""
    clear_encoders()
    vectors = DenseEncoder(spec).encode(trees)
    seconds = []
    for vector in vectors:
        start = time.process_time()
        list(Decoder(spec, known).decode(vector[None]))
        seconds.append(time.process_time() - start)
    first, *others = seconds
    return {
        "ms of the first": round(1000 * first, 1),
        "ms of one more": round(1000 * float(np.mean(others)), 1),
    }


def growth(data: Path) -> Iterator[dict[str, Any]]:
    """Yield the time against the number of known productions."""
    test, known = questions(data)
    others = Productions.of(corpus(data, "ptb_sample") + corpus(data, "questionbank") + corpus(data, "craft"))
    settings = {"n_components": 4096, "decay": 0.2, "normalize": False}
    for extra in (0, 12_500, 37_500):
        forest = known.forest + others.forest[:extra]
        unlikely = np.zeros(len(forest) - len(known), bool)
        more = Productions(forest, np.concatenate([known.at_root, unlikely]))
        line = measure("questions", test[::5], more, **settings)
        more.encoded = None
        line |= apart(test[:20], more, DenseSpec(**settings))
        print(json.dumps(line), flush=True)
        yield line


def fragments(data: Path) -> Iterator[dict[str, Any]]:
    """Yield how far the estimated counts of fragments scatter, in stated standard errors."""
    test, _ = questions(data)
    some = test[::25]
    for composition in ("mixed", "product", "convolution"):
        far: dict[str, list[float]] = {"productions": [], "whole trees": []}
        for seed in range(SEEDS):
            spec = DenseSpec(1024, 0.2, composition=composition, seed=seed, normalize=False)
            vectors = DenseEncoder(spec).encode(some)
            for i, tree in enumerate(some):
                true = occurrences(some[[i]])
                here = read_trees([*true, tree])
                counts, errors = estimate_counts(vectors[[i]], here, spec)
                *of_productions, of_tree = (counts[0] - [*true.values(), 1]) / errors[0]
                far["productions"] += of_productions
                far["whole trees"].append(of_tree)
        line = {"what": "estimated counts", "composition": composition}
        line |= {f"scatter of {name}": round(float(np.std(values)), 2) for name, values in far.items()}
        print(json.dumps(line), flush=True)
        yield line


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoding", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("TREEDOT_DATA"), required="TREEDOT_DATA" not in os.environ
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("-o", "--output", type=Path, default=Path("results/decoding.json"))
    options = parser.parse_args(arguments)
    options.output.parent.mkdir(exist_ok=True)
    every: list[dict[str, Any]] = []
    for part in options.parts:
        for line in globals()[part](options.data):
            every.append({"part": part, **line})
            options.output.write_text(json.dumps(every, indent=1) + "\n")  # a run may be stopped at any line


if __name__ == "__main__":
    main()
