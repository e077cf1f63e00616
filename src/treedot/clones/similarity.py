"""The similarity of two trees, and all similar pairs of many trees.

The similarity is the Jaccard similarity of the multisets of productions: the number of productions in both
trees, divided by the number in either. Two similar trees have similar sizes, and share one of their *rarest*
productions. So each tree is compared only with the trees that share one of its rarest productions, which an
inverted index finds; no pair is missed (prefix filtering: Bayardo, Ma & Srikant 2007; Xiao et al. 2008).

Thousands of similar trees have millions of pairs. So each tree is compared with a limited number of others,
and only until it is similar to enough of them: time grows with the number of trees, not with its square.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing, njit_inside
from treedot._runtime.ragged import ends_of, places_of
from treedot._runtime.sorted_arrays import locate, runs
from treedot._runtime.threads import thread_map
from treedot.clones.production_keys import RarestFirst, element_keys, low_bits, n_cells, production_keys
from treedot.readers import read_tree
from treedot.trees import Forest

BLOCK = 512  # trees per task
MAX_COMPARED = 10_000  # trees to compare a tree with; 100,000 functions of packages need at most 3,200
MAX_SIMILAR = 500  # similar trees to keep for a tree; the same functions need at most 100
ROUNDING = 1e-9  # a margin for rounding in bounds that are computed from a threshold


class Multisets(NamedTuple):
    """The productions of every tree as ascending numbers, the rarest first.

    Each occurrence of a production in a tree is an element of its own. So the intersection of two multisets
    has as many elements as the two lists have numbers in common.
    """

    elements: IntArray
    bounds: IntArray  # the elements of tree i are from bounds[i] to bounds[i + 1]

    @property
    def sizes(self) -> IntArray:
        """The number of productions of every tree."""
        return np.diff(self.bounds)

    def of(self, trees: IntArray) -> Multisets:
        """Return the multisets of the given trees."""
        return self.first(trees, self.sizes[trees])

    def first(self, trees: IntArray, counts: IntArray) -> Multisets:
        """Return the ``counts[k]`` rarest elements of ``trees[k]``, for every k."""
        places, bounds = places_of(self.bounds[trees], counts)
        return Multisets(self.elements[places], bounds)


class PrefixIndex(NamedTuple):
    """An inverted index from rare elements to trees, which are numbered by size.

    The trees with ``elements[k]`` among their rarest elements are ``trees[start[k]:start[k + 1]]``. Elements
    are *turned*: their random low bits come first, and the bits of their rank last. So equal ranges of
    elements hold about equally many.
    """

    elements: IntArray  # distinct, turned and ascending
    start: IntArray
    trees: IntArray

    def lists(self, elements: IntArray) -> tuple[IntArray, IntArray]:
        """Return the starts and ends of the lists of elements; both are 0 if an element has no list."""
        first, last = np.zeros((2, len(elements)), np.int64)
        known, k = locate(turned(elements), self.elements)
        first[known], last[known] = self.start[k], self.start[k + 1]
        return first, last


class SimilarPairs(NamedTuple):
    """Pairs of trees, a < b, in ascending order, and their similarity."""

    a: IntArray
    b: IntArray
    similarity: FloatArray
    n_limited: int = 0  # the number of trees that reached a limit, so that pairs may be missing

    def where(self, keep: Array) -> SimilarPairs:
        """Return the pairs for which ``keep`` is true."""
        return SimilarPairs(self.a[keep], self.b[keep], self.similarity[keep], self.n_limited)


def similarity(a: Any, b: Any) -> float:
    """Return the share of the productions of either tree that occur in both: Σ min(n, m) / Σ max(n, m).

    A production is a node's label with its children's labels; n and m are the numbers of its occurrences in
    the two trees. A tree that is a single leaf has no productions; it has the similarity 1 with an equal
    leaf and 0 with any other tree. Productions are compared by 62-bit hashes.

    Parameters
    ----------
    a, b : Tree, str, list or Forest
        The two trees: a ``Tree``, bracket text, nested lists, or a ``Forest`` of one tree. A ``Tree`` or
        ``Forest`` keeps its hashes, so that comparing it again takes a few microseconds.

    Returns
    -------
    float
        The similarity, from 0 to 1.

    Raises
    ------
    ParameterError
        If ``a`` or ``b`` is not exactly one tree.

    See Also
    --------
    find_duplicates : All similar trees of a set.
    compare : The similarity of two trees and where they differ.

    Examples
    --------
    >>> similarity("(f (a x) (b y))", "(f (a x) (b z))")
    0.5
    """
    x, y = read_tree(a), read_tree(b)
    elements, others = x.derived(_element_set), y.derived(_element_set)
    if not elements and not others:  # two leaves
        return float(x.labels[x.label[0]] == y.labels[y.label[0]])
    both = len(elements & others)
    return both / (len(elements) + len(others) - both)


def _element_set(forest: Forest) -> frozenset[int]:
    """Return the keys of all occurrences of productions in a forest of one tree.

    Each occurrence of a production has its own key, which is the same in all forests.
    """
    _, production, occurrence = occurrences(forest)
    return frozenset(element_keys(production_keys(forest)[production], occurrence).tolist())


def multiset_similarity(a: IntArray, b: IntArray) -> float:
    """Return the Jaccard similarity of two multisets of numbers; 1 if both are empty."""
    if np.array_equal(a, b):
        return 1.0
    (x, n), (y, m) = np.unique(a, return_counts=True), np.unique(b, return_counts=True)
    _, i, j = np.intersect1d(x, y, assume_unique=True, return_indices=True)
    both = int(np.minimum(n[i], m[j]).sum())
    return both / (len(a) + len(b) - both)


def production_multisets(forest: Forest) -> Multisets:
    """Return the multiset of every tree's productions."""
    tree, production, occurrence = occurrences(forest)
    keys = _numbers(production, occurrence)
    _, first, element, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), np.int64)
    named = element_keys(production_keys(forest)[production[first]], occurrence[first])
    rank[np.argsort(_rarest_first(named, counts), kind="stable")] = np.arange(len(counts))
    element = rank[element]
    bounds = ends_of(np.bincount(tree, minlength=len(forest)))
    return Multisets(element[np.lexsort((element, tree))], bounds)


def unordered_multisets(forest: Forest) -> Multisets:
    """Return the multiset of every tree's productions, with numbers that do not order them by rarity."""
    tree, production, occurrence = occurrences(forest)
    return Multisets(_numbers(production, occurrence), ends_of(np.bincount(tree, minlength=len(forest))))


def _numbers(production: IntArray, occurrence: IntArray) -> IntArray:
    """Return a number for each occurrence of a production, in the order of productions."""
    return production * (occurrence.max(initial=0) + 1) + occurrence


def occurrences(forest: Forest) -> tuple[IntArray, IntArray, IntArray]:
    """Return three numbers for every inner node, tree by tree, sorted by production.

    They are the tree, the production, and how many nodes with the same production precede it in the tree.
    """
    inner = forest.production >= 0
    tree, production = forest.tree_of_node[inner], forest.production[inner].astype(np.int64)
    order = np.lexsort((production, tree))
    tree, production = tree[order], production[order]
    places = np.arange(len(tree))
    is_first = np.ones(len(tree), bool)
    is_first[1:] = (np.diff(tree) != 0) | (np.diff(production) != 0)
    return tree, production, places - np.maximum.accumulate(np.where(is_first, places, 0))


def _rarest_first(keys: IntArray, counts: IntArray) -> IntArray:
    """Return the rank of each element, the rarest first, which does not depend on the order of the trees."""
    cells = n_cells(int(counts.sum()))
    in_cells = np.bincount(keys >> low_bits(cells), counts, cells)
    return RarestFirst(in_cells.astype(np.int32)).numbers(keys)


def similarities(multisets: Multisets, a: IntArray, b: IntArray) -> FloatArray:
    """Return the similarity of the trees ``a[k]`` and ``b[k]``, for every k."""
    result = np.zeros(len(a))
    _similarities(multisets.elements, multisets.bounds, np.asarray(a), np.asarray(b), result)
    return result


def similar_pairs(
    multisets: Multisets, threshold: float, n_jobs: int | None = None, *, counted: float = 0.0
) -> SimilarPairs:
    """Return all pairs of trees whose similarity is at least ``threshold``, which is above 0.

    A tree without productions is in no pair. A tree is compared with at most 10,000 trees that are not
    larger, and found to be similar to at most 500, starting with those that share the rarest productions.
    Pairs below ``counted`` do not count for that; of these, too, at most 500 are kept for a tree.
    """
    order = np.argsort(multisets.sizes, kind="stable")
    by_size = multisets.of(order)
    index = prefix_index(by_size, threshold)
    for array in (*by_size, index.trees):  # like mapped files: one compiled version serves both
        array.setflags(write=False)
    tasks = range(0, len(order), BLOCK)

    def looked_up(start: int) -> Partners:
        end = min(start + BLOCK, len(order))
        return partners(by_size, index, range(start, end), threshold, np.full(end, -1, np.int32), counted)

    with thread_map(n_jobs, len(tasks)) as run:
        found = [NO_PARTNERS, *run(looked_up, tasks)]
    a, b, similarity, limited = (np.concatenate(parts) for parts in zip(*found, strict=True))
    a, b = order[a], order[b]
    a, b = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((b, a))
    return SimilarPairs(a[order], b[order], similarity[order], len(limited))


class Partners(NamedTuple):
    """Pairs of trees that are numbered by size; ``partner`` has the smaller number."""

    tree: IntArray
    partner: IntArray
    similarity: FloatArray
    limited: IntArray  # the trees that reached a limit


NO_PARTNERS = Partners(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))


def prefix_index(by_size: Multisets, threshold: float) -> PrefixIndex:
    """Return the index of the rarest elements of trees, which are ordered by size."""
    trees = np.arange(len(by_size.sizes))
    lengths = indexed_lengths(by_size.sizes, threshold)
    return index_of(turned(by_size.first(trees, lengths).elements), np.repeat(trees, lengths))


def turned(elements: IntArray) -> IntArray:
    """Move the low 32 bits of 63-bit numbers to the front."""
    return (elements & ((1 << 32) - 1)) << 31 | elements >> 32


def index_of(elements: IntArray, trees: IntArray) -> PrefixIndex:
    """Return the index in which ``trees[k]`` has ``elements[k]``; elements are turned, and trees ascend."""
    order = np.argsort(elements, kind="stable")
    distinct, start = runs(elements[order])
    return PrefixIndex(distinct, start, trees[order])


def indexed_lengths(sizes: IntArray, threshold: float) -> IntArray:
    """Return the number of rarest elements of each tree that must be in the index.

    If y is not larger than x and their similarity is at least t, they share at least 2t / (1 + t) · |y|
    elements.
    """
    return _lengths(sizes, 2 * threshold / (1 + threshold))


def _lengths(sizes: IntArray, share: float) -> IntArray:
    """Return for each size how many elements must be checked to find one of a shared ``share`` of them."""
    return np.minimum(sizes, sizes - np.ceil(share * sizes - ROUNDING).astype(np.int64) + 1)


def partners(
    by_size: Multisets,
    index: PrefixIndex,
    block: range,
    threshold: float,
    seen: IntArray,
    counted: float = 0.0,
) -> Partners:
    """Return the pairs of each tree in a block with the similar trees before it.

    ``seen`` is working memory: -1 for every tree up to the end of the block. The other parameters are those
    of ``similar_pairs``.
    """
    trees = np.arange(block.start, block.stop)
    sizes = by_size.bounds[trees + 1] - by_size.bounds[trees]
    rarest = by_size.first(trees, _lengths(sizes, threshold))
    first, last = index.lists(rarest.elements)
    room = min(block.stop, 2 * MAX_SIMILAR)
    found, similarity = np.empty(room, np.int64), np.empty(room)
    parts, limited = [NO_PARTNERS[:3]], []
    for x, begin, end in zip(block, rarest.bounds[:-1], rarest.bounds[1:], strict=True):
        lists = (index.trees, first[begin:end], last[begin:end])
        n, is_limited = _partners(
            x, by_size.elements, by_size.bounds, *lists, threshold, counted, MAX_COMPARED, MAX_SIMILAR,
            seen, found, similarity,
        )  # fmt: skip
        parts.append((np.full(n, x), found[:n].copy(), similarity[:n].copy()))
        if is_limited:
            limited.append(x)
    tree, partner, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Partners(tree, partner, values, np.array(limited, np.int64))


@njit_borrowing
def _partners(
    x: int,
    elements: IntArray,
    bounds: IntArray,
    trees: IntArray,
    first: IntArray,
    last: IntArray,
    threshold: float,
    counted: float,
    max_compared: int,
    max_similar: int,
    seen: IntArray,
    found: IntArray,
    similarity: FloatArray,
) -> tuple[int, bool]:
    """Write the trees before x that are similar to it to ``found``, until there are too many.

    The lists from ``first`` to ``last`` hold the trees that share one of x's rarest elements. Each tree that
    is large enough is compared once, starting with the rarest elements and, within a list, with the largest
    trees. Return the number of trees found, and whether a limit was reached.
    """
    size = bounds[x + 1] - bounds[x]
    smallest = threshold * size - ROUNDING
    compared = n = n_counted = 0
    for k in range(first.size):
        start, end = first[k], last[k]
        while start < end:  # the trees before x
            middle = (start + end) // 2
            if trees[middle] < x:
                start = middle + 1
            else:
                end = middle
        for place in range(end - 1, first[k] - 1, -1):
            y = trees[place]
            if bounds[y + 1] - bounds[y] < smallest:
                break
            if seen[y] == x:
                continue
            if compared == max_compared or n_counted == max_similar:
                return n, True
            seen[y] = x
            compared += 1
            value = _similarity(elements, bounds, x, y, threshold)
            if value >= counted and value >= threshold:
                n_counted += 1
            elif value < threshold or n - n_counted == max_similar:
                continue
            found[n], similarity[n] = y, value
            n += 1
    return n, False


@njit_borrowing
def _similarities(elements: IntArray, bounds: IntArray, a: IntArray, b: IntArray, result: FloatArray) -> None:
    for k in range(result.size):
        result[k] = _similarity(elements, bounds, a[k], b[k], 0.0)


@njit_inside
def _similarity(elements: IntArray, bounds: IntArray, a: int, b: int, threshold: float) -> float:
    """Return the similarity of two trees, or 0 if it is below the threshold."""
    i, j, end_i, end_j = bounds[a], bounds[b], bounds[a + 1], bounds[b + 1]
    either = (end_i - i) + (end_j - j)
    needed = threshold / (1 + threshold) * either - ROUNDING
    spare_i, spare_j = end_i - i - needed, end_j - j - needed  # how many elements may be unmatched
    both = 0
    while i < end_i and j < end_j and spare_i >= 0 and spare_j >= 0:
        x, y = elements[i], elements[j]
        if x == y:
            both += 1
            i += 1
            j += 1
        elif x < y:
            spare_i -= 1
            i += 1
        else:
            spare_j -= 1
            j += 1
    return both / (either - both) if both > 0 and both >= needed else 0.0
