"""Trees of a small random grammar, any number of them, packed while they are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from treedot import Forest
from treedot._runtime.jit import njit

PHRASES, TAGS, RULES = 8, 30, 10
BATCH = 4096


class Kind(NamedTuple):
    """The size of trees (mean and spread of the logarithm), and the number of words."""

    nodes: float
    spread: float
    words: int


KINDS = {"questions": Kind(18, 0.35, 20_000), "code": Kind(130, 0.6, 50_000)}


class Grammar(NamedTuple):
    """The rules of every phrase (its number of children, which ones, or its tag); each tag's first word."""

    arity: np.ndarray
    child: np.ndarray
    tag: np.ndarray
    words: np.ndarray


def forests(kind: str, count: int, seed: int = 0) -> Iterator[Forest]:
    """Yield ``count`` trees in batches."""
    nodes, spread, words = KINDS[kind]
    random = np.random.default_rng(seed)
    grammar = Grammar(
        random.choice([1, 2, 2, 2, 3], size=(PHRASES, RULES)),
        random.integers(PHRASES, size=(PHRASES, RULES, 3)),
        random.integers(TAGS, size=(PHRASES, RULES)),
        # From tags with a handful of words, like articles, to tags with thousands, like nouns.
        np.cumsum([0, *(words ** np.linspace(0.2, 1, TAGS)).astype(np.int64)]),
    )
    labels = [f"P{k}" for k in range(PHRASES)] + [f"T{k}" for k in range(TAGS)]
    labels += [f"w{k}" for k in range(grammar.words[-1])]
    for start in range(0, count, BATCH):
        sizes = np.maximum(6, random.lognormal(np.log(nodes), spread, min(BATCH, count - start)))
        yield Forest(*_grow(random, sizes.astype(np.int64), grammar), labels)


@njit
def _grow(
    random: np.random.Generator, sizes: np.ndarray, grammar: Grammar
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return label, arity and offsets of trees of about these sizes.

    Nodes are made from the root, last child first; reversed, this is post-order.
    """
    room = 3 * int(sizes.sum()) + 64
    label, children = np.empty(room, np.int32), np.empty(room, np.int32)
    offsets = np.zeros(sizes.size + 1, np.int64)
    end = 0
    phrase, budget = np.empty(room, np.int32), np.empty(room, np.int64)
    for tree in range(sizes.size):
        first = end
        phrase[0], budget[0], height = 0, sizes[tree], 1
        while height:
            height -= 1
            here, nodes = phrase[height], budget[height]
            rule = _rank(random, _rank(random, _rank(random, RULES) + 1) + 1)  # a few rules are common
            if nodes < 4:  # a word under its tag
                tag = grammar.tag[here, rule]
                word = grammar.words[tag] + _rank(
                    random, _rank(random, grammar.words[tag + 1] - grammar.words[tag]) + 1
                )
                label[end], children[end] = PHRASES + tag, 1
                label[end + 1], children[end + 1] = PHRASES + TAGS + word, 0
                end += 2
                continue
            arity = grammar.arity[here, rule]
            label[end], children[end] = here, arity
            end += 1
            nodes -= 1
            for k in range(arity):
                share = nodes if k == arity - 1 else int(nodes * random.random() ** 4)  # mostly to the right
                phrase[height], budget[height] = grammar.child[here, rule, k], share
                height += 1
                nodes -= share
        label[first:end] = label[first:end][::-1].copy()
        children[first:end] = children[first:end][::-1].copy()
        offsets[tree + 1] = end
    return label[:end].copy(), children[:end].copy(), offsets


@njit
def _rank(random: np.random.Generator, count: int) -> int:
    """Return a rank below ``count`` by Zipf's law: rank n is about 1/n as likely as the first."""
    return min(count - 1, int((count + 1) ** random.random()) - 1)
