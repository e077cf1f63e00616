"""A tree under construction, its vector, and the gradient of a residual at each of its nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import Row
from treedot.trees import Tree
from treedot.vectors.decoding.bilinear import Bilinear, Composed

LEAF = -1


class Node:
    """A node that may still get children: its label, and the number of its production or LEAF."""

    __slots__ = ("children", "delta", "label", "parent", "place", "production", "s", "steps")

    def __init__(self, label: str, parent: Node | None = None, place: int = 0) -> None:
        self.label, self.parent, self.place = label, parent, place
        self.production, self.children = LEAF, list[Node]()
        self.s: Row | None = None  # the sum of the fragments rooted here; None if it is not up to date
        self.steps: list[Composed] = []
        self.delta = 0.0  # the squared norm of s, were all fragments orthonormal

    def expand(self, production: int, labels: tuple[str, ...]) -> None:
        """Give the node children, which are leaves."""
        self.production = production
        self.children = [Node(label, self, place) for place, label in enumerate(labels)]
        self.touch()

    def collapse(self) -> None:
        """Make the node a leaf."""
        self.production, self.children, self.steps, self.delta = LEAF, [], [], 0.0
        self.touch()

    def replace(self, piece: Node) -> None:
        """Put a piece with the same label in the place of the node, which must have a parent."""
        assert self.parent is not None
        piece.parent, piece.place = self.parent, self.place
        self.parent.children[self.place] = piece
        self.parent.touch()

    def detach(self, leaf: Node) -> None:
        """Put a leaf in the place of the node, which becomes a piece of its own."""
        leaf.parent, leaf.place = self.parent, self.place
        self.replace(leaf)
        self.parent = None

    def copy(self) -> Node:
        """Return a copy of the subtree."""
        root = Node(self.label)
        waiting = [(self, root)]
        while waiting:
            node, copy = waiting.pop()
            if node.children:
                copy.expand(node.production, tuple(child.label for child in node.children))
                waiting.extend(zip(node.children, copy.children, strict=True))
        return root

    @property
    def vector(self) -> Row:
        """The sum of the fragments rooted here."""
        assert self.s is not None
        return self.s

    def touch(self) -> None:
        """Discard the computed values of the node and of its ancestors."""
        node: Node | None = self
        while node is not None:
            node.s, node = None, node.parent

    def ancestors(self) -> Iterator[Node]:
        """Yield the node's ancestors, from its parent to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def preorder(self) -> list[Node]:
        """Return the nodes of the subtree, parents before their children, from left to right."""
        order, waiting = [], [self]
        while waiting:
            node = waiting.pop()
            order.append(node)
            waiting.extend(reversed(node.children))
        return order

    def tree(self) -> Tree:
        """Return the subtree."""
        done: list[Tree] = []
        for node in reversed(self.preorder()):
            below = [done.pop() for _ in node.children]
            done.append(Tree(node.label, below))
        return done[0]


class Slope(NamedTuple):
    """The gradient of ``⟨r, vector⟩`` with respect to s of a node, for a residual r.

    ``weight`` is the squared norm of the change of the vector by a unit vector s, were all fragments
    orthonormal.
    """

    node: Node
    gradient: Row
    weight: float


class Composer(NamedTuple):
    """Composes vectors: holds the composition, √λ, and the vectors of labels."""

    bilinear: Bilinear
    root_decay: float
    label_vector: Callable[[str], Row]

    def update(self, order: list[Node]) -> None:
        """Compute ``s`` for all nodes with children whose ``s`` is out of date; ``order`` is a preorder."""
        for node in reversed(order):
            if node.children and node.s is None:
                self._compose(node)

    def _compose(self, node: Node) -> None:
        decay = self.root_decay**2
        operands = [self.label_vector(node.label), *(self._operand(child) for child in node.children)]
        node.steps = []
        if self.bilinear.folds_left:
            node.s = operands[0]
            for operand in operands[1:]:
                node.steps.append(self.bilinear.compose(node.s, operand))
                node.s = node.steps[-1].value
        else:
            node.s = operands[-1]
            for operand in operands[-2::-1]:
                node.steps.append(self.bilinear.compose(operand, node.s))
                node.s = node.steps[-1].value
        node.delta = math.prod(1 + decay * child.delta if child.children else 1.0 for child in node.children)

    def _operand(self, node: Node) -> Row:
        """Return c + √λ s(c)."""
        vector = self.label_vector(node.label)
        return vector if node.s is None else vector + np.float32(self.root_decay) * node.s

    def slopes(self, order: list[Node], residual: Row) -> list[Slope]:
        """Return the gradient at every node of a preorder."""
        found: dict[int, Slope] = {}
        for node in order:
            if node.parent is None:
                found[id(node)] = Slope(node, residual, 1.0)
            if node.children:
                self._pass_down(found, node, residual)
        return [found[id(node)] for node in order]

    def _pass_down(self, found: dict[int, Slope], node: Node, residual: Row) -> None:
        """Add the gradients of a node's children."""
        slope, decay = found[id(node)], self.root_decay**2
        for child, gradient in zip(node.children, self._of_operands(node, slope.gradient), strict=True):
            others = node.delta / (1 + decay * child.delta if child.children else 1.0)
            total = residual + np.float32(self.root_decay) * gradient
            found[id(child)] = Slope(child, total, 1 + decay * slope.weight * others)

    def _of_operands(self, node: Node, gradient: Row) -> list[Row]:
        """Return the gradients with respect to the operands of a node's children."""
        below: list[Row] = []
        for step in reversed(node.steps):
            to_left, to_right = self.bilinear.gradients(step, gradient)
            if self.bilinear.folds_left:
                below.append(to_right)
                gradient = to_left
            else:
                below.append(to_left)
                gradient = to_right
        if self.bilinear.folds_left:
            return below[::-1]
        return [*below[1:], gradient]
