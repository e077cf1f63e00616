"""``find_duplicates``: groups of near-duplicates among many trees, the most important first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treedot._runtime.array_types import BoolArray, IntArray
from treedot.clones.groups import DuplicateGroup
from treedot.clones.information import Information, in_languages, languages_of, trees_of_languages
from treedot.clones.listed import groups_of
from treedot.clones.near_duplicates import Compared, NearDuplicates, reach, worth_a_look
from treedot.clones.production_keys import content_order, tree_keys
from treedot.clones.similar_trees import SimilarTrees, kept
from treedot.clones.similarity import production_multisets, similar_pairs
from treedot.parameters import checked_integer, checked_positive, checked_share
from treedot.readers import read_trees
from treedot.trees import Forest

THRESHOLD = 0.7
MIN_NODES = 40

OnLimit = Callable[[int], object]


def find_duplicates(
    trees: Any,
    *,
    threshold: float = THRESHOLD,
    min_nodes: int = MIN_NODES,
    n_jobs: int | None = None,
    on_limit: OnLimit | None = None,
) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates among trees, the most important first.

    Two trees are near-duplicates if their similarity, the share of productions (a node's label with its
    children's labels) of either that occur in both, is at least ``threshold + 0.1``; or less if the shared
    productions are rare enough to rule out chance (see ``bits`` of ``DuplicateGroup``): at least
    ``threshold + 0.05`` with 20 bits, or ``threshold`` with 40. With 40 bits, a similarity of
    ``threshold - 0.1`` is enough for two trees that are nearest to each other, and ``threshold - 0.2`` if one
    is nearest to the other and half of the names and literals in the column ``blurred`` agree. The same
    similarity is enough with 30 bits if it and half of the agreement of names and literals add up to
    ``threshold + 0.2``. (The two limits below the threshold are for a threshold of 0.7. They lie at 2/7 of
    the way to 0 for lower thresholds, and 2/3 of the way from 1 for higher ones, and half as far.)

    Groups come from complete linkage: every two members are near-duplicates. A tree that is apart from its
    nearest one is in a further group with it, and ``also`` of the groups lists the remaining pairs. Trees of
    one file that overlap, as their columns ``file``, ``start`` and ``end`` say, are not duplicates of each
    other, and groups and pairs that lie inside others are left out.

    The order of the trees does not matter: of equally similar pairs, the content of the trees decides which
    is joined first. Of equal trees on the same lines of a file, one is reported.

    All pairs are compared, exactly, up to two limits that keep the work proportional to the number of
    trees: a tree is compared with at most 10,000 others that are no larger, and found to be similar to at
    most 500, starting with those that share the rarest productions; equal trees count once. Trees reach the
    limits if thousands are similar but not equal, as in generated code.

    Parameters
    ----------
    trees : source of trees
        The trees, as ``read_trees`` takes them.
    threshold : float, default=0.7
        The similarity from which on rare shared productions are enough, above 0 and at most 1.
    min_nodes : int, default=40
        Smaller trees are ignored.
    n_jobs : int, default=None
        The number of threads; -1 uses all cores. The groups do not depend on it.
    on_limit : callable, default=None
        Called with the number of trees that reached a limit, if there are any; some of their near-duplicates
        may be missing.

    Returns
    -------
    list of DuplicateGroup
        The groups by descending score; groups that share little more than a shape come last, and groups that
        lie wholly in files of tests (by the column ``file``) after them.

    Examples
    --------
    >>> trees = ["(f (a x y) (b z) (c z))", "(g (d u) (e v))", "(f (a x y) (b z))"]
    >>> for group in find_duplicates(trees, min_nodes=5, threshold=0.3):
    ...     print(group.members, group.similarity, group.band)
    (0, 2) 0.4 similar
    """
    return groups_of(
        near_duplicates(
            read_trees(trees), threshold=threshold, min_nodes=min_nodes, n_jobs=n_jobs, on_limit=on_limit
        )
    )


def near_duplicates(
    forest: Forest,
    *,
    threshold: float = THRESHOLD,
    min_nodes: int = MIN_NODES,
    n_jobs: int | None = None,
    on_limit: OnLimit | None = None,
) -> NearDuplicates:
    """Return all pairs of near-duplicates; the parameters are those of ``find_duplicates``."""
    threshold, min_nodes = checked_settings(threshold, min_nodes)
    settings = ("trees", threshold, min_nodes)
    found = kept(forest, settings, lambda: _similar_trees(forest, threshold, min_nodes, n_jobs))
    if found.pairs.n_limited and on_limit is not None:
        on_limit(found.pairs.n_limited)
    compared = Compared(forest.sizes, forest.columns, found.copies, found.multisets, found.information)
    return NearDuplicates(compared, found.pairs, threshold)


def _similar_trees(forest: Forest, threshold: float, min_nodes: int, n_jobs: int | None) -> SimilarTrees:
    """Return all similar pairs of trees."""
    distinct, copies = distinct_trees(forest, np.flatnonzero(forest.sizes >= min_nodes))
    multisets = production_multisets(distinct)
    information = _information(distinct, in_languages(languages_of(forest.columns, len(forest)), copies))
    pairs = similar_pairs(multisets, reach(threshold), n_jobs, counted=threshold)
    pairs = worth_a_look(pairs, information, threshold)
    return SimilarTrees(copies, multisets, information, pairs).involved()


def distinct_trees(forest: Forest, numbers: IntArray) -> tuple[Forest, list[list[int]]]:
    """Return the distinct trees among ``numbers``, ordered by content, and the numbers of their copies."""
    some = forest if len(numbers) == len(forest) else forest[numbers]
    sizes = np.bincount(some.tree_of_node[some.arity > 0], minlength=len(some))
    keys = tree_keys(some)
    order = content_order(sizes, keys)
    keys = keys[order]
    start = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1))[: len(order)])
    copies = np.split(numbers[order], start[1:]) if len(order) else []
    return some[order[start]], [part.tolist() for part in copies]


def checked_settings(threshold: float, min_nodes: int) -> tuple[float, int]:
    """Return the checked settings of a search for duplicates."""
    threshold = checked_share("threshold", checked_positive("threshold", threshold))
    return threshold, checked_integer("min_nodes", min_nodes, at_least=2)


def _information(forest: Forest, table: BoolArray) -> Information:
    """Return the information of the productions of distinct trees, whose languages are in a table."""
    inner = forest.production >= 0
    pairs = np.unique(forest.tree_of_node[inner] * np.int64(forest.n_productions) + forest.production[inner])
    tree, productions = np.divmod(pairs, max(1, forest.n_productions))
    bounds = np.searchsorted(tree, np.arange(len(forest) + 1))
    frequency = np.bincount(productions, minlength=forest.n_productions)
    occurs = np.zeros((table.shape[1], forest.n_productions), bool)
    for language, is_in in enumerate(table.T):
        occurs[language, productions[is_in[tree]]] = True
    return Information(productions, bounds, frequency, trees_of_languages(occurs, table))
