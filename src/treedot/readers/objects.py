"""Read trees that are in memory: bracket text, ``Tree``, nested lists, ``nltk.Tree`` and similar objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treedot.errors import SourceError, TreeSyntaxError
from treedot.readers.brackets.reader import read_cells
from treedot.readers.on_bad import OnBad
from treedot.trees import Forest, Tree
from treedot.trees.brackets import check_text
from treedot.trees.forest import MAX_NODES

_CHECK_AFTER = 1 << 16  # nodes of a tree before its lists are checked for a cycle


def read_items(items: list[Any], place_of: Callable[[int], str], on_bad: OnBad) -> tuple[Forest, list[int]]:
    """Pack trees given as text or objects; return the forest and the indices of the good items.

    ``place_of`` returns the description of an item's place, for errors.
    """
    if all(kind is type(None) or issubclass(kind, str) for kind in set(map(type, items))):
        return read_cells(items, place_of, on_bad)
    if len(items) == 1 and isinstance(items[0], Tree):
        return Forest.from_tree(items[0]), [0]
    if any(hasattr(item, "as_py") for item in items):  # pyarrow scalars
        return read_items(
            [item.as_py() if hasattr(item, "as_py") else item for item in items], place_of, on_bad
        )
    if all(isinstance(item, Tree) for item in items):
        return Forest.from_trees(items), list(range(len(items)))
    good: list[int] = []
    labels: list[str] = []  # labels of all nodes in post-order
    arity: list[int] = []
    offsets = [0]
    for i, item in enumerate(items):
        place = place_of(i)
        try:
            if isinstance(item, str):
                one = read_cells([item], lambda _, place=place: place, OnBad())[0]  # type: ignore[misc]
                labels.extend(one.labels[k] for k in one.label.tolist())
                arity += one.arity.tolist()
            elif item is None:
                raise TreeSyntaxError(f"{place}: expected a tree, found None")
            else:
                own_labels, own_arity = _backwards(item, place)
                _check_labels(own_labels, place)
                labels.extend(reversed(own_labels))
                arity.extend(reversed(own_arity))
        except SourceError as error:
            on_bad(error)
        else:
            good.append(i)
            offsets.append(len(labels))
    index = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    return Forest._trusted(
        np.fromiter(map(index.__getitem__, labels), np.int32, len(labels)),
        np.array(arity, np.int32),
        np.array(offsets, np.int64),
        tuple(index),
    ), good


def _backwards(thing: Any, place: str) -> tuple[list[str], list[int]]:
    """Return the labels and arities of a tree's nodes in reversed post-order.

    A nested list or tuple is ``[label, child, …]``. Objects with a ``label()`` method that iterate over their
    children, such as ``nltk.Tree``, are nodes. Text among the children is a leaf.
    """
    labels: list[str] = []
    arity: list[int] = []
    waiting = [thing]
    unchecked = _CHECK_AFTER
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind is str:
            labels.append(node)
            arity.append(0)
            continue
        if (kind is list or kind is tuple) and node and type(node[0]) is str and "(" not in node[0]:
            label, children = node[0], node[1:]
        elif isinstance(node, Tree):
            label, children = node.label, node.children
        elif isinstance(node, str):
            label, children = str(node), ()
        else:
            label, children = _parts(node, place)
        labels.append(label)
        arity.append(len(children))
        waiting += children
        unchecked -= 1 + len(children)
        if unchecked < 0:
            _check_finite(thing, place)
            unchecked = MAX_NODES
    return labels, arity


def _check_labels(labels: list[str], place: str) -> None:
    try:
        check_text("".join(labels))
    except SourceError as error:
        raise SourceError(f"{place}: {error}") from None


def _check_finite(thing: Any, place: str) -> None:
    """Raise if a tree contains itself, or if shared parts make it larger than a Forest can be.

    Every object is visited once, however often it occurs.
    """
    kept = [thing]  # keeps objects alive, so that addresses stay unique
    nodes = {id(thing): 0}  # nodes in the subtree of each finished object; 0 while it is open
    children = list(_parts(thing, place)[1])
    open_nodes = [(thing, children, iter(children))]
    while open_nodes:
        node, children, todo = open_nodes[-1]
        for child in todo:
            if isinstance(child, (Tree, str)):
                continue
            known = nodes.get(id(child))
            if known == 0:
                raise SourceError(f"{place}: a {type(child).__name__} contains itself, so this is not a tree")
            if known is None:
                kept.append(child)
                nodes[id(child)] = 0
                below = list(_parts(child, place)[1])
                open_nodes.append((child, below, iter(below)))
                break
        else:
            open_nodes.pop()
            nodes[id(node)] = 1 + sum(nodes.get(id(child), 1) for child in children)
    if nodes[id(thing)] > MAX_NODES:
        raise SourceError(f"{place}: a tree of {nodes[id(thing)]} nodes; a Forest holds at most {MAX_NODES}")


def _parts(thing: Any, place: str) -> tuple[str, Any]:
    if isinstance(thing, (list, tuple)) and not hasattr(thing, "label"):
        if not thing:
            raise SourceError(f"{place}: an empty list is not a tree; write [label, child, …]")
        label, children = thing[0], thing[1:]
        if isinstance(label, str) and _looks_like_a_tree(label) and not (label == "()" and children):
            raise SourceError(
                f"{place}: a list is one tree, [label, child, …], but {_shown(label)} in the place of the "
                "label is a tree in brackets: pass the text itself, not a list around it (if it is a label, "
                "use Tree(label, children))"
            )
    elif callable(getattr(thing, "label", None)):
        label, children = thing.label(), list(thing)
        for child in children:  # a tagged word, as in nltk, is not a subtree
            if type(child) in (str, type(thing)):
                continue
            if isinstance(child, (list, tuple)) and not hasattr(child, "label"):
                raise SourceError(f"{place}: a leaf must be text, not {type(child).__name__} {_shown(child)}")
    else:
        raise SourceError(
            f"{place}: cannot make a tree of {type(thing).__name__} {_shown(thing)}; "
            "pass bracket text, a Tree, nested lists or an object with label() and children"
        )
    if not isinstance(label, str):
        raise SourceError(f"{place}: a label must be text, not {type(label).__name__} {_shown(label)}")
    return label, children


def _looks_like_a_tree(label: str) -> bool:
    text = label.strip()
    return text.startswith("(") and text.endswith(")")


def _shown(thing: Any) -> str:
    text = repr(thing)
    return text if len(text) <= 40 else text[:39] + "…"
