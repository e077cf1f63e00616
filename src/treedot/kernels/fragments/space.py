"""Count, list and find fragments, the features of the subset tree kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot.errors import LimitError
from treedot.kernels.fragments.expansion import (
    Extensions,
    expandable,
    extend,
    extensions,
    first_level,
    occurrences,
)
from treedot.parameters import checked_decay
from treedot.readers import read_tree
from treedot.trees import Forest, Tree
from treedot.trees.distinct import DistinctSubtrees
from treedot.trees.nodes import Nodes

MAX_FRAGMENTS = 100_000
MAX_WRITTEN = 5_000_000


def count_fragments(tree: Any) -> int:
    """Return the number of fragments of a tree, repetitions included.

    Parameters
    ----------
    tree : tree
        A tree, as ``read_tree`` takes it.

    Returns
    -------
    int
        The number of fragments, however large.

    See Also
    --------
    list_fragments : The distinct fragments with their coordinates.

    Examples
    --------
    >>> count_fragments("(S (NP (NNP Ann)) (VP (VBZ runs)))")
    15
    """
    forest = read_tree(tree)
    rooted = _rooted(forest)
    return sum(rooted[k] for k in forest.subtree.tolist())


def list_fragments(tree: Any, decay: float = 1.0, max_fragments: int = MAX_FRAGMENTS) -> dict[Tree, float]:
    """Return the tree as an explicit vector (Eq. 2): every distinct fragment with its coordinate.

    A fragment is a subtree of more than one node in which every node has all of its children or none
    (Lemma 4). Each occurrence of one with p productions adds √λ^(p-1) to its coordinate, so that the
    dot product of two such vectors is the subset tree kernel.

    Parameters
    ----------
    tree : tree
        A tree, as ``read_tree`` takes it.
    decay : float, default=1.0
        The decay λ, in [0, 1].
    max_fragments : int, default=100000
        The largest number of fragments that may be listed.

    Returns
    -------
    dict of Tree to float
        The coordinate of every distinct fragment.

    Raises
    ------
    LimitError
        If the tree has more than ``max_fragments`` fragments, repetitions included.

    References
    ----------
    F. M. Zanzotto and L. Dell'Arciprete (2012), *Distributed Tree Kernels*, ICML.

    Examples
    --------
    >>> for fragment, weight in list_fragments("(NP (DT a) (NN tree))", decay=0.25).items():
    ...     print(fragment, weight)
    (DT a) 1.0
    (NN tree) 1.0
    (NP DT NN) 1.0
    (NP (DT a) NN) 0.5
    (NP DT (NN tree)) 0.5
    (NP (DT a) (NN tree)) 0.25
    """
    decay = checked_decay(decay)
    space, counts = write_out(read_tree(tree), max_fragments)
    values = counts.toarray()[0] * space.weights(decay)
    return dict(zip(space.trees(), values.tolist(), strict=True))


def write_out(forest: Forest, max_fragments: int = MAX_WRITTEN) -> tuple[FragmentSpace, Any]:
    """Return all fragments of some trees, and a sparse matrix of their counts in each tree.

    ``max_fragments`` limits the total number of fragments rooted at distinct subtrees.
    """
    total = sum(_rooted(forest))
    if total > max_fragments:
        shown = total if total < 10**12 else f"about 2^{total.bit_length() - 1}"
        whose = "this tree has" if len(forest) == 1 else f"these {len(forest)} trees have"
        raise LimitError(
            f"{whose} {shown} fragments, more than max_fragments={max_fragments}: "
            "use a kernel, which counts them without listing them"
        )
    subtrees = DistinctSubtrees(Nodes(forest), 0, len(forest))
    trees = expandable(subtrees.subtrees, subtrees.subtrees.production)
    trie: list[Extensions] = []
    features: list[IntArray] = []
    found: list[tuple[IntArray, IntArray]] = []
    level, known = first_level(trees), 0
    while level.node.size:
        here, taken = extensions(trees, level)
        trie.append(here)
        features.append(np.arange(known, known + here.parent.size))
        found.append((level.root[occurrences(level)], known + taken))
        known += here.parent.size
        level = extend(trees, level, taken)
    space = FragmentSpace(production_labels(forest), trie, features)
    return space, counted(subtrees, found, known)


class FragmentSpace:
    """A numbered set of fragments.

    Parameters
    ----------
    productions : list of tuple of str
        The label of the node and of its children, for every production.
    trie : list of Extensions
        From the fragments of p productions to those of p + 1 (see ``expansion``), for p = 0, 1, …
    features : list of integer array
        For every extension, the number of the resulting fragment; -1 if it is only a step to larger ones.
    """

    def __init__(
        self, productions: list[tuple[str, ...]], trie: list[Extensions], features: list[IntArray]
    ) -> None:
        self.productions = productions
        self.trie = trie
        self.features = features

    @property
    def sizes(self) -> IntArray:
        """The number of productions in each fragment."""
        sizes = np.zeros(sum(int((numbers >= 0).sum()) for numbers in self.features), np.int64)
        for depth, numbers in enumerate(self.features, start=1):
            sizes[numbers[numbers >= 0]] = depth
        return sizes

    def weights(self, decay: float) -> FloatArray:
        """Return √λ^(p-1) for each fragment."""
        weights: FloatArray = np.power(math.sqrt(decay), self.sizes - 1.0)
        return weights

    def trees(self) -> list[Tree]:
        """Return the fragments in the order of their numbers; equal parts are one object."""
        trees: list[Tree] = [Tree("")] * self.sizes.size
        levels = [tuple(column.tolist() for column in level) for level in self.trie]
        builder = _Builder(self.productions)
        for depth, numbers in enumerate(self.features):
            for k, number in enumerate(numbers.tolist()):
                if number >= 0:
                    path = []
                    for parent, position, production in reversed(levels[: depth + 1]):
                        path.append((position[k], production[k]))
                        k = parent[k]
                    trees[number] = builder.build(reversed(path))
        return trees


class _Builder:
    """Builds fragments from derivations; each distinct part (a production and its children) only once."""

    def __init__(self, productions: list[tuple[str, ...]]) -> None:
        self.productions = productions
        self.number: dict[tuple[int, ...], int] = {}
        self.made: list[Tree] = []

    def build(self, path: Iterable[tuple[int, int]]) -> Tree:
        """Return the fragment of a path of extensions (position, production)."""
        top = [-1]
        open_positions = [(top, 0)]
        expanded = []
        for position, production in path:
            below = [-1] * (len(self.productions[production]) - 1)
            expanded.append((open_positions[position], production, below))
            open_positions[: position + 1] = [(below, i) for i in range(len(below))]
        for (siblings, i), production, below in reversed(expanded):  # reversed pre-order: children first
            key = (production, *below)
            number = self.number.get(key)
            if number is None:
                number = self.number[key] = len(self.made)
                label, *texts = self.productions[production]
                family = [self.made[k] if k >= 0 else text for k, text in zip(below, texts, strict=True)]
                self.made.append(Tree(label, family))
            siblings[i] = number
        return self.made[top[0]]


def production_labels(forest: Forest) -> list[tuple[str, ...]]:
    """Return the label and the children's labels of every production of a forest."""
    numbers, first = np.unique(forest.production, return_index=True)
    start, child = forest.children
    text = forest.labels
    return [
        (text[forest.label[node]], *(text[k] for k in forest.label[child[start[node] : start[node + 1]]]))
        for node in first[numbers >= 0]
    ]


def _rooted(forest: Forest) -> list[int]:
    """Return the number of fragments rooted at each distinct subtree."""
    start, child = forest.children
    rooted: list[int] = []
    for node in forest.distinct_subtrees:
        below = forest.subtree[child[start[node] : start[node + 1]]].tolist()
        rooted.append(math.prod(1 + rooted[k] for k in below) if below else 0)
    return rooted


def counted(subtrees: DistinctSubtrees, found: list[tuple[IntArray, IntArray]], n_features: int) -> Any:
    """Return a matrix of fragment counts per tree, from the fragments rooted at each distinct subtree."""
    from scipy.sparse import csr_matrix

    none = np.zeros(0, np.int64)
    root, feature = (np.concatenate(part) for part in zip((none, none), *found, strict=True))
    shape = (len(subtrees), n_features)
    counts = subtrees.count_matrix() @ csr_matrix((np.ones(root.size), (root, feature)), shape=shape)
    counts.sort_indices()
    return counts
