"""The definitions of the vectors of fragments beyond the budget, dense and in blocks.

Short, plain and slow, in float64; the compiled code is tested against them. ``bounded.fragment_key`` defines
the key of a fragment within the budget.
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

WIDE = 3  # nodes with more children than this are mixed before each child
LANES = 16

BLOCK = 4  # values: the real and imaginary parts of two complex numbers
COORDINATES = 16  # coordinates of an internal vector of phases; a block contains two of them
POSITIONS = 256  # number of child positions with different shuffles; further ones reuse them
PHASES = 256
TURN = 3  # coordinates by which frames turn from a node of the prefix to its parent


def child_mixer(size: int, seed: int) -> Mixer:
    """Return the mixer for the vectors of children."""
    return Mixer(size, seed, "child", rotation=5)


def node_mixer(size: int, seed: int) -> Mixer:
    """Return the mixer for the composition so far of a wide node."""
    return Mixer(size, seed, "node", rotation=9)


def dense_vector(fragment: Tree, size: int, seed: int) -> FloatArray:
    """Return f̂(τ), a vector of norm about 1.

        f̂(n) = P(n) ⊗ ∏ Q_i f̂(c_i)      over the expanded children c_i, i their positions from 0 on

    The vector of a node is the product of the signs of its production with the mixed vectors of its expanded
    children. The child at position i is rotated by 16 i elements. A wide node is mixed before each child.
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
    """Return the image of a vector under a mixer without signs, since productions have random signs."""
    moved: FloatArray = mixer.move(hadamard(vector.reshape(mixer.POINTS, -1)) / 4)
    return moved


def _signs(node: Tree, size: int, seed: int) -> FloatArray:
    """Return the signs of a node's production: the bits of SplitMix64, seeded by the production's hash."""
    own = _hash(node, seed)
    words = np.array([mix(own + k * GOLDEN) for k in range(1, size // 64 + 1)], "<u8")
    return np.where(np.unpackbits(words.view(np.uint8), bitorder="little") == 1, -1.0, 1.0)


def _hash(node: Tree, seed: int) -> int:
    texts = [node.label, *(child.label for child in node.children)]
    return production_hash(label_keys(seed, texts).tolist())


class Block(NamedTuple):
    """The block of a fragment beyond the budget: the key of its prefix, and two complex numbers."""

    key: int
    vector: ComplexArray


@lru_cache(maxsize=16)
def shuffles(seed: int) -> IntArray:
    """Return the shuffle of the coordinates for each position of a child.

    Sixteen consecutive positions use one random shuffle after different rotations. So no two of them map a
    coordinate to the same one, and descendants of different children are never confused.
    """
    runs = POSITIONS // COORDINATES
    shuffled = [permutation(seed, f"positions {run}", COORDINATES) for run in range(runs)]
    coordinates = np.arange(COORDINATES)
    return np.array([shuffled[p // COORDINATES][(coordinates + p) % COORDINATES] for p in range(POSITIONS)])


@cache
def circle() -> ComplexArray:
    """Return the phases: points of the unit circle, rounded to 40 bits so that all machines agree."""
    angle = 2 * np.pi * np.arange(PHASES) / PHASES
    points: Any = np.round(np.cos(angle) * 2.0**40) + 1j * np.round(np.sin(angle) * 2.0**40)
    found: ComplexArray = points / 2.0**40
    return found


def block(fragment: Tree, budget: int, seed: int) -> Block:
    """Return the block of a fragment beyond the budget.

    Its productions are read depth-first, expanded children from the last to the first, until their cost
    exceeds the budget. The productions read so far are the fragment's *prefix*. All fragments with the same
    prefix share a block, in which the vector of a fragment is

        f̂[j] = ∏ u(v, i)[frame(parent of v)[j]]      over the productions v beyond the prefix,

    where v is the i-th child of its parent, u are random phases and a frame is a shuffle of the coordinates.
    Beyond the prefix, the frame of a node is its parent's frame after the shuffle for the node's position.
    Nodes beyond the prefix are descendants of the last production of the prefix and of its ancestors. The
    frame of the last production is the identity; each ancestor turns it by three more coordinates.

    With a budget of 2, ``(S (A a) (B (C c)))`` is read as S, B (cost 2) and C (cost 3, beyond the budget).
    Its prefix is ``(S A (B (C c)))``; A → a remains, with a phase at each of the two coordinates.

    >>> both, prefix = Tree.parse("(S (A a) (B (C c)))"), Tree.parse("(S A (B (C c)))")
    >>> block(both, 2, seed=0).key == block(prefix, 2, seed=0).key == fragment_key(prefix, seed=0)
    True
    >>> block(prefix, 2, seed=0).vector.tolist()
    [(1+0j), (1+0j)]
    >>> np.abs(block(both, 2, seed=0).vector).round(9).tolist()
    [1.0, 1.0]
    """
    prefix: list[tuple[Tree, int, int]] = []  # node, index of its parent in the prefix, position as child
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
    """Return a prefix as a fragment."""
    expanded: list[dict[int, Tree]] = [{} for _ in prefix]
    for k in range(len(prefix) - 1, -1, -1):  # parents come before their children
        node, above, position = prefix[k]
        part = Tree(node.label, [expanded[k].get(i, child.label) for i, child in enumerate(node.children)])
        if above < 0:
            return part
        expanded[above][position] = part
    raise AssertionError("a prefix has a root")


def _phase_steps(production: int, position: int) -> IntArray:
    """Return the phase of every coordinate, as an index into ``circle()``."""
    steps: list[int] = []
    for word in range(COORDINATES // 8):
        bits = mix(production ^ ((COORDINATES // 8 * position + word + 1) * SALT & WORD))
        steps += [bits >> 8 * k & 255 for k in range(8)]
    return np.array(steps)
