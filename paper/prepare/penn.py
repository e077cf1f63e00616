"""Trees of the Penn Treebank: annotation that parsers do not make is removed."""

from __future__ import annotations

import re

from treedot.trees import Tree

ROOT = "ROOT"
EMPTY = "-NONE-"  # the label above a trace or another empty element


def rooted(tree: Tree) -> Tree:
    """Return the tree with ROOT as its root, which treebanks write as a bracket without a label."""
    if tree.label in ("", "TOP", ROOT):
        return Tree(ROOT, tree.children)
    return Tree(ROOT, [tree])


def cleaned(tree: Tree) -> Tree | None:
    """Return a tree without function tags, indices and empty elements; None if nothing is left.

    >>> print(cleaned(Tree.parse("(S (NP-SBJ-1 (NNP Ann)) (VP (VBZ runs) (NP (-NONE- *T*-2))))")))
    (S (NP (NNP Ann)) (VP (VBZ runs)))
    """
    if tree.is_leaf:
        return Tree(tree.label.strip())  # some files have no-break spaces
    if tree.label == EMPTY:
        return None
    children = [kept for kept in map(cleaned, tree.children) if kept is not None]
    return Tree(category(tree.label), children) if children else None


def category(label: str) -> str:
    """Return a label without function tags and indices: ``NP-SBJ=2`` is ``NP``, ``-LRB-`` stays."""
    return label if label.startswith("-") else re.split("[-=|]", label)[0]


def words(tree: Tree) -> list[str]:
    """Return the leaves from left to right."""
    return [node.label for node in tree.postorder() if node.is_leaf]


def sentence(tree: Tree) -> str:
    """Return the words as one text."""
    return " ".join(" ".join(words(tree)).split())
