"""Describe the contents of a file, for ``treedot info``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import treedot as td
from treedot._pages.printable import printable
from treedot._runtime.array_types import IntArray, WordArray
from treedot._runtime.hashing import GOLDEN, WORD, mix_words
from treedot._storage.described_folder import CONFIG
from treedot._storage.files import check_plain, read_plain
from treedot._storage.safetensors import begins_as_arrays, read_arrays
from treedot.errors import SourceError
from treedot.vectors import files
from treedot.vectors.files import read_description, summarize
from treedot.vectors.metric.metric import METRIC
from treedot.vectors.parts import PLAN, read_plan
from treedot.vectors.sparse.fitted_rows import FittedRows

FOLDERS = {
    "encode": "a folder of parts (load_vectors)",
    "predict": "a folder of predictions",
    "duplicates": "a folder of near-duplicates (duplicates.arrow)",
}
LISTED = 20  # printed names of columns or classes
UNKNOWN = "unknown: not stored in the file"


def file_facts(path: Path) -> dict[str, Any] | None:
    """Describe a file or folder that treedot wrote; return None for files of trees and for others' files."""
    if METRIC.describes(path):
        return {"file": "a metric (Metric.load)", **metric_facts(td.vectors.Metric.load(path))}
    if (path / CONFIG).exists():
        return _model_facts(path)
    if (path / PLAN).exists():
        return _parts_facts(path)
    if path.is_dir() or (not path.is_file() and _is_open_already(path)):
        return None
    check_plain(path)
    if path.suffix.lower() in (".npy", ".npz"):
        return _matrix_facts(path)
    if path.suffix.lower() == ".parquet":
        return _parquet_facts(path)
    if path.suffix.lower() == ".arrow":
        return _arrow_facts(path)
    return _container_facts(path) if begins_as_arrays(read_plain(path, 64)) else None


def _is_open_already(path: Path) -> bool:
    """Return whether a path is standard input, or another file that this process has already open."""
    return os.fspath(path) == "-" or os.path.abspath(path).startswith(("/dev/stdin", "/dev/fd/", "/proc/"))


def _model_facts(path: Path) -> dict[str, Any]:
    model = td.LinearModel.load(path)
    data = model.facts.get("data")
    return {
        "file": "a model (LinearModel.load)",
        **({"predicts": "numbers"} if model.classes is None else {"classes": model.classes.tolist()}),
        "columns with weights": int(model.columns.size),
        "trained on": f"{data.get('trees')} trees" if isinstance(data, dict) else UNKNOWN,
        **{f"input {k}": {"kind": each.kind, **each.config()} for k, each in enumerate(model.inputs, 1)},
    }


def metric_facts(metric: td.vectors.Metric) -> dict[str, Any]:
    """Return how a metric was learned, and what it maps."""
    facts = {name: value for name, value in metric.facts.items() if name != "scores"}
    return {"columns": metric.folding.n_columns, **facts, "fingerprint": metric.fingerprint}


def _parts_facts(path: Path) -> dict[str, Any]:
    found, work = td.batch.status(path), read_plan(path)["work"]
    facts = {
        "file": FOLDERS.get(work.get("task"), "a folder of parts"),
        "parts": found.parts,
        "finished": found.parts - len(found.missing),
        "rows": found.rows,
    }
    if work.get("task") == "duplicates":
        return {**facts, "threshold": work["threshold"], "fewest nodes": work["min_nodes"]}
    return _with_description(facts, work.get("vectors", {"model": work["fingerprint"]}))


def tree_facts(forests: Iterable[td.Forest]) -> dict[str, Any]:
    """Count trees, nodes, labels and so on; sizes and depths get a mean, a median and a largest value.

    Distinct labels, productions and subtrees are counted by 64-bit hashes, which take eight bytes each.
    """
    sizes, depths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    labels, productions, subtrees, roots = _Distinct(), _Distinct(), _Distinct(), _Distinct()
    columns: dict[str, None] = {}
    most_children = 0
    for forest in forests:
        if not len(forest):
            continue
        sizes.append(forest.sizes)
        depths.append(np.maximum.reduceat(forest.depth, forest.offsets[:-1]))
        most_children = max(most_children, int(forest.arity.max()))
        columns.update(dict.fromkeys(forest.columns))
        texts = np.array([hash(text) & WORD for text in forest.labels], np.uint64)
        production, subtree = _hashes(forest, texts[forest.label])
        labels.add(texts[np.bincount(forest.label, minlength=texts.size) > 0])
        productions.add(production[forest.arity > 0])
        subtrees.add(subtree)
        roots.add(subtree[forest.roots])
    size, depth = np.concatenate(sizes), np.concatenate(depths)
    return {
        "file": "trees",
        "trees": size.size,
        "distinct trees": roots.count(),
        "nodes": int(size.sum()),
        "labels": labels.count(),
        "productions": productions.count(),
        "distinct subtrees": subtrees.count(),
        "nodes per tree": _spread(size),
        "depth": _spread(depth),
        "most children": most_children,
        "columns": list(columns),
    }


class _Distinct:
    """Counts distinct 64-bit words; new words are merged into the known ones when they outnumber them."""

    def __init__(self) -> None:
        self._known = np.zeros(0, np.uint64)
        self._new: list[WordArray] = []

    def add(self, words: WordArray) -> None:
        self._new.append(_distinct(words))
        if sum(new.size for new in self._new) > max(1 << 16, self._known.size):
            self.count()

    def count(self) -> int:
        self._known, self._new = _distinct(np.concatenate([self._known, *self._new])), []
        return int(self._known.size)


def _distinct(words: WordArray) -> WordArray:
    """Return distinct words in sorted order, five times as fast as ``np.unique``, which uses a hash table."""
    words = np.sort(words)
    return words[np.diff(words, prepend=~words[:1]) != 0]


def _hashes(forest: td.Forest, label: WordArray) -> tuple[WordArray, WordArray]:
    """Return, for every node, a hash of its production and one of its subtree, given hashes of labels."""
    start, child = forest.children
    place = np.zeros(forest.n_nodes, np.uint64)  # position among the siblings, from 1
    place[child] = np.arange(1, child.size + 1) - np.repeat(start[:-1], forest.arity)
    place *= np.uint64(GOLDEN)
    inner = forest.parent >= 0
    production = mix_words(label)
    np.add.at(production, forest.parent[inner], mix_words(label[inner] + place[inner]))
    subtree = mix_words(label)
    order = np.argsort(-forest.depth, kind="stable")  # the deepest first
    levels = np.split(order, np.flatnonzero(np.diff(forest.depth[order])) + 1)
    for nodes in levels:  # the children of these nodes are done
        subtree[nodes] = mix_words(subtree[nodes])
        if forest.parent[nodes[0]] >= 0:
            np.add.at(subtree, forest.parent[nodes], mix_words(subtree[nodes] + place[nodes]))
    return production, subtree


def _spread(values: IntArray) -> dict[str, float | int]:
    return {
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "largest": int(values.max()),
    }


def _matrix_facts(path: Path) -> dict[str, Any]:
    description = read_description(path)
    matrix = summarize(path, description)
    sparse = matrix.nonzeros is not None
    vectors = "sparse rows" if sparse else "dense vectors"
    what = vectors if "fingerprint" in description else "a matrix of kernels"
    facts: dict[str, Any] = {
        "file": what if description else "a matrix",
        "shape": list(matrix.shape),
        "type": matrix.dtype,
    }
    if matrix.nonzeros is not None:
        facts["non-zeros per row"] = {"mean": matrix.nonzeros / max(1, matrix.shape[0])}
    return _with_description(facts, _flat(description, path) or {"made by": UNKNOWN})


def _parquet_facts(path: Path) -> dict[str, Any] | None:
    description = read_description(path)
    if not description:
        return None  # a table of trees
    vectors = summarize(path, description).shape[0]
    return _with_description({"file": "dense vectors", "vectors": vectors}, description)


def _arrow_facts(path: Path) -> dict[str, Any] | None:
    description = read_description(path)
    if not description:
        return None  # a table of trees
    vectors = files.load_vectors(path)
    kind = "sparse rows" if vectors.spec.kind == "sparse" else "dense vectors"
    return _with_description({"file": kind, "vectors": len(vectors)}, description)


def _with_description(facts: dict[str, Any], description: dict[str, Any]) -> dict[str, Any]:
    """Return the facts followed by the settings of a description; facts win where both have a name."""
    return {**facts, **description, **facts}


def _container_facts(path: Path) -> dict[str, Any]:
    description, arrays = read_arrays(path)
    match description.get("format"):
        case files.INDEX_FORMAT:
            from treedot.search.index.index_file import read_index

            index = read_index(path)
            facts: dict[str, Any] = {"file": "an index of trees (TreeIndex.open)", "trees": len(index.trees)}
            if index.learned is not None:
                facts["metric"] = metric_facts(index.learned.metric)
            return {**facts, **_settings(index.rows), "idf": index.idf}
        case files.VECTORIZER_FORMAT:
            rows = FittedRows.load(path)
            facts = {"file": "a vectorizer (FragmentVectorizer.load)"}
            if rows.spec.n_features is None and rows.counted is not None:
                facts["columns learned"] = len(rows.counted.columns)
            return {**facts, **_settings(rows)}
        case other:
            names = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
            return {"file": str(other or "named arrays"), "arrays": names or "none"}


def _settings(rows: FittedRows) -> dict[str, Any]:
    settings = {name: value for name, value in rows.settings.items() if name != "parameters"}
    return {**settings, "fingerprint": rows.fingerprint}


def _flat(description: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a description whose settings of vectors are moved up to its top level."""
    vectors = description.get("vectors", {})
    if not isinstance(vectors, dict):
        raise SourceError(f"{path} is damaged: the settings of its vectors are wrong: {vectors!r:.40}")
    return {**{k: v for k, v in description.items() if k != "vectors"}, **vectors}


def printed(facts: dict[str, Any]) -> str:
    """Return the facts as lines of a name and a value, aligned."""
    width = max(map(len, facts))
    return "\n".join(f"{printable(name):<{width}}  {_words(value)}" for name, value in facts.items())


def _words(value: Any) -> str:
    """Return a value as text for people."""
    match value:
        case str():
            return printable(value)
        case []:
            return "none"
        case [*items] if all(isinstance(item, str) for item in items):
            more = f" and {len(items) - LISTED:,} more" if len(items) > LISTED else ""
            return ", ".join(map(printable, items[:LISTED])) + more
        case [*items] if all(isinstance(item, int) for item in items):
            return " × ".join(map(str, items))
        case {"mean": _, **others} if others.keys() <= {"median", "largest"}:
            return ", ".join(f"{name} {number:.1f}".removesuffix(".0") for name, number in value.items())
    return printable(json.dumps(value, ensure_ascii=False))
