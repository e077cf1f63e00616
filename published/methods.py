"""Inputs of a support vector machine made from trees: labels, n-grams, vectors, rows, kernels."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from published.tasks import PAIR, Task, all_labels, bracket_tokens
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    FragmentVectorizer,
    SubsetTreeKernel,
    TreeClassifier,
    dot_products,
)
from treedot.kernels.tree_kernel import TreeKernel
from treedot.models.training.candidates import N_FEATURES

THREADS = -1
FRAGMENTS: dict[str, Any] = {  # one method, not a choice of several
    "decay": (0.1, 0.2, 0.4),
    "C": (1.0, 10.0, 100.0),
    "class_weight": None,
    "idf": None,
    "words": False,
    "labels": False,
}


class Result(NamedTuple):
    """The predictions of a method for the test trees of a task; ``seconds`` is processor time of training."""

    predicted: list[Any]
    seconds: float = 0.0
    decay: float | None = None
    C: float | None = None


class DenseKernel(TreeKernel):
    """Dot products of distributed trees; a Gram matrix is much smaller than 8192 numbers per tree."""

    def _raw_gram(self, x: Forest, y: Forest | None, threads: Any = None) -> np.ndarray:
        vectorizer = DistributedTreeVectorizer(decay=self.decay, n_jobs=THREADS)
        vectors = vectorizer.transform(x)
        return dot_products(vectors, None if y is None else vectorizer.transform(y))

    def _log_pair(self, x: Forest, y: Forest) -> float:
        return float(np.log(self._raw_gram(x, y)[0, 0]))


def majority(task: Task) -> Result:
    """Predict the most frequent class."""
    train, test = task.classes
    classes, counts = np.unique(train, return_counts=True)
    return Result([classes[counts.argmax()].item()] * test.size)


def overlap(task: Task) -> Result:
    """Use no trees: only the share of the hypothesis's words that are in the text; for pairs."""
    return _trained(task, vectorizer=FunctionTransformer(_no_columns), decay=None)


def bag_of_labels(task: Task) -> Result:
    """Count the labels of all nodes, ignoring the structure."""
    return _trained(task, vectorizer=_counted(all_labels, 1), decay=None)


def n_grams(task: Task) -> Result:
    """Count words, pairs and triples of neighbouring words."""
    return _trained(task, vectorizer=_counted(task.tokens, 3), decay=None)


def brackets(task: Task) -> Result:
    """Count the labels and brackets of the written tree, pairs and triples of neighbouring ones."""
    return _trained(task, vectorizer=_counted(bracket_tokens, 3), decay=None)


def default(task: Task) -> Result:
    """Use ``TreeClassifier`` as it comes; it chooses words, labels and idf."""
    return _trained(task, {})


def sparse(task: Task) -> Result:
    """Use bounded fragments only."""
    return _trained(task)


def sparse_idf(task: Task) -> Result:
    """Use sparse rows with inverse document frequencies, as n-grams have."""
    return _trained(task, vectorizer=FragmentVectorizer(n_features=N_FEATURES, idf=True, n_jobs=THREADS))


def dense(task: Task, **settings: Any) -> Result:
    """Use distributed trees."""
    return _trained(task, kernel=DenseKernel(), **settings)


def exact(task: Task, **settings: Any) -> Result:
    """Use the subset tree kernel."""
    return _trained(task, kernel=SubsetTreeKernel(normalize=True), **settings)


METHODS: dict[str, Callable[..., Result]] = {
    "majority": majority,
    "overlap": overlap,
    "labels": bag_of_labels,
    "n-grams": n_grams,
    "brackets": brackets,
    "default": default,
    "sparse": sparse,
    "sparse idf": sparse_idf,
    "dense": dense,
    "exact": exact,
}
KERNELS = {"dense", "exact"}  # their Gram matrices grow with the square of the number of trees


def applies(method: str, task: str) -> bool:
    """Return whether a method makes sense for the task of a name."""
    return method != "overlap" or task.startswith("RTE")


def _trained(task: Task, first: Mapping[str, Any] = FRAGMENTS, **settings: Any) -> Result:
    columns = {"tree_columns": list(PAIR), "number_columns": ["overlap"]} if task.is_paired else {}
    start = time.process_time()
    made = TreeClassifier(n_jobs=THREADS, calibrate=False, **{**first, **columns, **settings})
    model = made.fit(task.train, task.classes[0])
    seconds = time.process_time() - start
    return Result(model.predict(task.test).tolist(), seconds, model.decay_, model.C_)


def _counted(tokens: Callable[[Forest], list[list[str]]], longest: int) -> Any:
    """Return a vectorizer of tokens and their n-grams."""
    counter = TfidfVectorizer(
        tokenizer=_same, preprocessor=_same, token_pattern=None, lowercase=False, sublinear_tf=True,
        ngram_range=(1, longest), dtype=np.float32,
    )  # fmt: skip
    return make_pipeline(FunctionTransformer(tokens), counter)


def _same(tokens: list[str]) -> list[str]:
    return tokens


def _no_columns(forest: Forest) -> csr_matrix:
    return csr_matrix((len(forest), 0), dtype=np.float32)
