"""The definition: distributed tree fragments and distributed trees, read off the paper.

Short, plain and slow, in float64. Every fast path is tested against it.
"""

from __future__ import annotations

import math

import numpy as np

from treedot.algebra import Algebra
from treedot.array_types import FloatArray
from treedot.trees import Tree


def fragment_vector(fragment: Tree, algebra: Algebra) -> FloatArray:
    """Return f̂(τ), the distributed tree fragment of Definition 1.

    A terminal is its label's vector; any other node is ``n ⋄ f̂(τ1) ⋄ … ⋄ f̂(τk)`` over its children.
    """
    done: list[FloatArray] = []  # of the finished nodes that wait for their parents
    for node in fragment.postorder():
        first = len(done) - len(node.children)
        done[first:] = [algebra.fold([_label(algebra, node), *done[first:]])]
    return done[0]


def distributed_tree(tree: Tree, algebra: Algebra, decay: float) -> FloatArray:
    """Return T̃ = Σ s(n) over all nodes (Eq. 6).

    ``s(n) = 0`` for a terminal, else ``s(n) = n ⋄ (c1 + √λ s(c1)) ⋄ … ⋄ (cm + √λ s(cm))``.
    """
    total = np.zeros(algebra.size)
    done: list[FloatArray] = []  # c + √λ s(c) of the finished nodes that wait for their parents
    for node in tree.postorder():
        first = len(done) - len(node.children)
        s = np.zeros(algebra.size)
        if node.children:
            s = algebra.fold([_label(algebra, node), *done[first:]])
        total += s
        done[first:] = [_label(algebra, node) + math.sqrt(decay) * s]
    return total


def _label(algebra: Algebra, node: Tree) -> FloatArray:
    vector: FloatArray = algebra.label_vectors([node.label])[0]
    return vector
