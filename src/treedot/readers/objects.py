"""Read trees that are in memory: bracket text, ``Tree``, nested lists, and objects of libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treedot.errors import SourceError, TreeSyntaxError
from treedot.readers.brackets.reader import read_cells
from treedot.readers.bridges.registry import Backwards, Bridge, bridge_of_class
from treedot.readers.bridges.settings import ObjectSettings
from treedot.readers.finite import CHECK_AFTER, check_finite
from treedot.readers.on_bad import OnBad
from treedot.trees import Forest, Tree
from treedot.trees.brackets import check_text
from treedot.trees.forest import MAX_NODES

_DEFAULTS = ObjectSettings()


def read_items(
    items: list[Any],
    place_of: Callable[[int], str],
    on_bad: OnBad,
    settings: ObjectSettings = _DEFAULTS,
) -> tuple[Forest, list[int]]:
    """Pack trees given as text or objects; return the forest and the indices of the good items.

    ``place_of`` returns the description of an item's place, for errors.
    """
    kinds = set(map(type, items))
    if all(kind is type(None) or issubclass(kind, str) for kind in kinds):
        return read_cells(items, place_of, on_bad)
    if len(items) == 1 and isinstance(items[0], Tree):
        return Forest.from_tree(items[0]), [0]
    if any(hasattr(kind, "as_py") for kind in kinds):  # pyarrow scalars
        plain = [item.as_py() if hasattr(type(item), "as_py") else item for item in items]
        return read_items(plain, place_of, on_bad, settings)
    if all(isinstance(item, Tree) for item in items):
        return Forest.from_trees(items), list(range(len(items)))
    bridges = {kind: bridge for kind in kinds if (bridge := bridge_of_class(kind)) is not None}
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
                bridge = bridges.get(type(item))
                own_labels, own_arity = (
                    _bridged(bridge, item, place, settings) if bridge else _backwards(item, place)
                )
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


def _bridged(bridge: Bridge, item: Any, place: str, settings: ObjectSettings) -> Backwards:
    """Return the labels and arities of the nodes of a library's object, in reversed post-order."""
    try:
        return bridge.tree(item, settings)
    except SourceError as error:
        raise type(error)(f"{place}: {error}") from error.__cause__


def _backwards(thing: Any, place: str) -> Backwards:
    """Return the labels and arities of a tree's nodes in reversed post-order.

    A nested list or tuple is ``[label, child, …]``. Objects with a ``label()`` method that iterate over their
    children, such as ``nltk.Tree``, are nodes. Text among the children is a leaf.
    """
    labels: list[str] = []
    arity: list[int] = []
    waiting = [thing]
    unchecked = CHECK_AFTER
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
            check_finite(thing, lambda node: list(_parts(node, place)[1]), place)
            unchecked = MAX_NODES
    return labels, arity


def _check_labels(labels: list[str], place: str) -> None:
    try:
        check_text("".join(labels))
    except TypeError:  # the label of an object
        other = next(label for label in labels if not isinstance(label, str))
        raise SourceError(f"{place}: {_no_label(other)}") from None
    except SourceError as error:
        raise SourceError(f"{place}: {error}") from None


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
            "pass bracket text, a Tree, nested lists, an object with label() and children, or one of a parser"
        )
    if not isinstance(label, str):
        raise SourceError(f"{place}: {_no_label(label)}")
    return label, children


def _no_label(label: Any) -> str:
    return f"a label must be text, not {type(label).__name__} {_shown(label)}"


def _looks_like_a_tree(label: str) -> bool:
    text = label.strip()
    return text.startswith("(") and text.endswith(")")


def _shown(thing: Any) -> str:
    text = repr(thing)
    return text if len(text) <= 40 else text[:39] + "…"
