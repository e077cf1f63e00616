"""Every production's part in weighted sums of subset tree kernels."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import FloatArray
from treedot._runtime.jit import njit
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.kernels.subset.delta_table import Layout
from treedot.kernels.subset.gram import SharedDelta
from treedot.kernels.subset.pairwise import Scratch, Trees, fill, match, new_scratch, trees_of
from treedot.kernels.tree_kernel import check_pairs
from treedot.trees.distinct import Subtrees
from treedot.trees.nodes import Nodes


def production_sums(
    tile: SharedDelta, decay: float, weights: FloatArray, threads: Threads = ONE_THREAD
) -> FloatArray:
    """Return every production's part in Σ ⟨weights[i], weights[j]⟩ K(i, j) over rows i and columns j."""
    rows, columns = tile.spans
    left = tile.rows.count_matrix().T @ weights[slice(*rows)]
    right = left if tile.symmetric else tile.columns.count_matrix().T @ weights[slice(*columns)]
    out = np.zeros(tile.layout.first.size - 1)
    _add_products(tile.rows.subtrees, tile.layout, tile.values(decay, threads=threads), left, right, out)
    return out


def own_production_sums(nodes: Nodes, weights: FloatArray, decay: float, max_pairs: int) -> FloatArray:
    """Return every production's part in Σ weights[t] K(t, t) over all trees."""
    trees, out = trees_of(nodes), np.zeros(nodes.n_productions)
    scratch = new_scratch(trees, np.arange(weights.size))
    check_pairs(_add_own(trees, weights, decay, max_pairs, scratch, out), max_pairs)
    return out


@njit
def _add_products(
    rows: Subtrees, at: Layout, delta: FloatArray, left: FloatArray, right: FloatArray, out: FloatArray
) -> None:
    """Add ⟨left[u], right[v]⟩ Δ(u, v) over all matching pairs of subtrees to ``out[production of u]``."""
    for u in range(rows.production.size):
        p = rows.production[u]
        if p < 0:
            continue
        value = 0.0
        for rank in range(at.first[p + 1] - at.first[p]):
            v = at.members[at.first[p] + rank]
            product = 0.0
            for k in range(left.shape[1]):
                product += left[u, k] * right[v, k]
            value += product * delta[at.line[u] + rank]
        out[p] += value


@njit
def _add_own(
    trees: Trees, weights: FloatArray, decay: float, max_pairs: int, scratch: Scratch, out: FloatArray
) -> int:
    """Add to ``out`` every production's part in Σ weights[t] K(t, t) over the trees t.

    Return the largest number of matching pairs of a tree with itself; the first that is more than
    ``max_pairs`` ends it.
    """
    delta = np.empty(256)
    most = 0
    for t in range(weights.size):
        pairs = match(trees, t, trees, t, scratch)
        most = max(most, pairs)
        if pairs > max_pairs:
            break
        if pairs > delta.size:
            delta = np.empty(max(pairs, min(2 * delta.size, max_pairs)))
        fill(trees, t, trees, decay, scratch, delta)
        origin = trees.offsets[t]
        for u in range(origin, trees.offsets[t + 1]):
            if trees.production[u] >= 0:
                line, total = scratch.line[u - origin], 0.0
                for k in range(scratch.width[u - origin]):
                    total += delta[line + k]
                out[trees.production[u]] += weights[t] * total
    return most
