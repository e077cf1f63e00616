"""What text and hypothesis have in common: a lexical feature, and placeholders in their trees."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np

from paper.corpora import Pairs
from treedot.trees import Forest

CONTENT = (
    "NN",
    "VB",
    "JJ",
    "RB",
    "CD",
)  # prefixes of the Penn tags of nouns, verbs, adjectives, adverbs, numbers


def words(forest: Forest) -> list[list[str]]:
    """Return the words of every tree, its leaves in lower case."""
    leaves = forest.arity == 0
    lower = [text.lower() for text in forest.labels]
    tree = forest.tree_of_node[leaves]
    found: list[list[str]] = [[] for _ in range(len(forest))]
    for i, label in zip(tree, forest.label[leaves], strict=True):
        found[i].append(lower[label])
    return found


class LexicalOverlap:
    """``Lex(t, h)``: the share of the hypothesis's words, weighed by idf, that the text has too.

    A word w that df of the N training trees (texts and hypotheses) hold has
    ``idf(w) = ln((N + 1) / (df + 1))``, so a new word weighs most; Lex is the sum of idf over the distinct
    words of the hypothesis that occur in the text, divided by the sum over all of them. Words are leaves in
    lower case.
    """

    def __init__(self, training: Pairs) -> None:
        self.trees = 2 * len(training)
        self.seen: Counter[str] = Counter()
        for forest in (training.texts, training.hypotheses):
            self.seen.update(word for own in words(forest) for word in set(own))

    def __call__(self, pairs: Pairs) -> np.ndarray:
        """Return Lex of every pair."""
        texts, hypotheses = words(pairs.texts), words(pairs.hypotheses)
        return np.array([self._one(set(t), set(h)) for t, h in zip(texts, hypotheses, strict=True)])

    def _one(self, text: set[str], hypothesis: set[str]) -> float:
        whole = self._weight(hypothesis)
        return self._weight(hypothesis & text) / whole if whole else 0.0

    def _weight(self, chosen: Iterable[str]) -> float:
        return math.fsum(math.log((self.trees + 1) / (self.seen[word] + 1)) for word in chosen)


def co_indexed(pairs: Pairs) -> Pairs:
    """Replace the content words that a text and its hypothesis share by placeholders.

    The k-th shared word of the hypothesis, in order of appearance, becomes ``#k`` in both trees
    (after the co-indexed trees of Moschitti & Zanzotto 2007). A content word stands under a Penn tag of a
    noun, verb, adjective, adverb or number; case does not matter.
    """
    both = pairs.texts + pairs.hypotheses
    lower = {text.lower(): k for k, text in enumerate(dict.fromkeys(both.labels))}
    word = np.array([lower[text.lower()] for text in both.labels])[both.label]
    content = np.array([text.startswith(CONTENT) for text in both.labels])
    leaf = np.flatnonzero(both.arity == 0)
    leaf = leaf[(both.parent[leaf] >= 0) & content[both.label[both.parent[leaf]]]]
    start = np.searchsorted(leaf, both.offsets)

    labels = list(both.labels)
    index = {text: k for k, text in enumerate(labels)}
    label = both.label.copy()
    for pair in range(len(pairs)):
        own, other = (leaf[start[i] : start[i + 1]] for i in (pair + len(pairs), pair))
        shared = np.intersect1d(word[own], word[other])
        numbers: dict[int, int] = {}
        for node in (*own, *other):  # the hypothesis first: it gives the numbers
            if word[node] in shared:
                number = numbers.setdefault(int(word[node]), len(numbers) + 1)
                text = f"#{number}"
                if text not in index:
                    index[text] = len(labels)
                    labels.append(text)
                label[node] = index[text]
    changed = Forest(label, both.arity, both.offsets, labels)
    return Pairs(changed[: len(pairs)], changed[len(pairs) :], pairs.entailed)
