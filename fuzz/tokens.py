"""Mutations of texts token by token; much of a text stays valid, so many cases are accepted."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from fuzz.mutations import NUMBERS, mutate

CLOSING = {b"(": b")", b"[": b"]", b"{": b"}"}
MAX_DEPTH = 10_000  # depth to which brackets are nested on purpose
MAX_TEXT = 1 << 16  # bytes of a case, so that many cases can run

# Unusual words, numbers and texts.
WORDS = [
    b"x" * 1000, b"_", "\u00e4\u0301".encode(), "\U0001f333".encode(), "\u202e".encode(), b"None", b"if",
    b"class", b"async", b"default", b"__proto__", b"0", b"#", b"",
]  # fmt: skip
TEXTS = [
    b"", b" ", b"\\", b"\\n", b"\\u0000", b"\\ud800", b"%s", b"&amp;", b"&x;", b"${x}", b"{x}", b"#{x}",
    b"]]>", b"-->", b"treedot: ignore", b"\0", b"\xff", b"\n", "\u2028".encode(), b"x" * 5000,
]  # fmt: skip


class Syntax(NamedTuple):
    """How a text is split into tokens, and which of them pair up like brackets."""

    token: re.Pattern[bytes]
    closing: Callable[[bytes], bytes | None]  # the token that closes the group opened by a token, if any


CODE = Syntax(
    re.compile(rb'(?s)"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[\w\x80-\xff]+|\s+|.'), CLOSING.get
)
_TAG = re.compile(rb"<([\w:.-]+)[^<>]*(?<!/)>")


def _closing_tag(token: bytes) -> bytes | None:
    tag = _TAG.fullmatch(token)
    return None if tag is None else b"</" + tag[1] + b">"


MARKUP = Syntax(re.compile(rb"(?s)<!--.*?-->|<[^<>]*>|[^<>]+|."), _closing_tag)


def mutate_text(data: bytes, others: list[bytes], random: Random, syntaxes: tuple[Syntax, ...]) -> bytes:
    """Return a text with one to four changes.

    In half of the cases brackets stay in pairs, and a quarter is damaged byte by byte.
    """
    if random.random() < 0.25:
        return mutate(data, others, random)[:MAX_TEXT]
    changes = KEEPING if random.random() < 2 / 3 else [*KEEPING, *BREAKING]
    for _ in range(random.choice([1, 1, 2, 4])):
        syntax = random.choice(syntaxes)
        tokens, other = (syntax.token.findall(text) for text in (data, random.choice(others)))
        if tokens:
            data = b"".join(random.choice(changes)(tokens, other, syntax, random))[:MAX_TEXT]
    return data


def _groups(tokens: list[bytes], syntax: Syntax) -> list[tuple[int, int]]:
    """Return the limits of pairs of brackets, inclusive."""
    waiting: list[tuple[int, bytes]] = []
    found = []
    for place, token in enumerate(tokens):
        closing = syntax.closing(token)
        if closing is not None:
            waiting.append((place, closing))
        elif waiting and token == waiting[-1][1]:
            found.append((waiting.pop()[0], place))
    return found


Change = Callable[[list[bytes], list[bytes], Syntax, Random], list[bytes]]


def _exchange(tokens: list[bytes], other: list[bytes], syntax: Syntax, random: Random) -> list[bytes]:
    """Replace a word, number or text by another one."""
    places = [k for k, token in enumerate(tokens) if _kind(token) not in ("mark", "blank")]
    if not places:
        return tokens
    place = random.choice(places)
    alike = [token for token in other if _kind(token) == _kind(tokens[place])]
    odd: dict[str, list[bytes]] = {"word": WORDS, "number": NUMBERS}
    choices = [tokens[place], *alike[:100], *odd.get(_kind(tokens[place]), [])]
    return [*tokens[:place], random.choice(choices), *tokens[place + 1 :]]


def _kind(token: bytes) -> str:
    if token[:1] in (b'"', b"'"):
        return "text"
    if token[:1].isdigit():
        return "number"
    if token.isspace():
        return "blank"
    return "word" if re.match(rb"[\w\x80-\xff]", token) else "mark"


def _change_text(tokens: list[bytes], other: list[bytes], syntax: Syntax, random: Random) -> list[bytes]:
    """Insert something odd into a text, between quotation marks or between tags."""
    places = [k for k, token in enumerate(tokens) if _kind(token) in ("text", "word") and len(token) > 1]
    if not places:
        return tokens
    place = random.choice(places)
    token = tokens[place]
    at = random.randint(1, len(token) - 1)
    return [*tokens[:place], token[:at] + random.choice(TEXTS) + token[at:], *tokens[place + 1 :]]


def _graft(tokens: list[bytes], other: list[bytes], syntax: Syntax, random: Random) -> list[bytes]:
    """Replace a pair of brackets, with its content, by another one."""
    mine, theirs = _groups(tokens, syntax), _groups(other, syntax)
    if not mine or not theirs:
        return tokens
    (start, stop), (first, last) = random.choice(mine), random.choice(theirs)
    return [*tokens[:start], *other[first : last + 1], *tokens[stop + 1 :]]


def _repeat_inside(tokens: list[bytes], other: list[bytes], syntax: Syntax, random: Random) -> list[bytes]:
    """Replace a pair of brackets by a pair around it, repeatedly."""
    groups = _groups(tokens, syntax)
    if not groups:
        return tokens
    start, stop = random.choice(groups)
    nested = [(first, last) for first, last in groups if start < first and last < stop]
    if not nested:
        return tokens
    first, last = random.choice(nested)
    before, inner, after = tokens[start:first], tokens[first : last + 1], tokens[last + 1 : stop + 1]
    size = sum(map(len, before + after))
    times = min(random.choice([2, 2, 5, 5, 50, MAX_DEPTH]), MAX_TEXT // (2 * size) + 1)
    return [*tokens[:start], *before * times, *inner, *after * times, *tokens[stop + 1 :]]


def _nest(tokens: list[bytes], other: list[bytes], syntax: Syntax, random: Random) -> list[bytes]:
    """Put many more of the same brackets around a pair."""
    groups = _groups(tokens, syntax)
    if not groups:
        return tokens
    start, stop = random.choice(groups)
    times = min(random.choice([1, 1, 2, 10, 100, MAX_DEPTH]), MAX_TEXT // (4 * len(tokens[start])))
    return [
        *tokens[:start],
        *[tokens[start]] * times,
        *tokens[start : stop + 1],
        *[tokens[stop]] * times,
        *tokens[stop + 1 :],
    ]


def _delete_bracket(tokens: list[bytes], other: list[bytes], syntax: Syntax, random: Random) -> list[bytes]:
    groups = _groups(tokens, syntax)
    if not groups:
        return tokens
    place = random.choice(random.choice(groups))
    return [*tokens[:place], *tokens[place + 1 :]]


def _delete_tokens(tokens: list[bytes], other: list[bytes], syntax: Syntax, random: Random) -> list[bytes]:
    start, stop = _span(tokens, random)
    return [*tokens[:start], *tokens[stop:]]


def _duplicate_tokens(tokens: list[bytes], other: list[bytes], syntax: Syntax, random: Random) -> list[bytes]:
    start, stop = _span(tokens, random)
    return [*tokens[:stop], *tokens[start:stop] * random.choice([1, 1, 1, 2, 50, 1000]), *tokens[stop:]]


def _swap_tokens(tokens: list[bytes], other: list[bytes], syntax: Syntax, random: Random) -> list[bytes]:
    a, b, c = sorted(random.randint(0, len(tokens)) for _ in range(3))
    return [*tokens[:a], *tokens[b:c], *tokens[a:b], *tokens[c:]]


def _splice_tokens(tokens: list[bytes], other: list[bytes], syntax: Syntax, random: Random) -> list[bytes]:
    return [*tokens[: random.randint(0, len(tokens))], *other[random.randint(0, len(other)) :]]


def _span(tokens: list[bytes], random: Random) -> tuple[int, int]:
    start = random.randrange(len(tokens))
    return start, min(len(tokens), start + random.choice([1, 1, 2, 5, 20]))


KEEPING: list[Change] = [_exchange, _exchange, _change_text, _change_text, _graft, _repeat_inside, _nest]
BREAKING: list[Change] = [_delete_bracket, _delete_tokens, _duplicate_tokens, _swap_tokens, _splice_tokens]
