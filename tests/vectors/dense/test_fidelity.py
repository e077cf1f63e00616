"""Statistical claims: how far dot products are from the exact kernel, with bounds that can fail."""

from functools import cache

import numpy as np
import pytest

from strategies import corpus, random_forest
from treedot import SubsetTreeKernel, read_trees
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.dense.compositions import ALGEBRAS
from treedot.vectors.fidelity import error_over_floor, norm_ratios

pytestmark = pytest.mark.large

SIZE = 8192
BOUNDS = {0.2: 1.2, 0.4: 1.2, 0.6: 1.5}


def estimate(forest, decay, seed=0, size=SIZE, composition="mixed"):
    vectors = (
        DenseEncoder(DenseSpec(size, decay, composition, seed, normalize=False))
        .encode(forest, n_jobs=-1)
        .astype(float)
    )
    return vectors @ vectors.T


@cache
def all_trees(name):
    return read_trees(corpus(name))


@cache
def squared_norms(name, decay):
    return SubsetTreeKernel(decay=decay).diagonal(all_trees(name))


def questions():
    forest = all_trees("qc_train.tsv.gz")
    return forest[np.random.default_rng(0).choice(len(forest), 100, replace=False)]


@pytest.mark.parametrize("decay", BOUNDS)
@pytest.mark.parametrize("source", ["generated", pytest.param("questions", marks=pytest.mark.corpus)])
def test_the_default_algebra_is_near_the_floor(source, decay):
    forest = random_forest(0, 100) if source == "generated" else questions()
    exact = SubsetTreeKernel(decay=decay).gram(forest)
    squares = [error_over_floor(exact, estimate(forest, decay, seed), SIZE) ** 2 for seed in range(5)]
    assert np.sqrt(np.mean(squares)) <= BOUNDS[decay]


@pytest.mark.parametrize("name", ALGEBRAS)
@pytest.mark.parametrize("decay", [0.2, 0.6])
def test_estimates_are_unbiased(name, decay):
    """The standard error is taken over seeds: pairs of one seed share trees and shuffles."""
    forest = random_forest(1, 30)
    exact = SubsetTreeKernel(decay=decay).gram(forest)
    pairs = np.triu_indices(30, 1)
    scale = np.sqrt(np.outer(np.diagonal(exact), np.diagonal(exact)))
    means = [
        ((estimate(forest, decay, seed, 1024, name) - exact) / scale)[pairs].mean() for seed in range(40)
    ]
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    assert abs(np.mean(means)) <= 3 * error
    # A bias of one hundredth would show. Convolution loses its norms on some trees at so few dimensions.
    assert error <= (0.006 if (name, decay) == ("convolution", 0.6) else 0.003)


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["qc_train.tsv.gz", "ptb_sample.tsv.gz"])
@pytest.mark.parametrize("decay", [0.2, 0.4])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_norms_stay_near_the_truth_on_every_tree(name, decay, seed):
    forest, truth = all_trees(name), squared_norms(name, decay)
    squares = np.empty(len(forest))
    encoder = DenseEncoder(DenseSpec(SIZE, decay, seed=seed, normalize=False))
    for start in range(0, len(forest), 1000):
        vectors = encoder.encode(forest[start : start + 1000], n_jobs=-1)
        squares[start : start + 1000] = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    ratio = squares / truth
    assert ratio.min() > 0.5
    assert ratio.max() < 2


def test_norms_stay_near_the_truth_on_generated_trees():
    forest = random_forest(2, 200, nodes=70)
    exact = SubsetTreeKernel(decay=0.4).gram(forest)
    ratios = norm_ratios(exact, estimate(forest, 0.4))
    assert ratios.min() > 0.5
    assert ratios.max() < 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGEBRAS)
def test_more_dimensions_mean_smaller_errors(name):
    forest = random_forest(3, 40)
    exact = SubsetTreeKernel(decay=0.3).gram(forest)
    pairs = np.triu_indices(40, 1)
    errors = [
        np.sqrt(
            np.mean([((estimate(forest, 0.3, s, size, name) - exact)[pairs] ** 2).mean() for s in range(4)])
        )
        for size in (256, 1024, 4096)
    ]
    assert 1.5 < errors[0] / errors[1] < 2.7  # the error falls with the root of the dimension
    assert 1.5 < errors[1] / errors[2] < 2.7
