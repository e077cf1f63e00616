"""Mutations of bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

MAX_SIZE = 1 << 20  # bytes of a case

# Sizes, counts and values that code may not expect.
INTEGERS = [0, 1, -1, 127, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, -(2**63)]
NUMBERS = [*(str(x).encode() for x in INTEGERS), b"1e999", b"NaN", b"-Infinity", b"0.5", b"null", b"9" * 400]
PIECES = [
    b"(", b")", b" ", b"\n", b"\r", b"\t", b'"', b",", b"\\", b"[", b"]", b"{", b"}", b"\0", b"\xff",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\\ud800", b"()", b"(a", b"[[", b"\n\n",
]  # fmt: skip


def mutate(data: bytes, others: list[bytes], random: Random) -> bytes:
    """Return bytes with one to four changes, most often one; ``others`` can be mixed in."""
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        data = random.choice(MUTATIONS)(data, random.choice(others), random)[:MAX_SIZE]
    return data


def _flip_bit(data: bytes, other: bytes, random: Random) -> bytes:
    if not data:
        return data
    place = random.randrange(len(data))
    return _replaced(data, place, bytes([data[place] ^ 1 << random.randrange(8)]))


def _set_byte(data: bytes, other: bytes, random: Random) -> bytes:
    return _replaced(data, _place(data, random), bytes([random.choice([0, 1, 0x7F, 0x80, 0xFF])]))


def _truncate(data: bytes, other: bytes, random: Random) -> bytes:
    return data[: _place(data, random)]


def _delete(data: bytes, other: bytes, random: Random) -> bytes:
    start, stop = _span(data, random)
    return data[:start] + data[stop:]


def _insert_piece(data: bytes, other: bytes, random: Random) -> bytes:
    place = _place(data, random)
    return data[:place] + random.choice(PIECES) * random.choice([1, 1, 2, 100]) + data[place:]


def _duplicate(data: bytes, other: bytes, random: Random) -> bytes:
    start, stop = _span(data, random)
    times = random.choice([2, 2, 3, 50, 2000])
    return data[:start] + data[start:stop] * min(times, 1 + MAX_SIZE // max(1, stop - start)) + data[stop:]


def _swap(data: bytes, other: bytes, random: Random) -> bytes:
    a, b, c = sorted(_place(data, random) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def _splice(data: bytes, other: bytes, random: Random) -> bytes:
    """Replace the rest, from some position on, by the rest of another file."""
    return data[: _place(data, random)] + other[_place(other, random) :]


def _copy_span(data: bytes, other: bytes, random: Random) -> bytes:
    """Overwrite a span with a span of another file."""
    start, stop = _span(other, random)
    return _replaced(data, _place(data, random), other[start:stop])


def _binary_integer(data: bytes, other: bytes, random: Random) -> bytes:
    """Overwrite two, four or eight bytes; in half of the cases at the beginning or the end."""
    width = random.choice([2, 4, 8])
    value = random.choice([*INTEGERS, random.randrange(256), len(data)]) % (1 << 8 * width)
    place = random.choice([_place(data, random), random.choice([0, 4, 8, max(0, len(data) - 8)])])
    return _replaced(data, place, value.to_bytes(width, "little"))


def _decimal_number(data: bytes, other: bytes, random: Random) -> bytes:
    """Replace a decimal number; in half of the cases the length stays the same."""
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data[: 1 << 16]))
    if not found:
        return data
    start, stop = random.choice(found).span()
    number = random.choice(NUMBERS)
    if random.random() < 0.5:
        number = number[: stop - start].rjust(stop - start)
    return data[:start] + number + data[stop:]


MUTATIONS: list[Callable[[bytes, bytes, Random], bytes]] = [
    _flip_bit, _flip_bit, _flip_bit, _set_byte, _truncate, _delete, _insert_piece, _duplicate, _swap,
    _splice, _copy_span, _binary_integer, _binary_integer, _decimal_number, _decimal_number,
]  # fmt: skip


def _place(data: bytes, random: Random) -> int:
    """Return a position; headers at the start and footers at the end are more likely."""
    size = len(data)
    return random.choice([random.randint(0, size), random.randint(0, min(size, 256)),
                          random.randint(max(0, size - 1024), size)])  # fmt: skip


def _span(data: bytes, random: Random) -> tuple[int, int]:
    start = _place(data, random)
    return start, min(len(data), start + random.choice([1, 4, 16, 64, 1024]))


def _replaced(data: bytes, place: int, piece: bytes) -> bytes:
    """Return bytes with a piece written over them, of unchanged length."""
    return (data[:place] + piece + data[place + len(piece) :])[: len(data)]
