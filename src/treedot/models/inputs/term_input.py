"""The words or the node labels of a tree column as an input of a model, beside its fragments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import Array, IntArray
from treedot._runtime.ragged import places_of
from treedot.errors import SourceError
from treedot.models.inputs.hashed_terms import (
    HashedTerms,
    HashedTermsInput,
    Terms,
    split_words,
    stored_counts,
)
from treedot.models.inputs.model_input import stored_column
from treedot.models.inputs.table import Table
from treedot.trees import Forest

VERSION = 1  # of the rows below: a change that alters rows needs a new number


class TreeTerms(NamedTuple):
    """The terms of trees, and the nodes that hold each occurrence.

    ``nodes[k]`` are the inner nodes above the leaves of occurrence k; a single one is given twice.
    """

    terms: Terms
    nodes: IntArray  # (occurrences, 2)


@dataclass(frozen=True, eq=False)
class TermInput(HashedTermsInput):
    """The words or the node labels of trees as sparse rows.

    Words are those of the leaves, with identifiers split at underscores and capitals, and the pairs of
    neighbouring words; case is ignored. Labels are those of the inner nodes. A term's hash determines its
    column and a random sign. Its value is the square root of its number of occurrences, times its inverse
    document frequency if ``idf`` is true, and rows are scaled to length 1.

    Examples
    --------
    >>> from treedot import read_trees
    >>> rows = TermInput(None, "words").transform(Table({None: read_trees(["(S (A getName) (B get_name))"])}))
    >>> rows.nnz  # get, name, "get name" and "name get"
    4
    """

    kind = "terms"

    column: str | None
    terms: str  # a key of TERMS
    idf: bool = False

    @property
    def learns(self) -> bool:
        """Whether rows have weights that depend on the training trees."""
        return self.idf

    def hashed_terms(self, table: Table) -> tuple[Terms, HashedTerms]:
        """Return the terms of all trees, and their columns and signs."""
        (terms, _), hashed = self.occurrences(table[self.column])
        return terms, hashed

    def occurrences(self, forest: Forest) -> tuple[TreeTerms, HashedTerms]:
        """Return the terms of trees with their nodes, and their columns and signs."""
        found = TERMS[self.terms](forest)
        return found, HashedTerms.of(found.terms.names, self.terms)

    def config(self) -> dict[str, Any]:
        """Return the settings, and the version of the rows."""
        return {"column": self.column, "terms": self.terms, "idf": self.idf, "version": VERSION}

    @classmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Restore the input."""
        terms, idf = config.get("terms"), config.get("idf")
        if terms not in TERMS or not isinstance(idf, bool) or config.get("version") != VERSION:
            raise SourceError(f"an input of terms lacks its settings, or does not have version {VERSION}")
        return cls(stored_column(config), terms, idf, counts=stored_counts(arrays, idf))


def words_of(forest: Forest) -> TreeTerms:
    """Return the words of the leaves, and the pairs of neighbouring words.

    Examples
    --------
    >>> from treedot import read_trees
    >>> words_of(read_trees(["(S (A readFile) (B x))"])).terms.names
    ['read', 'file', 'x', 'read file', 'file x']
    """
    leaves = np.flatnonzero(forest.arity == 0)
    used, label = np.unique(forest.label[leaves], return_inverse=True)
    split = [split_words(forest.labels[k]) for k in used.tolist()]
    numbers = {word: k for k, word in enumerate(dict.fromkeys(word for words in split for word in words))}
    flat = np.array([numbers[word] for words in split for word in words], np.int64)
    sizes = np.array([len(words) for words in split], np.int64)
    word = flat[places_of((np.cumsum(sizes) - sizes)[label], sizes[label])[0]]
    leaf = np.repeat(leaves, sizes[label])
    node = np.where(forest.parent[leaf] < 0, leaf, forest.parent[leaf])
    tree = forest.tree_of_node[leaf]
    first = np.flatnonzero(tree[1:] == tree[:-1])
    pair, which = np.unique(word[first] * len(numbers) + word[first + 1], return_inverse=True)
    names = list(numbers)
    pairs = [
        f"{names[a]} {names[b]}"
        for a, b in zip(*(x.tolist() for x in np.divmod(pair, max(len(names), 1))), strict=True)
    ]
    nodes = np.stack([node, node], axis=1), np.stack([node[first], node[first + 1]], axis=1)
    terms = Terms(
        names + pairs,
        np.concatenate([tree, tree[first]]),
        np.concatenate([word, which + len(names)]),
        len(forest),
    )
    return TreeTerms(terms, np.concatenate(nodes))


def labels_of(forest: Forest) -> TreeTerms:
    """Return the labels of the inner nodes.

    Examples
    --------
    >>> from treedot import read_trees
    >>> labels_of(read_trees(["(S (A a) (A b))"])).terms.names
    ['S', 'A']
    """
    nodes = np.flatnonzero(forest.arity > 0)
    used, number = np.unique(forest.label[nodes], return_inverse=True)
    names = [forest.labels[k] for k in used.tolist()]
    terms = Terms(names, forest.tree_of_node[nodes], number.astype(np.int64), len(forest))
    return TreeTerms(terms, np.stack([nodes, nodes], axis=1))


TERMS: dict[str, Callable[[Forest], TreeTerms]] = {"words": words_of, "labels": labels_of}
