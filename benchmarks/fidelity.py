"""Compare vectors with the exact kernel: ``python -m benchmarks.fidelity``.

``algebras``: the compositions of dense vectors. Error over floor (1 is a random projection), Spearman's
correlation, and the spread of ‖T̃‖²/K11.

``ends``: all vectors of the subset tree kernel, normalised, for random pairs and for near-duplicates (trees
with one leaf in 25 renamed), by corpus and λ, and the worst corpus of each. ``--html`` and ``--json`` add the
documents of a folder. For vectors of partial trees, which estimate another kernel, see
``benchmarks.partial_vectors``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.ends import (
    SENTENCES,
    Ends,
    cells,
    compare,
    header,
    line,
    over_seeds,
    sample,
    with_near_duplicates,
)
from benchmarks.trees import benchmark_forest
from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    SubsetTreeKernel,
    TreedotError,
    dot_products,
)
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.dense.compositions import ALGEBRAS
from treedot.vectors.fidelity import error_over_floor, norm_ratios, spearman

SOURCES = ("questions", "Penn sentences")
DECAYS = (0.2, 0.4, 0.6, 0.8, 1.0)
WIDE = 2**30


class Measured(NamedTuple):
    """Comparison of vectors of several seeds with the exact kernel."""

    error: float  # over the floor
    rank: float  # Spearman's correlation, mean
    norms: np.ndarray  # ‖x‖²/K11 by seed and tree


def measure(exact: np.ndarray, estimates: Iterable[np.ndarray], size: float) -> Measured:
    """Compare matrices of dot products, one per seed, with the exact one."""
    errors, ranks, norms = [], [], []
    for estimate in estimates:
        errors.append(error_over_floor(exact, estimate, size) ** 2)
        ranks.append(spearman(exact, estimate))
        norms.append(norm_ratios(exact, estimate))
    return Measured(float(np.sqrt(np.mean(errors))), float(np.mean(ranks)), np.array(norms))


def algebras(options: argparse.Namespace) -> None:
    """Compare the compositions of dense vectors."""
    for name in SOURCES:
        whole, source = benchmark_forest(options.data, name)
        forest = sample(whole, options.trees)
        print(f"{source}: {len(forest)} trees at random, {options.seeds} seeds, d = {options.dim}")
        print("λ    composition   error/floor  Spearman  ‖T̃‖²/K11")
        for decay in DECAYS:
            exact = SubsetTreeKernel(decay=decay).gram(forest)
            for composition in ALGEBRAS:
                specs = [
                    DenseSpec(options.dim, decay, composition, seed, dtype="float64", normalize=False)
                    for seed in range(options.seeds)
                ]
                vectors = (DenseEncoder(spec).encode(forest, n_jobs=-1) for spec in specs)
                found = measure(exact, map(dot_products, vectors), options.dim)
                print(
                    f"{decay}  {composition:<12}  {found.error:11.2f}  {found.rank:8.3f}  "
                    f"{found.norms.min():.3g} … {found.norms.max():.3g}",
                    flush=True,
                )


class Kind(NamedTuple):
    """A kind of vectors of the subset tree kernel, and the λ to measure it at."""

    title: str
    decays: tuple[float, ...]
    make: Callable[[float, int], Any]


def kinds(options: argparse.Namespace) -> dict[str, Kind]:
    """Return the kinds of vectors."""

    def dense_rest(decay: float, seed: int) -> FragmentVectorizer:
        return FragmentVectorizer(
            n_features=WIDE, decay=decay, budget=options.budget, rest="dense", rest_size=options.rest_size,
            random_state=seed,
        )  # fmt: skip

    def blocks(decay: float, seed: int) -> FragmentVectorizer:
        return FragmentVectorizer(
            n_features=WIDE, decay=decay, budget=options.budget, rest="blocks", random_state=seed
        )

    def dense(composition: str) -> Kind:
        return Kind(
            f"{composition}, d = {options.dim}",
            (0.2, 0.4),
            lambda decay, seed: DistributedTreeVectorizer(
                n_components=options.dim, decay=decay, composition=composition, random_state=seed
            ),
        )

    rest = f"dense rest, budget {options.budget}, {options.rest_size} dimensions"
    return {
        "dense-rest": Kind(rest, (0.2, 0.4), dense_rest),
        "blocks": Kind(f"blocks, budget {options.budget}", (0.05, 0.2, 0.4), blocks),
        **{composition: dense(composition) for composition in ALGEBRAS},
    }


def ends(options: argparse.Namespace) -> None:
    """Compare all vectors of the full kernel at both ends of similarity; print the worst corpora."""
    chosen = {name: kind for name, kind in kinds(options).items() if name in options.kinds}
    found: dict[tuple[str, float], dict[str, Ends]] = {}
    header("vectors", "trees", "λ", "random rms / max", "near-dup rms / max", "false, lost", "nearest")
    for corpus, both in with_near_duplicates(options):
        for decay in sorted({decay for kind in chosen.values() for decay in kind.decays}):
            exact = SubsetTreeKernel(decay, normalize=True).gram(both)
            for kind in chosen.values():
                if decay not in kind.decays:
                    continue
                try:
                    rows = (kind.make(decay, seed).transform(both) for seed in range(options.seeds))
                    measured = over_seeds([compare(exact, dot_products(row)) for row in rows])
                except TreedotError as error:  # the tree is too large for this kind
                    line(kind.title, corpus, decay, error)
                    continue
                found.setdefault((kind.title, decay), {})[corpus] = measured
                line(kind.title, corpus, decay, *cells(measured))
    _print_worst(found)


def _print_worst(found: dict[tuple[str, float], dict[str, Ends]]) -> None:
    header("vectors", "λ", "worst rms", "of sentences", "most false", "most lost")
    for (title, decay), by_corpus in sorted(found.items()):
        line(
            title,
            decay,
            _worst(by_corpus, lambda e: max(e.random, e.near), ".2g"),
            _worst(
                {k: e for k, e in by_corpus.items() if k in SENTENCES}, lambda e: max(e.random, e.near), ".2g"
            ),
            _worst(by_corpus, lambda e: e.false, "d"),
            _worst(by_corpus, lambda e: e.lost, "d"),
        )


def _worst(by_corpus: dict[str, Ends], measure: Callable[[Ends], float], form: str) -> str:
    """Return the largest value, with the name of its corpus."""
    if not by_corpus:
        return ""
    value, corpus = max((measure(e), corpus) for corpus, e in by_corpus.items())
    return f"{value:{form}} ({corpus})" if value else "0"


PARTS = {"algebras": algebras, "ends": ends}
KINDS = ("dense-rest", "blocks", *ALGEBRAS)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all"])
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--html", help="folder of HTML pages, for ends")
    parser.add_argument("--json", help="folder of JSON files, for ends")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS, help="of vectors, for ends")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dim", type=int, default=8192)
    parser.add_argument("--budget", type=int, default=4, help="of the rows with a rest")
    parser.add_argument("--rest-size", type=int, default=6144)
    options = parser.parse_args(arguments)
    for part in PARTS if options.part == "all" else [options.part]:
        PARTS[part](options)


if __name__ == "__main__":
    main()
