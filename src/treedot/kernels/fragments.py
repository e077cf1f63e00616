"""The tree fragments themselves, written out: the space that every kernel here works in implicitly."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

from treedot.errors import LimitError
from treedot.parameters import checked_decay
from treedot.readers import read_tree
from treedot.trees import Tree

MAX_FRAGMENTS = 100_000


def count_fragments(tree: Any) -> int:
    """Return how many fragments a tree has, repetitions included.

    >>> count_fragments("(S (NP (NNP Ann)) (VP (VBZ runs)))")
    15
    """
    total = 0
    rooted: list[int] = []  # of the finished nodes that wait for their parents
    for node in read_tree(tree)[0].postorder():
        first = len(rooted) - len(node.children)
        here = math.prod(1 + below for below in rooted[first:]) if node.children else 0
        total += here
        rooted[first:] = [here]
    return total


def fragments(tree: Any, decay: float = 1.0, max_fragments: int = MAX_FRAGMENTS) -> dict[Tree, float]:
    """Return the tree as an explicit vector (Eq. 2): every distinct fragment with its coordinate.

    A fragment is a subtree of more than one node in which every node has all of its children or none
    (Lemma 4). Each occurrence of one with p productions adds √λ^(p-1) to its coordinate, so that the
    dot product of two such vectors is the subset tree kernel.

    Examples
    --------
    >>> for fragment, weight in fragments("(NP (DT a) (NN tree))", decay=0.25).items():
    ...     print(fragment, weight)
    (DT a) 1.0
    (NN tree) 1.0
    (NP DT NN) 1.0
    (NP DT (NN tree)) 0.5
    (NP (DT a) NN) 0.5
    (NP (DT a) (NN tree)) 0.25
    """
    root_decay = math.sqrt(checked_decay(decay))
    counts = fragment_counts(read_tree(tree)[0], max_fragments)
    return {fragment: count * root_decay ** (productions(fragment) - 1) for fragment, count in counts.items()}


def fragment_counts(tree: Tree, max_fragments: int = MAX_FRAGMENTS) -> Counter[Tree]:
    """Return how often each distinct fragment occurs in a tree."""
    number = count_fragments(tree)
    if number > max_fragments:
        shown = number if number < 10**12 else f"about 2^{number.bit_length() - 1}"
        raise LimitError(
            f"this tree has {shown} fragments, more than max_fragments={max_fragments}: "
            "use a kernel, which counts them without writing them out"
        )
    found: Counter[Tree] = Counter()
    rooted: list[list[Tree]] = []  # R(n) of the finished nodes that wait for their parents
    for node in tree.postorder():
        first = len(rooted) - len(node.children)
        choices = [[Tree(c.label), *below] for c, below in zip(node.children, rooted[first:], strict=True)]
        here = [Tree(node.label, chosen) for chosen in itertools.product(*choices)] if node.children else []
        found.update(here)
        rooted[first:] = [here]
    return found


def productions(fragment: Tree) -> int:
    """Return the number of productions in a fragment: its nodes that have children."""
    return sum(not node.is_leaf for node in fragment.postorder())
