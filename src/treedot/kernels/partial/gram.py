"""Gram matrices of partial tree kernels: T is computed once for each pair of distinct subtrees.

Only subtrees of the same *family* are compared. Two inner nodes are of one family if the labels at their
roots are of one kind and their productions are connected by shared kinds of children's labels. Labels of
different kinds are not similar, so T of different families is 0. For example, words under the same part of
speech are separate families if they are not similar, so nearly all of their pairs are skipped.

The productions of two nodes determine which children have similar labels. So subtrees with the same
production are neighbours, and the steps of the computation are planned once for a group of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import inlined, njit_borrowing
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.kernels.label_similarity import LabelSimilarities, equal_labels
from treedot.kernels.partial.subsequences import (
    FEW,
    Below,
    Plan,
    Side,
    Sums,
    Table,
    Weights,
    make_below,
    make_plan,
    make_sums,
    match_children,
    sum_few,
    sum_many,
)
from treedot.kernels.subset import delta_table
from treedot.kernels.subset.delta_table import Layout
from treedot.kernels.tiled_kernel import SubtreePairs
from treedot.trees import Forest
from treedot.trees.distinct import Counts, DistinctSubtrees
from treedot.trees.nodes import Nodes

ROWS = 32  # entries of T at a time


class Families(Nodes):
    """The nodes of a forest, with families instead of productions."""

    def __init__(self, forest: Forest, labels: LabelSimilarities | None = None) -> None:
        super().__init__(forest)
        if labels is None:
            self.labels, self.production, self.n_productions = forest.derived(_by_equal_labels)
        else:
            self.labels = labels
            self.production, self.n_productions = _families(forest, labels.kind)


def _by_equal_labels(forest: Forest) -> tuple[LabelSimilarities, IntArray, int]:
    labels = equal_labels(len(forest.labels))
    return labels, *_families(forest, labels.kind)


def _families(forest: Forest, kind: IntArray) -> tuple[IntArray, int]:
    """Return the family of every node (-1 for leaves) and the number of families, given kinds of labels."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    root = forest.distinct_productions
    start, child = forest.children
    arity = forest.arity[root]
    production = np.repeat(np.arange(root.size), arity)
    edge = np.arange(production.size) + np.repeat(start[root] - np.cumsum(arity) + arity, arity)
    above, below = kind[forest.label[root]], kind[forest.label[child[edge]]]
    kinds, number = np.unique(above[production] * np.int64(len(forest.labels)) + below, return_inverse=True)
    size = root.size + kinds.size
    graph = coo_matrix((np.ones(number.size, bool), (production, root.size + number)), shape=(size, size))
    n_families, family = connected_components(graph, directed=False)
    family = np.append(family[: root.size], -1).astype(np.int32)  # leaves have the production -1
    return family[forest.production], int(n_families)


class Holders(NamedTuple):
    """The trees that contain subtrees: ``tree[k]`` has ``copies[k]`` of one, from ``start[i]`` to its end."""

    start: IntArray
    tree: IntArray
    copies: FloatArray


class PartialDelta(SubtreePairs):
    """T over the distinct subtrees of two spans of trees, or of one span with itself, for any λ.

    For one span with itself, only the lower half is stored.
    """

    def _lay_out(self, nodes: Nodes) -> tuple[Layout, int]:
        assert isinstance(nodes, Families)
        self.similarity = nodes.labels.value
        self.sides = _side(self.rows, nodes), _side(self.columns, nodes)
        kinds = self.sides[0].production, self.sides[1].production
        at, size = delta_table.layout(self.rows.subtrees, self.columns.subtrees, nodes.n_productions, kinds)
        if not self.symmetric:
            return at, size
        count = np.diff(at.first)
        base = np.concatenate([[0], np.cumsum(count * (count + 1) // 2)])
        line = base[self.rows.subtrees.production] + at.rank * (at.rank + 1) // 2
        return at._replace(line=line), int(base[-1])

    def values(self, weights: Weights, threads: Threads = ONE_THREAD) -> FloatArray:
        """Return T."""
        at = self.layout
        table = Table(at.line, 0, at.rank, self.symmetric, np.zeros(self.size))

        def run(first: int, last: int) -> None:
            plan, below, sums = make_plan(weights), make_below(), make_sums(weights, self.sides[1])
            _fill(*self.sides, at, weights, first, last, plan, below, sums, table)

        for spans in self.steps(threads):
            threads.run(run, spans)
        return table.value

    def gram(self, weights: Weights, threads: Threads = ONE_THREAD) -> FloatArray:
        """Return the sums of T over the subtrees of every pair of trees."""
        (first, last), (begin, end) = self.spans
        out = np.zeros((last - first, end - begin))
        family, table = self.sides[0].family, self.values(weights, threads)
        given = family, self.layout, table, self.rows.counts, self._holders(), self.symmetric

        def run(start: int, stop: int) -> None:
            weight = np.zeros(self.layout.members.size)
            widths = np.zeros(self.layout.first.size - 1, np.int64)
            _sum_up(*given, start, stop, weight, widths, out)

        threads.run(run, threads.spans(last - first))
        return out + out.T if self.symmetric else out

    def _holders(self) -> Holders:
        """Return the trees that contain each column subtree."""
        matrix = self.columns.count_matrix().tocsc()[:, self.layout.members]
        return Holders(matrix.indptr, matrix.indices, matrix.data)


def shared_partial_delta(forest: Forest) -> PartialDelta:
    """Return the layout of T of a forest with itself, without its values; ``forest.derived`` caches it."""
    return PartialDelta(Families(forest), (0, len(forest)))


def _side(distinct: DistinctSubtrees, nodes: Families) -> Side:
    family, start, child = distinct.subtrees
    label = nodes.forest.label[distinct.root]
    kind, line, rank, _ = nodes.labels
    production = nodes.forest.production[distinct.root]
    return Side(production, family, start, child, kind[label][child], line[label], rank[label])


@njit_borrowing
def _fill(
    rows: Side, columns: Side, at: Layout, weights: Weights, first: int, last: int, plan: Plan,
    below: Below, sums: Sums, table: Table,
) -> None:  # fmt: skip
    """Compute T of the row subtrees ``order[first:last]``; T of lower ones is known or among these."""
    while first < last:
        u = at.order[first]
        end = first + 1
        while end < min(first + ROWS, last) and _alike(rows, at, u, at.order[end]):
            end += 1
        members = at.members[at.first[rows.family[u]] : at.first[rows.family[u] + 1]]
        width = at.rank[at.order[end - 1]] + 1 if table.half else members.size
        members, us = members[:width], at.order[first:end]
        done = 0
        while done < width:
            runs = match_children(rows, u, columns, members, done, weights, plan)
            sum_few(rows, us, columns, members, table, weights, plan, runs, below)
            for r in range(runs):
                if plan.matches[r] > FEW:
                    vs = members[plan.start[r] : plan.start[r + 1]]
                    for k in range(first, end):
                        sum_many(rows, at.order[k], columns, vs, table, weights, sums)
            done = plan.start[runs]
        first = end


@inlined
def _alike(rows: Side, at: Layout, u: int, v: int) -> bool:
    """Return whether two subtrees have the same production and neither contains the other."""
    return bool(rows.production[u] == rows.production[v] and at.height[u] == at.height[v])


@njit_borrowing
def _sum_up(
    family: IntArray, at: Layout, table: FloatArray, counts: Counts, holders: Holders, symmetric: bool,
    first: int, last: int, weight: FloatArray, widths: IntArray, out: FloatArray,
) -> None:  # fmt: skip
    """Sum T over the subtrees of every pair of trees: rows ``first … last - 1`` of C T Cᵀ.

    ``holders`` are the trees that contain each of ``members``. With ``symmetric``, T is its lower half with
    half of the diagonal, so the sums and their transpose add up to the matrix. ``weight`` is scratch memory
    for T of every column subtree with all subtrees of one tree, ``widths`` for the number of possible
    non-zeros per family; all zeros at the start.
    """
    for i in range(first, last):
        for k in range(counts.start[i], counts.start[i + 1]):
            u, count = counts.subtree[k], counts.copies[k]
            place, line = at.first[family[u]], at.line[u]
            width = at.rank[u] if symmetric else at.first[family[u] + 1] - place
            for rank in range(width):
                weight[place + rank] += count * table[line + rank]
            if symmetric:
                weight[place + width] += 0.5 * count * table[line + width]
                width += 1
            if widths[family[u]] < width:
                widths[family[u]] = width
        for k in range(counts.start[i], counts.start[i + 1]):
            f = family[counts.subtree[k]]
            for place in range(at.first[f], at.first[f] + widths[f]):
                if weight[place] != 0.0:
                    for m in range(holders.start[place], holders.start[place + 1]):
                        out[i, holders.tree[m]] += holders.copies[m] * weight[place]
                    weight[place] = 0.0
            widths[f] = 0
