"""What a file holds, for ``treedot info``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from treedot.errors import SourceError
from treedot.safetensors import MAX_HEADER, read_arrays
from treedot.trees import Forest
from treedot.vectors.files import read_description, summarize

UNKNOWN = "unknown: the file does not say"


def file_facts(path: Path) -> dict[str, Any] | None:
    """Describe a file that treedot wrote, other than one of trees; None where it is something else."""
    if not path.is_file():
        return None
    if path.suffix.lower() in (".npy", ".npz"):
        return _matrix_facts(path)
    if path.suffix.lower() == ".parquet":
        return _parquet_facts(path)
    return _container_facts(path) if _is_container(path) else None


def forest_facts(forest: Forest) -> dict[str, Any]:
    """Describe trees."""
    sizes = forest.sizes
    depth = np.maximum.reduceat(forest.depth, forest.offsets[:-1])
    return {
        "file": "trees",
        "trees": len(forest),
        "distinct trees": int(np.unique(forest.root_subtree).size),
        "nodes": forest.n_nodes,
        "labels": len(forest.labels),
        "productions": forest.n_productions,
        "distinct subtrees": int(forest.distinct_subtrees.size),
        "nodes per tree": f"mean {sizes.mean():.1f}, median {np.median(sizes):g}, largest {sizes.max()}",
        "depth": f"mean {depth.mean():.1f}, largest {depth.max()}",
        "most children": int(forest.arity.max()),
        "columns": ", ".join(forest.columns) or "none",
    }


def _matrix_facts(path: Path) -> dict[str, Any]:
    description = read_description(path)
    matrix = summarize(path, description)
    sparse = matrix.nonzeros is not None
    what = "a matrix of kernels" if "kernel" in description else "sparse rows" if sparse else "dense vectors"
    facts = {
        "file": what if description else "a matrix",
        "shape": " × ".join(map(str, matrix.shape)),
        "type": matrix.dtype,
    }
    if matrix.nonzeros is not None:
        facts["non-zeros per row"] = f"mean {matrix.nonzeros / max(1, matrix.shape[0]):.1f}"
    return _with_description(facts, _flat(description, path) or {"made by": UNKNOWN})


def _parquet_facts(path: Path) -> dict[str, Any] | None:
    description = read_description(path)
    if not description:
        return None  # a table of trees
    vectors = summarize(path, description).shape[0]
    return _with_description({"file": "dense vectors", "vectors": vectors}, description)


def _with_description(facts: dict[str, Any], description: dict[str, Any]) -> dict[str, Any]:
    """Return facts, and what the description adds to them: it does not replace any."""
    return {**facts, **description, **facts}


def _is_container(path: Path) -> bool:
    """Tell whether a file starts as ``write_arrays`` begins one; no text and no compressed file does."""
    with path.open("rb") as file:
        length, first = int.from_bytes(file.read(8), "little"), file.read(1)
    return first == b"{" and 2 <= length <= MAX_HEADER


def _container_facts(path: Path) -> dict[str, Any]:
    description, arrays = read_arrays(path)
    match description.get("format"):
        case "treedot index":
            from treedot.search import TreeIndex

            index = TreeIndex.open(path)
            facts: dict[str, Any] = {"file": "an index of trees (TreeIndex.open)", "trees": len(index)}
            return {**facts, **_settings(index.vectorizer), "fingerprint": index.fingerprint}
        case "treedot fragment vectorizer":
            from treedot.learn import FragmentVectorizer

            vectorizer = FragmentVectorizer.load(path)
            facts = {"file": "a vectorizer (FragmentVectorizer.load)"}
            if vectorizer.n_features is None:
                facts["columns learned"] = len(vectorizer.dictionary_)
            return {**facts, **_settings(vectorizer), "fingerprint": vectorizer.fingerprint}
        case other:
            names = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
            return {"file": str(other or "named arrays"), "arrays": names or "none"}


def _settings(vectorizer: Any) -> dict[str, Any]:
    given = not isinstance(vectorizer.idf, bool)
    return {**vectorizer.spec.to_dict(), "idf": "given" if given else vectorizer.idf}


def _flat(description: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a description with the settings of its vectors beside the rest."""
    vectors = description.get("vectors", {})
    if not isinstance(vectors, dict):
        raise SourceError(f"the description of {path} is wrong: its vectors are {vectors!r:.40}")
    return {**{k: v for k, v in description.items() if k != "vectors"}, **vectors}


def printed(facts: dict[str, Any]) -> str:
    """Return facts as aligned lines."""
    width = max(map(len, facts))
    return "\n".join(
        f"{name:<{width}}  {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in facts.items()
    )
