"""The definition of the kernel over selected labels, short, plain and slow."""

from __future__ import annotations

import math
from collections.abc import Collection

from treedot.kernels.reference import production
from treedot.trees import Tree


def label_selection_kernel(a: Tree, b: Tree, decay: float, labels: Collection[str]) -> float:
    """Return Rieck et al.'s (2010) kernel: the subset tree kernel with Δ = 0 for labels not selected.

    It is so in the recursion too: a selected node over an unselected one counts as if that were a leaf.
    """

    def delta(x: Tree, y: Tree) -> float:
        if not x.children or x.label not in labels or production(x) != production(y):
            return 0.0
        return math.prod(1.0 + decay * delta(c, d) for c, d in zip(x.children, y.children, strict=True))

    return sum(delta(x, y) for x in a.postorder() for y in b.postorder())
