"""The first work of ``find_duplicates``: trees to lists of their productions, as keys hashed from labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from treedot.batch.part_file import check_names
from treedot.batch.work import SMALL_TREE, Columns, Source, Work, taken
from treedot.clones.places import PLACE, Places
from treedot.clones.production_keys import element_keys, production_keys, tree_keys
from treedot.clones.similarity import occurrences
from treedot.readers import read_trees
from treedot.trees import Forest

LISTS = ("row", "nodes", "tree_key", "productions")  # columns of the parts
OWN = ("group", "similarity", "agreement", "bits", "band", "row", "nodes", "also")  # columns of the result


class ProductionLists(Work):
    """Lists the keys of each tree's productions, and a key that only equal trees share.

    Parameters
    ----------
    threshold, min_nodes
        As in ``find_duplicates``.
    """

    key = b"treedot.duplicates"

    def __init__(self, threshold: float, min_nodes: int) -> None:
        self._threshold, self._min_nodes = threshold, min_nodes

    @property
    def description(self) -> dict[str, Any]:
        """Everything that determines a row, as JSON values."""
        settings = {"threshold": self._threshold, "min_nodes": self._min_nodes}
        digest = blake2b(json.dumps(settings).encode(), digest_size=16).hexdigest()
        # The fingerprint is last, since messages name the first difference of two works.
        return {"task": "duplicates", **settings, "fingerprint": digest}

    def batches(self, source: Source) -> Iterator[tuple[Columns, Columns]]:
        """Yield the trees of a shard that are large enough, and the other columns of its input."""
        for forest, others in source.pieces():
            check_names((*LISTS, *OWN), others)
            chosen = np.flatnonzero(forest.sizes >= self._min_nodes)
            columns = {name: taken(values, chosen) for name, values in others.items()}
            _check_places(columns, len(chosen))
            yield _listed(forest[chosen], chosen + source.n_trees), columns

    def warm_up(self) -> None:
        """Load and compile the code that ``batches`` uses."""
        _listed(read_trees([SMALL_TREE]), np.zeros(1, np.int64))


def _check_places(columns: Columns, count: int) -> None:
    """Raise if columns of places hold other values; better now than when groups are made at the end."""
    known = {name: columns[name] for name in PLACE if name in columns}
    Places({name: x.to_pylist() if hasattr(x, "to_pylist") else x for name, x in known.items()}, count)


def _listed(forest: Forest, rows: Any) -> Columns:
    """Return the lists of trees as Arrow columns; ``rows`` holds the trees' numbers."""
    from treedot.trees.arrow import pa

    tree, production, occurrence = occurrences(forest)
    keys = element_keys(production_keys(forest)[production], occurrence)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(tree, minlength=len(forest)))])
    names = pa.py_buffer(tree_keys(forest).astype("<u8").tobytes())
    return {
        "row": pa.array(rows, pa.int64()),
        "nodes": pa.array(forest.sizes),
        "tree_key": pa.Array.from_buffers(pa.binary(16), len(forest), [None, names]),
        "productions": pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), pa.array(keys, pa.int64())),
    }
