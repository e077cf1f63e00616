"""Gram matrices with one Δ for each pair of distinct subtrees of a set of trees (after Shin et al. 2011)."""

from __future__ import annotations

import math
from functools import cached_property, partial

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.threads import ONE_THREAD, SHARED_PARTS, Threads
from treedot.kernels.subset import delta_table
from treedot.kernels.subset.delta_table import UNBOUNDED, Lines, Partners
from treedot.kernels.subset.pairwise import Trees, fast_pairs
from treedot.kernels.tiled_kernel import SubtreePairs, TiledKernel
from treedot.kernels.tree_kernel import joined
from treedot.trees import Forest
from treedot.trees.distinct import Counts
from treedot.trees.nodes import Nodes

PAGE = 512  # floats in a page of memory


class SharedDelta(SubtreePairs):
    """Δ over the distinct subtrees of two spans of trees, or of one with itself, for any λ."""

    @property
    def work(self) -> int:
        """The number of entries of Δ to compute: about half of them if rows and columns are the same."""
        if not self.symmetric:
            return self.size
        return (self.size + int(np.count_nonzero(self.rows.subtrees.production >= 0))) // 2

    def values(self, decay: float, budget: int = UNBOUNDED, threads: Threads = ONE_THREAD) -> FloatArray:
        """Return Δ for one λ, over all fragments or over those within a budget."""
        values = _memory(self.size, threads)
        subtrees = self.rows.subtrees, self.columns.subtrees, self.layout
        if budget == UNBOUNDED:
            fill = partial(delta_table.fill, *self._lines, decay, self.symmetric)
            outputs: tuple[FloatArray, ...] = (values,)
        else:
            fill = partial(delta_table.fill_bounded, *subtrees, decay, self.symmetric)
            outputs = np.empty((self.size, delta_table.coefficients(budget))), values
        threads.share_steps(partial(fill, *outputs), self.steps(threads))
        return values

    @cached_property
    def _lines(self) -> tuple[Lines, Partners]:
        return delta_table.lines(self.rows.subtrees, self.columns.subtrees, self.layout)

    @cached_property
    def _sums(self) -> tuple[Counts, IntArray, IntArray, IntArray, Counts]:
        """The operands of ``delta_table.gram``: the subtrees of every tree, and the place of their Δ."""
        at, counts, others = self.layout, self.rows.counts, self.columns.counts
        production = self.rows.subtrees.production[counts.subtree]
        width = np.diff(at.first)[production]
        place = at.first[self.columns.subtrees.production[others.subtree]] + at.rank[others.subtree]
        columns = others._replace(subtree=place)
        return counts, at.line[counts.subtree], at.first[production], width, columns

    def gram(self, decay: float, budget: int = UNBOUNDED, threads: Threads = ONE_THREAD) -> FloatArray:
        """Return the Gram matrix for one λ; only the lower half if it is symmetric."""
        (first, last), (begin, end) = self.spans
        out = np.zeros((last - first, end - begin))
        delta = self.values(decay, budget, threads)
        sums = self._sums  # here, or every thread would compute it
        rows = threads.row_spans(last - first, self.symmetric, SHARED_PARTS)

        def run(limits: IntArray, taken: IntArray) -> None:
            weight = np.zeros((self.layout.members.size, delta_table.ROWS))
            delta_table.gram(*sums, delta, self.symmetric, limits, taken, weight, out)

        threads.share(run, rows)
        return out

    def log_sum(self, decay: float) -> float:
        """Return the logarithm of the sum of the Gram matrix, however large; -inf if nothing is shared."""
        mantissa, exponent = delta_table.fill_scaled(
            self.rows.subtrees, self.columns.subtrees, self.layout, decay,
            self.rows.totals, self.columns.totals, np.empty(self.size), np.empty(self.size, np.int64),
        )  # fmt: skip
        return math.log(mantissa) + exponent * math.log(2.0) if mantissa > 0 else -math.inf


def shared_delta(forest: Forest) -> SharedDelta:
    """Return the layout of Δ of a forest with itself, which ``forest.derived`` keeps for any λ.

    It takes about 90 bytes for every node. The values of Δ are computed anew for every λ.
    """
    return SharedDelta(Nodes(forest), (0, len(forest)))


class FragmentKernel(TiledKernel):
    """A kernel that counts fragments by summing Δ."""

    _tile_type = SharedDelta

    @property
    def _budget(self) -> int:
        """The largest cost of a fragment, or ``UNBOUNDED``."""
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
        """Return ΣΔ of pairs of trees, by their pairs of nodes with equal productions."""
        sums = fast_pairs(trees, rows, columns, self.decay, self.max_pairs, self._budget, threads)
        return self._complete(sums, nodes, rows, columns, threads)


def _memory(size: int, threads: Threads) -> FloatArray:
    """Return an uninitialised array; with several threads, each touches its share of the memory first.

    Otherwise the system clears a page when a thread first writes to it, and one thread would wait for most.
    """
    values = np.empty(size)
    if threads.count > 1:
        pages = values[::PAGE]
        threads.run(lambda first, last: pages[first:last].fill(0.0), threads.spans(pages.size))
    return values
