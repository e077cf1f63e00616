"""The distinct fragments of some trees, with the number of trees that hold each.

``list_bounded`` lists the distinct fragments of each tree, ``distinct`` merges those of many trees, and a
``FragmentDictionary`` stores them, with their construction, so that columns have names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import Array, IntArray, WordArray
from treedot._runtime.jit import njit_borrowing
from treedot.errors import SourceError
from treedot.trees import Forest, Tree
from treedot.trees.packed import pack_texts, unpack_texts
from treedot.vectors.chunks import ALL_DONE, NEEDS_MEMORY, NEEDS_OUTPUT, Ended, TreeArrays
from treedot.vectors.sparse import bounded


class DistinctFragments(NamedTuple):
    """Distinct fragments by ascending key, and the number of trees that hold each.

    If ``position`` is -1, a fragment is the production of the node ``node``. Otherwise it is the fragment
    with the key ``base`` whose child at ``position``, counted from 0, is expanded by the fragment with the
    key ``part``.
    """

    key: WordArray
    documents: IntArray
    base: WordArray
    part: WordArray
    position: IntArray
    node: IntArray

    @classmethod
    def make(cls, size: int) -> Self:
        """Return space for ``size`` fragments."""
        kinds = (np.uint64, np.int64, np.uint64, np.uint64, np.int32, np.int64)
        return cls._make(np.empty(size, kind) for kind in kinds)


class ListMemory(NamedTuple):
    """Working memory for the fragments of one tree at a time."""

    found: bounded.FoundFragments
    table: bounded.SortedKeys

    @classmethod
    def make(cls, nodes: int, fragments: int) -> Self:
        """Return memory for trees of at most ``nodes`` nodes and ``fragments`` bounded fragments."""
        return cls(bounded.FoundFragments.make(nodes, fragments), bounded.SortedKeys.make(fragments))

    @property
    def fragments(self) -> int:
        """The most fragments that a tree may have."""
        return self.found.sum.size


@njit_borrowing
def list_bounded(
    trees: TreeArrays, tree: int, budget: int, memory: ListMemory, out: DistinctFragments, indptr: IntArray
) -> Ended:
    """List the distinct fragments of each of the trees from ``tree`` on.

    Those of tree t are written to ``out`` from ``indptr[t]`` to ``indptr[t + 1]``.
    """
    found, table = memory
    offsets, arity, label, label_key = trees
    while tree < offsets.size - 1:
        here = slice(offsets[tree], offsets[tree + 1])
        bounded.hash_productions(arity[here], label[here], label_key, found.stack, found.hash)
        complete, count = bounded.find_fragments(arity[here], budget, found)
        if not complete:
            return tree, NEEDS_MEMORY
        number = indptr[tree]
        if number + count > out.key.size:
            return tree, NEEDS_OUTPUT
        shift, _ = bounded.clear_keys(table, count)
        node = offsets[tree] - 1
        for k in range(count):
            if found.position[k] < 0:  # the first fragment of the next node with children
                node += 1
                while arity[node] == 0:
                    node += 1
            key = bounded.key_of(found.sum[k])
            if bounded.insert_key(key, number, shift, table) == number:
                out.key[number], out.documents[number] = key, 1
                out.position[number], out.node[number] = found.position[k], node
                if found.position[k] >= 0:
                    out.base[number] = bounded.key_of(found.sum[found.base[k]])
                    out.part[number] = bounded.key_of(found.sum[found.part[k]])
                else:
                    out.base[number], out.part[number] = 0, 0
                number += 1
        indptr[tree + 1] = number
        tree += 1
    return tree, ALL_DONE


def joined(parts: list[DistinctFragments]) -> DistinctFragments:
    """Merge several lists of distinct fragments into one."""
    columns = zip(DistinctFragments.make(0), *parts, strict=True)
    return distinct(DistinctFragments._make(map(np.concatenate, columns)))


def distinct(fragments: DistinctFragments) -> DistinctFragments:
    """Return each fragment once, sorted by key, with the sum of its numbers of trees."""
    key, first, group = np.unique(fragments.key, return_index=True, return_inverse=True)
    documents = np.bincount(group, fragments.documents, key.size).astype(np.int64)
    return DistinctFragments._make([key, documents, *(column[first] for column in fragments[2:])])


class FragmentDictionary:
    """The distinct fragments of some trees, and the number of trees that hold each.

    Parameters
    ----------
    n_trees : int
        The number of trees read.
    key, documents : arrays
        The fragments' keys, ascending, and the number of trees that hold each.
    base, part, position : arrays
        The construction of each fragment from the fragments with the numbers ``base`` and ``part``. For a
        single production, ``position`` is -1 and ``part`` is the number of the production.
    productions : list of tuple of str
        For every production, the label of the node and the labels of its children.
    """

    def __init__(
        self, n_trees: int, key: WordArray, documents: IntArray,
        base: IntArray, part: IntArray, position: IntArray, productions: list[tuple[str, ...]],
    ) -> None:  # fmt: skip
        self.n_trees, self.key, self.documents = n_trees, key, documents
        self.base, self.part, self.position, self.productions = base, part, position, productions

    @classmethod
    def of_parts(
        cls, parts: Iterable[tuple[Forest, DistinctFragments]], max_fragments: int | None = None
    ) -> Self:
        """Return the dictionary of several forests; stop after the one that exceeds ``max_fragments``."""
        n_trees = 0
        found: list[DistinctFragments] = []
        texts: dict[int, tuple[str, ...]] = {}
        for forest, fragments in parts:
            n_trees += len(forest)
            found.append(fragments)
            if sum(part.key.size for part in found[1:]) > found[0].key.size:
                found = [joined(found)]  # keeps memory proportional to the distinct fragments
            start, child = forest.children
            for k in np.flatnonzero(fragments.position < 0):
                if (key := int(fragments.key[k])) not in texts:
                    node = fragments.node[k]
                    family = child[start[node] : start[node + 1]]
                    texts[key] = tuple(forest.labels[i] for i in forest.label[[node, *family]])
            if max_fragments is not None and sum(part.key.size for part in found) > max_fragments:
                found = [joined(found)]
                if found[0].key.size > max_fragments:
                    break
        every = joined(found)
        single = np.flatnonzero(every.position < 0)
        base, part = (np.searchsorted(every.key, key).astype(np.int64) for key in (every.base, every.part))
        part[single] = np.arange(single.size)
        productions = [texts[int(key)] for key in every.key[single]]
        return cls(n_trees, every.key, every.documents, base, part, every.position, productions)

    def __len__(self) -> int:
        return int(self.key.size)

    def fragment(self, number: int) -> Tree:
        """Return the fragment with a given number."""
        return self._build(int(number), {})

    def trees(self) -> list[Tree]:
        """Return all fragments in the order of their numbers; they share equal parts."""
        made: dict[int, Tree] = {}
        return [self._build(number, made) for number in range(len(self))]

    def _build(self, number: int, made: dict[int, Tree]) -> Tree:
        """Add a fragment and the smaller ones it consists of to ``made``, without recursion; return it."""
        waiting = [number]
        while waiting:
            k = waiting[-1]
            if self.position[k] < 0:
                label, *children = self.productions[self.part[k]]
                made[k] = Tree(label, children)
            base, part = int(self.base[k]), int(self.part[k])
            if self.position[k] >= 0 and not (base in made and part in made):
                waiting += [j for j in (base, part) if j not in made]
                continue
            if self.position[k] >= 0:
                family = list(made[base].children)
                family[self.position[k]] = made[part]
                made[k] = Tree(made[base].label, family)
            waiting.pop()
        return made[number]

    def arrays(self) -> dict[str, Array]:
        """Return everything as arrays, for a file."""
        labels = list(dict.fromkeys(text for texts in self.productions for text in texts))
        index = {text: k for k, text in enumerate(labels)}
        label_text, label_start = pack_texts(labels)
        return {
            "n_trees": np.array([self.n_trees], np.int64),
            "key": self.key,
            "documents": self.documents,
            "base": self.base,
            "part": self.part,
            "place": self.position + 1,  # files count from 1, and 0 is a single production
            "production_start": np.cumsum([0, *map(len, self.productions)]).astype(np.int64),
            "production_label": np.array([index[t] for texts in self.productions for t in texts], np.int32),
            "label_start": label_start,
            "label_text": label_text,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """Return the dictionary that ``arrays`` described."""
        try:
            labels = unpack_texts(arrays["label_text"], arrays["label_start"])
            ids, limits = arrays["production_label"].tolist(), arrays["production_start"].tolist()
            productions = [tuple(labels[i] for i in ids[a:b]) for a, b in pairwise(limits)]
            key, documents, base, part, place = (
                np.asarray(arrays[name]) for name in ("key", "documents", "base", "part", "place")
            )
            made = cls(int(arrays["n_trees"][0]), key, documents, base, part, place - 1, productions)
            _check(made)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise SourceError(f"the dictionary of fragments is damaged: {error}") from None
        return made


def _check(dictionary: FragmentDictionary) -> None:
    n, position = len(dictionary), dictionary.position
    kinds = [column.dtype.kind for column in (dictionary.key, dictionary.base, dictionary.part, position)]
    sizes = {column.size for column in (dictionary.documents, dictionary.base, dictionary.part, position)}
    if kinds != ["u", "i", "i", "i"] or sizes != {n}:
        raise ValueError("its columns do not match")
    if (dictionary.key[1:] <= dictionary.key[:-1]).any():
        raise ValueError("its keys are not sorted")
    documents = dictionary.documents
    if documents.dtype.kind != "i" or ((documents < 0) | (documents > dictionary.n_trees)).any():
        raise ValueError("the number of trees with a fragment is negative, or larger than that of all trees")
    single = position < 0
    limits = np.where(single, len(dictionary.productions), n)
    others = np.flatnonzero(~single)
    base, part = dictionary.base, dictionary.part
    if ((part < 0) | (part >= limits)).any() or ((base[others] < 0) | (base[others] >= n)).any():
        raise ValueError("a fragment is made of a missing one")
    # Every fragment must consist of productions in the end, or making it would not terminate.
    arity = np.zeros(n, np.int64)
    arity[single] = np.array([len(texts) - 1 for texts in dictionary.productions], np.int64)[part[single]]
    known = single.copy()
    while others.size:
        ready = known[base[others]] & known[part[others]]
        if not ready.any():
            raise ValueError("a fragment is made of itself")
        done, others = others[ready], others[~ready]
        known[done], arity[done] = True, arity[base[done]]
    if ((position < -1) | (position >= arity)).any():
        raise ValueError("a fragment expands a child that does not exist")
