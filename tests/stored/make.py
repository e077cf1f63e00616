"""Write the small set of stored files that later versions must be able to read.

    python tests/stored/make.py FOLDER

The set in ``0.1.0.dev0/`` was written so by that version: its forests are of version 1, and so is its
baseline. Its checkpoint and parts were written later, with digests. ``tests/test_stored.py`` reads the set.
"""

import contextlib
import json
import os
import shutil
import sys
from pathlib import Path
from unittest import mock

import treedot as td
from treedot.cli import main

MODIFIED = 1_700_000_000_000_000_000  # of ``trees.tsv``, which a checkpoint remembers
WORDS = ("cat", "dog", "bird", "fish", "crow")


class MidwayError(Exception):
    """A training that ends midway."""


def trees() -> tuple[list[str], list[str]]:
    """Return sixty trees and their classes."""
    texts, classes = [], []
    for k in range(60):
        a, b, c = (WORDS[(k * step + step) % 5] for step in (1, 2, 3))
        if k % 2:
            texts.append(f"(S (NP (DT the) (NN {a})) (VP (VB sees) (NP (NN {b}))))")
        else:
            texts.append(f"(SQ (VB does) (NP (NN {a})) (VP (VB eat) (NP (DT a) (NN {c}))))")
        classes.append(("statement", "question")[1 - k % 2])
    return texts, classes


CODE = """def {name}(rows, limit):
    found = {{}}
    for row in rows:
        if row.size > limit and row.name not in found:
            found[row.name] = row.size * 2 + len(row.parts)
    return sorted(found.items(), key=lambda item: -item[1])
"""


def write_inputs(folder: Path) -> None:
    """Write the inputs of the commands."""
    lines = ["tree\tkind", *map("\t".join, zip(*trees(), strict=True))]
    (folder / "trees.tsv").write_text("\n".join(lines) + "\n")
    os.utime(folder / "trees.tsv", ns=(MODIFIED, MODIFIED))
    (folder / "code").mkdir()
    for name in ("one", "two"):
        (folder / "code" / f"{name}.py").write_text(CODE.format(name=name))


def write_all() -> None:
    """Write the set into the working folder, and what is read from it into ``expected.json``."""
    write_inputs(Path())
    texts, classes = trees()
    forest = td.Forest.from_trees(map(td.Tree.parse, texts), {"kind": classes, "number": list(range(60))})
    for suffix in ("parquet", "arrow"):
        forest.save(f"trees.{suffix}")
    rows = td.FragmentVectorizer(n_features=2**10, idf=True).fit(forest)
    rows.save("rows.vectorizer")
    named = td.FragmentVectorizer(n_features=None, budget=2).fit(forest)
    dense = td.DistributedTreeVectorizer(n_components=256)
    td.save_vectors("rows.npz", rows.transform(forest[:8]), rows)
    td.save_vectors("dense.npy", dense.transform(forest[:8]), dense)
    td.save_vectors("dense.parquet", dense.transform(forest[:8]), dense)
    index = td.TreeIndex.build(forest, "trees.index", named)
    by_rows = td.TreeClassifier(decay=0.4, C=1).fit(forest, classes)
    by_rows.save("model")
    by_vectors = td.TreeClassifier(vectorizer=dense, decay=0.4, C=1).fit(forest, classes)
    by_vectors.save("dense_model")
    found, values = index.search(forest[:3], 4)
    expected = {
        "rows": td.dot_products(rows.transform(forest[:8])).tolist(),
        "dense": td.dot_products(dense.transform(forest[:8])).tolist(),
        "found": found.tolist(),
        "values": values.tolist(),
        "scores": by_rows.decision_function(forest[:8]).tolist(),
        "dense scores": by_vectors.decision_function(forest[:8]).tolist(),
        "trained": train("whole").weights.tolist(),
    }
    shutil.rmtree("whole")
    with contextlib.suppress(MidwayError):
        train("checkpoint", stop_after=2)
    Path("expected.json").write_text(json.dumps(expected))
    main(["dups", "code", "--write-baseline", "baseline.json"])
    main(["batch", "encode", "trees.tsv", "-o", "parts/", "--n-features", "1024"])


def train(checkpoint: str, stop_after: int | None = None) -> td.LinearModel:
    """Train on ``trees.tsv``, or end after some passes."""

    def stop(progress: object) -> None:
        if stop_after is not None and progress.passes >= stop_after:
            raise MidwayError

    vectorizer = td.FragmentVectorizer(n_features=2**8)
    settings = {"decay": 0.4, "C": 1.0, "max_passes": 5, "tol": 1e-12}
    with elsewhere():
        return td.train_files(
            "trees.tsv", "kind", checkpoint=checkpoint, vectorizer=vectorizer, progress=stop, **settings
        )


def elsewhere() -> contextlib.AbstractContextManager[object]:
    """Let absolute paths, which are stored, be the same wherever the set is written and read."""
    real, moved = os.path.abspath, {"trees.tsv": "/stored/trees.tsv"}
    return mock.patch("os.path.abspath", lambda path: moved.get(path) or real(path))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir()
    os.chdir(target)
    write_all()
