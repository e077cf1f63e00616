"""The strata of tree fragments: which fragments get a number of their own, and which share a block.

The *reading* of a fragment is the depth-first order of its productions in which the expanded children of a
node come in this order: first the heavy ones, from the last to the first, then the light ones, from the first
to the last. A child is light where its part of the fragment is one production with one child, as a tag above
its word is. Reading a production below a node with m children costs m; the root's is free.

A fragment is cut behind the production with which its cost reaches the budget. What has been read then is its
*prefix*. A fragment that is its own prefix is one explicit number; all others with the same prefix, its
*continuations*, share a block of two complex numbers of modulus 1, in which

    f̂[j] = ∏ u(v, i)[frame(parent of v)[j]]      over the productions v beyond the prefix,

where v is the i-th child of its parent, u are random phases, and a frame is a shuffle of the coordinates.
Beyond the prefix, the frame of a node is its parent's, shuffled as belongs to the node's position. What is
beyond hangs on the last production of the prefix and those above it: the frame of the last is the identity,
and each one above turns it by three coordinates more. The prefix depends on the fragment alone, so that a
fragment is found in the same stratum of every tree that holds it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.algebra.labels import GOLDEN, keys, permutation
from treedot.trees import Tree

IntArray = npt.NDArray[np.signedinteger[Any]]

BLOCK = 4  # numbers: real and imaginary parts
COORDINATES = 16  # of the phases inside; a block shows the first ones
POSITIONS = 256  # of children that have shuffles of their own; others share them
PHASES = 256
TURN = 3  # coordinates by which frames turn from a node of the prefix to the one above
GRID = 2.0**22

WORD = 2**64 - 1
SALT = 0xD6E8FEB86659FD93  # keeps positions and lengths apart


class Stratum(NamedTuple):
    """Where a fragment is kept: the hash of its prefix, and its block (None: a number of its own)."""

    key: int
    block: npt.NDArray[np.complex128] | None


@lru_cache(maxsize=16)
def shuffles(seed: int) -> npt.NDArray[np.int64]:
    """Return the shuffle of the coordinates that belongs to each position of a child.

    Sixteen neighbouring positions rotate before one random shuffle: no two of them send a coordinate to the
    same place, so that what stands below one child is never taken for what stands below another.
    """
    runs = POSITIONS // COORDINATES
    shuffled = [permutation(seed, f"positions {run}", COORDINATES) for run in range(runs)]
    coordinates = np.arange(COORDINATES)
    return np.array([shuffled[p // COORDINATES][(coordinates + p) % COORDINATES] for p in range(POSITIONS)])


def circle() -> npt.NDArray[np.complex128]:
    """Return the phases: points of the unit circle, to 40 bits, so that all machines agree."""
    angle = 2 * np.pi * np.arange(PHASES) / PHASES
    points: Any = np.round(np.cos(angle) * 2.0**40) + 1j * np.round(np.sin(angle) * 2.0**40)
    found: npt.NDArray[np.complex128] = points / 2.0**40
    return found


def label_keys(seed: int, texts: Any) -> npt.NDArray[np.uint64]:
    """Return 64 bits for every label text; all else follows from them."""
    return np.ascontiguousarray(keys(seed, texts, "stratum")[:, 0])


def stratum(fragment: Tree, budget: int, seed: int) -> Stratum:
    """Return the stratum of a fragment, by definition."""
    texts = list(dict.fromkeys(node.label for node in fragment.postorder()))
    label_key = dict(zip(texts, label_keys(seed, texts).tolist(), strict=True))
    shuffle, points = shuffles(seed), circle()
    prefix: list[_Read] = []
    spent = 0
    waiting = [_Waiting(fragment, -1, 0, 0)]
    while waiting and spent < budget:
        node, above, place, cost = waiting.pop()
        spent += cost
        prefix.append(_Read(_production(node, label_key), above, place))
        for i in reversed(_reading_order(node)):
            waiting.append(_Waiting(node.children[i], len(prefix) - 1, i, len(node.children)))
    if not waiting:
        return Stratum(_prefix_key(prefix), None)
    frames: dict[int, IntArray] = {}
    above = len(prefix) - 1
    while above >= 0:
        frames[above] = (np.arange(BLOCK // 2) + TURN * len(frames)) % COORDINATES
        above = prefix[above].above
    block = np.ones(BLOCK // 2, complex)
    beyond = [(part.node, part.place, frames[part.above]) for part in waiting]
    while beyond:
        node, place, frame = beyond.pop()
        block *= points[phase_numbers(_production(node, label_key), place)[frame]]
        below = shuffle[place % POSITIONS][frame]
        beyond += [(child, i, below) for i, child in enumerate(node.children) if child.children]
    return Stratum(_prefix_key(prefix), block)


class _Read(NamedTuple):
    """A production of a prefix: its hash, which production stands above it, and as which child."""

    hash: int
    above: int
    place: int


class _Waiting(NamedTuple):
    """A part of a fragment that is still to be read."""

    node: Tree
    above: int
    place: int
    cost: int


def _production(node: Tree, label_key: dict[str, int]) -> int:
    return production_hash([label_key[node.label], *(label_key[child.label] for child in node.children)])


def _reading_order(node: Tree) -> list[int]:
    """Return the expanded children of a node: heavy ones from the last, then light ones from the first."""
    expanded = [i for i, child in enumerate(node.children) if child.children]
    light = [i for i in expanded if _is_light(node.children[i])]
    return [i for i in reversed(expanded) if not _is_light(node.children[i])] + light


def _is_light(part: Tree) -> bool:
    return len(part.children) == 1 and not part.children[0].children


def _prefix_key(prefix: list[_Read]) -> int:
    key = [production.hash for production in prefix]
    for k in range(len(prefix) - 1, 0, -1):  # children stand behind their parents
        above = prefix[k].above
        key[above] = (key[above] + mix(key[k] + (prefix[k].place + 1) * GOLDEN)) & WORD
    return key[0]


def production_hash(label_keys: list[int]) -> int:
    """Return 64 bits for a production, given the keys of a node's label and of its children's."""
    found = mix(label_keys[0] + len(label_keys) * SALT)
    for key in label_keys[1:]:
        found = mix(found + key)
    return found


def phase_numbers(production: int, place: int) -> npt.NDArray[np.int64]:
    """Return the phase of every coordinate, as a number of steps on the circle."""
    numbers = []
    for word in range(COORDINATES // 8):
        bits = mix(production ^ ((COORDINATES // 8 * place + word + 1) * SALT & WORD))
        numbers += [bits >> 8 * k & 255 for k in range(8)]
    return np.array(numbers)


def mix(x: int) -> int:
    """Scramble 64 bits by a bijection, the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    x &= WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31
