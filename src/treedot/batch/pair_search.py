"""The second work of ``find_duplicates``: for each tree of an index, find the smaller trees like it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from treedot._storage.files import write_folder
from treedot.batch.pair_index import PairIndex, file_digests, write_pair_index
from treedot.batch.plan import Input, Plan, Shard
from treedot.batch.work import SMALL_TREE, Columns, Source, Work
from treedot.clones.near_duplicates import reach
from treedot.clones.similarity import BLOCK, partners, production_multisets, similar_pairs
from treedot.errors import SourceError
from treedot.readers import read_trees
from treedot.readers.ranges import Reading

TREES_OF_A_TASK = 1 << 14
INDEX = Input("elements.bin", 0, 0)  # neither time nor folder: equal trees give equal bytes
A_LIMIT = -1  # instead of a partner: the tree was not compared with all others


class PairSearch(Work):
    """For trees of an index, in the order of size, find similar trees before them.

    Parameters
    ----------
    folder : Path
        The folder of the index.
    description : mapping
        The threshold, and the digests of the index files.
    """

    key = b"treedot.pairs"
    reads_trees = False

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self._folder, self._description = folder, description

    @property
    def description(self) -> dict[str, Any]:
        """The threshold, and the digests of the index files."""
        return self._description

    @cached_property
    def _index(self) -> PairIndex:
        return PairIndex.load(self._folder, self.description["files"])

    def batches(self, source: Source) -> Iterator[tuple[Columns, Columns]]:
        """Yield the similar pairs of a range of trees."""
        from treedot.trees.arrow import pa

        by_size, index, *_ = self._index
        begin, end, threshold = source.range.begin, source.range.end, self.description["threshold"]
        seen = np.full(end, -1, np.int32)
        for start in range(begin, end, BLOCK):
            block = range(start, min(start + BLOCK, end))
            found = partners(by_size, index, block, reach(threshold), seen, threshold)
            limits = np.full(len(found.limited), A_LIMIT)
            yield (
                {
                    "tree": pa.array(np.concatenate([found.tree, found.limited])),
                    "partner": pa.array(np.concatenate([found.partner, limits])),
                    "similarity": pa.array(np.concatenate([found.similarity, np.zeros(len(limits))])),
                },
                {},
            )
            source.n_trees += len(block)

    def warm_up(self) -> None:
        """Load and compile the code that ``batches`` uses."""
        similar_pairs(production_multisets(read_trees([SMALL_TREE, SMALL_TREE])), 0.5)


def is_planned(folder: Path, of: Plan) -> bool:
    """Return whether a folder holds a plan for the parts of another folder, and a complete index."""
    try:
        plan = Plan.load(folder)
    except SourceError:  # missing or damaged: it is made again
        return False
    return plan.work == _description(of, file_digests(folder))


def _description(of: Plan, files: dict[str, str]) -> dict[str, Any]:
    return {
        "task": "similar pairs",
        "order": "content",  # the order of trees of equal size; without this key, that of reading
        "fingerprint": of.fingerprint,
        "threshold": of.work["threshold"],
        "lowest": reach(of.work["threshold"]),  # without this key, the threshold
        "files": files,
    }


def plan_pair_search(parts: list[Path], folder: Path, of: Plan) -> None:
    """Write the index of a plan's parts to a folder, and a plan that cuts the index into ranges of trees."""
    with write_folder(folder) as aside:
        write_pair_index(parts, aside, reach(of.work["threshold"]))
        n_trees = (aside / "tree_row.bin").stat().st_size // 8
        ends = [*range(TREES_OF_A_TASK, n_trees, TREES_OF_A_TASK), n_trees]
        shards = [Shard(0, end - 1 - (end - 1) % TREES_OF_A_TASK, end, 0, 0) for end in ends if n_trees]
        work = _description(of, file_digests(aside))
        Plan(work, Reading(), TREES_OF_A_TASK, (INDEX,), tuple(shards)).save(aside)
