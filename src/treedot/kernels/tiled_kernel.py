"""Kernels summed over pairs of distinct subtrees; Gram matrices are cut into tiles that fit into memory."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.threads import PARTS, Span, Threads
from treedot.kernels.subset import delta_table
from treedot.kernels.subset.delta_table import Layout
from treedot.kernels.tree_kernel import MATCHING, Limited, TreeKernel, check_pairs
from treedot.trees import Forest
from treedot.trees.distinct import DistinctSubtrees
from treedot.trees.nodes import Nodes

SHARED_WORK = 1 << 16  # the fewest entries of Δ that are shared among threads
PIECE = 1 << 14  # the fewest entries that a thread takes at a time: neighbours share cache lines


class SubtreePairs:
    """The pairs of distinct subtrees with equal productions in two spans of trees, or in one with itself.

    ``layout`` gives the place of each pair's value in an array, ``size`` the number of pairs.
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
        """Yield lists of spans of ``layout.order``; threads can fill the spans of one list in parallel.

        The lists must be filled in order, since a subtree depends on lower ones.
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
                yield [(done, start)]  # the smaller levels skipped so far
                spans = threads.even_spans(work[start : end + 1], PIECE, per_thread=2 * PARTS)
                yield [(start + begin, start + stop) for begin, stop in spans]
                done = end
        yield [(done, order.size)]


class TiledKernel(TreeKernel):
    """A kernel that sums a value over the pairs of distinct subtrees (``SubtreePairs``) of two trees."""

    _tile_type: type[Any]  # a subclass of SubtreePairs

    @property
    def _entries(self) -> int:
        """The number of entries in memory for each pair of subtrees."""
        return 1

    def _nodes(self, forest: Forest) -> Nodes:
        """Return the nodes of a forest in the form that the kernel compares."""
        return Nodes(forest)

    @abstractmethod
    def _whole(self, forest: Forest, nodes: Any) -> Any:
        """Return the tile of a forest with itself."""

    @abstractmethod
    def _tile_gram(self, tile: Any, threads: Threads) -> FloatArray:
        """Return the matrix of a tile; for a symmetric one, only the lower half is used."""

    def _limited(self) -> Limited:
        """Return the words for the error about a pair of trees that needs too much memory."""
        return MATCHING

    def _tiles(
        self, nodes: Nodes, rows: Span, columns: Span | None, whole: Any | None = None
    ) -> Iterator[Any]:
        """Cut a matrix, or its lower half without ``columns``, into tiles of at most ``max_pairs`` entries.

        ``whole`` is the tile of the whole matrix, if the caller has it.
        """
        tile = self._tile_type(nodes, rows, columns) if whole is None else whole
        entries = tile.size * self._entries
        if entries <= self.max_pairs:
            yield tile
            return
        height, width = (last - first for first, last in tile.spans)
        if height == width == 1:
            check_pairs(entries, self.max_pairs, self._limited())
        if columns is None:
            upper, lower = _halves(rows)
            parts: list[tuple[Span, Span | None]] = [(upper, None), (lower, None), (lower, upper)]
        elif height >= width:
            parts = [(half, columns) for half in _halves(rows)]
        else:
            parts = [(rows, half) for half in _halves(columns)]
        for part in parts:
            yield from self._tiles(nodes, *part)

    def _only_tile(self, nodes: Nodes, i: int, j: int) -> Any:
        """Return the tile of two trees."""
        (tile,) = self._tiles(nodes, (i, i + 1), None if i == j else (j, j + 1))
        return tile

    def _tiled_gram(self, x: Forest, y: Forest | None, nodes: Nodes, threads: Threads) -> FloatArray:
        """Return the matrix of x with y, or the lower half of x with itself, given the nodes of both."""
        columns, shift = (None, 0) if y is None else ((len(x), len(x) + len(y)), len(x))
        out = np.zeros((len(x), len(x if y is None else y)))
        whole = self._whole(x, nodes) if y is None else None
        for tile in self._tiles(nodes, (0, len(x)), columns, whole):
            (first, last), (begin, end) = tile.spans
            values = self._tile_gram(tile, threads)
            if values.shape == out.shape:
                return values
            out[first:last, begin - shift : end - shift] = values
        return out

    def _complete(
        self, sums: tuple[FloatArray, IntArray], nodes: Nodes, rows: IntArray, columns: IntArray,
        threads: Threads,
    ) -> FloatArray:  # fmt: skip
        """Return the sums of all pairs of trees; compute missing ones over distinct subtrees.

        ``sums`` holds the sums so far and the entries of each pair; those above ``max_pairs`` are missing.
        """
        values, entries = sums
        for k in np.flatnonzero(entries > self.max_pairs):
            values[k] = self._tile_gram(self._only_tile(nodes, int(rows[k]), int(columns[k])), threads)[0, 0]
        return values


def _halves(span: Span) -> tuple[Span, Span]:
    middle = (span[0] + span[1]) // 2
    return (span[0], middle), (middle, span[1])
