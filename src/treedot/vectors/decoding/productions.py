"""The productions that a decoder knows: a node's label with its children's labels."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np

from treedot._runtime.array_types import BoolArray, IntArray
from treedot._runtime.ragged import ends_of, places_of
from treedot.errors import ParameterError
from treedot.readers import read_trees
from treedot.trees import Forest
from treedot.vectors.decoding.production_vectors import ProductionVectors

AT_ROOT = "at_root"


class Productions:
    """Distinct productions, each as a tree of one node and its children.

    ``DistributedTreeVectorizer.decode`` finds trees that consist of them. They serve every vectorizer. After
    a call of ``decode`` they keep their vectors with its parameters, at most 512 MiB, for the next call.

    Parameters
    ----------
    forest : Forest
        One tree of two levels per production.
    at_root : array of bool
        Whether each production may be that of a root.

    Examples
    --------
    >>> from treedot.vectors import Productions
    >>> productions = Productions.of(["(S (NP Ann) (VP runs))", "(S (NP Bob) (VP runs))"])
    >>> productions
    <Productions: 4, 1 of them at roots>
    >>> print(*productions.forest)
    (NP Ann) (VP runs) (S NP VP) (NP Bob)
    """

    def __init__(self, forest: Forest, at_root: BoolArray) -> None:
        if len(forest) != len(at_root) or (forest.depth > 2).any() or (forest.sizes < 2).any():
            raise ParameterError(
                "productions must be trees of one node and its children, with a truth value for each: "
                "make them with Productions.of"
            )
        self.forest = forest
        self.at_root = np.asarray(at_root, bool)
        self.encoded: ProductionVectors | None = None  # by the last decoder

    @classmethod
    def of(cls, trees: Any) -> Self:
        """Return the productions of trees.

        Parameters
        ----------
        trees : source of trees
            Anything that ``read_trees`` reads. Productions themselves, as trees of two levels, are such
            trees; then each of them may be that of a root.

        Returns
        -------
        Productions
            The distinct productions, in the order of their first occurrence.
        """
        forest = read_trees(trees)
        at_root = np.zeros(forest.n_productions, bool)
        of_roots = forest.production[forest.roots]
        at_root[of_roots[of_roots >= 0]] = True
        return cls(_two_levels(forest), at_root)

    def __len__(self) -> int:
        return len(self.forest)

    def __repr__(self) -> str:
        return f"<Productions: {len(self)}, {int(self.at_root.sum())} of them at roots>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the productions to a file, atomically.

        Parameters
        ----------
        path : path
            ``.parquet``, ``.arrow`` or ``.feather``.
        """
        forest = self.forest[:]
        forest.columns[AT_ROOT] = self.at_root.tolist()
        forest.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read productions that ``save`` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Productions
            The productions.
        """
        forest = Forest.load(path)
        if AT_ROOT not in forest.columns:
            raise ParameterError(f"{path} holds no productions: read trees with Productions.of")
        return cls(forest, np.array(forest.columns[AT_ROOT], bool))


def _two_levels(forest: Forest) -> Forest:
    """Return each distinct production of a forest as a tree."""
    start, child = forest.children
    node = forest.distinct_productions
    arity = forest.arity[node].astype(np.int64)
    places, _ = places_of(start[node], arity)
    below = forest.label[child[places]]
    offsets = ends_of(arity + 1)
    label = np.empty(int(offsets[-1]), np.int32)
    is_root = np.zeros(label.size, bool)
    is_root[offsets[1:] - 1] = True
    label[is_root], label[~is_root] = forest.label[node], below
    arities: IntArray = np.zeros(label.size, np.int32)
    arities[is_root] = arity
    return Forest(label, arities, offsets, forest.labels)
