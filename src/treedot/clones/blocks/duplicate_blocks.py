"""``find_duplicate_blocks``: groups of similar blocks, runs of consecutive statements, in source files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from treedot.clones.blocks.equal_runs import equal_runs
from treedot.clones.blocks.listing import Lines, lines_of, telling
from treedot.clones.blocks.reported import places_of_groups, unreported
from treedot.clones.blocks.run_similarity import Productions, productions_of
from treedot.clones.blocks.runs_as_trees import contents, names_of_runs, rows_of_runs, trees_of_runs
from treedot.clones.blocks.similar_runs import SimilarRuns, longest, similar_runs
from treedot.clones.blocks.statements import Statements, statement_rows, statements_of
from treedot.clones.duplicates import MIN_NODES, THRESHOLD, OnLimit, checked_settings, distinct_trees
from treedot.clones.groups import COMMON_BITS, DuplicateGroup, all_groups, group_of_two
from treedot.clones.near_duplicates import Compared, NearDuplicates
from treedot.clones.similar_trees import SimilarTrees, kept
from treedot.clones.similarity import SimilarPairs
from treedot.trees import Forest

RULES = 2  # increased when other blocks are found in the same files
MIN_BITS = 30.0  # shared by the two blocks of a pair: fewer are idioms
DENSE = 0.6  # bits per node below which blocks that share less than 50 bits come last: tables, imports


Run = tuple[int, int]  # the first node, and the one after the last


class DuplicateBlocks(NamedTuple):
    """Groups of similar blocks.

    Attributes
    ----------
    trees : Forest
        A tree for each block, a node ``block`` above its statements, with the columns ``file``, ``start``,
        ``end``, ``language``, ``blurred`` and ``name``, the function around it.
    groups : list of DuplicateGroup
        The groups, the most important first; members are numbers of trees.
    """

    trees: Forest
    groups: list[DuplicateGroup]


def find_duplicate_blocks(
    files: Forest,
    *,
    threshold: float = THRESHOLD,
    min_nodes: int = MIN_NODES,
    functions: Forest | None = None,
    groups: Iterable[DuplicateGroup] = (),
    on_limit: OnLimit | None = None,
) -> DuplicateBlocks:
    r"""Return the groups of similar blocks in files, the most important first.

    A block is a run of consecutive statements of one body: of a function, a loop, a branch, a class, or the
    top level of a file. Two blocks form a pair if

    - each has ``min_nodes`` nodes on three lines or more, and they do not overlap;
    - they begin where two equal runs or two alike statements begin, and end where such end. Equal runs are
      the longest that are equal apart from names and literals, with 12 nodes or more. Two statements are
      alike if their similarity is at least the threshold, and their bodies contain equal runs or alike
      statements;
    - their similarity, the share of productions of either that occur in both, is at least ``threshold``, and
      they share 40 bits (30 if the similarity is at least ``threshold + 0.05``; see ``DuplicateGroup``);
    - no such pair contains both.

    Pairs with the same blocks form groups by complete linkage; pairs that it separates are groups of two.
    Left out are pairs inside two functions of one of the given ``groups``, or which consist to 80 % of such
    functions; and groups whose blocks lie, by half of their lines, in blocks that earlier groups link: k
    copies of a block take k - 1 pairs in the list.

    Limits keep the time from growing with the square of the code. If a run of 200 nodes or more is equal in
    more than 50 places, only consecutive places are compared; a pair begins and ends at most 30 equal runs
    apart.

    Parameters
    ----------
    files : Forest
        Whole files with the column ``statements``, read by ``CodeSettings(unit="file", statements=True)``
        with blurred names and literals.
    threshold : float, default=0.7
        The lowest similarity, above 0 and at most 1.
    min_nodes : int, default=40
        The least number of nodes of a block.
    functions : Forest, default=None
        The functions of the files, whose names blocks get.
    groups : iterable of DuplicateGroup, default=()
        Groups of near-duplicates among ``functions``, which are not reported again.
    on_limit : callable, default=None
        Called with the number of statements at which a run begins that is equal in too many places, if there
        are any.

    Returns
    -------
    DuplicateBlocks
        The blocks as trees, and their groups by descending score. Groups that share less than 50 bits, and
        less than 0.6 per node, which are tables or imports, come last, and after them those in tests.

    Raises
    ------
    ParameterError
        If the files have no column ``statements``, or a setting is invalid.

    See Also
    --------
    find_duplicates : Near-duplicates among whole functions.

    Examples
    --------
    >>> from treedot.readers import CodeSettings, parse_code
    >>> block = (
    ...     "    total = sum(price * count for price, count in items if count)\n"
    ...     "    if total > limit:\n"
    ...     "        raise ValueError(f'{total} exceeds {limit}')\n"
    ...     "    log.info('total %d', total)\n"
    ... )
    >>> other = "    while x > 1:\n        x = f(x, [x])\n    del y[x:2]\n"
    >>> source = f"def a(items):\n{block}\ndef b(x):\n{other}{block}"
    >>> settings = CodeSettings("file", "blur", "blur", blurred=True, statements=True)
    >>> found = find_duplicate_blocks(parse_code(source, "python", settings=settings))
    >>> [(found.trees.columns["start"][i], found.trees.columns["end"][i]) for i in found.groups[0].members]
    [(2, 5), (11, 14)]
    """
    threshold, min_nodes = checked_settings(threshold, min_nodes)
    reported = places_of_groups(functions, groups)
    settings = ("blocks", RULES, threshold, min_nodes, *_numbered(files, reported))
    found = kept(
        files,
        settings,
        lambda: _similar_blocks(files, reported, threshold, min_nodes),
        *statement_rows(files),
    )
    if found.pairs.n_limited and on_limit is not None:
        on_limit(found.pairs.n_limited)
    blocks = trees_of_runs(files, found.runs)
    compared = Compared(blocks.sizes, blocks.columns, found.copies, found.multisets, found.information)
    near = NearDuplicates(compared, found.pairs, threshold)
    if functions is not None:
        blocks.columns["name"] = names_of_runs(blocks, functions)
    return DuplicateBlocks(blocks, _listed(blocks, near))


def _numbered(files: Forest, reported: list[list[Lines]]) -> tuple[list[int], list[list[tuple[int, ...]]]]:
    """Return the files and the reported places with numbers instead of the names of files."""
    numbers: dict[Any, int] = {}
    of_files = [numbers.setdefault(file, len(numbers)) for file in files.columns.get("file", ())]
    return of_files, [
        [(numbers.setdefault(file, len(numbers)), start, end) for file, start, end in members]
        for members in reported
    ]


def _similar_blocks(
    files: Forest, reported: list[list[Lines]], threshold: float, min_nodes: int
) -> SimilarTrees:
    """Return the similar pairs of blocks that the groups of functions at some places do not report."""
    statements, productions = statements_of(files), productions_of(files)
    pairs, n_limited = _similar(files, statements, productions, threshold, min_nodes)
    if reported:
        pairs = pairs.where(unreported(files, statements, pairs, reported))
    return _as_trees(files, statements, productions, pairs, n_limited)


def _similar(
    files: Forest, statements: Statements, productions: Productions, threshold: float, min_nodes: int
) -> tuple[SimilarRuns, int]:
    """Return the longest pairs of similar runs, and the number of statements that reached the limit."""
    equal = equal_runs(statements, files.subtree[statements.node].astype(np.uint64))
    pairs = similar_runs(statements, productions, equal, threshold, min_nodes)
    return longest(statements, pairs.where(pairs.bits >= MIN_BITS)), equal.n_limited


def similar_spans(files: Forest, threshold: float, min_nodes: int) -> set[tuple[Run, Run]]:
    """Return the longest pairs of similar runs, each by its first node and the one after its last."""
    statements, productions = statements_of(files), productions_of(files)
    pairs, _ = _similar(files, statements, productions, threshold, min_nodes)
    return {((a, b), (c, d)) for a, b, c, d in pairs.spans(statements).tolist()}


def _as_trees(
    files: Forest, statements: Statements, productions: Productions, pairs: SimilarRuns, n_limited: int
) -> SimilarTrees:
    """Return pairs of runs as pairs of distinct trees."""
    ends, number = np.unique(np.column_stack(pairs[:4]).reshape(-1, 2), axis=0, return_inverse=True)
    first, last = ends.T
    rows = rows_of_runs(statements, first, last)
    blocks = trees_of_runs(files, rows)
    _, copies = distinct_trees(blocks, np.arange(len(blocks)))
    kind = np.empty(len(blocks), np.int64)
    for k, some in enumerate(copies):
        kind[some] = k
    one = np.array([some[0] for some in copies], np.int64)
    two = np.sort(kind[number.reshape(-1, 2)], axis=1)
    two, place = np.unique(two, axis=0, return_index=True)
    differ = two[:, 0] != two[:, 1]
    similar = SimilarPairs(two[differ, 0], two[differ, 1], pairs.similarity[place[differ]], n_limited)
    return SimilarTrees(copies, *contents(productions, statements, first[one], last[one]), similar, rows)


def _listed(blocks: Forest, found: NearDuplicates) -> list[DuplicateGroup]:
    """Return the groups and pairs that say something new, the most important first."""
    places = lines_of(blocks)

    def order(group: DuplicateGroup) -> tuple[bool, bool, float, tuple[int, ...]]:
        is_table = group.bits < min(COMMON_BITS, DENSE * group.nodes)
        return group.is_in_tests, is_table, -group.score, group.members

    groups = all_groups(found)
    return list(telling(sorted([*groups, *_pairs_apart(found, groups)], key=order), places))


def _pairs_apart(found: NearDuplicates, groups: Iterable[DuplicateGroup]) -> Iterator[DuplicateGroup]:
    """Yield the pairs that complete linkage separates, as groups of two."""
    together = {
        pair
        for group in groups
        for pair in combinations(sorted(set(found.kind[list(group.members)].tolist())), 2)
    }
    copies = found.trees.copies
    for a, b, similarity in zip(*(column.tolist() for column in found.near[:3]), strict=True):
        if (a, b) not in together:
            pairs = product(copies[a], copies[b])
            i, j = next((i, j) for i, j in pairs if not found.places.overlap(i, j))
            yield group_of_two(found, i, j, similarity)
