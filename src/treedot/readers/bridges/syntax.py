"""The trees of source code in memory: nodes of tree-sitter, and of Python's ``ast``."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from treedot.errors import SourceError
from treedot.languages import LANGUAGES, Language
from treedot.readers.bridges.registry import Backwards
from treedot.readers.bridges.settings import ObjectSettings
from treedot.readers.bridges.trees import of_forest
from treedot.readers.code import treesitter
from treedot.readers.code.settings import MAX_BYTES, CodeSettings
from treedot.readers.code.source_files import parse_units
from treedot.readers.code.units import cut_out, post_order
from treedot.readers.finite import check_finite
from treedot.trees import Forest

_ERROR = treesitter.N_KINDS - 1


def read_ast(node: ast.AST, settings: ObjectSettings) -> Backwards:
    """Return the tree of a node of ``ast``: that of the source which ``ast.unparse`` makes of it."""
    if not isinstance(node, (ast.mod, ast.stmt, ast.expr)):
        raise SourceError(
            f"a node {type(node).__name__} is not source code by itself: pass the statement around it"
        )
    check_finite(node, lambda node: list(ast.iter_child_nodes(node)), limit=MAX_BYTES)
    unit = "file"
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        unit = "class" if isinstance(node, ast.ClassDef) else "function"
        node = copy.copy(node)
        node.decorator_list = []  # they may define functions, too
    source = ast.unparse(node).encode(errors="backslashreplace")
    code = CodeSettings(unit, settings.identifiers, settings.literals)
    forest, _ = parse_units(source, "python", f"the node {type(node).__name__}", code)
    return of_forest(forest[:1])


def read_syntax_node(thing: Any, settings: ObjectSettings) -> Backwards:
    """Return the tree of a node of tree-sitter, or of the root of a tree."""
    root, language = thing, None
    if hasattr(type(thing), "root_node"):
        root, language = thing.root_node, thing.language
    if not root.is_named:
        raise SourceError(f"a node {root.type!r} is punctuation, a keyword or an operator: pass a named node")
    text = root.text
    if text is None:
        raise SourceError("the Node has no source text: parse bytes, and read the tree before editing it")
    code = CodeSettings("file", settings.identifiers, settings.literals)
    found: list[Forest] = []
    for entry in _grammars_of(root, language):
        tree = treesitter.walk(root, text, entry, code, root.start_byte)
        if np.count_nonzero(tree.depth == 0) != 1:
            raise SourceError(f"a node {root.type} has no tree, since comments and their like are left out")
        forest = cut_out(*post_order(tree.depth), tree, np.zeros(1, np.int64))
        found += [] if forest in found else [forest]
    if not found:
        raise SourceError(
            f"the grammar of the node {root.type} is not one that treedot reads, in the installed version"
        )
    if len(found) > 1:
        raise SourceError(f"a node {root.type} may be of several languages: pass the tree or a node above it")
    return of_forest(found[0])


def _grammars_of(root: Any, language: Any) -> Iterator[Language]:
    """Yield the languages that a node may be of: those whose grammar has all of its kinds of nodes."""
    kinds = set() if language is not None else _kinds(root)
    for entry in LANGUAGES.values():
        if treesitter.is_installed(entry):
            grammar = treesitter.load_grammar(entry)
            if language is not None:
                if language == grammar.language:
                    yield entry
            elif all(kind < len(grammar.names) and grammar.names[kind] == name for kind, name in kinds):
                yield entry


def _kinds(root: Any) -> set[tuple[int, str]]:
    """Return the numbers and names of the kinds of all nodes."""
    cursor = root.walk()
    found = set()
    while True:
        node = cursor.node
        if node.kind_id != _ERROR:
            found.add((node.kind_id, node.type))
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return found
