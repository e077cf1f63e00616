"""The definition of distributed tree fragments and distributed trees, as in the paper.

Short, plain and slow, in float64. Every fast path is tested against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from treedot._runtime.array_types import FloatArray
from treedot.trees import Tree
from treedot.vectors.dense.compositions import Algebra

LabelVectors = Callable[[Sequence[str]], FloatArray]  # a method of the algebra, or a ``WordLabels``


def fragment_vector(fragment: Tree, algebra: Algebra, labels: LabelVectors | None = None) -> FloatArray:
    """Return f̂(τ), the distributed tree fragment of Definition 1.

    A terminal is its label's vector; any other node is ``n ⋄ f̂(τ1) ⋄ … ⋄ f̂(τk)`` over its children.
    """
    label_vectors = labels or algebra.label_vectors
    done: list[FloatArray] = []  # f̂ of the finished nodes that wait for their parents
    for node in fragment.postorder():
        first = len(done) - len(node.children)
        done[first:] = [algebra.fold([label_vectors([node.label])[0], *done[first:]])]
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


def distributed_partial_tree(
    tree: Tree, algebra: Algebra, decay: float, mu: float, gaps: str = "toolkit",
    max_length: int | None = None, labels: LabelVectors | None = None,
) -> FloatArray:  # fmt: skip
    """Return T̃ = Σ s(n) over all nodes, the weighted sum of the vectors of all partial trees.

    ``s(n) = √μ (λ n + Σ λ^g n ⋄ s(c_j1) ⋄ … ⋄ s(c_jl))`` over all subsequences of the children. The exponent
    g is the number of children that a subsequence skips between its first and its last ('toolkit'), or the
    length of its span ('span'). A left fold needs one step per child: E_k is the sum of the subsequences that
    end with child k, and B_k the sum of all so far, weighted by the children skipped up to child k,

    ``E_k = κ (n + B_(k-1)) ⋄ s(c_k)``, ``B_k = λ B_(k-1) + E_k``, ``s(n) = √μ (λ n + Σ E_k)``,

    with κ = 1 for 'toolkit' and λ for 'span'. With ``max_length`` there is one B for every length.

    Label vectors come from the algebra, or from ``labels``, such as a ``WordLabels``.
    """
    if not algebra.folds_left:
        raise ValueError(f"{algebra.name} does not fold left")
    label_vectors = labels or algebra.label_vectors
    kappa = 1.0 if gaps == "toolkit" else decay
    total = np.zeros(algebra.size)
    done: list[FloatArray] = []  # s(c) of the finished nodes that wait for their parents
    for node in tree.postorder():
        first = len(done) - len(node.children)
        n = label_vectors([node.label])[0]
        s = decay * n
        before = np.zeros((max_length or 1, algebra.size))  # B, for each length or for all together
        for child in done[first:]:
            left = n + before if max_length is None else np.vstack([n, before[:-1]])
            ending = kappa * algebra.compose(left, child)  # E
            before = decay * before + ending
            s = s + ending.sum(axis=0)
        done[first:] = [math.sqrt(mu) * s]
        total += done[-1]
    return total


def _label(algebra: Algebra, node: Tree) -> FloatArray:
    vector: FloatArray = algebra.label_vectors([node.label])[0]
    return vector
