"""Write a tree as Newick, or as an example of SVM-LIGHT-TK or KeLP."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from treedot.errors import ParameterError, SourceError
from treedot.trees.brackets import escape
from treedot.trees.tree import Tree

CLASS = "class"  # the column with the class of an example
TREE, VECTOR, STRING = "T", "V", "S"  # types of representations, as KeLP names them
_UNSAFE = re.compile(r"[|\s]+")  # characters that a string between bars on one line cannot contain
_VECTOR_NAME = re.compile(r"vector\d*")  # names of columns, as ``read_svmlight`` makes them
_PLAIN = re.compile(r"[^\s()\[\]',:;]+")


class VectorText(str):
    """The text of a vector, ``name:value name:value``, in a file of SVM-LIGHT-TK or KeLP.

    Its type distinguishes it from other texts when it is written: ``12:30`` may also be a time.
    """


def newick_text(tree: Tree) -> str:
    """Return a tree in Newick; labels are quoted if necessary.

    Examples
    --------
    >>> newick_text(Tree("rodents", ["mouse", "brown rat"]))
    "(mouse,'brown rat')rodents;"
    """

    def end(node: Tree) -> str:
        quoted = "'" + node.label.replace("'", "''") + "'"
        return (")" if node.children else "") + (node.label if _PLAIN.fullmatch(node.label) else quoted)

    return _written(tree, lambda node: "(" if node.children else "", ",", end) + ";"


def bracketed(tree: Tree) -> str:
    r"""Return a tree as SVM-LIGHT-TK and KeLP read it, with brackets around every leaf.

    Blanks, brackets and bars in labels are written as in other brackets, ``\x20``.

    Examples
    --------
    >>> bracketed(Tree.parse("(A (B b) c)"))
    '(A (B (b))(c))'
    """

    def begin(node: Tree) -> str:
        label = escape(node.label).replace("|", r"\x7c")
        return f"({label} " if node.children else f"({label}"

    return _written(tree, begin, "", lambda _: ")")


def features(vector: str) -> dict[str, float] | None:
    """Return the features of a text ``name:value name:value``; None if it is any other text."""
    items = [item.rpartition(":") for item in vector.split()]
    if not all(key and _is_number(value) for key, _, value in items):
        return None
    return {key: float(value) for key, _, value in items}


def svmlight_line(tree: Tree, columns: Mapping[str, Any]) -> str:
    """Return an example of SVM-LIGHT-TK: its class, its trees, and its vectors.

    The columns of trees in brackets, or of vectors whose features are numbers, follow in order; others are
    left out. Vectors are columns that were read as vectors, and the columns ``vector``, ``vector2``, ….
    """
    label = str(columns.get(CLASS) or 0).strip()
    if not _is_number(label):
        raise ParameterError(
            f"SVM-LIGHT-TK takes numbers as classes, such as 1 and -1, not {label!r}: write a .klp file, or "
            "number the classes"
        )
    others = [_typed(name, value) for name, value in columns.items() if name != CLASS]
    trees = " |BT| ".join([bracketed(tree), *(text for kind, text in others if kind == TREE)])
    vectors = " |BV| ".join(filter(None, (_ascending(text) for kind, text in others if kind == VECTOR)))
    return f"{label} |BT| {trees} |ET| {vectors} |EV|"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _ascending(vector: str) -> str:
    """Return a vector with features numbered from 1 in ascending order; "" if it has other features."""
    items = [item.rpartition(":") for item in vector.split()]
    if not all(key.isascii() and key.isdecimal() and int(key) > 0 for key, *_ in items):
        return ""
    return " ".join(map("".join, sorted(items, key=lambda item: int(item[0]))))


def kelp_line(tree: Tree, columns: Mapping[str, Any]) -> str:
    """Return an example of KeLP: its classes, its tree, and the other columns by their names.

    Columns of trees in brackets or of vectors become such representations; the others become strings. Vectors
    are columns that were read as vectors, and the columns ``vector``, ``vector2``, ….
    """
    names = itertools.chain(("tree", "main"), (f"main{k}" for k in itertools.count(2)))
    own = next(name for name in names if name not in columns)
    parts = [_UNSAFE.sub(" ", str(columns.get(CLASS) or "")).strip(), f"|BT:{own}| {bracketed(tree)} |ET|"]
    for name, value in columns.items():
        if name != CLASS and value is not None:
            kind, text = _typed(name, value)
            parts.append(f"|B{kind}:{_UNSAFE.sub('_', name)}| {text} |E{kind}|")
    return " ".join(parts).lstrip()


def _typed(name: str, value: Any) -> tuple[str, str]:
    """Return the KeLP type of a column's value, and its text on a line."""
    text = str(value).strip()
    if text.startswith("("):
        with contextlib.suppress(SourceError):
            return TREE, bracketed(Tree.parse(text))
    text = _UNSAFE.sub(" ", text).strip()
    may_be_vector = isinstance(value, VectorText) or _VECTOR_NAME.fullmatch(name)
    return (VECTOR if may_be_vector and features(text) is not None else STRING), text


def _written(tree: Tree, begin: Callable[[Tree], str], between: str, end: Callable[[Tree], str]) -> str:
    """Return the text of a tree; ``begin``, ``between`` and ``end`` are put around and between children."""
    pieces: list[str] = []
    waiting: list[Tree | str] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        pieces.append(begin(item))
        waiting.append(end(item))
        for k, child in enumerate(reversed(item.children)):
            waiting += [between, child] if k else [child]
    return "".join(pieces)
