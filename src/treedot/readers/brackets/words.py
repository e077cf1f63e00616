"""Load several bytes of a text at once in compiled code.

A text has ``PADDING`` blanks after its end, so that there is something to load everywhere in it.
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
    """Return eight bytes as an integer, the first as its lowest bits."""
    return int.from_bytes(text[at : at + 8].tobytes(), "little")


@in_compiled_code(INTRINSICS)
def scrambled(code: Any, word: Any, key: Any) -> Any:
    """Return the hash of what has the hash ``code`` and a word after it, by an odd ``key``."""
    product = ((int(code) ^ int(word)) * int(key)) & WORD
    product = ((product ^ (product >> 32)) * int(key)) & WORD  # the first one leaves low bits to low bytes
    return np.uint64(product ^ (product >> 32))


@in_compiled_code(INTRINSICS)
def first_bytes(word: Any, length: int) -> Any:
    """Return a word without all bytes but its first ones, at most eight."""
    return word & ((1 << (8 * int(length))) - 1)


@in_compiled_code(INTRINSICS)
def label_bytes(text: Text, at: int) -> int:
    """Return how many bytes of a label come before the next blank or bracket: 32 if it is not near."""
    for length in range(PADDING):
        if text[at + length] in _NO_LABEL:
            return length
    return PADDING


@in_compiled_code(INTRINSICS)
def marks(text: Text, at: int, byte: int) -> int:
    """Return one bit for each of 32 bytes, the first as the lowest: whether it is a certain one."""
    return sum(1 << k for k in range(PADDING) if text[at + k] == byte)


@in_compiled_code(INTRINSICS)
def n_marks(bits: int) -> int:
    """Return how many bits are set."""
    return bits.bit_count()


@in_compiled_code(INTRINSICS)
def first_mark(bits: int) -> int:
    """Return the number of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


def padded(*parts: bytes | Text) -> Text:
    """Return the text that parts make up, with blanks after its end."""
    pieces: list[Any] = [*parts, b" " * PADDING]
    return np.frombuffer(bytearray().join(pieces), np.uint8)
