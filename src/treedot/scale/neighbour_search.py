"""The work of finding the nearest trees: of each shard the best for every query, and then the best of all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from treedot.readers import read_trees
from treedot.scale.encoding import Encoding
from treedot.scale.part_file import check_names, read_part, with_files, write_result
from treedot.scale.plan import Plan
from treedot.scale.work import SMALL_TREE, Columns, Source, taken
from treedot.search.running_nearest import RunningNearest
from treedot.trees import Forest
from treedot.vectors.parts import iter_vectors

QUERIES, RESULT = "_queries.arrow", "nearest.arrow"
SEARCH_KEY = b"treedot.nearest"
OWN = ("query", "rank", "similarity", "row", "tree")  # columns of the result
AT_A_TIME = 1 << 20  # candidates that are compared at a time when parts are merged


class NeighbourSearch:
    """Trees, or vectors of trees, to the ``k`` that are nearest to each query.

    Parameters
    ----------
    encoding : Encoding
        How trees become vectors.
    queries : Forest
        What to look for.
    k : int
        How many to find for each.
    of_vectors : bool
        Whether the inputs hold vectors already.
    """

    left_out = ()

    def __init__(self, encoding: Encoding, queries: Forest, k: int, of_vectors: bool) -> None:
        self._encoding, self._k, self._of_vectors = encoding, k, of_vectors
        self.reads_trees = not of_vectors
        self._queries = Forest(queries.label, queries.arity, queries.offsets, queries.labels)

    @classmethod
    def load(cls, folder: Path, description: dict[str, Any]) -> NeighbourSearch:
        """Return what ``save`` put into a folder."""
        encoding, queries = Encoding.load(folder, description["vectors"]), Forest.load(folder / QUERIES)
        return cls(encoding, queries, int(description["k"]), bool(description["of_vectors"]))

    @cached_property
    def description(self) -> dict[str, Any]:
        """All that determines a row, as JSON values."""
        digest = blake2b(digest_size=16)
        for tree in self._queries:
            digest.update(f"{tree}\n".encode())
        return {
            "task": "nearest",
            "fingerprint": digest.hexdigest(),
            "queries": len(self._queries),
            "k": self._k,
            "of_vectors": self._of_vectors,
            "vectors": self._encoding.vectors,
        }

    def save(self, folder: Path) -> None:
        """Put the queries, and what the vectorizer has learned, into a folder."""
        self._encoding.save(folder)
        self._queries.save(folder / QUERIES)

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """What parts say of how they were made."""
        return {SEARCH_KEY: json.dumps(self.description).encode()}

    @cached_property
    def _query_vectors(self) -> Any:
        return self._encoding.transform(self._queries)

    def batches(self, source: Source) -> Iterator[tuple[Columns, Columns]]:
        """Yield the best of a shard, query by query, best first, and the columns that came with the trees."""
        from treedot.trees.arrow import clear_errors, pa

        best = RunningNearest(self._query_vectors, self._k)
        kept, texts = [pa.table({"row": pa.array([], pa.int64())})], list[str]()
        with clear_errors("the columns of the trees"):
            for vectors, forest, others in self._read(source):
                check_names(OWN, others)
                first = best.n_rows
                chosen = best.add(vectors)
                columns = {name: taken(values, chosen) for name, values in others.items()}
                kept.append(pa.table({"row": chosen + first, **columns}))
                if forest is not None:
                    texts += [str(forest[i]) for i in chosen.tolist()]
            table = pa.concat_tables(kept, promote_options="permissive")
            rows, similarities = best.ranked()
            query, rank = np.nonzero(rows >= 0)
            where = np.searchsorted(table["row"].to_numpy(), rows[query, rank])
            found = table.take(where).combine_chunks()
            made = {
                "query": pa.array(query),
                "similarity": pa.array(similarities[query, rank], pa.float64()),
                "row": pa.array(rows[query, rank]),
            }
            if not self._of_vectors:
                made["tree"] = pa.array([texts[i] for i in where.tolist()], pa.string())
            yield made, {name: found[name].combine_chunks() for name in found.column_names if name != "row"}

    def _read(self, source: Source) -> Iterator[tuple[Any, Forest | None, Columns]]:
        """Yield vectors, their trees where these are read, and the other columns, some at a time."""
        if not self._of_vectors:
            for forest, others in source.pieces(self._encoding.row_bytes):
                yield self._encoding.transform(forest), forest, others
            return
        batches = range(source.range.begin, source.range.end)
        for vectors, others in iter_vectors(source.path, batches, self._encoding.metadata):
            yield vectors, None, others
            source.n_trees += vectors.shape[0]

    def warm_up(self) -> None:
        """Load and compile what ``batches`` needs."""
        RunningNearest(self._query_vectors, self._k).add(self._encoding.transform(read_trees([SMALL_TREE])))


def merge_parts(folder: Path, plan: Plan) -> Any:
    """Write the best of all parts to a file in their folder; return it, a table of Arrow.

    Query by query, best first; equal ones are ordered by where they stand in the inputs.
    """
    from treedot.trees.arrow import clear_errors, pa

    k, best, waiting, n_trees = int(plan.work["k"]), None, list[Any](), 0
    with clear_errors(str(folder)):
        for shard in plan.shards:
            table, trees = read_part(folder / shard.part, plan.sealed)
            row = pa.array(table["row"].to_numpy() + n_trees)
            table = table.set_column(table.column_names.index("row"), "row", row)
            waiting.append(with_files(table, [plan.inputs[shard.file].path] * len(table)))
            n_trees += trees
            if sum(map(len, waiting)) > AT_A_TIME:
                waiting = [_best_of(waiting, k)]
        best = _best_of(waiting, k)
        rank = np.arange(len(best)) - np.searchsorted(best["query"], best["query"])
        best = best.add_column(1, "rank", pa.array(rank + 1))
        write_result(folder / RESULT, best)
        return best


def _best_of(tables: list[Any], k: int) -> Any:
    """Return the ``k`` best candidates of every query, best first."""
    from treedot.trees.arrow import pa

    order = [("query", "ascending"), ("similarity", "descending"), ("row", "ascending")]
    table = pa.concat_tables(tables, promote_options="permissive").sort_by(order)
    query = table["query"].to_numpy()
    return table.filter(pa.array(np.arange(query.size) - np.searchsorted(query, query) < k))
