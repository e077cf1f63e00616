"""Measure how well similarities identify Java clones: ``python -m benchmarks.clones [--data DIR]``.

The functions are those of BigCloneBench, blurred: without identifiers and literals. For every similarity, the
table shows the share of type-3 clone pairs (edited copies) above the value that .2 % of other pairs exceed;
the same for the tenth of them that share the fewest tokens; and for pairs in which all names of one function
are changed. Other pairs come from different clone classes. The last line is for the rule of ``treedot dups``:
the shares of pairs that it takes for near-duplicates, with names and literals as further evidence. With
``--rule``, only this line is printed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from treedot import Forest, FragmentVectorizer, SubsetTreeKernel, read_trees
from treedot._runtime.array_types import Array, BoolArray, FloatArray, IntArray
from treedot.clones.duplicates import near_duplicates
from treedot.clones.similarity import production_multisets, similarities

OTHERS = 200_000  # pairs
FALSE_POSITIVES = 0.002
SHOWN = 50  # the most similar of the other pairs
NAMES = ("SimpleName", "QualifiedName", "SimpleType")
LITERALS = ("StringLiteral", "NumberLiteral", "CharacterLiteral", "BooleanLiteral", "NullLiteral")

Similarity = Callable[[IntArray, IntArray], FloatArray]


class Clones(NamedTuple):
    """Functions, each also with other names, and pairs of them."""

    kept: Forest  # all functions, and again with all names changed
    blurred: Forest  # the same functions without names and literals
    pairs: dict[str, tuple[IntArray, IntArray]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clones", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--others", type=int, default=OTHERS, help=f"other pairs (default: {OTHERS})")
    parser.add_argument("--show", action="store_true", help=f"also the {SHOWN} most similar other pairs")
    parser.add_argument("--rule", action="store_true", help="only the rule of treedot dups")
    options = parser.parse_args(arguments)
    if not options.data:
        parser.error("set TREEDOT_DATA, or give --data: this needs the files bcb_*.tsv.gz")
    clones = read_clones(Path(options.data), options.others)
    if options.rule:
        print(by_rule(clones))
        return
    measures = all_measures(clones)
    for line in [*table(clones, measures), by_rule(clones)]:
        print(line)
    if options.show:
        show_others(clones, measures["√ rows"])


def read_clones(data: Path, n_others: int) -> Clones:
    """Read the functions and the type-3 pairs, and draw pairs of functions that are not clones."""
    functions = read_trees(data / "bcb_functions.tsv.gz")
    number = {name: i for i, name in enumerate(functions.columns["id"])}
    with gzip.open(data / "bcb_pairs.tsv.gz", "rt", encoding="utf-8") as lines:
        edited = [row for row in csv.DictReader(lines, delimiter="\t") if row["type"] == "T3"]
    a = np.array([number[row["a"]] for row in edited])
    b = np.array([number[row["b"]] for row in edited])
    weakest = np.argsort([float(row["similarity_token"]) for row in edited], kind="stable")[
        : len(edited) // 10
    ]
    classes = np.unique(functions.columns["clone_class"], return_inverse=True)[1]
    x, y = np.random.default_rng(0).integers(len(functions), size=(2, 2 * n_others))
    apart = np.flatnonzero(classes[x] != classes[y])[:n_others]
    pairs = {
        "T3": (a, b),
        "weakest tenth": (a[weakest], b[weakest]),
        "renamed": (a, b + len(functions)),
        "others": (x[apart], y[apart]),
    }
    kept = Forest.concat([functions, with_other_leaves(functions, NAMES, lambda text: f"{text}·")])
    return Clones(kept, with_other_leaves(kept, (*NAMES, *LITERALS), lambda text: "_"), pairs)


def with_other_leaves(forest: Forest, kinds: Sequence[str], change: Callable[[str], str]) -> Forest:
    """Return the trees with another text in every leaf below a node of the given kinds."""
    changed = leaves_below(forest, kinds)
    texts = dict.fromkeys([*forest.labels, *map(change, forest.labels)])
    index = {text: k for k, text in enumerate(texts)}
    new = np.array([index[change(text)] for text in forest.labels])
    return Forest(
        np.where(changed, new[forest.label], forest.label), forest.arity, forest.offsets, list(texts)
    )


def leaves_below(forest: Forest, kinds: Sequence[str]) -> BoolArray:
    """Return which nodes are leaves below a node of the given kinds."""
    parents = forest.parent
    kind = np.isin(forest.label, [k for k, text in enumerate(forest.labels) if text in kinds])
    found = (forest.arity == 0) & (parents >= 0)
    found[found] = kind[parents[found]]
    return found


def all_measures(clones: Clones) -> dict[str, Similarity]:
    """Return the similarities by name, each a function of pairs."""
    counts = production_multisets(clones.blurred)
    kernel = SubsetTreeKernel(decay=0.2, normalize=True)
    return {
        "√ rows": cosines(clones.blurred, "sqrt"),
        "rows": cosines(clones.blurred, "linear"),
        "shared productions": lambda a, b: similarities(counts, a, b),
        "containment": lambda a, b: containment(similarities(counts, a, b), counts.sizes[a], counts.sizes[b]),
        "√ rows, names kept": cosines(clones.kept, "sqrt"),
        "tokens (sets)": token_jaccard(clones.kept),
        "subset tree kernel λ = .2": lambda a, b: kernel.pairs(clones.blurred, a, b),
    }


def cosines(forest: Forest, damping: str) -> Similarity:
    """Return the dot products of normalised sparse rows."""
    rows = sp.csr_matrix(FragmentVectorizer(n_features=2**30, damping=damping, n_jobs=-1).transform(forest))
    return lambda a, b: _row_by_row(rows, a, b)


def _row_by_row(rows: Any, a: IntArray, b: IntArray) -> FloatArray:
    parts = [slice(k, k + 10_000) for k in range(0, len(a), 10_000)]
    return np.concatenate([np.asarray(rows[a[k]].multiply(rows[b[k]]).sum(axis=1)).ravel() for k in parts])


def containment(similarity: FloatArray, m: IntArray, n: IntArray) -> FloatArray:
    """Return the share of the smaller multiset that is in the larger one, given their Jaccard similarity."""
    both: FloatArray = similarity / (1 + similarity) * (m + n)
    return both / np.maximum(1, np.minimum(m, n))


def token_jaccard(forest: Forest) -> Similarity:
    """Return the Jaccard similarity of the sets of leaves, as many token-based tools compare."""
    leaves = forest.arity == 0
    tree, token = forest.tree_of_node[leaves], forest.label[leaves]
    sets = sp.csr_matrix((np.ones(len(tree), np.float32), (tree, token)), (len(forest), len(forest.labels)))
    sets.sum_duplicates()
    sets.data[:] = 1
    sizes = sets.getnnz(axis=1)

    def measure(a: IntArray, b: IntArray) -> FloatArray:
        both = _row_by_row(sets, a, b)
        return both / np.maximum(1, sizes[a] + sizes[b] - both)

    return measure


def table(clones: Clones, measures: dict[str, Similarity]) -> list[str]:
    """Return the lines of the table: for every similarity, the shares of clones found."""
    kinds = [kind for kind in clones.pairs if kind != "others"]
    lines = [f"{'similarity':28}{'at .2 %':>10}" + "".join(f"{kind:>16}" for kind in kinds)]
    for name, measure in measures.items():
        threshold = np.quantile(measure(*clones.pairs["others"]), 1 - FALSE_POSITIVES)
        shares = [float(np.mean(measure(*clones.pairs[kind]) > threshold)) for kind in kinds]
        lines.append(f"{name:28}{threshold:10.3f}" + "".join(f"{share:16.3f}" for share in shares))
    return lines


def by_rule(clones: Clones) -> str:
    """Return the shares of pairs that are near-duplicates by the rule of ``treedot dups``."""
    n = len(clones.blurred) // 2
    kept = clones.kept[:n]
    is_text = leaves_below(kept, (*NAMES, *LITERALS))
    bounds = zip(kept.offsets[:-1], kept.offsets[1:], strict=True)
    functions = clones.blurred[:n]
    functions.columns["blurred"] = [kept.label[i:j][is_text[i:j]].tolist() for i, j in bounds]
    found = near_duplicates(functions, n_jobs=-1)
    near = set(zip(found.near.a.tolist(), found.near.b.tolist(), strict=True))
    shares = {}
    for name, (a, b) in clones.pairs.items():
        if name != "renamed":
            kinds = np.sort([found.kind[a], found.kind[b]], axis=0).T.tolist()
            shares[name] = np.mean([x == y >= 0 or (x, y) in near for x, y in kinds])
    return "rule of treedot dups: " + ", ".join(f"{name} {share:.5f}" for name, share in shares.items())


def show_others(clones: Clones, measure: Similarity) -> None:
    """Print the most similar pairs from different clone classes, for inspection."""
    a, b = clones.pairs["others"]
    values = measure(a, b)
    for k in np.argsort(-values, kind="stable")[:SHOWN]:
        print(f"\n{values[k]:.3f}")
        for i in (a[k], b[k]):
            print("   ", " ".join(clones.kept.labels[x] for x in _leaves(clones.kept, int(i)))[:400])


def _leaves(forest: Forest, i: int) -> Array:
    nodes = slice(forest.offsets[i], forest.offsets[i + 1])
    return forest.label[nodes][forest.arity[nodes] == 0]


if __name__ == "__main__":
    main()
