"""Python source: every function and method of a file is a tree, by the standard library's ``ast``."""

from __future__ import annotations

import ast
import io
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from typing import IO, Any, NamedTuple

import numpy as np

from treedot.array_types import IntArray
from treedot.errors import SourceError
from treedot.files import read_chunk
from treedot.readers.problems import OnBad
from treedot.trees import Forest

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WITHOUT_STRUCTURE = ("ctx", "type_comment", "type_ignores", "kind")  # fields of syntax nodes


class _Opened(NamedTuple):
    """A syntax node whose children come first."""

    node: ast.AST
    n_children: int
    start: int  # where the nodes of its subtree begin
    scope: str  # the names of the functions and classes that it stands in, with a dot behind each


def read_python(stream: IO[Any], name: str, batch_size: int, on_bad: OnBad) -> Iterator[Forest]:
    """Yield the functions and methods of a source file, in the order in which they begin.

    A node is labelled with its syntax class, a leaf with a name, a constant or an operator; docstrings are
    left out. A function inside another is part of that one's tree, and a tree of its own. The columns are
    ``file``, ``line`` and ``name``, the last with what it is defined in: ``Class.method``. A file that
    this Python cannot parse is one bad source; one without functions has no trees.
    """
    source = read_chunk(stream, -1, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strange escapes in other people's code
            # Open text is decoded already, whatever encoding its first lines declare.
            module = ast.parse(source.decode() if isinstance(stream, io.TextIOBase) else source)
    except SyntaxError as error:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        place = f"{name}:{error.lineno or 1}:{error.offset or 1}"
        on_bad(SourceError(f"{place}: this is not Python {version} source: {error.msg}"))
        return
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes, or nested too deeply
        on_bad(SourceError(f"{name}: this cannot be parsed as Python source: {error}"))
        return
    forest = _functions(module, name)
    for start in range(0, len(forest), batch_size):
        yield forest[start : start + batch_size]


def _functions(module: ast.Module, file: str) -> Forest:
    """Pack a module in post-order, where the nodes of a function stand side by side, and cut those out."""
    index: dict[str, int] = {}
    label: list[int] = []
    arity: list[int] = []
    found: list[tuple[int, int, int, str]] = []  # first node, node after the last, line, name
    todo: list[ast.AST | str | _Opened] = [module]
    scope = ""
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            label.append(index.setdefault(item, len(index)))
            arity.append(0)
        elif isinstance(item, _Opened):
            node = item.node
            label.append(index.setdefault(type(node).__name__, len(index)))
            arity.append(item.n_children)
            scope = item.scope
            if isinstance(node, FUNCTIONS):
                found.append((item.start, len(label), node.lineno, scope + node.name))
        else:
            children = _children(item)
            todo.append(_Opened(item, len(children), len(label), scope))
            todo.extend(reversed(children))
            if isinstance(item, (*FUNCTIONS, ast.ClassDef)):
                scope += item.name + "."
    found.sort()
    return _cut_out(np.array(label, np.int32), np.array(arity, np.int32), tuple(index), found, file)


def _cut_out(
    label: IntArray,
    arity: IntArray,
    texts: tuple[str, ...],
    found: list[tuple[int, int, int, str]],
    file: str,
) -> Forest:
    offsets = np.cumsum([0, *(end - start for start, end, _, _ in found)])
    nodes = np.concatenate([np.zeros(0, np.int64), *(np.arange(start, end) for start, end, _, _ in found)])
    used, numbers = np.unique(label[nodes], return_inverse=True)
    forest = Forest._trusted(
        numbers.astype(np.int32), arity[nodes], offsets.astype(np.int64), tuple(texts[k] for k in used)
    )
    forest.columns.update(
        file=[file] * len(found), line=[line for _, _, line, _ in found], name=[name for *_, name in found]
    )
    return forest


def _children(node: ast.AST) -> list[ast.AST | str]:
    """Return a node's parts in order; contexts (load, store) and the docstring carry no structure."""
    found: list[ast.AST | str] = []
    kind: Any = type(node)
    for field in _fields(kind):
        part = getattr(node, field, None)
        if isinstance(part, list):
            if field == "body" and isinstance(node, FUNCTIONS) and _has_docstring(part):
                part = part[1:]
            found.extend(x if isinstance(x, ast.AST) else _text(x) for x in part if x is not None)
        elif isinstance(part, ast.AST):
            found.append(part)
        elif part is not None or isinstance(node, ast.Constant):
            found.append(_text(part))
    return found


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field for field in kind._fields if field not in WITHOUT_STRUCTURE)


def _has_docstring(body: list[ast.stmt]) -> bool:
    first = body[0]
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


def _text(part: Any) -> str:
    """Return the label of a name or a constant."""
    if not isinstance(part, str):
        try:
            return repr(part)
        except ValueError:  # an integer with more digits than Python likes to write
            return hex(part)
    return part if part.isascii() else part.encode(errors="backslashreplace").decode()
