"""Hash texts to 128-bit keys, and scramble 64-bit words by SplitMix64; equal bits on every machine.

Steele, Lea & Flood (2014), *Fast splittable pseudorandom number generators*. Word ``i`` of a key's stream is
``mix(key + i * GOLDEN)``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from treedot._runtime.array_types import WordArray
from treedot._runtime.jit import njit

GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio
WORD = 2**64 - 1  # all bits of a word


def mix_words(x: Any) -> Any:
    """Scramble the bits of every word of an array by a bijection, the finaliser of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


mix64 = njit(mix_words)  # for one word, in compiled code


def mix(x: int) -> int:
    """Scramble the last 64 bits of an integer as ``mix_words`` does, for definitions in plain Python.

    Examples
    --------
    >>> hex(mix(GOLDEN))  # the first word of the stream of the key 0
    '0xe220a8397b1dcdaf'
    """
    with np.errstate(over="ignore"):  # products wrap around
        return int(mix_words(np.uint64(x & WORD)))


def keys(seed: int, texts: Iterable[str], domain: str) -> WordArray:
    """Return the 128-bit keys of texts as an array of shape ``(n, 2)``.

    ``domain`` separates uses that must be independent (a label's vector, a shuffle).
    """
    person = domain.encode()
    salt = (seed % 2**128).to_bytes(16, "little")
    digests = [
        hashlib.blake2b(
            text.encode("utf-8", "surrogatepass"), digest_size=16, salt=salt, person=person
        ).digest()
        for text in texts
    ]
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64).reshape(-1, 2)


def words(key: WordArray, count: int) -> WordArray:
    """Return the first ``count`` random words of every key, shape ``(n, count)``."""
    counter = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    mixed = mix_words(key[:, :1] + counter)
    found: WordArray = mix_words(mixed ^ key[:, 1:])
    return found
