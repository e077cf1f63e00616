"""Everything that is compiled on first use, used once: for ``treedot compile``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import treedot as td
from treedot.batch.pair_index import put_sorted
from treedot.parameters import COMPOSITIONS, DTYPES, RESTS
from treedot.readers.ranges import split_file
from treedot.trees import Forest
from treedot.vectors.gpu.operations import list_operations

TREES = [
    "(S (NP (DT a) (NN tree)) (VP grows))",
    "(S (NP (DT a) (NN bird)) (VP (V sings)))",
    "(S (NP (NN a)))",
]
CLASSES = [0, 1, 1]
MANY_LABELS = f"(S {' '.join(map(str, range(1000)))})"  # more than the first table of a reader holds


def kinds() -> dict[str, Callable[[], object]]:
    """Return for every kind of call a function that makes such calls, on trees of a few nodes."""
    forest = td.read_trees(TREES)
    return {
        "reading": partial(_read, forest),
        "exact kernels": partial(_kernels, forest),
        **{f"dense vectors, {name}": partial(_dense, forest, composition=name) for name in COMPOSITIONS},
        "operations for a GPU": partial(_operations, forest),
        "dense vectors of partial trees": partial(_dense, forest, kernel="partial"),
        "dense vectors of similar words": partial(_dense, forest, kernel="smoothed", similarity={"a": [1.0]}),
        **{f"sparse rows, {rest or 'no'} rest": partial(_sparse, forest, rest) for rest in (None, *RESTS)},
        "dot products and nearest": partial(_products, forest),
        "indexes": _index,
        "near-duplicates": partial(_duplicates, forest),
        "clusters": partial(_clusters, forest),
        "explanations": _explanations,
        "training": _training,
    }


def _read(forest: Forest) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trees.mrg")
        path.write_text("\n".join(TREES), encoding="utf-8")
        td.read_trees(path)
        td.read_trees(path, n_jobs=2)
        td.read_trees([MANY_LABELS] * 2)
        split_file(str(path), None, 1)
        Path(folder, "code.py").write_text("def f(): pass", encoding="utf-8")
        td.read_trees(Path(folder, "code.py"))
        Path(folder, "values.json").write_text("[1]", encoding="utf-8")
        td.read_trees(Path(folder, "values.json"))
    for name in ("depth", "sizes", "root_subtree", "distinct_subtrees", "n_productions", "arity"):
        getattr(forest, name)
    td.kernels.count_fragments(forest[0])
    forest[1:]
    forest[[0, 2]]


def _kernels(forest: Forest) -> None:
    for kernel in (
        *(td.SubsetTreeKernel(algorithm=algorithm) for algorithm in ("shared", "TK", "FTK")),
        td.SubsetTreeKernel(leaves=True),
        td.SubsetTreeKernel(normalize=True),
        td.SubtreeKernel(),
        td.SubtreeKernel(normalize=True),
        td.SubtreeKernel(convention="kelp"),
        td.kernels.BoundedTreeKernel(),
        td.kernels.BoundedTreeKernel(normalize=True),
        td.PartialTreeKernel(),
        td.PartialTreeKernel(normalize=True, terminal_factor=2),
        td.kernels.SmoothedPartialTreeKernel(td.kernels.WordVectors({"a": [1.0], "b": [1.0]})),
        td.kernels.SmoothedPartialTreeKernel(lambda a, b: 0.5, normalize=True, terminal_factor=2),
        td.kernels.RouteKernel(),
    ):
        kernel(TREES[0], TREES[1])
        kernel(forest[0], forest[1])
        kernel.log(TREES[0], TREES[1])
        kernel.gram(forest)
        kernel.gram(forest, forest[:2])
        kernel.pairs(forest, [0, 1], [1, 2])
        kernel.diagonal(forest)
        kernel.log_norms(forest)


def _dense(forest: Forest, **settings: Any) -> None:
    for dtype in DTYPES:
        for normalize in (True, False):
            settings |= {"n_components": 1024, "dtype": dtype, "normalize": normalize}
            vectorizer = td.DistributedTreeVectorizer(**settings)
            vectorizer.transform(forest)
            vectorizer.transform_fragment(TREES[0])


def _operations(forest: Forest) -> None:
    row = np.arange(len(forest.labels), dtype=np.int32)
    list_operations(forest.arity, forest.offsets, forest.label, row, 0.6)


def _sparse(forest: Forest, rest: str | None) -> None:
    for dtype in DTYPES:
        settings: list[dict[str, Any]] = [{}, {"normalize": False}, {"n_features": None}]
        if rest is None:
            settings += [
                {"idf": True},
                {"n_features": None, "idf": True},
                {"n_features": None, "budget": None},
            ]
        for setting in settings:
            vectorizer = td.FragmentVectorizer(rest=rest, dtype=dtype, **setting).fit(forest)
            vectorizer.transform(forest)
            vectorizer.transform_fragment("(NP (DT a) NN)")
        if rest is None:
            vectorizer.column_fragments(forest)
            td.FragmentVectorizer(n_features=None, budget=1).fit(forest).get_feature_names_out()


def _products(forest: Forest) -> None:
    for dtype in DTYPES:
        for vectors in (
            td.FragmentVectorizer(dtype=dtype).transform(forest),
            td.FragmentVectorizer(rest="dense", dtype=dtype).transform(forest),
            td.DistributedTreeVectorizer(n_components=1024, dtype=dtype).transform(forest),
            _wide(forest, dtype),
        ):
            td.dot_products(vectors)
            td.dot_products(vectors, vectors[:2])
            td.nearest(vectors, k=1)
            td.nearest(vectors, vectors[:2], k=1)
            td.nearest(vectors[:1], vectors, k=1)
            td.nearest(vectors, k=1, rerank=td.SubsetTreeKernel(normalize=True), trees=forest)
            td.models.DualLinearSVC().fit(vectors, CLASSES).predict(vectors)


def _wide(forest: Forest, dtype: str) -> Any:
    """Return rows as other libraries make them, with so many columns that these are numbered in int64."""
    from scipy.sparse import csr_matrix

    rows = td.FragmentVectorizer(dtype=dtype).transform(forest)
    return csr_matrix((rows.data, rows.indices.astype(np.int64), rows.indptr), (len(forest), 2**40))


def _index() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for dtype in DTYPES:
            path = Path(folder, f"{dtype}.index")
            td.TreeIndex.build(TREES, path, td.FragmentVectorizer(dtype=dtype))
            index = td.TreeIndex.open(path)
            for rerank in (None, td.SubsetTreeKernel(normalize=True)):
                index.search(TREES, k=2, rerank=rerank)
            index.forest([0])
            index.add(TREES)


def _duplicates(forest: Forest) -> None:
    td.find_duplicates(forest, min_nodes=2, threshold=0.1)
    numbers, ends = np.zeros(2, np.int64), np.array([0, 2])
    put_sorted(numbers, ends, ends[:1], numbers.copy())
    td.similarity(TREES[0], TREES[1])
    td.search.align(TREES[0], TREES[1])


def _clusters(forest: Forest) -> None:
    for dtype in DTYPES:
        for width in (2**20, 2**30):
            vectorizer = td.FragmentVectorizer(n_features=width, dtype=dtype)
            td.cluster_trees(forest, min_size=2, vectorizer=vectorizer)


def _training() -> None:
    ways: list[dict[str, Any]] = [
        *({"vectorizer": td.FragmentVectorizer(n_features=2**30, dtype=dtype)} for dtype in DTYPES),
        {"kernel": td.SubsetTreeKernel(normalize=True)},
    ]
    pairs = {"a": TREES * 2, "b": TREES[::-1] * 2, "size": [1, 2, 3] * 2}
    for way in ways:
        for classes in (CLASSES, [0, 1, 2]):
            td.TreeClassifier(**way, C=(1, 10), cv=2).fit(TREES * 2, classes * 2).predict(TREES)
    columns: dict[str, Any] = {"tree_columns": ["a", "b"], "number_columns": ["size"]}
    td.TreeClassifier(**columns, C=(1, 10), cv=2).fit(pairs, CLASSES * 2).predict(pairs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trees.tsv")
        lines = [f"{k}\t{tree}" for k, tree in zip(CLASSES, TREES, strict=True)]
        path.write_text("\n".join(["class\ttree", *lines]), encoding="utf-8")
        td.train_files(path, "class", checkpoint=Path(folder, "training"), decay=0.4, C=1)


def _explanations() -> None:
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(td.FragmentVectorizer(), td.models.DualLinearSVC()).fit(TREES, CLASSES)
    td.explain(model, TREES[0])
    td.explain_pair(TREES[0], TREES[1])
