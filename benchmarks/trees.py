"""The trees to measure on: corpora where they are, functions of the standard library elsewhere."""

from __future__ import annotations

from pathlib import Path

from treedot import Forest, read_trees
from treedot.experiments.demo import standard_library

CORPORA = {"qc_train.tsv.gz": "QC training questions", "ptb_sample.tsv.gz": "Penn Treebank sample"}


def benchmark_forest(data: str | None, name: str = "qc_train.tsv.gz") -> tuple[Forest, str]:
    """Return trees and what they are."""
    if data and (Path(data) / name).exists():
        return read_trees(Path(data) / name), CORPORA[name]
    return standard_library(1000), "functions of the standard library"
