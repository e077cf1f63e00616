"""Kernels of a whole set of trees: Δ once for each pair of distinct subtrees (after Shin et al. 2011)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.threads import ONE_THREAD, PARTS, SHARED_PARTS, Span, Threads
from treedot.kernels.subset import delta_table, pairwise
from treedot.kernels.subset.delta_table import UNBOUNDED, Layout
from treedot.kernels.tree_kernel import ALL_FRAGMENTS, MATCHING, Limited, check_pairs
from treedot.trees import Forest
from treedot.trees.distinct import DistinctSubtrees
from treedot.trees.nodes import Nodes

SHARED_WORK = 1 << 16  # entries of Δ that are worth being shared out
PIECE = 1 << 14  # of them are taken at a time, at least: neighbours share lines of the cache
PAGE = 512  # of them fill the least piece of memory that is got at a time


class SubtreePairs:
    """The pairs of distinct subtrees with equal productions, of the trees of two spans or of one with itself.

    ``layout`` says where what is computed for each of them is kept, ``size`` how many they are.
    """

    def __init__(self, nodes: Nodes, rows: Span, columns: Span | None = None) -> None:
        self.symmetric = columns is None
        self.spans = rows, rows if columns is None else columns
        self.rows = DistinctSubtrees(nodes, *rows)
        self.columns = self.rows if columns is None else DistinctSubtrees(nodes, *columns)
        self.layout, self.size = self._lay_out(nodes)

    def _lay_out(self, nodes: Nodes) -> tuple[Layout, int]:
        return delta_table.layout(self.rows.subtrees, self.columns.subtrees, nodes.n_productions)

    def steps(self, threads: Threads) -> Iterator[list[Span]]:
        """Yield, one after another, lists of spans of ``layout.order`` that can be filled at the same time.

        Subtrees of one height depend on lower ones alone.
        """
        _, rank, first, _, order, height = self.layout
        if threads.count == 1:
            yield [(0, order.size)]
            return
        production = self.rows.subtrees.production[order]
        entries = rank[order] + 1 if self.symmetric else np.diff(first)[production]
        work = np.concatenate([[0], np.cumsum(entries)])
        levels = np.flatnonzero(np.diff(height[order], prepend=0, append=0))
        done = 0
        for start, end in itertools.pairwise(levels.tolist()):
            if work[end] - work[start] >= SHARED_WORK:
                yield [(done, start)]  # what was left for later comes first
                spans = threads.even_spans(work[start : end + 1], PIECE, per_thread=2 * PARTS)
                yield [(start + begin, start + stop) for begin, stop in spans]
                done = end
        yield [(done, order.size)]


class SharedDelta(SubtreePairs):
    """Δ over the distinct subtrees of the trees of two spans, or of one span with itself, ready for any λ."""

    @property
    def work(self) -> int:
        """The number of entries of Δ that are computed: half of them where rows and columns are the same."""
        if not self.symmetric:
            return self.size
        return (self.size + int(np.count_nonzero(self.rows.subtrees.production >= 0))) // 2

    def values(self, decay: float, budget: int = UNBOUNDED, threads: Threads = ONE_THREAD) -> FloatArray:
        """Return Δ for one λ, of all fragments or of those within a budget."""
        values = _memory(self.size, threads)
        given = self.rows.subtrees, self.columns.subtrees, self.layout, decay, self.symmetric
        if budget == UNBOUNDED:
            fill = partial(delta_table.fill, *given)
            outputs: tuple[FloatArray, ...] = (values,)
        else:
            fill = partial(delta_table.fill_bounded, *given)
            outputs = np.empty((self.size, delta_table.coefficients(budget))), values
        for spans in self.steps(threads):
            threads.share(lambda limits, taken: fill(limits, taken, *outputs), spans)
        return values

    def gram(self, decay: float, budget: int = UNBOUNDED, threads: Threads = ONE_THREAD) -> FloatArray:
        """Return the Gram matrix for one λ; of a symmetric one, the lower half."""
        (first, last), (begin, end) = self.spans
        out = np.zeros((last - first, end - begin))
        delta = self.values(decay, budget, threads)
        subtrees, at = self.rows.subtrees, self.layout
        counts = self.columns.counts
        place = at.first[self.columns.subtrees.production[counts.subtree]] + at.rank[counts.subtree]
        given = subtrees, at, delta, self.rows.counts, counts._replace(subtree=place), self.symmetric
        rows = threads.row_spans(last - first, self.symmetric, SHARED_PARTS)
        threads.share(lambda limits, taken: delta_table.gram(*given, limits, taken, out), rows)
        return out

    def log_sum(self, decay: float) -> float:
        """Return the logarithm of the sum of the Gram matrix, however large; -inf where nothing is shared."""
        mantissa, exponent = delta_table.fill_scaled(
            self.rows.subtrees, self.columns.subtrees, self.layout, decay,
            self.rows.totals, self.columns.totals, np.empty(self.size), np.empty(self.size, np.int64),
        )  # fmt: skip
        return math.log(mantissa) + exponent * math.log(2.0) if mantissa > 0 else -math.inf


Pairs = TypeVar("Pairs", bound=SubtreePairs)


def shared_delta(forest: Forest) -> SharedDelta:
    """Return Δ of a forest with itself, for ``forest.derived`` to keep: it serves whatever λ comes next.

    It is the layout of Δ alone, about 30 bytes for every node; the values are computed for every λ anew.
    """
    return SharedDelta(Nodes(forest), (0, len(forest)))


def tiles(
    nodes: Nodes, rows: Span, columns: Span | None, max_pairs: int, whole: SharedDelta | None = None,
    budget: int = UNBOUNDED,
) -> Iterator[SharedDelta]:  # fmt: skip
    """Cut a matrix (its lower half, without ``columns``) into tiles of at most ``max_pairs`` entries of Δ."""
    entries = delta_table.coefficients(budget)
    what = _limited(budget, nodes.cut)
    return cut(partial(SharedDelta, nodes), rows, columns, max_pairs, whole, entries, what)


def _limited(budget: int, selected_labels: bool) -> Limited:
    """Return what a limit says of the kernel of all fragments, of bounded ones, or of selected labels."""
    if budget != UNBOUNDED:
        instead = f"compare the rows of FragmentVectorizer with budget={budget}"
        return Limited("coefficients of matching pairs of nodes", instead)
    return MATCHING if selected_labels else ALL_FRAGMENTS


def cut(
    make: Callable[[Span, Span | None], Pairs], rows: Span, columns: Span | None, max_pairs: int,
    whole: Pairs | None = None, entries: int = 1, what: Limited = MATCHING,
) -> Iterator[Pairs]:  # fmt: skip
    """Cut a matrix into tiles for any kind of subtree pair; ``entries`` is the memory per pair."""
    tile = make(rows, columns) if whole is None else whole
    if tile.size * entries <= max_pairs:
        yield tile
        return
    height, width = (last - first for first, last in tile.spans)
    if height == width == 1:
        check_pairs(tile.size * entries, max_pairs, what)
    if columns is None:
        upper, lower = _halves(rows)
        parts: list[tuple[Span, Span | None]] = [(upper, None), (lower, None), (lower, upper)]
    elif height >= width:
        parts = [(half, columns) for half in _halves(rows)]
    else:
        parts = [(rows, half) for half in _halves(columns)]
    for part in parts:
        yield from cut(make, *part, max_pairs, None, entries, what)


def gram(
    nodes: Nodes, n_rows: int, n_columns: int | None, decay: float, max_pairs: int,
    whole: SharedDelta | None = None, budget: int = UNBOUNDED, threads: Threads = ONE_THREAD,
) -> FloatArray:  # fmt: skip
    """Return the kernels of the first ``n_rows`` trees with each other, or with the ``n_columns`` after.

    With each other, it is the lower half.
    """
    columns = None if n_columns is None else (n_rows, n_rows + n_columns)
    shift = 0 if n_columns is None else n_rows
    out = np.zeros((n_rows, n_rows if n_columns is None else n_columns))
    for tile in tiles(nodes, (0, n_rows), columns, max_pairs, whole, budget):
        (first, last), (begin, end) = tile.spans
        values = tile.gram(decay, budget, threads)
        if values.shape == out.shape:
            return values
        out[first:last, begin - shift : end - shift] = values
    return out


def pairs(
    nodes: Nodes, trees: pairwise.Trees, rows: IntArray, columns: IntArray, decay: float, max_pairs: int,
    budget: int = UNBOUNDED, threads: Threads = ONE_THREAD,
) -> FloatArray:  # fmt: skip
    """Return the kernels of pairs of trees, each by the nodes of both that match.

    Where they match in too many ways, equal subtrees are taken together.
    """
    raw, entries = pairwise.fast_pairs(trees, rows, columns, decay, max_pairs, budget, threads)
    for k in np.flatnonzero(entries > max_pairs):
        raw[k] = _pair(nodes, rows[k], columns[k], decay, max_pairs, budget, threads)
    return raw


def _pair(nodes: Nodes, i: int, j: int, decay: float, max_pairs: int, budget: int, threads: Threads) -> float:
    """Return the kernel of two trees."""
    (tile,) = tiles(nodes, (i, i + 1), None if i == j else (j, j + 1), max_pairs, budget=budget)
    return float(tile.gram(decay, budget, threads)[0, 0])


def log_pair(nodes: Nodes, decay: float, max_pairs: int) -> float:
    """Return the logarithm of the kernel of the first tree with the second; -inf where they share nothing."""
    (tile,) = tiles(nodes, (0, 1), (1, 2), max_pairs)
    return tile.log_sum(decay)


def work(nodes: Nodes, n_rows: int, n_columns: int | None, max_pairs: int) -> int:
    """Return the number of entries of Δ that ``gram`` computes."""
    columns = None if n_columns is None else (n_rows, n_rows + n_columns)
    return sum(tile.work for tile in tiles(nodes, (0, n_rows), columns, max_pairs))


def _memory(size: int, threads: Threads) -> FloatArray:
    """Return an array with no values yet, whose memory is there already where several threads will use it.

    Otherwise whichever thread comes first would get it and clear it, which for much of it is one alone.
    """
    values = np.empty(size)
    if threads.count > 1:
        pages = values[::PAGE]
        threads.run(lambda first, last: pages[first:last].fill(0.0), threads.spans(pages.size))
    return values


def _halves(span: Span) -> tuple[Span, Span]:
    middle = (span[0] + span[1]) // 2
    return (span[0], middle), (middle, span[1])
