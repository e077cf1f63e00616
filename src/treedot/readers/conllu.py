"""Read the sentences of CoNLL-U as dependency trees, in the forms GRCT, LCT, LOCT, CGRCT and CLCT."""

from __future__ import annotations

import re
from collections.abc import Iterator

from treedot._storage.files import MAX_LINE
from treedot.errors import SourceError
from treedot.readers.dependencies import FORMS, HeadError, Sentence, Tokens, sentence_of
from treedot.readers.packer import PostOrder, pack_post_order
from treedot.readers.stream import TreeStream
from treedot.trees import Forest

N_COLUMNS = 10
_ID, _FORM, _LEMMA, _UPOS, _XPOS, _HEAD, _DEPREL = 0, 1, 2, 3, 4, 6, 7
_NO_TOKEN = re.compile(r"\d+-\d+|\d+\.\d+", re.ASCII)  # multiword tokens, and empty nodes
_COMMENT = re.compile(r"#\s*(sent_id|text)\s*=\s*(.*)")


def read_sentences(
    stream: TreeStream, unit: str = "grct", pos: str = "xpos", words: str = "lemma"
) -> Iterator[Forest]:
    """Yield the trees of sentences; a bad sentence is skipped."""
    return pack_post_order(stream, _trees(stream, unit, pos, words))


def _trees(stream: TreeStream, unit: str, pos: str, words: str) -> Iterator[PostOrder]:
    for first, lines in _blocks(stream):
        try:
            rows, numbers, comments = _parsed(lines, first, stream)
            if not rows:  # only comments
                continue
            sentence = _sentence(rows, numbers, stream, pos, words)
        except SourceError as error:
            stream.on_bad(error)
            continue
        labels, arity = FORMS[unit](sentence)
        known = {key: comments.get(key, "") for key in ("sent_id", "text")}
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


def _parsed(
    lines: list[bytes], first: int, stream: TreeStream
) -> tuple[list[list[str]], list[int], dict[str, str]]:
    """Return the fields of the tokens of some lines, with their line numbers, and the comments."""
    rows: list[list[str]] = []
    numbers: list[int] = []
    comments: dict[str, str] = {}
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
        if fields[_ID] != str(len(rows) + 1):
            if _NO_TOKEN.fullmatch(fields[_ID]):
                continue
            raise stream.error(number, f"expected token {len(rows) + 1}, found {fields[_ID]!r:.20}")
        head = fields[_HEAD]
        if not (head.isascii() and head.isdecimal() and len(head) < 10):
            raise stream.error(number, f"the head of a token must be a number, not {head!r:.20}")
        rows.append(fields)
        numbers.append(number)
    return rows, numbers, comments


def _sentence(
    rows: list[list[str]], numbers: list[int], stream: TreeStream, pos: str, words: str
) -> Sentence:
    """Return the sentence of the fields of its tokens; raise if it is not a single tree."""
    columns = list(zip(*rows, strict=True))
    form, lemma, upos, xpos, deprel = (columns[k] for k in (_FORM, _LEMMA, _UPOS, _XPOS, _DEPREL))
    tokens = Tokens(form, lemma, upos, xpos, [int(head) for head in columns[_HEAD]], deprel)
    try:
        return sentence_of(tokens, pos, words)
    except HeadError as error:
        raise stream.error(numbers[error.token - 1], error.problem) from None
