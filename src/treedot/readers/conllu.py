"""Read the sentences of CoNLL-U as dependency trees, in the forms GRCT, LCT and LOCT."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from treedot._storage.files import MAX_LINE
from treedot.errors import SourceError
from treedot.readers.packer import PostOrder, pack_post_order
from treedot.readers.stream import TreeStream
from treedot.trees import Forest

N_COLUMNS = 10
_ID, _FORM, _LEMMA, _UPOS, _XPOS, _HEAD, _DEPREL = 0, 1, 2, 3, 4, 6, 7
_NO_TOKEN = re.compile(r"\d+-\d+|\d+\.\d+", re.ASCII)  # multiword tokens, and empty nodes
_COMMENT = re.compile(r"#\s*(sent_id|text)\s*=\s*(.*)")


class Sentence(NamedTuple):
    """The labels of every token, from 1 on, and its dependents in order; those of 0 are the roots."""

    word: list[str]
    tag: list[str]
    relation: list[str]
    dependents: list[list[int]]
    comments: dict[str, str]


def read_sentences(stream: TreeStream, unit: str = "grct", pos: str = "xpos") -> Iterator[Forest]:
    """Yield the trees of sentences; a bad sentence is skipped."""
    return pack_post_order(stream, _trees(stream, unit, pos))


def _trees(stream: TreeStream, unit: str, pos: str) -> Iterator[PostOrder]:
    for first, lines in _blocks(stream):
        try:
            sentence = _parsed(lines, first, stream, pos)
        except SourceError as error:
            stream.on_bad(error)
            continue
        if len(sentence.word) == 1:  # only comments
            continue
        labels, arity = FORMS[unit](sentence)
        known = {key: sentence.comments.get(key, "") for key in ("sent_id", "text")}
        yield PostOrder(labels[::-1], arity[::-1], first, first + len(lines) - 1, known)


def _blocks(stream: TreeStream) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the blocks of lines between empty lines, with the number of the first line."""
    lines: list[bytes] = []
    size = 0
    for number, line in stream.lines():
        if line.strip():
            lines.append(line)
            size += len(line)
            if size > MAX_LINE:
                problem = f"no empty line within {MAX_LINE >> 20} MiB; an empty line must end each sentence"
                raise stream.error(number - len(lines) + 1, problem)
        elif lines:
            yield number - len(lines), lines
            lines, size = [], 0
    if lines:
        yield number - len(lines) + 1, lines


def _parsed(lines: list[bytes], first: int, stream: TreeStream, pos: str) -> Sentence:
    """Return the sentence of some lines; raise if it is not a single tree."""
    word, tag, relation, heads, comments = [""], [""], [""], [0], {}
    numbers = [first]  # line numbers of the tokens
    for number, raw in enumerate(lines, first):
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            raise stream.error(number, f"the byte {raw[error.start]:#x} is not UTF-8") from None
        if line.startswith("#"):
            if comment := _COMMENT.match(line):
                comments[comment[1]] = comment[2].strip()
            continue
        fields = line.split("\t")
        if len(fields) != N_COLUMNS:
            problem = f"{len(fields)} field(s); CoNLL-U has {N_COLUMNS}, separated by tabs"
            raise stream.error(number, problem)
        if fields[_ID] != str(len(word)):
            if _NO_TOKEN.fullmatch(fields[_ID]):
                continue
            raise stream.error(number, f"expected token {len(word)}, found {fields[_ID]!r:.20}")
        head = fields[_HEAD]
        if not (head.isascii() and head.isdecimal() and len(head) < 10):
            raise stream.error(number, f"the head of a token must be a number, not {head!r:.20}")
        own_tag = fields[_UPOS] if pos == "upos" or fields[_XPOS] == "_" else fields[_XPOS]
        lemma = fields[_FORM] if fields[_LEMMA] == "_" else fields[_LEMMA]
        word.append(f"{lemma.lower()}::{own_tag[:1].lower()}")
        tag.append(own_tag)
        relation.append(fields[_DEPREL])
        heads.append(int(head))
        numbers.append(number)
    return Sentence(word, tag, relation, _dependents(heads, numbers, stream), comments)


def _dependents(heads: list[int], numbers: list[int], stream: TreeStream) -> list[list[int]]:
    """Return the dependents of every token; raise if they do not form one tree."""
    found: list[list[int]] = [[] for _ in heads]
    for token, head in enumerate(heads[1:], 1):
        if head >= len(heads):
            problem = f"token {token} has the head {head}, but the sentence has {len(heads) - 1} token(s)"
            raise stream.error(numbers[token], problem)
        found[head].append(token)
    reached = list(found[0])
    if len(reached) > 1:
        problem = f"token {reached[1]} is a second root, beside token {reached[0]}"
        raise stream.error(numbers[reached[1]], f"{problem}: a sentence must have one token with the head 0")
    for token in reached:
        reached += found[token]
    if len(reached) < len(heads) - 1:
        token = min(set(range(1, len(heads))).difference(reached))
        raise stream.error(numbers[token], f"the heads of token {token} form a cycle")
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
    labels: list[str] = []
    arity: list[int] = []
    waiting = list(sentence.dependents[0])
    while waiting:
        token = waiting.pop()
        below = sentence.dependents[token]
        labels.append(sentence.word[token])
        if with_tags:
            labels += (sentence.relation[token], sentence.tag[token])
            arity += (len(below) + 2, 0, 0)
        else:
            arity.append(len(below))
        waiting += below
    return labels, arity


FORMS: dict[str, Callable[[Sentence], tuple[list[str], list[int]]]] = {
    "grct": _grct,
    "lct": partial(_lexical, with_tags=True),
    "loct": partial(_lexical, with_tags=False),
}
