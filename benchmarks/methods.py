"""What trees become before a support vector machine: labels, n-grams, vectors, rows, kernels."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from benchmarks.gram_svm import choose_and_predict
from benchmarks.tasks import Task, all_labels, hypotheses
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    FragmentVectorizer,
    SubsetTreeKernel,
    TreeClassifier,
    dot_products,
)
from treedot.learn.tree_classifier import DECAYS, N_FEATURES

THREADS = -1


class Result(NamedTuple):
    """What one method predicts for the test trees of a task; seconds are of the processor, for training."""

    predicted: list[Any]
    settings: str
    seconds: float


class PairVectorizer(TransformerMixin, BaseEstimator):
    """Rows of pairs of trees: those of the text, those of the hypothesis, and their overlap, standardised."""

    def __init__(self, vectorizer: Any, decay: float | None = None) -> None:
        self.vectorizer = vectorizer
        self.decay = decay

    def fit(self, X: Forest, y: Any = None) -> Self:
        """Learn what the vectorizer learns from texts and from hypotheses, and the scale of the overlap."""
        own = {} if self.decay is None else {"decay": self.decay}
        self.parts_ = [clone(self.vectorizer).set_params(**own).fit(part) for part in (X, hypotheses(X))]
        self.scaler_ = StandardScaler().fit(_overlap(X))
        return self

    def transform(self, X: Forest) -> csr_matrix:
        """Return one row for each pair."""
        rows = [part.transform(trees) for part, trees in zip(self.parts_, (X, hypotheses(X)), strict=True)]
        return hstack([*map(csr_matrix, rows), csr_matrix(self.scaler_.transform(_overlap(X)))], format="csr")


def majority(task: Task) -> Result:
    """Predict the most frequent class."""
    train, test = task.classes
    classes, counts = np.unique(train, return_counts=True)
    return Result([classes[counts.argmax()].item()] * test.size, "", 0.0)


def overlap(task: Task) -> Result:
    """See no tree at all: the share of the hypothesis's words that the text has; only of pairs."""
    return _linear(task, FunctionTransformer(_no_columns), None)


def bag_of_labels(task: Task) -> Result:
    """Count the labels of all nodes, whatever is above and below what."""
    return _linear(task, _counted(all_labels, 1), None)


def n_grams(task: Task) -> Result:
    """Count words, pairs and triples of neighbouring words."""
    return _linear(task, _counted(task.tokens, 3), None)


def sparse(task: Task) -> Result:
    """Take the defaults of ``TreeClassifier``."""
    return _linear(task, FragmentVectorizer(n_features=N_FEATURES, n_jobs=THREADS), DECAYS)


def dense(task: Task) -> Result:
    """Take distributed trees."""

    def gram(decay: float, a: Forest, b: Forest | None) -> np.ndarray:
        vectorizer = DistributedTreeVectorizer(decay=decay, n_jobs=THREADS)
        return dot_products(*(vectorizer.transform(part) for part in (a, b) if part is not None))

    return _kernel(task, gram)


def exact(task: Task) -> Result:
    """Take the subset tree kernel."""
    return _kernel(task, lambda decay, a, b: SubsetTreeKernel(decay, normalize=True).gram(a, b))


METHODS: dict[str, Callable[[Task], Result]] = {
    "majority": majority,
    "overlap": overlap,
    "labels": bag_of_labels,
    "n-grams": n_grams,
    "dense": dense,
    "sparse": sparse,
    "exact": exact,
}


def applies(method: str, task: Task) -> bool:
    """Tell whether a method makes sense for a task."""
    return method != "overlap" or task.is_paired


def _linear(task: Task, vectorizer: Any, decays: Any) -> Result:
    if task.is_paired:
        vectorizer = PairVectorizer(vectorizer)
    start = time.process_time()
    y, _ = task.classes
    model = TreeClassifier(vectorizer=vectorizer, decay=decays, n_jobs=THREADS).fit(task.train, y)
    seconds = time.process_time() - start
    settings = f"C {model.C_:g}" if model.decay_ is None else f"λ {model.decay_:g}, C {model.C_:g}"
    return Result(model.predict(task.test).tolist(), settings, seconds)


def _kernel(task: Task, gram: Callable[[float, Forest, Forest | None], np.ndarray]) -> Result:
    """Train on kernels of all trees with all; of pairs, the sum of both and of products of overlaps."""
    scaler = StandardScaler().fit(_overlap(task.train)) if task.is_paired else None

    def both(a: Forest, b: Forest | None, decay: float) -> np.ndarray:
        found = gram(decay, a, b)
        if scaler is not None:
            found = found + gram(decay, hypotheses(a), None if b is None else hypotheses(b))
            left, right = (scaler.transform(_overlap(part)) for part in (a, a if b is None else b))
            found = found + left @ right.T
        return np.asarray(found, np.float32)

    start = time.process_time()
    y, _ = task.classes
    found = choose_and_predict(partial(both, task.train, None), partial(both, task.test, task.train), y)
    seconds = time.process_time() - start
    return Result(found.predicted.tolist(), f"λ {found.decay:g}, C {found.C:g}", seconds)


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


def _overlap(forest: Forest) -> np.ndarray:
    return np.array(forest.columns["overlap"], float)[:, None]
