"""Cluster trees of similar structure, such as pages of one template, and detect outliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, BoolArray, FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot.errors import ParameterError
from treedot.parameters import checked_integer, checked_share
from treedot.readers import read_trees
from treedot.search.neighbours import nearest
from treedot.trees import Forest
from treedot.vectors.inverted_index import InvertedIndex, PostingLists, add_products

if TYPE_CHECKING:
    from treedot.vectors.fragment_vectorizer import FragmentVectorizer

MIN_SIZE = 5
THRESHOLD = 0.5
FARTHEST = float(np.sqrt(2))  # the distance of unit rows with nothing in common
CLOSEST = float(np.sqrt(0.1))  # the distance at a cosine of 0.95


class Clusters(NamedTuple):
    """Clusters of trees; the result of ``cluster_trees``.

    Attributes
    ----------
    labels : array of shape (trees,)
        The cluster of each tree, or -1 if it is in none. Cluster 0 is the largest.
    sizes : array of shape (clusters,)
        The number of trees in each cluster.
    medoids : array of shape (clusters,)
        The tree of each cluster with the largest mean cosine to the others.
    spreads : array of shape (clusters,)
        The mean of 1 - cosine between the medoid and the trees of its cluster; 0 if all are equal.
    """

    labels: IntArray
    sizes: IntArray
    medoids: IntArray
    spreads: FloatArray


def cluster_trees(
    trees: Any,
    *,
    min_size: int = MIN_SIZE,
    threshold: float = THRESHOLD,
    vectorizer: FragmentVectorizer | None = None,
    n_jobs: int | None = None,
) -> Clusters:
    """Cluster trees by the density of their rows, with scikit-learn's HDBSCAN.

    The distance of two trees is √(2 - 2 cos), the distance of their rows of fragments at length 1. Cosines
    below ``threshold`` count as 0, and cosines above 0.95 as 0.95, so that copies of one page do not split
    the cluster of its template. All distances are exact, but only those of one tree are held at a time:
    memory grows with the number of trees, and time with its square. Of equal trees, at most ``min_size``
    count, since more would change nothing.

    Parameters
    ----------
    trees : source of trees
        The trees, as ``read_trees`` takes them.
    min_size : int, default=5
        The smallest size of a cluster, at least 2.
    threshold : float, default=0.5
        The lowest cosine of similar trees; below it, trees count as unrelated.
    vectorizer : FragmentVectorizer, default=None
        Turns trees into rows; by default ``FragmentVectorizer(damping="sqrt")``.
    n_jobs : int, default=None
        The number of threads; -1 uses all cores. The clusters do not depend on it.

    Returns
    -------
    Clusters
        The cluster of every tree; the size, medoid and spread of every cluster.

    Examples
    --------
    >>> lists = [f"(ul {'(li a) ' * n})" for n in range(4, 10)]
    >>> tables = [f"(table {'(tr (td b) (td c)) ' * n})" for n in range(4, 10)]
    >>> clusters = cluster_trees([*lists, *tables, "(p (em d))"], min_size=3)
    >>> clusters.labels
    array([ 0,  0,  0,  0,  0,  0,  1,  1,  1,  1,  1,  1, -1])
    >>> clusters.sizes
    array([6, 6])
    """
    from treedot.vectors.fragment_vectorizer import FragmentVectorizer

    min_size = checked_integer("min_size", min_size, at_least=2)
    threshold = checked_share("threshold", threshold)
    vectorizer = FragmentVectorizer(damping="sqrt", n_jobs=n_jobs) if vectorizer is None else vectorizer
    if not vectorizer.normalize:
        raise ParameterError("clustering needs cosines: use a vectorizer with normalize=True")
    forest = read_trees(trees)
    kinds, kind = _distinct(forest)
    if len(forest) < min_size:
        labels = np.full(len(forest), -1)
    else:
        copies = np.minimum(np.bincount(kind), min_size)
        points = np.repeat(np.arange(kinds.size), copies)
        rows = _with_outsiders(vectorizer.transform(forest[kinds])[points], min_size)
        found = _hdbscan(_reachability(rows, threshold, min_size, n_jobs), min_size)
        found[found == found[0]] = -1  # trees that are clustered with the outsiders
        labels = found[min_size + np.cumsum(copies) - copies][kind]
    return _described(forest, labels, vectorizer)


def _distinct(forest: Forest) -> tuple[IntArray, IntArray]:
    """Return the first tree of each kind, and the kind of each tree; equal trees are of one kind."""
    _, first, kind = np.unique(forest.root_subtree, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return first[order], rank[kind]


def _with_outsiders(rows: Any, count: int) -> Any:
    """Prepend ``count`` equal rows that have nothing in common with the others."""
    from scipy.sparse import csr_matrix

    indices = np.concatenate([np.full(count, rows.shape[1]), rows.indices])
    indptr = np.concatenate([np.arange(count), rows.indptr + count])
    data = np.concatenate([np.ones(count, rows.dtype), rows.data])
    return csr_matrix((data, indices, indptr), shape=(count + rows.shape[0], rows.shape[1] + 1))


def _reachability(rows: Any, threshold: float, min_size: int, n_jobs: int | None) -> Any:
    """Return the minimum spanning tree of the mutual reachability distances as a symmetric sparse matrix.

    This distance is the largest of three: the distance of the two rows, and the distance of each to its
    ``min_size``-th neighbour, counting itself (Campello, Moulavi & Sander 2013).
    """
    from scipy.sparse import csr_matrix

    n = rows.shape[0]
    _, cosines = nearest(rows, k=min_size - 1, n_jobs=n_jobs)
    core = np.array([_distance(cosine, threshold) for cosine in cosines[:, -1]])
    index = InvertedIndex(rows)
    parent, length = np.zeros(n, np.int64), np.full(n, np.inf)
    csr = index.rows.indptr, index.rows.indices, index.rows.data
    _spanning_tree(*csr, index.lists, core, threshold, np.ones(n, np.bool_), np.empty(n), parent, length)
    parent[length == FARTHEST] = 0
    edges = csr_matrix((length[1:], (np.arange(1, n), parent[1:])), shape=(n, n))
    loops = csr_matrix((np.full(n, CLOSEST), (np.arange(n), np.arange(n))), shape=(n, n))
    return edges + edges.T + loops


@njit_inside
def _distance(cosine: float, threshold: float) -> float:
    if cosine < threshold:
        return FARTHEST
    return max(CLOSEST, np.sqrt(max(0.0, 2 - 2 * cosine)))


@njit_borrowing
def _spanning_tree(
    indptr: IntArray, indices: IntArray, data: Array, lists: PostingLists, core: FloatArray, threshold: float,
    waits: BoolArray, products: FloatArray, parent: IntArray, length: FloatArray,
) -> None:  # fmt: skip
    """Set the parent of every row in the tree, and their distance, by Prim's algorithm from row 0.

    The distances of one row to all others are computed when it joins, then discarded.
    """
    n = core.size
    row = 0
    for _ in range(n):
        waits[row] = False
        products[:] = 0
        here = slice(indptr[row], indptr[row + 1])
        add_products(indices[here], data[here], lists, products)
        closest = -1
        for other in range(n):
            if not waits[other]:
                continue
            distance = max(core[row], core[other], _distance(products[other], threshold))
            if distance < length[other]:
                parent[other], length[other] = row, distance
            if closest < 0 or length[other] < length[closest]:
                closest = other
        row = closest


def _hdbscan(reachability: Any, min_size: int) -> IntArray:
    from sklearn.cluster import HDBSCAN

    # Mutual reachability is already computed: with min_samples=1, HDBSCAN keeps the distances.
    made = HDBSCAN(min_cluster_size=min_size, min_samples=1, metric="precomputed", copy=False)
    return made.fit(reachability).labels_.astype(np.int64)


def _described(forest: Forest, labels: IntArray, vectorizer: FragmentVectorizer) -> Clusters:
    """Return clusters by descending size, with the medoid and the spread of each."""
    names, first, sizes = np.unique(labels[labels >= 0], return_index=True, return_counts=True)
    names = names[np.lexsort((first, -sizes))]
    number = np.full(labels.max(initial=-1) + 2, -1)  # the last entry is for -1
    number[names] = np.arange(names.size)
    labels = number[labels]
    medoids, spreads = np.zeros(names.size, np.int64), np.zeros(names.size)
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(names.size + 1))
    for cluster in range(names.size):
        members = order[bounds[cluster] : bounds[cluster + 1]]
        likeness = _likeness(vectorizer.transform(forest[members]))
        best = int(np.argmax(likeness.round(6)))
        medoids[cluster] = members[best]
        spreads[cluster] = max(0.0, 1 - likeness[best])
    return Clusters(labels, np.diff(bounds), medoids, spreads)


def _likeness(rows: Any) -> FloatArray:
    """Return the mean dot product of each row with all rows: its product with their sum."""
    from scipy.sparse import csr_matrix

    used, place = np.unique(rows.indices, return_inverse=True)
    few = csr_matrix((rows.data.astype(np.float64), place, rows.indptr), shape=(rows.shape[0], used.size))
    return few @ np.asarray(few.sum(axis=0)).ravel() / rows.shape[0]
