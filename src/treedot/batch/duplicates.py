"""Near-duplicates among the trees of many files: the same groups as ``find_duplicates`` in memory.

Two similar trees share one of their rarest productions. Which productions are rare is known only after all
trees have been read. So the work takes two rounds of tasks, and a single process works between and after
them:

1. Each shard becomes a part that lists the productions of its trees, as keys hashed from the labels.
2. One process builds an index of these lists, in files that are mapped into memory (``pair_index``).
3. Each range of trees of the index is looked up in it: the compiled search of ``clones.similarity``, in
   the same order and with the same limits as in memory, finds the smaller trees that are similar
   (``pair_search``).
4. One process forms groups from the pairs, as in memory, with only the trees that are in a pair.

Keys stand for productions (2^62 values) and trees (2^128 values). Apart from collisions of keys, pairs,
similarities and groups are the same to the last bit. A task needs memory for its shard; or for its range,
plus four bytes for each smaller tree. The index is in the system's file cache. The single process needs up to
half a gigabyte to count productions, about 100 bytes per tree, and the memory that grouping needs for the
trees with near-duplicates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, BoolArray, IntArray
from treedot._runtime.sorted_arrays import locate
from treedot._storage.locks import lock
from treedot.batch.finished import DUPLICATES, PAIRS, is_complete
from treedot.batch.pair_index import PairIndex
from treedot.batch.pair_search import A_LIMIT, is_planned, plan_pair_search
from treedot.batch.part_file import check_parts, read_part, with_files, write_result
from treedot.batch.plan import Plan
from treedot.batch.production_lists import ProductionLists
from treedot.batch.run import OnDone, Paths, Workers, planned, run
from treedot.clones.duplicates import MIN_NODES, THRESHOLD, OnLimit, checked_settings
from treedot.clones.groups import DuplicateGroup, Partner
from treedot.clones.information import Information, in_languages, languages_of, trees_of_languages
from treedot.clones.listed import groups_of
from treedot.clones.near_duplicates import Compared, NearDuplicates, worth_a_look
from treedot.clones.places import PLACE
from treedot.clones.similarity import Multisets, SimilarPairs
from treedot.parameters import checked_path
from treedot.readers.ranges import Reading

GROUPED_BY = (*PLACE, "blurred")  # columns that determine groups
AS_IT_COMES = Reading()
FILTER_BITS = 24
CHUNK = 1 << 22  # elements read at a time


def find_duplicates(
    paths: Paths,
    out: str | os.PathLike[str],
    client: Any = None,
    *,
    threshold: float = THRESHOLD,
    min_nodes: int = MIN_NODES,
    workers: int | None = None,
    share: tuple[int, int] = (1, 1),
    reading: Reading = AS_IT_COMES,
    shard_size: int | None = None,
    on_done: OnDone | None = None,
    on_limit: OnLimit | None = None,
) -> Any:
    """Find the groups of near-duplicates among the trees of many files.

    The groups, their order and all figures are those of ``treedot.find_duplicates`` on all trees at once,
    including its limits. The work grows with the number of trees and of pairs that share something rare, not
    with the square of the number of trees.

    Parameters
    ----------
    paths : path, or iterable of paths
        Files of trees, patterns and folders. Source code keeps its names and literals.
    out : path
        The folder to write to.
    client : object, default=None
        What runs the tasks, as in ``encode``.
    threshold : float, default=0.7
        The similarity from which on rare shared productions are enough, as in ``treedot.find_duplicates``.
        Pairs below it need further evidence.
    min_nodes : int, default=40
        Smaller trees are ignored.
    workers : int, default=None
        Local processes, each with one thread; by default one for every core.
    share : tuple of (int, int), default=(1, 1)
        ``(3, 64)`` does the third of 64 shares. There are two rounds of work: once all shares have done the
        first, repeat the calls for the same shares to do the second.
    reading : Reading, default=Reading()
        How the trees are read.
    shard_size : int, default=None
        The approximate number of bytes of a file per part; by default 16 MiB.
    on_done : callable, default=None
        Called with the ``Outcome`` of every shard, and the number of shards to do.
    on_limit : callable, default=None
        Called with the number of trees that reached a limit, as in ``treedot.find_duplicates``.

    Returns
    -------
    pyarrow.Table or None
        A row for every member of every group, the most important groups first. The columns are the number of
        the ``group``, from 0, and its ``similarity``, ``agreement``, ``bits`` and ``band``; then ``row``, the
        number of the tree among all inputs, from 0, which also orders the members; its ``nodes``, the columns
        of its input, and its ``file``. ``also`` lists the near-duplicates of the member that no group shows
        with it, as their ``row``, ``file`` and ``similarity``. The folder holds the same table as
        ``duplicates.arrow``. None if other shares are not done yet; the last share returns the groups of all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from treedot import batch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "trees.mrg").write_text("(f (a x y) (b z) (c z)) (g (d u) (e v)) (f (a x y) (b z))")
    >>> with ThreadPoolExecutor(2) as pool:
    ...     found = batch.find_duplicates(
    ...         folder / "*.mrg", folder / "found", pool, min_nodes=5, threshold=0.3
    ...     )
    >>> print(found.select(["group", "row", "similarity", "band"]).to_pylist())
    [{'group': 0, 'row': 0, 'similarity': 0.4, 'band': 'similar'},
     {'group': 0, 'row': 2, 'similarity': 0.4, 'band': 'similar'}]
    """
    by, folder = Workers(client, workers, share), checked_path("out", out)
    by.check()
    work = ProductionLists(*checked_settings(threshold, min_nodes))
    plan = planned(paths, folder, work, reading, shard_size)
    run(folder, plan, by, on_done)
    if not is_complete(folder, plan):
        return None
    with lock(folder / PAIRS):
        if not is_planned(folder / PAIRS, plan):
            parts = [folder / shard.part for shard in plan.shards]
            check_parts(parts, plan.sealed)  # before the long work: the result is one table of all parts
            plan_pair_search(parts, folder / PAIRS, plan)
    pair_plan = Plan.load(folder / PAIRS)
    run(folder / PAIRS, pair_plan, by, on_done)
    if not is_complete(folder / PAIRS, pair_plan):
        return None
    return _merge(folder, plan, pair_plan, on_limit)


def _merge(folder: Path, plan: Plan, pair_plan: Plan, on_limit: OnLimit | None) -> Any:
    """Write the groups to a file in the folder; return them as an Arrow table."""
    index = PairIndex.load(folder / PAIRS, pair_plan.work["files"])
    pairs = _Pairs.read(folder / PAIRS / shard.part for shard in pair_plan.shards)
    if pairs.n_limited and on_limit is not None:
        on_limit(pairs.n_limited)
    kinds, rows, copies = _involved(index, pairs)
    members, files = _members(folder, plan, rows)
    multisets = index.by_size.of(kinds)
    information = _information(index, multisets, _in_languages(folder, plan, index))
    compared = Compared(
        members["nodes"].to_numpy(),
        {name: members[name].to_pylist() for name in GROUPED_BY if name in members.column_names},
        copies,
        multisets,
        information,
    )
    threshold = plan.work["threshold"]
    near = NearDuplicates(compared, worth_a_look(pairs.among(kinds), information, threshold), threshold)
    found = _table(groups_of(near), members, files)
    write_result(folder / DUPLICATES, found)
    return found


class _Pairs(NamedTuple):
    """Similar pairs of trees, by their places in the index, and the number of trees that reached a limit."""

    tree: IntArray
    partner: IntArray
    similarity: Array
    n_limited: int

    @classmethod
    def read(cls, parts: Iterable[Path]) -> _Pairs:
        columns = [np.zeros((2, 0), np.int64)], [np.zeros(0)]
        for part in parts:
            table, _ = read_part(part, sealed=True)
            columns[0].append(np.stack([table["tree"].to_numpy(), table["partner"].to_numpy()]))
            columns[1].append(table["similarity"].to_numpy())
        (tree, partner), similarity = np.concatenate(columns[0], axis=1), np.concatenate(columns[1])
        keep = partner != A_LIMIT
        return cls(tree[keep], partner[keep], similarity[keep], int(np.count_nonzero(~keep)))

    def among(self, kinds: IntArray) -> SimilarPairs:
        """Return the pairs by the numbers of distinct trees; ``kinds`` holds the trees' places, ascending."""
        a, b = (np.searchsorted(kinds, x) for x in (self.partner, self.tree))
        order = np.lexsort((b, a))
        return SimilarPairs(a[order], b[order], self.similarity[order], self.n_limited)


def _involved(index: PairIndex, pairs: _Pairs) -> tuple[IntArray, IntArray, list[list[int]]]:
    """Return the distinct trees that are in pairs or have copies (as places), their rows, and the copies.

    Distinct trees are in the order of the index, by size and content, as in memory. Rows are ascending, and
    copies are given as positions in these rows.
    """
    first, other = index.copies.T
    place = np.empty(int(index.tree_row.max(initial=-1)) + 1, np.int64)
    place[index.tree_row] = np.arange(len(index.tree_row))
    kinds = np.unique(np.concatenate([pairs.tree, pairs.partner, place[first]]))
    kind_rows = index.tree_row[kinds]
    rows = np.sort(np.concatenate([kind_rows, other]))
    copies = [[k] for k in np.searchsorted(rows, kind_rows).tolist()]
    for kind, number in zip(np.searchsorted(kinds, place[first]), np.searchsorted(rows, other), strict=True):
        copies[kind].append(int(number))
    return kinds, rows, copies


def _members(folder: Path, plan: Plan, rows: IntArray) -> tuple[Any, list[str]]:
    """Return the given rows of all parts (ascending, numbered across parts), and the file of each."""
    from treedot.trees.arrow import clear_errors, pa

    none = pa.array([], pa.int64())
    chosen, files, before, n_trees = [pa.table({"row": none, "nodes": none})], list[str](), 0, 0
    for shard in plan.shards:
        table, trees = read_part(folder / shard.part, plan.sealed)
        first, last = np.searchsorted(rows, [before, before + len(table)])
        some = table.drop(["tree_key", "productions"]).take(rows[first:last] - before)
        chosen.append(some.set_column(0, "row", pa.array(some["row"].to_numpy() + n_trees)))
        files += [plan.inputs[shard.file].path] * len(some)
        before, n_trees = before + len(table), n_trees + trees
    with clear_errors("the columns of the trees"):
        return pa.concat_tables(chosen, promote_options="permissive").combine_chunks(), files


def _in_languages(folder: Path, plan: Plan, index: PairIndex) -> BoolArray:
    """Return a table that says in which languages each tree of the index has copies."""
    languages = list[str]()
    for shard in plan.shards:
        table, _ = read_part(folder / shard.part, plan.sealed)
        columns = {name: table[name].to_pylist() for name in ("language",) if name in table.column_names}
        languages += languages_of(columns, len(table))
    copies = {row: [row] for row in index.tree_row.tolist()}
    for first, other in index.copies.tolist():
        copies[first].append(other)
    return in_languages(languages, list(copies.values()))


def _information(index: PairIndex, multisets: Multisets, table: BoolArray) -> Information:
    """Return the information of the productions of some trees, from their frequency among all trees.

    ``table`` says in which languages each tree of the index has copies.
    """
    is_first = multisets.elements & 1 == 0  # a production's first occurrence in its tree
    wanted, productions = np.unique(multisets.elements[is_first], return_inverse=True)
    bounds = np.concatenate([[0], np.cumsum(is_first)])[multisets.bounds]
    may_be_wanted, frequency = np.zeros(1 << FILTER_BITS, np.bool_), np.zeros(len(wanted), np.int64)
    occurs = np.zeros((table.shape[1], len(wanted)), bool)
    may_be_wanted[_filtered(wanted)] = True
    for start in range(0, len(index.by_size.elements), CHUNK):
        elements = index.by_size.elements[start : start + CHUNK]
        places = np.flatnonzero(may_be_wanted[_filtered(elements)])
        known, number = locate(elements[places], wanted)
        frequency += np.bincount(number, minlength=len(wanted))
        trees = np.searchsorted(index.by_size.bounds, start + places[known], side="right") - 1
        for language, is_in in enumerate(table.T):
            occurs[language, number[is_in[trees]]] = True
    return Information(productions, bounds, frequency, trees_of_languages(occurs, table))


def _filtered(elements: IntArray) -> IntArray:
    """Return the low bits of elements, which are random except the last one."""
    return elements & ((1 << FILTER_BITS) - 1)


def _table(groups: list[DuplicateGroup], members: Any, files: list[str]) -> Any:
    """Return a table with a row for every member of every group."""
    from treedot.trees.arrow import pa

    each = [(number, group, i) for number, group in enumerate(groups) for i in group.members]
    known = with_files(members, files)
    kinds = {"similarity": pa.float64(), "agreement": pa.float64(), "bits": pa.float64(), "band": pa.string()}
    made = {"group": pa.array([number for number, _, _ in each], pa.int64())}
    for name, kind in kinds.items():
        made[name] = pa.array([getattr(group, name) for _, group, _ in each], kind)
    chosen = known.take(pa.array([i for _, _, i in each], pa.int64()))
    partners = [[partner for partner in group.also if partner.member == i] for _, group, i in each]
    also = _partners(partners, known["row"].to_pylist(), known["file"].to_pylist())
    return pa.table({**made, **{name: chosen[name] for name in chosen.column_names}, "also": also})


def _partners(partners: Iterable[Iterable[Partner]], rows: list[int], files: list[Any]) -> Any:
    """Return the column of the partners that members have outside their groups."""
    from treedot.trees.arrow import pa

    found = [
        [{"row": rows[tree], "file": str(files[tree]), "similarity": value} for _, tree, value in some]
        for some in partners
    ]
    kind = pa.struct({"row": pa.int64(), "file": pa.string(), "similarity": pa.float64()})
    return pa.array(found, pa.list_(kind))
