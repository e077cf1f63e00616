"""Find the largest dot products between two sets of vectors on a GPU.

All products are computed in tiles, in half precision with sums in single precision, and the best of every row
are kept as candidates. At the end their products are computed again in single precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from treedot.errors import ParameterError
from treedot.parameters import checked_integer
from treedot.vectors.gpu.device import compiled

TILE_ROWS = 16384
TILE_COLUMNS = 32768
CROWDED = 32  # with more hits per row than this, the whole tile is searched
ALIKE = 64.0  # vectors share a divisor if their largest elements differ by at most this factor
NOT_FINITE = "a dot product is not finite: the vectors contain nan or inf"
AGAIN_BYTES = 1 << 30  # memory for the candidates whose products are computed again at a time


class Best(NamedTuple):
    """The best of every row so far, in descending order: their products and their row numbers, or -1."""

    values: Any
    rows: Any


class Scaled(NamedTuple):
    """Vectors, and the factors that make them comparable with each other; None if all are 1."""

    vectors: Any
    scales: Any

    def part(self, rows: slice) -> Scaled:
        """Return a part of the vectors with their factors."""
        return Scaled(self.vectors[rows], None if self.scales is None else self.scales[rows])


def nearest_tensors(X: Any, Y: Any = None, k: int = 10, *, elements: int | None = None) -> tuple[Any, Any]:
    """Return for every row of X the ``k`` rows of Y with the largest dot products, best first.

    Parameters
    ----------
    X : float32 tensor of shape (n_X, n_components)
        The queries.
    Y : float32 tensor of shape (n_Y, n_components), default=None
        The rows to search, on the same device. Without Y, the rows of X are compared with each other, and a
        row is not its own neighbour.
    k : int, default=10
        The number of neighbours, at most the number of other rows.
    elements : int, default=None
        Find candidates by only the first ``elements`` elements of the vectors: faster, but misses some.

    Returns
    -------
    rows : tensor of shape (n_X, k)
        The row numbers of the neighbours.
    values : tensor of shape (n_X, k)
        The dot products. Equal values are ordered by row number.
    """
    import torch

    others = X if Y is None else Y
    most = len(others) - (Y is None)
    _check(X, others, k, most, elements)
    wanted = min(most, 2 * k + 16 if elements is None else 10 * k)
    x = _halves(X, elements)
    y = x if Y is None else _halves(Y, elements)
    best = Best(
        torch.full((len(X), wanted), -torch.inf, device=X.device),
        torch.full((len(X), wanted), -1, dtype=torch.int64, device=X.device),
    )
    for start in range(0, len(X), TILE_ROWS):
        rows = slice(start, min(start + TILE_ROWS, len(X)))
        for first in range(start if Y is None else 0, len(others), TILE_COLUMNS):
            columns = slice(first, min(first + TILE_COLUMNS, len(others)))
            products = _products(x.part(rows), y.part(columns))
            if Y is None and first == start:
                products.diagonal().fill_(-torch.inf)
            below = slice(max(first, rows.stop), max(columns.stop, rows.stop) if Y is None else first)
            _keep_both(best, products, rows, below, first)
    return _computed_again(X, others, best.rows, k)


def _check(X: Any, others: Any, k: int, most: int, elements: int | None) -> None:
    """Raise if vectors cannot be compared, or there are fewer than k others."""
    import torch

    for tensor in (X, others):
        if tensor.dtype != torch.float32 or tensor.ndim != 2:
            raise ParameterError(
                f"vectors must be float32 tensors of two dimensions, not {tensor.dtype} of {tensor.ndim}"
            )
    if (X.shape[1], X.device) != (others.shape[1], others.device):
        raise ParameterError(
            f"cannot compare vectors of {X.shape[1]} elements on {X.device} with vectors of "
            f"{others.shape[1]} on {others.device}"
        )
    if checked_integer("k", k, at_least=1) > most:
        raise ParameterError(f"k must be at most {max(0, most)}, the number of others, not {k}")
    if elements is not None:
        checked_integer("elements", elements, at_least=1)


def _halves(X: Any, elements: int | None) -> Scaled:
    """Return vectors in half precision; unchanged on the processor."""
    part = X[:, :elements]
    return Scaled(part, None) if X.device.type == "cpu" else _in_half_precision(part)


def _in_half_precision(X: Any) -> Scaled:
    """Return vectors in half precision, with no element above 1.

    Vectors of similar magnitude, such as normalised ones, are all divided by the same number. Otherwise short
    ones would vanish, so each is divided by its own largest element.
    """
    import torch

    if not X.numel():
        return Scaled(X.half(), None)
    largest = torch.cat([block.abs().amax(dim=1) for block in X.split(TILE_ROWS)])
    top = largest.max().clamp(min=torch.finfo(X.dtype).tiny)
    if not torch.isfinite(top):
        raise ParameterError(NOT_FINITE)
    largest = torch.where(largest > 0, largest, top)
    alike = bool(top <= ALIKE * largest.min())
    divisors = top.expand(len(X)) if alike else largest
    halves = torch.empty(X.shape, dtype=torch.float16, device=X.device)
    for block, by, out in zip(*(x.split(TILE_ROWS) for x in (X, divisors, halves)), strict=True):
        torch.div(block, by[:, None], out=out)
    return Scaled(halves, None if alike else largest / top)


def _products(x: Scaled, y: Scaled) -> Any:
    """Return all dot products, multiplied by the factors of both sides."""
    import torch

    if x.vectors.is_cuda:
        products = torch.mm(x.vectors, y.vectors.T, out_dtype=torch.float32)
    else:
        products = x.vectors.float() @ y.vectors.float().T
    if x.scales is not None:
        products *= x.scales[:, None]
    if y.scales is not None:
        products *= y.scales
    return products


def _keep_both(best: Best, products: Any, rows: slice, below: slice, first: int) -> None:
    """Merge a tile of products into the best of its rows, and of its columns, the rows ``below``."""
    hits = _hits(best, products, rows, below, first) if products.is_cuda else [None, None]
    _keep_best(best, rows, products, first, hits[0])
    if below.start < below.stop:
        _keep_best(best, below, products[:, below.start - first :].T, rows.start, hits[1])


def _hits(best: Best, products: Any, rows: slice, below: slice, first: int) -> list[Any]:
    """Return (row, column, value) of the products above the bounds of ``rows``, and of the rows ``below``.

    Both lists are sorted. A list is None if there are too many.
    """
    import torch

    n_rows, n_columns = products.shape
    if n_columns % 4 or not torch.isfinite(best.values[rows.start, -1]):  # no bounds yet, so too many
        return [None, None]
    capacity = CROWDED * max(n_rows, n_columns)
    counts = torch.zeros(2, dtype=torch.int32, device=products.device)
    places = [torch.empty((capacity, 2), dtype=torch.int32, device=products.device) for _ in range(2)]
    values = [torch.empty(capacity, device=products.device) for _ in range(2)]
    begin = below.start - first if below.start < below.stop else n_columns
    bounds = [best.values[part, -1].contiguous() for part in (rows, below)]
    compiled("neighbours.cu", "above", products.device.index)(
        (-(-n_columns // 1024), -(-n_rows // 8)), 256,
        [products, n_rows, n_columns, begin, *bounds, capacity, counts,
         places[0], values[0], places[1], values[1]], 0,
    )  # fmt: skip
    hits: list[Any] = []
    for which, count in enumerate(counts.tolist()):
        if count >= capacity:
            hits.append(None)
            continue
        row, column = places[which][:count].long().T
        if which:
            row, column = column - begin, row
        order = torch.argsort(row * max(n_rows, n_columns) + column)
        hits.append((row[order], column[order], values[which][:count][order]))
    return hits


def _keep_best(best: Best, rows: slice, products: Any, first: int, hits: Any) -> None:
    """Merge products of some rows with consecutive columns, from ``first`` on, into the best so far."""
    import torch

    values = best.values[rows]
    touched: Any = slice(None)
    if hits is None:
        top = products.topk(min(values.shape[1], products.shape[1]), dim=1)
        new_values, new_rows = top.values, top.indices + first
    else:
        row, column, value = hits
        if not len(row):
            return
        touched, place, counts = torch.unique_consecutive(row, return_inverse=True, return_counts=True)
        slot = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[place]
        shape = len(touched), int(counts.max())
        new_values, new_rows = value.new_full(shape, -torch.inf), row.new_full(shape, -1)
        new_values[place, slot], new_rows[place, slot] = value, column + first
    both_values = torch.cat([values[touched], new_values], dim=1)
    both_rows = torch.cat([best.rows[rows][touched], new_rows], dim=1)
    top = both_values.topk(values.shape[1], dim=1)
    best.values[rows][touched] = top.values
    best.rows[rows][touched] = both_rows.gather(1, top.indices)


def _computed_again(X: Any, Y: Any, candidates: Any, k: int) -> tuple[Any, Any]:
    """Return the best ``k`` candidates of every row, by products in the vectors' own precision."""
    import torch

    rows = torch.empty((len(X), k), dtype=torch.int64, device=X.device)
    values = torch.empty((len(X), k), dtype=X.dtype, device=X.device)
    step = max(1, AGAIN_BYTES // (4 * max(1, X.shape[1]) * candidates.shape[1]))
    for start in range(0, len(X), step):
        here = slice(start, start + step)
        found = candidates[here].sort(dim=1).values
        products = torch.bmm(Y[found], X[here, :, None])[:, :, 0]
        order = products.sort(dim=1, descending=True, stable=True)
        rows[here], values[here] = found.gather(1, order.indices[:, :k]), order.values[:, :k]
    return rows, values
