"""Call every compiled function once, so that Numba compiles it: for ``treedot compile``."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import treedot as td
from treedot._runtime.jit import cache_folder, compile_all
from treedot._runtime.timing import timed
from treedot._storage.locks import lock
from treedot.clones.similarity import production_multisets, similarities
from treedot.kernels.tree_kernel import TreeKernel
from treedot.parameters import DTYPES
from treedot.readers.ranges import split_file
from treedot.trees import Forest
from treedot.vectors.gpu.operations import list_operations

TREES = [
    "(S (NP (DT a) (NN tree)) (VP grows))",
    "(S (NP (DT a) (NN bird)) (VP (V sings)))",
    "(S (NP (NN a)))",
]
CLASSES = [0, 1, 1]
KERNELS: dict[str, list[TreeKernel]] = {
    "partial trees": [
        td.PartialTreeKernel(),
        td.PartialTreeKernel(normalize=True, terminal_factor=2),
        td.kernels.SmoothedPartialTreeKernel(td.kernels.WordVectors({"a": [1.0], "b": [1.0]})),
        td.kernels.SmoothedPartialTreeKernel(lambda a, b: 0.5, normalize=True, terminal_factor=2),
    ],
    "subset trees": [
        *(td.SubsetTreeKernel(algorithm=algorithm) for algorithm in ("shared", "TK", "FTK")),
        td.SubsetTreeKernel(leaves=True),
        td.SubsetTreeKernel(normalize=True),
        td.kernels.BoundedTreeKernel(),
        td.kernels.BoundedTreeKernel(normalize=True),
    ],
    "subtrees and routes": [
        td.SubtreeKernel(),
        td.SubtreeKernel(normalize=True),
        td.SubtreeKernel(convention="kelp"),
        td.kernels.RouteKernel(),
    ],
}
MANY_LABELS = f"(S {' '.join(map(str, range(1000)))})"  # enough labels to make the reader's hash table grow


def kinds() -> dict[str, Callable[[], object]]:
    """Return, by name, functions that each call one kind of compiled code on trees of a few nodes.

    Reading comes first, because all others read trees; then the kinds that take longest. A kind that calls
    the code of another one comes after it, so that two processes rarely compile the same function.
    """
    smoothed = {"kernel": "smoothed", "similarity": {"a": [1.0]}}
    return {
        "reading": _read,
        "exact kernels, partial trees": partial(_kernels, "partial trees"),
        "dense vectors of similar words": partial(_dense, **smoothed),
        "sparse rows, dense rest": partial(_sparse, "dense"),
        "dense vectors, convolution": partial(_dense, composition="convolution"),
        "exact kernels, subset trees": partial(_kernels, "subset trees"),
        "dense vectors of partial trees": partial(_dense, kernel="partial"),
        "exact kernels, subtrees and routes": partial(_kernels, "subtrees and routes"),
        "dense vectors, mixed": partial(_dense, composition="mixed"),
        "near-duplicates": _duplicates,
        "near-duplicates, blocks": _blocks,
        "dense vectors, product": partial(_dense, composition="product"),
        "sparse rows, no rest": partial(_sparse, None),
        "sparse rows, blocks rest": partial(_sparse, "blocks"),
        "operations for a GPU": _operations,
        "dot products and nearest": _products,
        "training": _training,
        "indexes": _index,
        "metrics": _metrics,
        "clusters": _clusters,
        "explanations": _explanations,
    }


def compile_kind(name: str) -> float:
    """Compile one kind of code; return the seconds that it took. Several processes may do this at once."""
    folder = cache_folder()
    compile_all(contextlib.nullcontext if folder is None else partial(lock, folder / "compiled code"))
    return timed(kinds()[name])[1]


@functools.cache
def _forest() -> Forest:
    return td.read_trees(TREES)


def _read() -> None:
    forest = _forest()
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


def _kernels(name: str) -> None:
    forest = _forest()
    for kernel in KERNELS[name]:
        kernel(TREES[0], TREES[1])
        kernel(forest[0], forest[1])
        kernel.log(TREES[0], TREES[1])
        kernel.gram(forest)
        kernel.gram(forest, forest[:2])
        kernel.pairs(forest, [0, 1], [1, 2])
        kernel.diagonal(forest)
        kernel.log_norms(forest)


def _dense(**settings: Any) -> None:
    forest = _forest()
    for dtype in DTYPES:
        for normalize in (True, False):
            settings |= {"n_components": 1024, "dtype": dtype, "normalize": normalize}
            vectorizer = td.DistributedTreeVectorizer(**settings)
            vectorizer.transform(forest)
            vectorizer.transform_fragment(TREES[0])


def _operations() -> None:
    forest = _forest()
    row = np.arange(len(forest.labels), dtype=np.int32)
    list_operations(forest.arity, forest.offsets, forest.label, row, 0.6)


def _sparse(rest: str | None) -> None:
    forest = _forest()
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


def _products() -> None:
    forest = _forest()
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
    """Return rows with int64 column numbers, such as other libraries make."""
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


def _duplicates() -> None:
    forest = _forest()
    td.find_duplicates(forest, min_nodes=2, threshold=0.1)
    numbers = np.zeros(2, np.int64)
    td.similarity(TREES[0], TREES[1])
    td.search.align(TREES[0], TREES[1])
    similarities(production_multisets(forest), numbers, numbers)


def _blocks() -> None:
    settings = td.readers.CodeSettings("file", "blur", "blur", blurred=True, statements=True)
    td.clones.find_duplicate_blocks(td.readers.parse_code("a = b\nc = d\n", "python", settings=settings))


def _metrics() -> None:
    metric = td.models.TreeMetric(n_columns=1024, shrinkage=1).fit(TREES * 2, CLASSES * 2).metric_
    metric.transform(_forest())


def _clusters() -> None:
    forest = _forest()
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
