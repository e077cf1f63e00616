"""How well the dot products of vectors follow the exact kernel.

A *Gram matrix* holds the exact kernels of some trees, an *estimate* the dot products of their vectors.

Examples
--------
>>> from treedot import DistributedTreeVectorizer, SubsetTreeKernel, dot_products
>>> from treedot.vectors.fidelity import error_over_floor, spearman
>>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
>>> gram = SubsetTreeKernel(0.4).gram(trees)
>>> vectors = DistributedTreeVectorizer(n_components=4096, normalize=False).transform(trees)
>>> error_over_floor(gram, dot_products(vectors), 4096) < 2
True
>>> spearman(gram, dot_products(vectors)) > 0.8
True
"""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import IntArray, Matrix

__all__ = ["different_pairs", "error_over_floor", "floor", "norm_ratios", "projected", "spearman"]


def floor(gram: Matrix, size: float) -> Matrix:
    """Return the Johnson-Lindenstrauss floor of every pair of trees.

    A Gaussian random projection of the explicit fragment space into ``size`` dimensions estimates K12
    with standard deviation ``sqrt((K11 K22 + K12²) / size)``. It is a yardstick for dense vectors.

    Parameters
    ----------
    gram : array of shape (n, n)
        The exact kernels.
    size : float
        The dimension of the vectors.

    Returns
    -------
    array of shape (n, n)
        The standard deviations.

    Examples
    --------
    >>> print(floor(np.eye(2), 100)[0, 1])
    0.1
    """
    own = np.diagonal(gram)
    deviation: Matrix = np.sqrt((np.outer(own, own) + gram**2) / size)
    return deviation


def different_pairs(n: int) -> tuple[IntArray, IntArray]:
    """Return the indices of all pairs of different trees, each pair once.

    Parameters
    ----------
    n : int
        The number of trees.

    Returns
    -------
    tuple of array of int
        The first and the second tree of every pair, each of shape (n (n - 1) / 2,).

    Examples
    --------
    >>> different_pairs(3)
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    return np.triu_indices(n, 1)


def error_over_floor(gram: Matrix, estimate: Matrix, size: float) -> float:
    """Return ``sqrt(mean((error / floor)²))`` over pairs of different trees: 1 is as good as a projection.

    Parameters
    ----------
    gram : array of shape (n, n)
        The exact kernels.
    estimate : array of shape (n, n)
        The dot products of vectors.
    size : float
        The dimension of the vectors.

    Returns
    -------
    float
        The root mean square of error / floor.

    Examples
    --------
    >>> print(round(error_over_floor(np.eye(2), np.full((2, 2), 0.3), 100), 6))
    3.0
    """
    pairs = different_pairs(len(gram))
    ratio = ((estimate - gram) / floor(gram, size))[pairs]
    return float(np.sqrt(np.mean(ratio**2)))


def spearman(gram: Matrix, estimate: Matrix) -> float:
    """Return Spearman's correlation over pairs of different trees.

    Exact values are rounded to 1e-9 first, so that values that are equal tie.

    Parameters
    ----------
    gram : array of shape (n, n)
        The exact kernels.
    estimate : array of shape (n, n)
        The dot products of vectors.

    Returns
    -------
    float
        The correlation, from -1 to 1.
    """
    from scipy.stats import spearmanr

    pairs = different_pairs(len(gram))
    return float(spearmanr(np.round(gram[pairs], 9), estimate[pairs]).statistic)


def projected(gram: Matrix, size: int, seed: int) -> Matrix:
    """Return the kernels that a Gaussian random projection into ``size`` dimensions would give.

    With K = L Lᵀ and a matrix G of independent standard normals, L G Gᵀ Lᵀ / size has exactly the
    distribution of the products of projected fragment vectors; the fragments are not needed.

    Parameters
    ----------
    gram : array of shape (n, n)
        The exact kernels.
    size : int
        The dimension.
    seed : int
        The seed of the random numbers.

    Returns
    -------
    array of shape (n, n)
        The estimates.
    """
    own = np.sqrt(np.diagonal(gram))
    own = np.where(own > 0, own, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(own, own))
    root = vectors * np.sqrt(np.maximum(values, 0))
    rows = root @ np.random.default_rng(seed).standard_normal((len(gram), size)) * own[:, None]
    product: Matrix = rows @ rows.T / size
    return product


def norm_ratios(gram: Matrix, estimate: Matrix) -> Matrix:
    """Return ‖T̃‖² / K11 of every tree: about 1 where vectors keep their length.

    Parameters
    ----------
    gram : array of shape (n, n)
        The exact kernels.
    estimate : array of shape (n, n)
        The dot products of vectors.

    Returns
    -------
    array of shape (n,)
        The ratios.
    """
    ratios: Matrix = np.diagonal(estimate) / np.diagonal(gram)
    return ratios
