"""BigCloneBench: which pairs of clones are found."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.clones import LITERALS, NAMES, with_other_leaves
from paper.record import Record, Step, alone
from paper.section import Section, Table

from published.cost import peak, spent
from published.files import checked_files, digest_of
from treedot import Forest, find_duplicates, read_trees
from treedot._runtime.array_types import BoolArray, FloatArray, IntArray
from treedot.clones.similarity import production_multisets, similarities

LAYOUT = (
    "DIR holds bcb_functions.tsv.gz and bcb_pairs.tsv.gz, functions and pairs of BigCloneBench; "
    "python -m paper.prepare makes them"
)
FILES = "bcb_functions.tsv.gz", "bcb_pairs.tsv.gz"
VERY_STRONG, STRONG = 0.9, 0.7  # least similarity of clones of type 3, as BigCloneBench measures it
KINDS = "T1", "T2", "VST3", "ST3"
OTHERS, FALSE_POSITIVES = 200_000, 0.002
PUBLISHED_BY = "Sajnani et al. (SourcererCC), ICSE 2016"
PUBLISHED = (
    ("SourcererCC", 1.00, 0.98, 0.93, 0.61),
    ("CCFinderX", 1.00, 0.93, 0.62, 0.15),
    ("Deckard", 0.60, 0.58, 0.62, 0.31),
    ("iClones", 1.00, 0.82, 0.82, 0.24),
    ("NiCad", 1.00, 1.00, 1.00, 0.95),
)


class Clones:
    """Functions of BigCloneBench, without names and literals, and pairs of them.

    Parameters
    ----------
    data : Path
        The folder of the data.
    out : Path
        The folder of the results; nothing is kept there.
    """

    def __init__(self, data: Path, out: Path) -> None:
        self._files = checked_files(data, FILES, LAYOUT)

    @cached_property
    def digest(self) -> str:
        """A name for the content of the files."""
        return digest_of(self._files)

    @cached_property
    def functions(self) -> Forest:
        """The functions, with their names and literals in the column ``blurred``, as of ``treedot dups``."""
        kept = read_trees(self._files[0])
        blurred = with_other_leaves(kept, (*NAMES, *LITERALS), lambda text: "_")
        underscore = blurred.labels.index("_")
        changed = np.flatnonzero(blurred.label == underscore)
        texts = np.split(kept.label[changed], np.searchsorted(changed, kept.offsets[1:-1]))
        columns = {"clone_class": kept.columns["clone_class"], "blurred": [text.tolist() for text in texts]}
        return Forest(blurred.label, blurred.arity, blurred.offsets, blurred.labels, columns)

    @cached_property
    def pairs(self) -> dict[str, tuple[IntArray, IntArray]]:
        """The pairs of clones of each kind, and pairs of functions of different classes."""
        number = {name: i for i, name in enumerate(read_trees(self._files[0]).columns["id"])}
        found: dict[str, list[tuple[int, int]]] = {kind: [] for kind in KINDS}
        with gzip.open(self._files[1], "rt", encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                kind = _kind(row)
                if kind in found:
                    found[kind].append((number[row["a"]], number[row["b"]]))
        made = {kind: tuple(np.array(pairs).reshape(-1, 2).T) for kind, pairs in found.items()}
        classes = np.unique(self.functions.columns["clone_class"], return_inverse=True)[1]
        a, b = np.random.default_rng(0).integers(classes.size, size=(2, 2 * OTHERS))
        apart = np.flatnonzero(classes[a] != classes[b])[:OTHERS]
        return {**made, "others": (a[apart], b[apart])}


def _kind(row: Mapping[str, str]) -> str:
    """Return the kind of a pair; type 3 is divided by the smaller of its two similarities."""
    if row["type"] != "T3":
        return row["type"]
    similarity = min(float(row["similarity_line"]), float(row["similarity_token"]))
    return "VST3" if similarity >= VERY_STRONG else "ST3" if similarity >= STRONG else "weaker"


read = Clones


def steps(clones: Clones) -> dict[str, Step]:
    """Return what is to be measured, by name."""
    return {"shipped": alone(shipped, clones), "calibrated": alone(calibrated, clones)}


def shipped(clones: Clones) -> dict[str, Any]:
    """Measure which pairs ``find_duplicates`` reports with its defaults: in one group, or beside it."""
    functions = clones.functions
    start = spent()
    groups = find_duplicates(functions)
    cost = {"seconds": spent() - start, "memory": peak()}
    found = set[tuple[int, int]]()
    for group in groups:
        found.update(combinations(group.members, 2))
        found.update((min(each.member, each.tree), max(each.member, each.tree)) for each in group.also)
    reported = {
        kind: np.array([(min(pair), max(pair)) in found for pair in zip(a.tolist(), b.tolist(), strict=True)])
        for kind, (a, b) in clones.pairs.items()
    }
    return {**_shares(reported), **cost}


def calibrated(clones: Clones) -> dict[str, Any]:
    """Measure the similarity of productions above the value that few of the other pairs exceed."""
    start = spent()
    counts = production_multisets(clones.functions)
    values: dict[str, FloatArray] = {
        kind: similarities(counts, a, b) for kind, (a, b) in clones.pairs.items()
    }
    half = values["others"].size // 2  # the other half measures the false positives
    threshold = float(np.quantile(values["others"][:half], 1 - FALSE_POSITIVES))
    values["others"] = values["others"][half:]
    reported = {kind: each > threshold for kind, each in values.items()}
    cost = {"seconds": spent() - start, "memory": peak()}
    return {**_shares(reported), "threshold": threshold, **cost}


def _shares(reported: Mapping[str, BoolArray]) -> dict[str, Any]:
    return {
        "shares": {kind: float(np.mean(each)) for kind, each in reported.items()},
        "pairs": {kind: int(each.size) for kind, each in reported.items()},
    }


def section(record: Record) -> Section:
    """Return what was found."""
    first, second = record["shipped"], record["calibrated"]
    rows = [[name, *(f"{value:.2f}" for value in values), "", PUBLISHED_BY] for name, *values in PUBLISHED]
    rows += [
        _row("`find_duplicates`, as it comes", first),
        _row(f"similarity of productions above {second['threshold']:.2f}", second),
    ]
    counts = ", ".join(f"{first['pairs'][kind]:,} {kind}" for kind in KINDS)
    return Section(
        "bigclonebench",
        "BigCloneBench: which clones are found",
        f"With its defaults, `find_duplicates` reports {first['shares']['T2']:.3f} of the clones of type 2, "
        f"{first['shares']['VST3']:.3f} of the very strong ones of type 3 and {first['shares']['ST3']:.3f} "
        "of the strong ones.",
        [
            f"Recall: the share of the known pairs that are reported ({counts}). T1 are equal but for "
            "layout, T2 but for names and literals. Of type 3, very strong clones (VST3) have in common at "
            f"least {VERY_STRONG:.0%} of their lines and of their tokens, strong ones (ST3) {STRONG:.0%}. "
            f"The column of other pairs has the share of {first['pairs']['others']:,} pairs from different "
            "classes that are reported, too. Classes are connected pairs, so some of these may be clones "
            f"that nobody has marked. The similarity is cut off where {FALSE_POSITIVES:.1%} of "
            f"{OTHERS // 2:,} other pairs are above it; the other half of them is counted in the table.",
            "Ours and the published values are not measured alike, so there are no marks. The published "
            "tools read the source of all files and find the functions themselves, and a reported pair "
            "counts if it covers 70 % of the lines of both functions. treedot was given functions that were "
            "parsed and cut out already, each in a class of its own: only those in a pair of the three "
            "types, and of up to 1,000 nodes. The published tools ran with the settings that the study "
            "chose. Their values are quoted from it, and were not compared with its printed table again.",
            Table(["method", *KINDS, "other pairs", "source, or cost"], rows),
        ],
    )


def _row(name: str, found: Mapping[str, Any]) -> list[str]:
    shares = found["shares"]
    return [
        name,
        *(f"{shares[kind]:.3f}" for kind in KINDS),
        f"{shares['others']:.4f}",
        f"{found['seconds']:.0f} s, {found['memory']:.1f} GiB",
    ]
