"""Make dependency trees of a parsed sentence, in the forms GRCT, LCT, LOCT, CGRCT and CLCT."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from treedot.trees.compositions import ROOT, composition

MISSING = "_"  # as CoNLL-U writes it


class Tokens(NamedTuple):
    """The columns of a sentence, named as in CoNLL-U, without its empty first token."""

    form: Sequence[str]
    lemma: Sequence[str]
    upos: Sequence[str]
    xpos: Sequence[str]
    head: Sequence[int]  # from 1 on; 0 for the root
    deprel: Sequence[str]


class Sentence(NamedTuple):
    """The labels of every token, from 1 on, and its dependents in order; those of 0 are the roots."""

    word: list[str]
    tag: list[str]
    relation: list[str]
    dependents: list[list[int]]


class HeadError(Exception):
    """The heads do not form one tree; ``token`` is the first token to blame."""

    def __init__(self, token: int, problem: str) -> None:
        super().__init__(problem)
        self.token, self.problem = token, problem


def sentence_of(tokens: Tokens, pos: str, words: str) -> Sentence:
    """Return the labels and dependents of tokens; raise HeadError if they are not a single tree."""
    tags = tokens.upos
    if pos == "xpos":
        tags = [x if x != MISSING else u for x, u in zip(tokens.xpos, tokens.upos, strict=True)]
    texts = tokens.form
    if words == "lemma":
        texts = [x if x != MISSING else f for x, f in zip(tokens.lemma, tokens.form, strict=True)]
    labels = [f"{text.lower()}::{tag[:1].lower()}" for text, tag in zip(texts, tags, strict=True)]
    return Sentence(["", *labels], ["", *tags], ["", *tokens.deprel], _dependents([0, *tokens.head]))


def _dependents(heads: list[int]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in heads]
    for token, head in enumerate(heads[1:], 1):
        if not 0 <= head < len(heads):
            problem = f"token {token} has the head {head}, but the sentence has {len(heads) - 1} token(s)"
            raise HeadError(token, problem)
        found[head].append(token)
    reached = list(found[0])
    if len(reached) > 1:
        problem = f"token {reached[1]} is a second root, beside token {reached[0]}"
        raise HeadError(reached[1], f"{problem}: a sentence must have one token with the head 0")
    for token in reached:
        reached += found[token]
    if len(reached) < len(heads) - 1:
        token = min(set(range(1, len(heads))).difference(reached))
        raise HeadError(token, f"the heads of token {token} form a cycle")
    return found


# Each function returns the labels and arities of the nodes in reversed post-order: a node, and then its
# subtrees from last to first.


def _grct(sentence: Sentence) -> tuple[list[str], list[int]]:
    """Relations are inner nodes; a token's tag, with its word, is placed among its dependents."""
    labels: list[str] = []
    arity: list[int] = []
    waiting = list(sentence.dependents[0])
    while waiting:
        token = waiting.pop()
        if token < 0:  # the tag and word of a token whose relation is done
            labels += (sentence.tag[-token], sentence.word[-token])
            arity += (1, 0)
            continue
        below = sentence.dependents[token]
        labels.append(sentence.relation[token])
        arity.append(len(below) + 1)
        own = bisect(below, token)
        waiting += [*below[:own], -token, *below[own:]]
    return labels, arity


def _lexical(sentence: Sentence, with_tags: bool) -> tuple[list[str], list[int]]:
    """Words are inner nodes; a word has its tag and relation after its dependents, or neither."""
    leaves = (sentence.relation, sentence.tag) if with_tags else ()
    return _centred(sentence, sentence.word, leaves)


def _centred(
    sentence: Sentence, inner: list[str], leaves: tuple[list[str], ...]
) -> tuple[list[str], list[int]]:
    """Every token is an inner node, which has its leaves, from last to first, after its dependents."""
    labels: list[str] = []
    arity: list[int] = []
    waiting = list(sentence.dependents[0])
    while waiting:
        token = waiting.pop()
        below = sentence.dependents[token]
        labels += (inner[token], *(leaf[token] for leaf in leaves))
        arity += (len(below) + len(leaves), *(0 for _ in leaves))
        waiting += below
    return labels, arity


def _compositional_grct(sentence: Sentence) -> tuple[list[str], list[int]]:
    """Like GRCT; a relation names the words of its head and its modifier, too."""
    return _grct(sentence._replace(relation=_compositions(sentence)))


def _compositional_lct(sentence: Sentence) -> tuple[list[str], list[int]]:
    """Relations with both words are inner nodes, with tag, relation and word after the dependents."""
    leaves = sentence.word, sentence.relation, sentence.tag
    return _centred(sentence, _compositions(sentence), leaves)


def _compositions(sentence: Sentence) -> list[str]:
    """Return ``relation<head,modifier>`` of every token; a root has the head ``*::*``."""
    head = [ROOT] * len(sentence.word)
    for above, dependents in enumerate(sentence.dependents[1:], 1):
        for token in dependents:
            head[token] = sentence.word[above]
    parts = zip(sentence.relation, head, sentence.word, strict=True)
    return [composition(*part) for part in parts]


FORMS: dict[str, Callable[[Sentence], tuple[list[str], list[int]]]] = {
    "grct": _grct,
    "lct": partial(_lexical, with_tags=True),
    "loct": partial(_lexical, with_tags=False),
    "cgrct": _compositional_grct,
    "clct": _compositional_lct,
}
