"""Trees that are already in memory: bracket text, ``Tree``, nested lists, ``nltk.Tree`` and its like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treedot.errors import SourceError, TreeSyntaxError
from treedot.readers.brackets import read_cells
from treedot.readers.problems import OnBad
from treedot.trees import Forest, Tree


def read_items(items: list[Any], places: list[str], on_bad: OnBad) -> tuple[Forest, list[int]]:
    """Pack trees given as text or objects; return the forest and the indices of the items that were good."""
    if all(isinstance(item, str) or item is None for item in items):
        return read_cells(items, places, on_bad)
    if len(items) == 1 and isinstance(items[0], Tree):
        return Forest.from_tree(items[0]), [0]
    if any(hasattr(item, "as_py") for item in items):  # scalars of pyarrow
        return read_items(
            [item.as_py() if hasattr(item, "as_py") else item for item in items], places, on_bad
        )
    good: list[int] = []
    trees: list[Tree] = []
    for i, (item, place) in enumerate(zip(items, places, strict=True)):
        try:
            if isinstance(item, str):
                trees += read_cells([item], [place], OnBad())[0]
            elif item is None:
                raise TreeSyntaxError(f"{place}: expected a tree, found None")
            else:
                trees.append(tree_from_object(item, place))
        except SourceError as error:
            on_bad(error)
        else:
            good.append(i)
    return Forest.from_trees(trees), good


def tree_from_object(thing: Any, place: str) -> Tree:
    """Return the ``Tree`` that an object stands for.

    A nested list or tuple is ``[label, child, …]``; an object with a ``label()`` method and an
    iterator over its children is taken as it is (``nltk.Tree``); text among the children is a leaf.
    """
    if isinstance(thing, Tree):
        return thing
    root: list[Tree] = []
    label, children = _parts(thing, place)
    # label, children to do, children done, siblings done
    open_nodes: list[tuple[str, Iterator[Any], list[Tree], list[Tree]]] = [(label, iter(children), [], root)]
    while open_nodes:
        label, todo, done, siblings = open_nodes[-1]
        for child in todo:
            if isinstance(child, (Tree, str)):
                done.append(child if isinstance(child, Tree) else Tree(child))
            else:
                below, grandchildren = _parts(child, place)
                open_nodes.append((below, iter(grandchildren), [], done))
                break
        else:
            open_nodes.pop()
            siblings.append(Tree(label, done))
    return root[0]


def _parts(thing: Any, place: str) -> tuple[str, Any]:
    if isinstance(thing, (list, tuple)) and not hasattr(thing, "label"):
        if not thing:
            raise SourceError(f"{place}: an empty list is not a tree; write [label, child, …]")
        label, children = thing[0], thing[1:]
        if isinstance(label, str) and _looks_like_a_tree(label) and not (label == "()" and children):
            raise SourceError(
                f"{place}: a list is one tree, [label, child, …], but {_shown(label)} in the place of the "
                "label is a tree in brackets: give the text itself, not a list around it (if it is a label, "
                "Tree(label, children))"
            )
    elif callable(getattr(thing, "label", None)):
        label, children = thing.label(), list(thing)
        for child in children:  # a tagged word, as in nltk, is no subtree
            if isinstance(child, (list, tuple)) and not hasattr(child, "label"):
                raise SourceError(f"{place}: a leaf is text, not {type(child).__name__} {_shown(child)}")
    else:
        raise SourceError(
            f"{place}: cannot make a tree of {type(thing).__name__} {_shown(thing)}; "
            "give bracket text, a Tree, nested lists or an object with label() and children"
        )
    if not isinstance(label, str):
        raise SourceError(f"{place}: a label is text, not {type(label).__name__} {_shown(label)}")
    return label, children


def _looks_like_a_tree(label: str) -> bool:
    text = label.strip()
    return text.startswith("(") and text.endswith(")")


def _shown(thing: Any) -> str:
    text = repr(thing)
    return text if len(text) <= 40 else text[:39] + "…"
