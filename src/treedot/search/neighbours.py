"""Find the nearest neighbours of many vectors, tile by tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from treedot._runtime.jit import njit_borrowing
from treedot._runtime.threads import thread_map
from treedot.errors import DeviceError, ParameterError
from treedot.parameters import checked_integer, n_threads
from treedot.readers import read_trees
from treedot.search import top_k
from treedot.search.rerank import checked_candidates, ranked_again
from treedot.search.top_k import keep_best
from treedot.trees import Forest
from treedot.vectors.inverted_index import InvertedIndex, PostingLists, add_products, real_rows
from treedot.vectors.products import dense_columns, dot_products
from treedot.vectors.vectors import comparable

TILE = 2048  # rows: large enough for fast matrix multiplication, small compared with the vectors
LINES = 16  # sparse rows per task

NOT_FINITE = "a dot product is not finite: there is nan or inf among the vectors"


def nearest(
    X: Any,
    Y: Any = None,
    k: int = 10,
    *,
    rerank: Any = None,
    trees: Any = None,
    candidates: int = 100,
    expand: int = 0,
    n_jobs: int | None = None,
    device: str = "cpu",
    elements: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return for every row of X the ``k`` rows of Y with the largest dot products, best first.

    Parameters
    ----------
    X : array, sparse matrix or Vectors, of shape (n_X, n_components)
        The queries: vectors of trees. Memory maps are read tile by tile.
    Y : array, sparse matrix or Vectors, of shape (n_Y, n_components), default=None
        The vectors to search. Without Y, the rows of X are compared with each other, and a row is not its own
        neighbour. Two ``Vectors``, as ``load_vectors`` reads them, must have the same settings; plain
        matrices do not store settings, so check yourself that they match. Of two sparse matrices, the one
        with fewer non-zeros becomes an inverted index, and one pass over the other finds the neighbours: a
        few queries need hardly any memory, however many rows there are.
    k : int, default=10
        The number of neighbours.
    rerank : kernel, default=None
        An exact kernel, such as ``SubsetTreeKernel(normalize=True)``. The candidates with the largest dot
        products are ranked again by this kernel, and the returned values are kernels.
    trees : source of trees, or pair of sources, default=None
        With ``rerank``, the trees of X; or, if Y is given, a pair (trees of X, trees of Y).
    candidates : int, default=100
        With ``rerank``, the number of candidates to rank again.
    expand : int, default=0
        Add to each query, a dense vector, this number of its nearest rows, and scale the sum to length 1;
        then search again. It helps to find all of a large family; a query with fewer relatives than
        ``expand`` is drawn away from them.
    n_jobs : int, default=None
        The number of threads for sparse rows; -1 uses all cores. The results do not depend on it. Dense
        vectors are compared by BLAS, which has its own threads.
    device : str, default="cpu"
        "cpu", or "cuda" to compare dense vectors on a GPU, which needs one and a half times their memory. It
        finds twice as many neighbours in half precision, then picks the best of them in float32.
    elements : int, default=None
        With a GPU, find ten times as many candidates by only the first ``elements`` elements of the vectors.
        This takes a fraction of the time, but misses some neighbours.

    Returns
    -------
    rows : array of int of shape (n_X, k)
        The row numbers of the neighbours, best first; fewer columns if there are fewer than k other rows.
    values : array of shape (n_X, k)
        The dot products: float64 for sparse rows; the type of the vectors for dense vectors and for rows with
        a dense rest; float64 for kernels. Equal values are ordered by row number.

    Examples
    --------
    >>> from treedot import DistributedTreeVectorizer, nearest
    >>> trees = ["(S (A b) (C d))", "(T (X y) z)", "(S (A b) (C e))", "(T (X y) w)"]
    >>> rows = DistributedTreeVectorizer().transform(trees)
    >>> nearest(rows, k=1)[0].ravel()
    array([2, 3, 0, 1])

    Exact values of the neighbours:

    >>> from treedot import SubsetTreeKernel
    >>> nearest(rows, k=1, rerank=SubsetTreeKernel(), trees=trees)[1].ravel()
    array([2.4, 1. , 2.4, 1. ])
    """
    k = checked_integer("k", k, at_least=1)
    if (rerank is None) != (trees is None):
        raise ParameterError(
            "rerank and trees go together: give an exact kernel and the trees of the rows, or neither"
        )
    if elements is not None:
        elements = checked_integer("elements", elements, at_least=1)
        if device == "cpu":
            raise ParameterError(
                "elements needs device='cuda': remove it, since the CPU compares whole vectors"
            )
    X, Y = comparable(X, Y)
    if sparse := _is_sparse(X):
        others = X if Y is None else Y
    else:
        X = np.asanyarray(X)
        others = X if Y is None else np.asanyarray(Y)
    if _is_sparse(others) != sparse:
        raise ParameterError("cannot compare sparse rows with dense ones: make both sparse or both dense")
    if len(X.shape) != 2 or len(others.shape) != 2 or X.shape[1] != others.shape[1]:
        raise ParameterError(f"cannot compare rows of shapes {X.shape} and {others.shape}")
    most = others.shape[0] - (Y is None)
    if most < 1:
        raise ParameterError("there are no rows to compare with")
    k = min(k, most)
    wanted = min(checked_candidates(rerank, candidates, k), most)
    if expand := min(checked_integer("expand", expand, at_least=0), most):
        if sparse:
            raise ParameterError("expand needs dense vectors, such as those of a TreeMetric")
        near, _ = nearest(X, Y, expand, n_jobs=n_jobs, device=device, elements=elements)
        X = _expanded(X, others, near)
    forests = None if rerank is None else _forests(trees, X.shape[0], None if Y is None else others.shape[0])
    if sparse:
        X, others = real_rows(X), real_rows(others)
    is_apart = Y is not None or expand > 0
    other = others if is_apart else None
    wanted += Y is None and is_apart  # each row finds itself, too
    if device != "cpu":
        if sparse:
            raise DeviceError(f"sparse rows need device='cpu', not {device!r}")
        from treedot.vectors.gpu.products import nearest_on_gpu

        rows, values = nearest_on_gpu(X, other, wanted, device, elements)
    elif sparse and dense_columns(others) is None:
        rows, values = _sparse_nearest(X, other, wanted, n_jobs)
    else:
        rows, values = _dense_nearest(X, other, wanted, n_jobs)
    if Y is None and is_apart:
        rows, values = _without_own(rows, values)
    if forests is None:
        return rows, values
    return ranked_again(rerank, forests[0], forests[1].__getitem__, rows, k, n_jobs)


def _forests(trees: Any, rows: int, others: int | None) -> tuple[Forest, Forest]:
    """Read the trees of X, and the trees of Y or again those of X."""
    if others is None:
        if isinstance(trees, (tuple, list)) and any(isinstance(part, Forest) for part in trees):
            raise ParameterError(
                "trees is a pair, (trees of X, trees of Y), but Y is not given: give only the trees of X"
            )
        forest = read_trees(trees)
        forests = forest, forest
    elif isinstance(trees, (tuple, list)) and len(trees) == 2:
        forests = read_trees(trees[0]), read_trees(trees[1])
    else:
        raise ParameterError("trees must be a pair, (trees of X, trees of Y), since Y is given")
    for name, forest, count in zip("XY", forests, (rows, rows if others is None else others), strict=True):
        if len(forest) != count:
            raise ParameterError(f"{name} has {count} rows, but there are {len(forest)} trees for it")
    return forests


def _expanded(X: np.ndarray, others: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return the sums of each row and its nearest rows, scaled to length 1; sums of zeros stay zeros."""
    sums = np.array(X, np.result_type(X.dtype, others.dtype, np.float32))
    for column in near.T:
        sums += others[column]
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums, dtype=np.float64))
    return sums / np.where(lengths > 0, lengths, 1.0).astype(sums.dtype)[:, None]


def _without_own(rows: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the found rows without each row itself, or without the last where it is not among them."""
    own = rows == np.arange(len(rows))[:, None]
    own[~own.any(axis=1), -1] = True
    kept = len(rows), rows.shape[1] - 1
    return rows[~own].reshape(kept), values[~own].reshape(kept)


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr")


def _sparse_nearest(X: Any, Y: Any, k: int, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    few = Y is not None and X.nnz < Y.nnz
    index = InvertedIndex(X if few or Y is None else Y)
    rows = Y if few else index.rows if Y is None else X
    csr = rows.indptr, rows.indices, rows.data

    def part(start: int) -> tuple[np.ndarray, np.ndarray]:
        stop = min(start + step, rows.shape[0])
        found, values = top_k.empty(len(index) if few else stop - start, k)
        line = np.empty(len(index))
        ok = (
            _pass_over(csr, start, stop, index.lists, line, found, values)
            if few
            else _line_by_line(csr, start, stop, index.lists, Y is None, line, found, values)
        )
        if not ok:
            raise ParameterError(NOT_FINITE)
        return found, values

    step = max(1, -(-rows.shape[0] // n_threads(n_jobs))) if few else LINES
    starts = range(0, max(1, rows.shape[0]), step)
    with thread_map(n_jobs, len(starts)) as run_all:
        parts = list(run_all(part, starts))
    found, values = (np.concatenate(arrays, axis=int(few)) for arrays in zip(*parts, strict=True))
    return top_k.ranked(found, values, k)


@njit_borrowing
def _line_by_line(
    csr: tuple[np.ndarray, np.ndarray, np.ndarray], start: int, stop: int, lists: PostingLists,
    others_only: bool, line: np.ndarray, rows: np.ndarray, values: np.ndarray,
) -> bool:  # fmt: skip
    """Keep the best of the index's rows for each of the rows from ``start`` to ``stop``."""
    indptr, indices, data = csr
    ok = True
    for i in range(start, stop):
        line[:] = 0.0
        here = slice(indptr[i], indptr[i + 1])
        add_products(indices[here], data[here], lists, line)
        mine, its = rows[i - start], values[i - start]
        if others_only:
            ok &= keep_best(line[:i], 0, mine, its)
            ok &= keep_best(line[i + 1 :], i + 1, mine, its)
        else:
            ok &= keep_best(line, 0, mine, its)
    return ok


@njit_borrowing
def _pass_over(
    csr: tuple[np.ndarray, np.ndarray, np.ndarray], start: int, stop: int, lists: PostingLists,
    line: np.ndarray, rows: np.ndarray, values: np.ndarray,
) -> bool:  # fmt: skip
    """Keep the best of the rows from ``start`` to ``stop`` for each of the index's rows."""
    indptr, indices, data = csr
    for i in range(start, stop):
        line[:] = 0.0
        here = slice(indptr[i], indptr[i + 1])
        add_products(indices[here], data[here], lists, line)
        for query in range(line.size):
            if not keep_best(line[query : query + 1], i, rows[query], values[query]):
                return False
    return True


def _dense_nearest(
    X: np.ndarray, Y: np.ndarray | None, k: int, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Multiply tile by tile; for X with itself, only the upper half."""
    others = X if Y is None else Y
    kind = np.result_type(X.dtype, others.dtype, np.float32)
    rows, values = np.full((X.shape[0], k), -1, np.int64), np.full((X.shape[0], k), -np.inf, kind)
    for start in range(0, X.shape[0], TILE):
        part = _tile(X, start, kind)
        for first in range(start if Y is None else 0, others.shape[0], TILE):
            tile = dot_products(part, _tile(others, first, kind), n_jobs).astype(kind, copy=False)
            if not np.isfinite(tile).all():
                raise ParameterError(NOT_FINITE)
            here, there = slice(start, start + TILE), slice(first, first + TILE)
            if Y is None and first == start:
                np.fill_diagonal(tile, -np.inf)
            _keep_tile(rows[here], values[here], tile, first)
            if Y is None and first > start:  # the same products, transposed
                _keep_tile(rows[there], values[there], np.ascontiguousarray(tile.T), start)
    return rows, values


def _tile(rows: Any, start: int, kind: Any) -> Any:
    part = rows[start : start + TILE]
    return part if _is_sparse(rows) else np.asarray(part, kind)


def _keep_tile(rows: np.ndarray, values: np.ndarray, products: np.ndarray, first: int) -> None:
    """Merge a tile of products, whose columns start at ``first``, into the best so far, in place.

    Tiles come in the order of their columns, so a value equal to the worst of the best comes too late.
    """
    count, k = values.shape
    better = products > values[:, -1:]
    if np.count_nonzero(better) > 4 * count * k:  # in the first tile, all are better
        cut = products.shape[1] - k
        better &= products >= np.partition(products, cut, axis=1)[:, cut : cut + 1]
    row, column = np.divmod(np.flatnonzero(better), products.shape[1])
    if not row.size:
        return
    touched, group = np.unique(row, return_inverse=True)
    all_rows = np.concatenate([rows[touched].ravel(), column + first])
    all_values = np.concatenate([values[touched].ravel(), products[row, column]])
    groups = np.concatenate([np.repeat(np.arange(touched.size), k), group])
    order = np.lexsort((all_rows, -all_values, groups))
    starts = np.searchsorted(groups[order], np.arange(touched.size))
    best = order[starts[:, None] + np.arange(k)]
    rows[touched], values[touched] = all_rows[best], all_values[best]
