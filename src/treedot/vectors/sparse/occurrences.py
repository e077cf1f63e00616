"""List every occurrence of a fragment in one tree, to explain the values of its row."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, WordArray
from treedot._runtime.hashing import mix_words
from treedot.trees import Forest, Tree
from treedot.vectors.chunks import ALL_DONE, FRAGMENTS, NEEDS_MEMORY, Chunk, Ended, run_to_end
from treedot.vectors.sparse.bounded import ONE, FoundFragments, find_fragments, hash_productions
from treedot.vectors.sparse.rows import UNBOUNDED, LearnedColumns, Rules, damped


class Occurrences(NamedTuple):
    """All occurrences of bounded fragments in one tree, and what each distinct fragment adds to the row.

    An occurrence is rooted at a node. If its ``position`` is -1, it is the production of that node. Otherwise
    it is the occurrence ``base``, which has the same root, with the child at ``position`` expanded by the
    occurrence ``part``. Both have smaller numbers.

    Attributes
    ----------
    root, base, part, position, productions, fragment : integer arrays
        For every occurrence: its root, its construction, the number of its productions, and the number of
        its fragment.
    key, counts : integer arrays
        The key of every distinct fragment, ascending, and the number of its occurrences.
    column : integer array
        The column of each fragment; -1 if it has none.
    value : float array
        What each fragment adds to its column, with its sign, in float64: damped, weighted and divided by
        the length of the row.
    """

    root: IntArray
    base: IntArray
    part: IntArray
    position: IntArray
    productions: IntArray
    fragment: IntArray
    key: WordArray
    counts: IntArray
    column: IntArray
    value: FloatArray

    def nodes_of(self, fragment: int) -> list[list[int]]:
        """Return the inner nodes of every occurrence of a fragment, ascending."""
        return [self._nodes(k) for k in np.flatnonzero(self.fragment == fragment).tolist()]

    def _nodes(self, occurrence: int) -> list[int]:
        found, waiting = [], [occurrence]
        while waiting:
            k = waiting.pop()
            if self.position[k] < 0:
                found.append(int(self.root[k]))
            else:
                waiting += (int(self.base[k]), int(self.part[k]))
        return sorted(found)


def find_occurrences(
    chunk: Chunk, rules: Rules, learned: LearnedColumns, length: float | None = None
) -> Occurrences:
    """Return the occurrences of bounded fragments in the only tree of a chunk.

    The values are divided by ``length``, by default by their own length if rows are normalised.
    """
    found = _found(chunk, rules.budget)
    arity = chunk.forest.arity
    root = np.flatnonzero(arity > 0)[np.cumsum(found.position < 0) - 1]
    with np.errstate(over="ignore"):  # hashes wrap around
        key = np.maximum(mix_words(found.sum), ONE)
    distinct, first, fragment, count = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    column, value = _columns(distinct, rules, learned)
    g = np.array([damped(times, rules.damping) for times in range(count.max(initial=0) + 1)])
    value = value * rules.weight[found.productions[first]] * g[count]
    if length is None:
        length = math.sqrt(float(value @ value)) if rules.normalize and value.any() else 1.0
    return Occurrences(
        root, found.base, found.part, found.position, found.productions, fragment, distinct, count,
        column, value / length,
    )  # fmt: skip


def fragment_at(forest: Forest, nodes: list[int]) -> Tree:
    """Return the fragment that consists of the given inner nodes of a forest, in ascending order."""
    start, child = forest.children
    made: dict[int, Tree] = {}
    for node in nodes:  # postorder: children before their parents
        family = child[start[node] : start[node + 1]].tolist()
        below = [made.get(c) or Tree(forest.labels[forest.label[c]]) for c in family]
        made[node] = Tree(forest.labels[forest.label[node]], below)
    return made[nodes[-1]]


def _found(chunk: Chunk, budget: int) -> FoundFragments:
    """Return the fragments found in a tree, without unused memory."""
    _, arity, label, label_key = chunk.arrays
    count = 0

    def run(tree: int, memory: FoundFragments, out: tuple[()]) -> Ended:
        nonlocal count
        hash_productions(arity, label, label_key, memory.stack, memory.hash)
        complete, count = find_fragments(arity, budget, memory)
        return (1, ALL_DONE) if complete else (0, NEEDS_MEMORY)

    shown = None if budget == UNBOUNDED else budget
    memory, _, _ = run_to_end(run, chunk, FoundFragments.make(chunk.n_nodes, FRAGMENTS), (), shown)
    of_nodes, of_fragments = memory[:4], memory[4:]
    return FoundFragments._make([*of_nodes, *(array[:count] for array in of_fragments)])


def _columns(key: WordArray, rules: Rules, learned: LearnedColumns) -> tuple[IntArray, FloatArray]:
    """Return the columns of fragments, and their signs times the learned weights."""
    column, value = (key >> rules.shift).astype(np.int64), np.ones(key.size)
    if rules.learned:
        wanted = key & rules.mask
        rank = np.searchsorted(learned.key, wanted)
        known = rank < np.searchsorted(learned.key, wanted, side="right")
        value = np.append(learned.weight, learned.other)[np.where(known, rank, -1)]
        if rules.dictionary:
            return np.where(known, rank, -1), value
    return column, np.where(key & ONE, -value, value)
