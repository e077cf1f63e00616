"""Load several bytes of a text at once in compiled code.

A text is followed by ``PADDING`` blanks, so a load never reaches beyond its memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from treedot._runtime.jit import in_compiled_code

Text = npt.NDArray[np.uint8]

PADDING = 32
INTRINSICS = "treedot.readers.brackets.word_intrinsics"
WORD = 2**64 - 1  # all bits of a word

BLANKS = b"\t\n\v\f\r "

_NO_LABEL = frozenset(b"()" + BLANKS)


@in_compiled_code(INTRINSICS)
def byte_at(text: Text, at: int) -> int:
    """Return one byte."""
    return int(text[at])


@in_compiled_code(INTRINSICS)
def word_at(text: Text, at: int) -> Any:
    """Return eight bytes as an integer, the first byte in its lowest bits."""
    return int.from_bytes(text[at : at + 8].tobytes(), "little")


@in_compiled_code(INTRINSICS)
def scrambled(code: Any, word: Any, key: Any) -> Any:
    """Return the hash of a prefix with the hash ``code`` followed by a word; ``key`` must be odd."""
    product = ((int(code) ^ int(word)) * int(key)) & WORD
    product = ((product ^ (product >> 32)) * int(key)) & WORD  # spreads high bits to low ones
    return np.uint64(product ^ (product >> 32))


@in_compiled_code(INTRINSICS)
def first_bytes(word: Any, length: int) -> Any:
    """Return the first ``length`` bytes of a word, at most eight; the others become 0."""
    return word & ((1 << (8 * int(length))) - 1)


@in_compiled_code(INTRINSICS)
def label_bytes(text: Text, at: int) -> int:
    """Return the number of bytes of a label before the next blank or bracket; 32 if that is further away."""
    for length in range(PADDING):
        if text[at + length] in _NO_LABEL:
            return length
    return PADDING


@in_compiled_code(INTRINSICS)
def marks(text: Text, at: int, byte: int) -> int:
    """Return one bit for each of 32 bytes, the first as the lowest: whether it equals ``byte``."""
    return sum(1 << k for k in range(PADDING) if text[at + k] == byte)


@in_compiled_code(INTRINSICS)
def n_marks(bits: int) -> int:
    """Return the number of set bits."""
    return bits.bit_count()


@in_compiled_code(INTRINSICS)
def first_mark(bits: int) -> int:
    """Return the position of the lowest set bit."""
    return (bits & -bits).bit_length() - 1


def padded(*parts: bytes | Text) -> Text:
    """Return the concatenated parts of a text, followed by blanks."""
    pieces: list[Any] = [*parts, b" " * PADDING]
    return np.frombuffer(bytearray().join(pieces), np.uint8)
