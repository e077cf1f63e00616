"""The definitions: the vectors of fragments beyond the budget, dense and in blocks.

Short, plain and slow, in float64: what is compiled is tested against them. The key of a fragment within the
budget is defined by ``bounded.fragment_key``.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import ComplexArray, FloatArray, IntArray
from treedot._runtime.hashing import GOLDEN, WORD, mix
from treedot.trees import Tree
from treedot.vectors.dense.compositions import Mixer, hadamard
from treedot.vectors.dense.labels import permutation
from treedot.vectors.sparse.bounded import SALT, fragment_key, label_keys, production_hash

WIDE = 3  # nodes with more children mix what is composed so far
LANES = 16

BLOCK = 4  # values: the real and imaginary parts of two complex numbers
COORDINATES = 16  # of the phases inside; a block shows the first ones
POSITIONS = 256  # of children that have shuffles of their own; others share them
PHASES = 256
TURN = 3  # coordinates by which frames turn from a node of the prefix to the one above


def child_mixer(size: int, seed: int) -> Mixer:
    """Return the mixer that what comes from a child passes through."""
    return Mixer(size, seed, "child", rotation=5)


def node_mixer(size: int, seed: int) -> Mixer:
    """Return the mixer of what a wide node has composed so far."""
    return Mixer(size, seed, "node", rotation=9)


def dense_vector(fragment: Tree, size: int, seed: int) -> FloatArray:
    """Return f̂(τ), a vector of norm about 1.

        f̂(n) = P(n) ⊗ ∏ Q_i f̂(c_i)      over the expanded children c_i, i their positions from 0 on

    A node is the product of the signs of its production with the mixed vectors of its expanded children,
    each turned by sixteen elements for every position to the right; a wide node is mixed before each of them.
    """
    child, node = child_mixer(size, seed), node_mixer(size, seed)
    done: list[FloatArray] = []
    for part in fragment.postorder():
        first = len(done) - len(part.children)
        vector = _signs(part, size, seed) if part.children else np.ones(size)
        for position, below in enumerate(done[first:]):
            if part.children[position].children:
                if len(part.children) > WIDE:
                    vector = _mixed(vector, node)
                vector = vector * np.roll(_mixed(below, child), LANES * position)
        done[first:] = [vector]
    return done[0] / math.sqrt(size)


def _mixed(vector: FloatArray, mixer: Mixer) -> FloatArray:
    """Return the image of a vector under a mixer without its signs: those of productions are enough."""
    moved: FloatArray = mixer.move(hadamard(vector.reshape(mixer.POINTS, -1)) / 4)
    return moved


def _signs(node: Tree, size: int, seed: int) -> FloatArray:
    """Return the signs of a node's production: SplitMix64's bits, from the production's hash on."""
    own = _hash(node, seed)
    words = np.array([mix(own + k * GOLDEN) for k in range(1, size // 64 + 1)], "<u8")
    return np.where(np.unpackbits(words.view(np.uint8), bitorder="little") == 1, -1.0, 1.0)


def _hash(node: Tree, seed: int) -> int:
    texts = [node.label, *(child.label for child in node.children)]
    return production_hash(label_keys(seed, texts).tolist())


class Block(NamedTuple):
    """Where a fragment beyond the budget is kept: the key of its prefix, and two complex numbers."""

    key: int
    vector: ComplexArray


@lru_cache(maxsize=16)
def shuffles(seed: int) -> IntArray:
    """Return the shuffle of the coordinates that belongs to each position of a child.

    Sixteen neighbouring positions rotate before one random shuffle: no two of them send a coordinate to the
    same one, so that what stands below one child is never taken for what stands below another.
    """
    runs = POSITIONS // COORDINATES
    shuffled = [permutation(seed, f"positions {run}", COORDINATES) for run in range(runs)]
    coordinates = np.arange(COORDINATES)
    return np.array([shuffled[p // COORDINATES][(coordinates + p) % COORDINATES] for p in range(POSITIONS)])


@cache
def circle() -> ComplexArray:
    """Return the phases: points of the unit circle, to 40 bits, so that all machines agree."""
    angle = 2 * np.pi * np.arange(PHASES) / PHASES
    points: Any = np.round(np.cos(angle) * 2.0**40) + 1j * np.round(np.sin(angle) * 2.0**40)
    found: ComplexArray = points / 2.0**40
    return found


def block(fragment: Tree, budget: int, seed: int) -> Block:
    """Return the block of a fragment beyond the budget.

    Its productions are read depth-first, expanded children from the last to the first, until their cost
    exceeds the budget. What has been read is the fragment's *prefix*; all fragments with the same prefix
    share a block, in which one is

        f̂[j] = ∏ u(v, i)[frame(parent of v)[j]]      over the productions v beyond the prefix,

    where v is the i-th child of its parent, u are random phases and a frame is a shuffle of the coordinates.
    Beyond the prefix, the frame of a node is its parent's, shuffled as belongs to the node's position. What
    is beyond hangs on the last production of the prefix and on those above it: the frame of the last is the
    identity, and each one above turns it by three coordinates more.

    With a budget of 2, ``(S (A a) (B (C c)))`` is read as S, B (cost 2) and C (cost 3, beyond the budget):
    its prefix is ``(S A (B (C c)))``, and A → a is left, with a phase at each of the two coordinates.

    >>> both, prefix = Tree.parse("(S (A a) (B (C c)))"), Tree.parse("(S A (B (C c)))")
    >>> block(both, 2, seed=0).key == block(prefix, 2, seed=0).key == fragment_key(prefix, seed=0)
    True
    >>> block(prefix, 2, seed=0).vector.tolist()
    [(1+0j), (1+0j)]
    >>> np.abs(block(both, 2, seed=0).vector).round(9).tolist()
    [1.0, 1.0]
    """
    prefix: list[tuple[Tree, int, int]] = []  # node, which production stands above it, and as which child
    spent, waiting = 0, [(fragment, -1, 0)]
    while spent <= budget:
        node, above, position = waiting.pop()
        spent += len(prefix[above][0].children) if above >= 0 else 0
        prefix.append((node, above, position))
        waiting += [(child, len(prefix) - 1, i) for i, child in enumerate(node.children) if child.children]
    frames: dict[int, IntArray] = {}
    above = len(prefix) - 1
    while above >= 0:
        frames[above] = (np.arange(BLOCK // 2) + TURN * len(frames)) % COORDINATES
        above = prefix[above][1]
    vector = np.ones(BLOCK // 2, complex)
    beyond = [(node, position, frames[above]) for node, above, position in waiting]
    while beyond:
        node, position, frame = beyond.pop()
        vector *= circle()[_phase_steps(_hash(node, seed), position)[frame]]
        below = shuffles(seed)[position % POSITIONS][frame]
        beyond += [(child, i, below) for i, child in enumerate(node.children) if child.children]
    return Block(fragment_key(_cut(prefix), seed), vector)


def _cut(prefix: list[tuple[Tree, int, int]]) -> Tree:
    """Return a prefix as a fragment of its own."""
    expanded: list[dict[int, Tree]] = [{} for _ in prefix]
    for k in range(len(prefix) - 1, -1, -1):  # children stand behind their parents
        node, above, position = prefix[k]
        part = Tree(node.label, [expanded[k].get(i, child.label) for i, child in enumerate(node.children)])
        if above < 0:
            return part
        expanded[above][position] = part
    raise AssertionError("a prefix has a root")


def _phase_steps(production: int, position: int) -> IntArray:
    """Return the phase of every coordinate, in steps on the circle."""
    steps: list[int] = []
    for word in range(COORDINATES // 8):
        bits = mix(production ^ ((COORDINATES // 8 * position + word + 1) * SALT & WORD))
        steps += [bits >> 8 * k & 255 for k in range(8)]
    return np.array(steps)
