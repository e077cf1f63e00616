"""``SimilarTrees``: what a search for near-duplicates finds, kept in a cache for the next run.

It depends on nothing but the trees and the settings. So commands keep it in the cache of parsed files, under
a digest of both: an unchanged folder needs no search, and no compiled code for it. The search for blocks
keeps its own, as trees that are runs of statements.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.ragged import ends_of
from treedot._storage.cache_file import DIGEST, from_bytes, to_bytes
from treedot._version import __version__
from treedot.clones.information import Information, languages_of
from treedot.clones.similarity import Multisets, SimilarPairs
from treedot.readers.code.parse_cache import FOUND, current_cache
from treedot.trees import Forest

FINDER = 4  # increased when something else is found among the same trees
ROW = 7  # numbers that describe a run of statements
NO_RUNS = np.zeros((0, ROW), np.int64)


class SimilarTrees(NamedTuple):
    """Distinct trees, and the pairs of similar ones, by their numbers."""

    copies: list[list[int]]  # for every distinct tree, the numbers of its copies, ascending
    multisets: Multisets
    information: Information
    pairs: SimilarPairs
    runs: IntArray = NO_RUNS  # of blocks: for every copy, in the order of their numbers, where it is

    def involved(self) -> SimilarTrees:
        """Return the trees that are in a pair or have copies, in the same order."""
        a, b, similarity, n_limited = self.pairs
        with_copies = [k for k, copies in enumerate(self.copies) if len(copies) > 1]
        trees = np.unique(np.concatenate([a, b, np.array(with_copies, np.int64)]))
        numbers = np.searchsorted(trees, a), np.searchsorted(trees, b)
        return SimilarTrees(
            [self.copies[k] for k in trees.tolist()],
            self.multisets.of(trees),
            self.information.of(trees),
            SimilarPairs(*numbers, similarity, n_limited),
        )


def kept(
    forest: Forest, settings: Sequence[Any], find: Callable[[], SimilarTrees], *others: IntArray
) -> SimilarTrees:
    """Return what ``find`` finds among the trees, from the cache that readers of source code use, if any.

    It depends on nothing but the trees, the settings and the ``others``.
    """
    cache = current_cache()
    if cache is None:
        return find()
    key = _key(forest, settings, others)
    content = cache.file.get(FOUND, key)
    found = None if content is None else _read(content)
    if found is None:
        found = find()
        cache.file.put(FOUND, key, _written(found))
    return found


def _key(forest: Forest, settings: Sequence[Any], others: Iterable[IntArray]) -> bytes:
    """Return a digest of the trees and of all else that determines what is found."""
    languages = languages_of(forest.columns, len(forest))
    context = json.dumps([FINDER, __version__, settings, forest.labels, languages]).encode()
    digest = hashlib.blake2b(digest_size=DIGEST, key=hashlib.blake2b(context).digest())
    for array in (forest.offsets, forest.label, forest.arity, *others):
        digest.update(array.tobytes())
    return digest.digest()


def _written(found: SimilarTrees) -> bytes:
    information, pairs = found.information, found.pairs
    arrays = {
        "copies": np.concatenate([np.zeros(0, np.int64), *(np.array(some) for some in found.copies)]),
        "ends": ends_of([len(copies) for copies in found.copies]),
        "elements": found.multisets.elements,
        "bounds": found.multisets.bounds,
        "productions": information.productions,
        "production_bounds": information.bounds,
        "frequency": information.frequency,
        "n_trees": information.n_trees,
        "a": pairs.a,
        "b": pairs.b,
        "runs": found.runs.ravel(),
    }
    exact = {name: np.asarray(values, "<i8") for name, values in arrays.items()}
    exact["similarity"] = np.asarray(pairs.similarity, "<f8")
    return to_bytes([pairs.n_limited], exact)


def _read(content: bytes) -> SimilarTrees | None:
    """Deserialise what was found; None if it is damaged."""
    try:
        (n_limited,), kept_arrays = from_bytes(content)
        arrays = {name: values.copy() for name, values in kept_arrays.items()}  # writable, as if found now
        copies = arrays["copies"].tolist()
        return SimilarTrees(
            [copies[start:end] for start, end in pairwise(arrays["ends"].tolist())],
            Multisets(arrays["elements"], arrays["bounds"]),
            Information(
                *(arrays[name] for name in ("productions", "production_bounds", "frequency", "n_trees"))
            ),
            SimilarPairs(arrays["a"], arrays["b"], arrays["similarity"], n_limited),
            arrays["runs"].reshape(-1, ROW),
        )
    except (ValueError, KeyError, TypeError):
        return None
