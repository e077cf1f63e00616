"""Python functions as syntax trees, by the standard library's ``ast``."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from treedot.trees import Forest, Tree

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_functions(paths: Iterable[Path]) -> Forest:
    """Return every function of some source files as a tree, with the columns file, line and name.

    A node is labelled with its syntax class, a leaf with a name, a constant or an operator;
    docstrings are left out. Files that this Python cannot parse are left out too.
    """
    trees: list[Tree] = []
    columns: dict[str, list[object]] = {"file": [], "line": [], "name": []}
    for path in paths:
        for function in _functions(path):
            trees.append(_tree(function))
            columns["file"].append(str(path))
            columns["line"].append(function.lineno)
            columns["name"].append(function.name)
    return Forest.from_trees(trees, columns)


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strange escapes in other people's code
            module = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    yield from (node for node in ast.walk(module) if isinstance(node, FUNCTIONS))


def _tree(root: ast.AST) -> Tree:
    """Turn a syntax tree into a Tree, children before parents."""
    done: list[Tree] = []
    todo: list[tuple[ast.AST, int] | ast.AST | str] = [root]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            done.append(Tree(item))
        elif isinstance(item, tuple):
            node, count = item
            cut = len(done) - count
            done[cut:] = [Tree(type(node).__name__, done[cut:])]
        else:
            children = _children(item)
            todo.append((item, len(children)))
            todo.extend(reversed(children))
    return done[0]


def _children(node: ast.AST) -> list[ast.AST | str]:
    """Return a node's parts in order; contexts (load, store) and the docstring carry no structure."""
    found: list[ast.AST | str] = []
    for field, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        if (
            field == "body"
            and isinstance(node, FUNCTIONS)
            and ast.get_docstring(node, clean=False) is not None
        ):
            parts = parts[1:]
        for part in parts:
            if isinstance(part, ast.expr_context) or field in ("type_comment", "kind"):
                continue
            if isinstance(part, ast.AST):
                found.append(part)
            elif part is not None or isinstance(node, ast.Constant):
                found.append(part if isinstance(part, str) else repr(part))
    return found
