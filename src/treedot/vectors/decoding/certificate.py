"""Certify that a tree is the one that a vector encodes.

Encoding the tree again must give the vector, up to rounding. That is not enough where another tree has
nearly the same vector: an exchange of subtrees deep below equal contexts changes only large fragments, whose
weights may be smaller than rounding. With the paper's right fold, ``A(A(A, A))`` and ``A(A, A(A))`` even
have equal vectors. So all trees are tried that have the same productions and, with a left fold, the same
links between them, and that differ by one exchange of subtrees, or by one move of a part of the tree: a tree
with other links differs in the weight of a link, which is known. The certificate needs all of them to lie
farther away than rounding could explain. It is an argument, not a proof: trees that differ by several
exchanges are taken to be no nearer than those that differ by one.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from treedot._runtime.array_types import Row
from treedot.errors import RangeError
from treedot.trees import Forest, Tree
from treedot.vectors.decoding.draft import LEAF, Node
from treedot.vectors.dense.encoder import DenseEncoder

ROUNDING = 1e-5  # over the norm; another machine or a GPU rounds differently, by 4e-6 at most
ROUNDING_OF_CONVOLUTION = 2e-4  # rounding adds up over the children of a node
HALF = 2.0**-11  # what float16 rounds off a number, over the number
MOST_EXCHANGES = 2000
FAR = 2.0  # the distance of a tree without rivals


def tolerance(vector: Row, composition: str) -> float:
    """Return the distance, over the norm, that rounding explains, for vectors stored as float16, too."""
    rounding = ROUNDING_OF_CONVOLUTION if composition == "convolution" else ROUNDING
    with np.errstate(over="ignore"):
        is_half = bool((vector.astype(np.float16) == vector).all())
    return rounding + HALF if is_half else rounding


def distance_to(vector: Row, trees: list[Tree], encoder: DenseEncoder) -> Row:
    """Return the distances of a vector from those of trees, over its norm."""
    exact = vector.astype(np.float64)
    try:
        distances: Row = np.linalg.norm(encoder.encode(Forest.from_trees(trees)) - exact, axis=1)
    except RangeError:  # one of them has a vector too large for its type
        return np.full(len(trees), np.inf)
    return distances / np.linalg.norm(exact)


def margin_of(root: Node, encoder: DenseEncoder, decay: float, norm: float, needed: float) -> float:
    """Return the least distance, over the norm, between a tree's vector and those of its rivals.

    ``norm`` is that of the vector before normalisation. The result is 0 if there are too many rivals to try.
    """
    of_links = math.sqrt(2 * decay) / norm  # at least two links differ by 1
    keeps_links = encoder.spec.algebra().folds_left and of_links > needed
    exchanges = list(itertools.islice(_exchanges(root, keeps_links), MOST_EXCHANGES + 1))
    if len(exchanges) > MOST_EXCHANGES:
        return 0.0
    tree = root.tree()
    rivals = {rival for rival in (_exchanged(root, places) for places in exchanges) if rival != tree}
    (own,) = encoder.encode(Forest.from_trees([tree]))
    distances = distance_to(own, sorted(rivals, key=str), encoder) if rivals else np.array([FAR])
    nearest = float(distances.max() if np.isinf(distances).any() else distances.min())
    if not math.isfinite(nearest):
        return 0.0
    return min(nearest, of_links) if keeps_links else nearest


Cycle = list[tuple[Node, Node]]  # each node goes to the place of another


def _exchanges(root: Node, keeps_links: bool) -> Iterator[Cycle]:
    """Yield exchanges of two subtrees, and moves of a part of the tree, as cycles of places."""
    by_label = defaultdict(list)
    for node in root.preorder():
        by_label[node.label].append(node)
    for nodes in by_label.values():
        above = {id(node): set(map(id, node.ancestors())) for node in nodes}
        for a, b in itertools.combinations(nodes, 2):
            if id(a) not in above[id(b)]:
                yield from _checked([(a, b), (b, a)], keeps_links)
                continue
            for c in nodes:  # the part between a and b goes to the place of c, below b or outside a
                is_outside = c is not a and id(a) not in above[id(c)] and id(c) not in above[id(a)]
                if id(b) in above[id(c)] or is_outside:
                    yield from _checked([(b, a), (a, c), (c, b)], keeps_links)


def _checked(cycle: Cycle, keeps_links: bool) -> Iterator[Cycle]:
    """Yield a cycle, unless it changes links and that matters."""
    if not keeps_links:
        yield cycle
        return
    before = sorted((_context(node), _kind(node)) for node, _ in cycle)
    after = sorted((_context(place), _kind(node)) for node, place in cycle)
    if before == after:
        yield cycle


def _context(node: Node) -> tuple[int, int]:
    return (-2, 0) if node.parent is None else (node.parent.production, node.place)


def _kind(node: Node) -> int:
    return node.production if node.children else LEAF


def _exchanged(root: Node, cycle: Cycle) -> Tree:
    """Return the tree after an exchange."""
    goes_to = {id(place): node for node, place in cycle}
    order, waiting = [], [goes_to.get(id(root), root)]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(goes_to.get(id(child), child) for child in reversed(node.children))
    done: list[Tree] = []
    for node in reversed(order):
        done.append(Tree(node.label, [done.pop() for _ in node.children]))
    return done[0]
