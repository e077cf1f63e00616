"""The trees to measure on: corpora if available, otherwise functions of the standard library."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from treedot import Forest, read_trees
from treedot.cli.tour.library import standard_library
from treedot.readers import read_html, read_json

CORPORA = {  # file, column
    "questions": ("qc_train.tsv.gz", "tree"),
    "test questions": ("qc_test.tsv.gz", "tree"),
    "Penn sentences": ("ptb_sample.tsv.gz", "tree"),
    "RTE-5 texts": ("rte5_dev.tsv.gz", "text_tree"),
    "Java functions": ("bcb_functions.tsv.gz", "tree"),
    "GUM sentences": ("gum_permissive.tsv.gz", "tree"),
    "CRAFT sentences": ("craft.tsv.gz", "tree"),
    "RNA": ("rna_archive2.tsv.gz", "tree"),
    "glycans": ("glycans.tsv.gz", "tree"),
    "questions, GRCT": ("qc_train_dep.tsv.gz", "grct"),
    "questions, LCT": ("qc_train_dep.tsv.gz", "lct"),
}
PYTHON = "Python functions"
JSON = "JSON-like lists"
JSON_FILES = "JSON files"
HTML = "HTML pages"
DOCUMENTS: dict[str, Callable[[str], Forest]] = {JSON_FILES: read_json, HTML: read_html}
SIZES = 5, 40_000  # most nodes of a document; the exact kernel of larger ones takes long


def benchmark_forest(data: str | None, name: str) -> tuple[Forest, str]:
    """Return trees and their description: the named corpus, or functions if it is missing."""
    if name == JSON:
        return json_lists(1000), JSON
    found = corpus(data, name)
    if found is not None:
        return found, name
    return standard_library(Path(sysconfig.get_paths()["stdlib"]), 1000), PYTHON


def corpus(data: str | None, name: str) -> Forest | None:
    """Return the named corpus, or None if it is missing."""
    if data is None or name not in CORPORA:
        return None
    file, column = CORPORA[name]
    path = Path(data) / file
    return read_trees(path, column=column) if path.exists() else None


def documents(name: str, folder: str) -> Forest:
    """Return the distinct documents of a folder, JSON files or HTML pages; print how many there are."""
    forest = DOCUMENTS[name](folder)
    least, most = SIZES
    distinct = {
        (forest.label[a:b].tobytes(), forest.arity[a:b].tobytes()): k
        for k, (a, b) in enumerate(pairwise(forest.offsets.tolist()))
        if least <= b - a <= most
    }
    chosen = forest[sorted(distinct.values())]
    sizes = f"{int(np.median(chosen.sizes))} nodes in the median, at most {chosen.sizes.max()}"
    print(f"{name} of {folder}: {len(chosen)} distinct ones of {len(forest)} read, {sizes}")
    return chosen


def json_lists(count: int) -> Forest:
    """Return lists of 1 to 60 items that differ only in their words."""
    rng = np.random.default_rng(0)
    item = " (item (op add) (path p{0}) (value v{0}))".format
    starts, sizes = rng.integers(100_000, size=count), rng.integers(1, 61, size=count)
    return read_trees(
        [f"($ {''.join(map(item, range(a, a + n)))})" for a, n in zip(starts, sizes, strict=True)]
    )
