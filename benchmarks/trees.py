"""The trees to measure on: corpora where they are, functions of the standard library elsewhere."""

from __future__ import annotations

from pathlib import Path

from treedot import Forest, read_trees
from treedot.experiments.demo import standard_library

CORPORA = {  # file, column
    "questions": ("qc_train.tsv.gz", "tree"),
    "Penn sentences": ("ptb_sample.tsv.gz", "tree"),
    "RTE-5 texts": ("rte5_dev.tsv.gz", "text_tree"),
    "Java functions": ("bcb_functions.tsv.gz", "tree"),
}
PYTHON = "Python functions"


def benchmark_forest(data: str | None, name: str) -> tuple[Forest, str]:
    """Return trees and what they are: the corpus with a name, or functions where it is missing."""
    if data and name in CORPORA:
        file, column = CORPORA[name]
        if (Path(data) / file).exists():
            return read_trees(Path(data) / file, column=column), name
    return standard_library(1000), PYTHON
