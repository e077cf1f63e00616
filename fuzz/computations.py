"""Encoders and kernels as targets: trees of all shapes must give finite, consistent values.

A case is a line of settings in JSON, followed by trees in brackets, which may be damaged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from paper.rivals.label_selection import LabelSelectionKernel

from fuzz.mutations import mutate
from fuzz.target import Target, require
from fuzz.trees import large_trees, random_trees
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    FragmentVectorizer,
    PartialTreeKernel,
    SubsetTreeKernel,
    SubtreeKernel,
    Tree,
    TreedotError,
    dot_products,
    read_trees,
)
from treedot.kernels import BoundedTreeKernel, Kernel, RouteKernel, SmoothedPartialTreeKernel, WordVectors
from treedot.parameters import COMPOSITIONS, DAMPINGS, DTYPES, GAPS, STARTS

MAX_TREES = 64  # damage may turn one tree into thousands, and a Gram matrix has the square of them
DECAYS = [0, 1e-300, 0.01, 0.4, 0.8, 1]
KERNELS: dict[str, Callable[..., Kernel]] = {
    "subset": SubsetTreeKernel,
    "subtree": SubtreeKernel,
    "bounded": BoundedTreeKernel,
    "labels": LabelSelectionKernel,
    "partial": PartialTreeKernel,
    "smoothed": partial(SmoothedPartialTreeKernel, lambda a, b: 0.5 * (a[:1] == b[:1])),
    "route": RouteKernel,
}


@dataclass(frozen=True)
class ComputationTarget:
    """A computation on trees.

    Parameters
    ----------
    choose : callable
        Returns random settings, as JSON values.
    check : callable
        Computes with the settings, and raises if the results are wrong.
    max_nodes : int
        The size of the largest trees.
    trees : callable
        Returns random trees.
    """

    choose: Callable[[Random], dict[str, Any]]
    check: Callable[[Forest, dict[str, Any]], None]
    max_nodes: int
    trees: Callable[[Random, int], list[Tree]] = random_trees
    needs: tuple[str, ...] = ()

    def make(self, random: Random) -> bytes:
        """Return settings and trees; a third of the cases are damaged."""
        trees = "\n".join(map(str, self.trees(random, self.max_nodes))).encode()
        if random.random() < 1 / 3:
            trees = mutate(trees, [trees], random)
        return json.dumps(self.choose(random)).encode() + b"\n" + trees

    def run(self, data: bytes, folder: Path) -> None:
        """Compute with the trees that can be read."""
        settings, _, trees = data.partition(b"\n")
        path = folder / "case.mrg"
        path.write_bytes(trees)
        problems: list[TreedotError] = []
        forest = read_trees(path, on_bad=problems.append)
        self.check(forest[:MAX_TREES], json.loads(settings))


def _numbers(random: Random) -> dict[str, Any]:
    """Return the settings that all vectorizers share."""
    return {
        "decay": random.choice(DECAYS),
        "normalize": random.random() < 0.5,
        "dtype": random.choice(DTYPES),
        "random_state": random.choice([0, 2**63, -1]),
    }


def _dense(random: Random) -> dict[str, Any]:
    return {
        **_numbers(random),
        "composition": random.choice(COMPOSITIONS),
        "n_components": random.choice([512, 1024]),  # fewer take long with convolution
    }


def _extreme(random: Random) -> dict[str, Any]:
    return {**_dense(random), "decay": random.choice([0.8, 1]), "normalize": random.random() < 0.9}


def _extreme_rest(random: Random) -> dict[str, Any]:
    return {**_with_rest(random), "decay": random.choice([0.8, 1]), "normalize": random.random() < 0.9}


def _partial(random: Random) -> dict[str, Any]:
    return {
        **_numbers(random),
        "n_components": random.choice([256, 512]),
        "kernel": "partial",
        "mu": random.choice(DECAYS),
        "gaps": random.choice(GAPS),
        "max_length": random.choice([None, 1, 3]),
    }


def _hashed(random: Random) -> dict[str, Any]:
    return {
        **_numbers(random),
        "n_features": random.choice([32, 2**20, 2**30]),
        "budget": random.choice([0, 2, 4]),
        "damping": random.choice(DAMPINGS),
        "idf": random.random() < 0.3,
    }


def _named(random: Random) -> dict[str, Any]:
    return {**_hashed(random), "n_features": None, "budget": random.choice([0, 1, 3, None])}


def _with_rest(random: Random) -> dict[str, Any]:
    return {
        **_numbers(random),
        "n_features": random.choice([64, 2**20, None]),
        "budget": random.choice([0, 2, 4]),
        "rest": random.choice(["dense", "blocks"]),
        "rest_size": 256,
    }


def _check_dense(forest: Forest, settings: dict[str, Any]) -> None:
    vectorizer = DistributedTreeVectorizer(**settings)
    vectors = vectorizer.transform(forest)
    require(np.isfinite(vectors).all(), "a vector is not finite")
    alone = vectorizer.transform(forest[-1:])
    require(np.array_equal(alone[0], vectors[-1]), "the vector of a tree depends on the other trees")
    threaded = DistributedTreeVectorizer(**settings, n_jobs=2).transform(forest)
    require(np.array_equal(threaded, vectors), "vectors depend on the number of threads")
    if settings["normalize"]:  # otherwise the squares of large numbers may overflow
        _check_lengths(np.linalg.norm(vectors.astype(float), axis=1))


def _check_sparse(forest: Forest, settings: dict[str, Any]) -> None:
    vectorizer = FragmentVectorizer(**settings).fit(forest)
    rows = vectorizer.transform(forest)
    rows.check_format(full_check=True)
    require(rows.has_canonical_format, "the columns of a row are out of order")
    require(np.isfinite(rows.data).all(), "a row is not finite")
    _check_same(vectorizer.transform(forest[-1:]), rows[-1], "the row of a tree depends on the other trees")
    threaded = vectorizer.set_params(n_jobs=2).transform(forest)
    _check_same(threaded, rows, "rows depend on the number of threads")
    exact = settings["n_features"] is None and "rest" not in settings  # else collisions change the length
    if settings["normalize"] and exact:
        _check_lengths(np.sqrt(rows.astype(float).power(2).sum(axis=1)))


def _check_same(a: Any, b: Any, message: str) -> None:
    require(np.array_equal(a.indices, b.indices) and np.array_equal(a.data, b.data), message)


def _check_lengths(lengths: Any) -> None:
    good = (np.abs(np.asarray(lengths) - 1) < 1e-4) | (np.asarray(lengths) == 0)
    require(good.all(), "a vector is not normalised")


def _kernel(random: Random) -> dict[str, Any]:
    kind = random.choice(list(KERNELS))
    own: dict[str, dict[str, Any]] = {
        "subset": {"algorithm": random.choice(["auto", "shared", "TK", "FTK"])},
        "bounded": {"budget": random.choice([0, 1, 3, 6])},
        "labels": {"labels": ["A", "c"]},
        "route": {"start": random.choice(STARTS)},
        "smoothed": {"mu": random.choice(DECAYS), "threshold": random.choice([0, 0.4, 1])},
        "partial": {
            "mu": random.choice(DECAYS),
            "gaps": random.choice(GAPS),
            "max_length": random.choice([None, 1, 3]),
        },
    }
    common = {"kind": kind, "decay": random.choice(DECAYS), "normalize": random.random() < 0.5}
    return common | own.get(kind, {})


def _check_kernel(forest: Forest, settings: dict[str, Any]) -> None:
    kernel = KERNELS[settings.pop("kind")](**settings)
    gram = kernel.gram(forest)
    require(np.isfinite(gram).all() and (gram >= 0).all(), "a kernel is not finite, or negative")
    require(np.array_equal(gram, gram.T), "the Gram matrix is not symmetric")
    require(
        np.allclose(kernel.diagonal(forest), np.diagonal(gram), rtol=1e-9, atol=0), "the diagonal differs"
    )
    first, last = np.zeros(len(forest), int), np.arange(len(forest))
    require(np.allclose(kernel.pairs(forest, first, last), gram[0], rtol=1e-9, atol=1e-12), "pairs differ")
    require(np.isclose(kernel(forest[0], forest[-1]), gram[0, -1], rtol=1e-9, atol=1e-12), "one pair differs")
    if settings["normalize"]:
        require((gram <= 1 + 1e-9).all(), "a normalised kernel is larger than 1")


def _budget(random: Random) -> dict[str, Any]:
    return {"decay": random.choice([0.01, 0.4, 1]), "budget": random.choice([0, 1, 3])}


def _check_agreement(forest: Forest, settings: dict[str, Any]) -> None:
    """Compare the kernel of bounded fragments with the rows of these fragments."""
    exact = BoundedTreeKernel(**settings).gram(forest)
    vectorizer = FragmentVectorizer(
        **settings, n_features=None, damping="linear", normalize=False, dtype="float64"
    )
    products = dot_products(vectorizer.fit_transform(forest))
    require(np.allclose(products, exact, rtol=1e-9, atol=0), "rows and kernels differ")


def _smoothed(random: Random) -> dict[str, Any]:
    return {**_partial(random), "kernel": "smoothed"}


def _check_smoothed(forest: Forest, settings: dict[str, Any]) -> None:
    words = WordVectors({"dog": [3, 4], "cat": [4, 3]})
    _check_dense(forest, {**settings, "similarity": words})


COMPUTATIONS: dict[str, Target] = {
    "dense": ComputationTarget(_dense, _check_dense, 5000),
    "dense.large": ComputationTarget(_extreme, _check_dense, 3000, large_trees),
    "partial": ComputationTarget(_partial, _check_dense, 1000),
    "smoothed": ComputationTarget(_smoothed, _check_smoothed, 1000),
    "sparse": ComputationTarget(_hashed, _check_sparse, 5000),
    "dictionary": ComputationTarget(_named, _check_sparse, 100),
    "rest": ComputationTarget(_with_rest, _check_sparse, 500),
    "rest.large": ComputationTarget(_extreme_rest, _check_sparse, 3000, large_trees),
    "kernels": ComputationTarget(_kernel, _check_kernel, 1000),
    "agreement": ComputationTarget(_budget, _check_agreement, 300),
}
