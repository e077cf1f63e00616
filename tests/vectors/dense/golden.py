"""Writes ``golden.npz``, the vectors that never change, anew; CONTRIBUTING.md says when to."""

from pathlib import Path

import numpy as np

from treedot import Forest, Tree
from treedot._runtime.array_types import FloatArray
from treedot.vectors.dense.compositions import ALGEBRAS
from treedot.vectors.dense.reference import distributed_tree

FILE = Path(__file__).with_suffix(".npz")
TREES = Forest.from_trees(
    Tree.parse(text)
    for text in ["(S (NP (DT the) (NN tree)) (VP (VBZ grows)))", "(A (B b) c (D (E e e) f))", "(x)"]
)
SIZE, DECAY, SEED = 256, 0.4, 11


def by_definition(name: str) -> FloatArray:
    """Return the vectors of the trees with one composition, by the paper's recursion."""
    algebra = ALGEBRAS[name](SIZE, SEED)
    return np.array([distributed_tree(tree, algebra, DECAY) for tree in TREES])


if __name__ == "__main__":
    np.savez(FILE, **{name: by_definition(name) for name in ALGEBRAS})
    print(f"wrote {FILE}")
