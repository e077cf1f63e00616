"""Find equal runs of statements, by the rare runs that they contain.

A *seed* is the shortest run from a statement on that has at least 12 nodes. A seed that occurs too often,
such as an idiom of the language, is replaced by a longer one from the same statement on. So every statement
has at most one seed of each length, and the number of pairs of equal seeds is linear in the code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray, WordArray
from treedot._runtime.hashing import GOLDEN, mix_words
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.ragged import ends_of
from treedot._runtime.sorted_arrays import runs
from treedot.clones.blocks.statements import Statements

SEED_NODES = (12, 24, 50, 100, 200)  # the least of each length
MAX_PLACES = 50  # places of a seed to compare with each other


class EqualRuns(NamedTuple):
    """Pairs of equal runs: ``length[k]`` statements from ``a[k]`` and from ``b[k]`` on, a before b."""

    a: IntArray
    b: IntArray
    length: IntArray
    n_limited: int = 0  # the number of statements whose longest seeds occur too often


def equal_runs(statements: Statements, keys: WordArray) -> EqualRuns:
    """Return the longest equal runs that contain a pair of equal seeds and do not overlap each other.

    Parameters
    ----------
    statements : Statements
        The statements.
    keys : array of uint64
        A number for each statement, the same for equal statements.
    """
    ends = ends_of(statements.sizes)
    hashes = _Hashes(keys)
    active = np.arange(len(keys))
    pairs = []
    for least in SEED_NODES:
        last = np.searchsorted(ends, ends[active] + least)
        fits = last <= statements.body_end[active]
        active, last = active[fits], last[fits]
        found, active = _pairs(active, hashes.of(active, last))
        pairs.append(found)
    a, b = np.concatenate([np.zeros((2, 0), np.int64), *pairs], axis=1)
    return _longest(statements, keys, a, b)._replace(n_limited=len(active))


class _Hashes:
    """Polynomial hashes of runs: Σ keyᵢ · GOLDENⁱ, moved to the start of the run."""

    def __init__(self, keys: WordArray) -> None:
        powers = np.full(len(keys) + 1, GOLDEN, np.uint64)
        powers[0] = 1
        np.cumprod(powers, out=powers)
        self._sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mix_words(keys) * powers[:-1])])
        back = np.full(len(keys) + 1, pow(GOLDEN, -1, 2**64), np.uint64)
        back[0] = 1
        self._back = np.cumprod(back)

    def of(self, start: IntArray, end: IntArray) -> WordArray:
        """Return the hashes of the runs from ``start[k]`` to ``end[k]``."""
        return (self._sums[end] - self._sums[start]) * self._back[start]


def _pairs(places: IntArray, hashes: WordArray) -> tuple[IntArray, IntArray]:
    """Return the pairs of places with equal hashes, and the places whose hash occurs too often.

    Of those, only consecutive places are paired.
    """
    order = np.argsort(hashes, kind="stable")
    places, hashes = places[order], hashes[order]
    _, start = runs(hashes.view(np.int64))
    count = np.repeat(np.diff(start), np.diff(start))
    shared = count > 1
    places, hashes, count = places[shared], hashes[shared], count[shared]
    found = [np.zeros((2, 0), np.int64)]
    for step in range(1, MAX_PLACES + 1):
        equal = np.flatnonzero(hashes[step:] == hashes[:-step])
        if step > 1:
            equal = equal[count[equal] <= MAX_PLACES]
        if not len(equal):
            break
        found.append(np.stack((places[equal], places[equal + step])))
    return np.concatenate(found, axis=1), np.sort(places[count > MAX_PLACES])


def _longest(statements: Statements, keys: WordArray, a: IntArray, b: IntArray) -> EqualRuns:
    """Extend pairs of equal statements to the longest equal runs, each once."""
    later = statements.node[a] > statements.node[b]
    a, b = np.where(later, b, a), np.where(later, a, b)
    order = np.lexsort((a, b - a))
    a, b = a[order], b[order]
    length = np.empty_like(a)
    n = _extend(keys, statements.body, a, b, length)
    return EqualRuns(a[:n], b[:n], length[:n])


@njit_borrowing
def _extend(keys: WordArray, body: IntArray, a: IntArray, b: IntArray, length: IntArray) -> int:
    """Replace pairs by the longest equal runs around them; return their number.

    The pairs are sorted by their distance, then by a. Runs that overlap each other are left out.
    """
    n = 0
    distance = end = -1
    for k in range(a.size):
        if b[k] - a[k] == distance and a[k] < end:
            continue
        distance, end = b[k] - a[k], a[k] + 1
        start = a[k]
        in_a, in_b = body[start], body[start + distance]
        while (
            end < keys.size
            and end + distance < keys.size
            and body[end] == in_a
            and body[end + distance] == in_b
            and keys[end] == keys[end + distance]
        ):
            end += 1
        while (
            start > 0
            and start + distance > 0
            and body[start - 1] == in_a
            and body[start - 1 + distance] == in_b
            and keys[start - 1] == keys[start - 1 + distance]
        ):
            start -= 1
        if in_a != in_b or end - start <= distance:
            a[n], b[n], length[n] = start, start + distance, end - start
            n += 1
    return n
