"""Kernels of a whole set of trees: Δ once for each pair of distinct subtrees (after Shin et al. 2011)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.threads import ONE_THREAD, SHARED_PARTS, Threads
from treedot.kernels.subset import delta_table
from treedot.kernels.subset.delta_table import UNBOUNDED
from treedot.kernels.subset.pairwise import Trees, fast_pairs
from treedot.kernels.tiled_kernel import SubtreePairs, TiledKernel
from treedot.kernels.tree_kernel import joined
from treedot.trees import Forest
from treedot.trees.nodes import Nodes

PAGE = 512  # of them fill the least piece of memory that is got at a time


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
        subtrees = self.rows.subtrees, self.columns.subtrees, self.layout
        if budget == UNBOUNDED:
            fill = partial(delta_table.fill, *delta_table.lines(*subtrees), decay, self.symmetric)
            outputs: tuple[FloatArray, ...] = (values,)
        else:
            fill = partial(delta_table.fill_bounded, *subtrees, decay, self.symmetric)
            outputs = np.empty((self.size, delta_table.coefficients(budget))), values
        for spans in self.steps(threads):
            threads.share(lambda limits, taken: fill(limits, taken, *outputs), spans)
        return values

    def gram(self, decay: float, budget: int = UNBOUNDED, threads: Threads = ONE_THREAD) -> FloatArray:
        """Return the Gram matrix for one λ; of a symmetric one, the lower half."""
        (first, last), (begin, end) = self.spans
        out = np.zeros((last - first, end - begin))
        delta = self.values(decay, budget, threads)
        at, counts, others = self.layout, self.rows.counts, self.columns.counts
        production = self.rows.subtrees.production[counts.subtree]
        width = np.diff(at.first)[production]
        place = at.first[self.columns.subtrees.production[others.subtree]] + at.rank[others.subtree]
        columns = others._replace(subtree=place)
        given = counts, at.line[counts.subtree], at.first[production], width, columns, delta, self.symmetric
        rows = threads.row_spans(last - first, self.symmetric, SHARED_PARTS)

        def run(limits: IntArray, taken: IntArray) -> None:
            delta_table.gram(*given, limits, taken, np.zeros(at.members.size), out)

        threads.share(run, rows)
        return out

    def log_sum(self, decay: float) -> float:
        """Return the logarithm of the sum of the Gram matrix, however large; -inf where nothing is shared."""
        mantissa, exponent = delta_table.fill_scaled(
            self.rows.subtrees, self.columns.subtrees, self.layout, decay,
            self.rows.totals, self.columns.totals, np.empty(self.size), np.empty(self.size, np.int64),
        )  # fmt: skip
        return math.log(mantissa) + exponent * math.log(2.0) if mantissa > 0 else -math.inf


def shared_delta(forest: Forest) -> SharedDelta:
    """Return Δ of a forest with itself, for ``forest.derived`` to keep: it serves whatever λ comes next.

    It is the layout of Δ alone, about 30 bytes for every node; the values are computed for every λ anew.
    """
    return SharedDelta(Nodes(forest), (0, len(forest)))


class FragmentKernel(TiledKernel):
    """A kernel that counts fragments, by Δ."""

    _tile_type = SharedDelta

    @property
    def _budget(self) -> int:
        """The largest cost of a fragment."""
        return UNBOUNDED

    @property
    def _entries(self) -> int:
        return delta_table.coefficients(self._budget)

    def _whole(self, forest: Forest, nodes: Nodes) -> SharedDelta:
        return forest.derived(shared_delta)

    def _tile_gram(self, tile: SharedDelta, threads: Threads) -> FloatArray:
        return tile.gram(self.decay, self._budget, threads)

    def _raw_gram(self, x: Forest, y: Forest | None, threads: Threads = ONE_THREAD) -> FloatArray:
        return self._tiled_gram(x, y, self._nodes(joined(x, y)), threads)

    def _fast_pairs(
        self, nodes: Nodes, trees: Trees, rows: IntArray, columns: IntArray, threads: Threads
    ) -> FloatArray:
        """Return ΣΔ of pairs of trees, each by the nodes of both that match."""
        sums = fast_pairs(trees, rows, columns, self.decay, self.max_pairs, self._budget, threads)
        return self._complete(sums, nodes, rows, columns, threads)


def _memory(size: int, threads: Threads) -> FloatArray:
    """Return an array with no values yet, whose memory is there already where several threads will use it.

    Otherwise whichever thread comes first would get it and clear it, which for much of it is one alone.
    """
    values = np.empty(size)
    if threads.count > 1:
        pages = values[::PAGE]
        threads.run(lambda first, last: pages[first:last].fill(0.0), threads.spans(pages.size))
    return values
