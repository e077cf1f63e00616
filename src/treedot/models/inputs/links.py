"""Link the words that the two trees of a pair have in common by placeholders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.sorted_arrays import locate, runs
from treedot.errors import ParameterError
from treedot.trees import Forest

PENN = ("NN", "VB", "JJ", "RB", "CD")  # how the Penn tags of nouns, verbs, adjectives, … begin
UNIVERSAL = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM"})


class Links(NamedTuple):
    """The linked leaves of one side of pairs: the word of ``node[k]`` is number ``number[k]`` of its pair."""

    node: IntArray
    number: IntArray


@dataclass(frozen=True, eq=False)
class Pairs:
    """The two trees of every pair, as they were read.

    Examples
    --------
    >>> from treedot import read_trees
    >>> texts = read_trees(["(S (NP (NN dog)) (VP (VBD bit) (NP (NNP Ann))))"])
    >>> both = Pairs(texts, read_trees(["(S (NP (NNP Ann)) (VP (VBD met) (NP (NN Dog))))"])).linked()
    >>> print(both.texts[0], both.hypotheses[0], sep="; ")
    (S (NP (NN #2)) (VP (VBD bit) (NP (NNP #1)))); (S (NP (NNP #1)) (VP (VBD met) (NP (NN #2))))
    """

    texts: Forest
    hypotheses: Forest

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.hypotheses):
            raise ParameterError(
                f"{len(self.texts)} texts and {len(self.hypotheses)} hypotheses do not form pairs: give one "
                "hypothesis for each text"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, rows: slice | IntArray) -> Pairs:
        """Return the chosen pairs."""
        return Pairs(self.texts[rows], self.hypotheses[rows])

    @property
    def links(self) -> tuple[Links, Links]:
        """The links in the texts, and those in the hypotheses.

        A word is linked if it is a content word in both trees, under the tag of a noun, verb, adjective,
        adverb or number (Penn's tags, or the universal ones); case does not matter. The words of a pair are
        numbered from 1 on, in the order in which the hypothesis has them first.
        """
        names: dict[str, int] = {}
        sides = [_content_words(forest, names) for forest in (self.texts, self.hypotheses)]
        (_, there), (_, asked) = ((node, tree * len(names) + word) for node, tree, word in sides)
        shared, first = np.unique(asked, return_index=True)
        known, _ = locate(shared, np.unique(there))
        shared, first = shared[known], first[known]
        order = np.argsort(first)
        _, start = runs(shared[order] // max(len(names), 1))
        number = np.empty(order.size, np.int64)
        number[order] = np.arange(1, order.size + 1) - np.repeat(start[:-1], np.diff(start))
        text, hypothesis = (
            Links(node[which], number[place])
            for (node, *_), words in zip(sides, (there, asked), strict=True)
            for which, place in [locate(words, shared)]
        )
        return text, hypothesis

    def linked(self) -> Pairs:
        """Return the pairs with the placeholder ``#k`` instead of the linked word k, in both trees.

        These are the co-indexed trees of Moschitti & Zanzotto (2007), with equal words as anchors. A pair's
        links depend on no other pair.
        """
        return Pairs(*map(placed, (self.texts, self.hypotheses), self.links))


def placed(forest: Forest, links: Links) -> Forest:
    """Return trees with placeholders instead of linked words."""
    names = {text: k for k, text in enumerate(forest.labels)}
    marks = [names.setdefault(f"#{k}", len(names)) for k in range(1, links.number.max(initial=0) + 1)]
    label = forest.label.copy()
    label[links.node] = np.array(marks, np.int64)[links.number - 1]
    return Forest(label, forest.arity, forest.offsets, list(names))


def distinct_words(forest: Forest, names: dict[str, int]) -> tuple[IntArray, IntArray]:
    """Return the tree and the number of every distinct word of each tree: its leaves in lower case.

    ``names`` numbers words, and gets new ones.
    """
    leaves = np.flatnonzero(forest.arity == 0)
    words = _numbers_of(forest, leaves, names)
    tree, word = np.divmod(np.unique(forest.tree_of_node[leaves] * len(names) + words), max(len(names), 1))
    return tree, word


def _content_words(forest: Forest, names: dict[str, int]) -> tuple[IntArray, IntArray, IntArray]:
    """Return the node, the tree and the number of every content word."""
    is_tag = np.array([text.startswith(PENN) or text in UNIVERSAL for text in forest.labels], bool)
    leaves = np.flatnonzero((forest.arity == 0) & (forest.parent >= 0))
    leaves = leaves[is_tag[forest.label[forest.parent[leaves]]]]
    return leaves, forest.tree_of_node[leaves], _numbers_of(forest, leaves, names)


def _numbers_of(forest: Forest, leaves: IntArray, names: dict[str, int]) -> IntArray:
    used, label = np.unique(forest.label[leaves], return_inverse=True)
    lower = (forest.labels[k].lower() for k in used.tolist())
    numbers = np.array([names.setdefault(text, len(names)) for text in lower], np.int64)
    return numbers[label.ravel()]
