"""Python source by the standard library's ``ast``, where tree-sitter is not installed."""

from __future__ import annotations

import ast
import sys
import warnings
from typing import Any

import numpy as np

from treedot.errors import TreeSyntaxError
from treedot.readers.code.settings import CodeSettings
from treedot.readers.code.units import MAX_NESTING, Definition, SyntaxTree, stable_hash

WITHOUT_STRUCTURE = (
    "conversion",
    "ctx",
    "is_async",
    "kind",
    "level",
    "simple",
    "type_comment",
    "type_ignores",
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = frozenset({*FUNCTIONS, ast.ClassDef})
LITERALS = {str: "string", bytes: "string", int: "integer", float: "float", complex: "float"}
IDENTIFIER = "identifier"


def parse(source: bytes, name: str, settings: CodeSettings) -> SyntaxTree:
    """Return the syntax tree of a file; raise a ``TreeSyntaxError`` where this Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strange escapes in other people's code
            module = ast.parse(source.decode())
    except SyntaxError as error:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        place = f"{name}:{error.lineno or 1}:{error.offset or 1}"
        raise TreeSyntaxError(f"{place}: this is not Python {version} source: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:  # no text, or nested too deeply
        raise TreeSyntaxError(f"{name}: this cannot be parsed as Python source: {error}") from None
    return _Walk(settings).walk(module)


class _Walk:
    """One walk over a syntax tree, and what it has found so far."""

    def __init__(self, settings: CodeSettings) -> None:
        self.settings = settings
        self.label: list[int] = []
        self.depth: list[int] = []
        self.index: dict[str, int] = {}
        self.definitions: list[Definition] = []
        self.scope: list[str] = []  # the names of the definitions around
        self.blurred: list[tuple[int, str]] = []

    def walk(self, module: ast.Module) -> SyntaxTree:
        """Go through all nodes, each before its children."""
        identifiers = self.settings.identifiers
        shapes: dict[type, tuple[int, tuple[str, ...]]] = {}  # the label and the fields of a kind of nodes
        add_label, add_depth = self.label.append, self.depth.append
        waiting: list[tuple[Any, int]] = [(module, 0)]
        while waiting:
            node, depth = waiting.pop()
            kind = type(node)
            if kind is ast.Name:
                self._add_text(IDENTIFIER, node.id, depth, identifiers)
            elif kind is str:
                self._add_text(IDENTIFIER, node, depth, identifiers)
            elif kind is ast.Constant:
                self._add_constant(node.value, depth)
            elif node is None:
                self.scope.pop()
            elif kind is not ast.Expr or not _is_plain_string(node.value):
                if kind in DEFINITIONS:
                    self._define(node)
                    waiting.append((None, depth))  # its end
                shape = shapes.get(kind)
                if shape is None:
                    shape = shapes[kind] = self._shape(kind)
                add_label(shape[0])
                add_depth(depth)
                for field in shape[1]:
                    part = getattr(node, field, None)
                    if type(part) is list:
                        waiting.extend([(x, depth + 1) for x in reversed(part) if x is not None])
                    elif part is not None:
                        waiting.append((part, depth + 1))
        return self._result()

    def _shape(self, kind: type) -> tuple[int, tuple[str, ...]]:
        """Return the number of a kind's label, and its fields from the last to the first."""
        fields = (field for field in reversed(kind._fields) if field not in WITHOUT_STRUCTURE)  # type: ignore[attr-defined]
        return self.index.setdefault(kind.__name__, len(self.index)), tuple(fields)

    def _define(self, node: Any) -> None:
        self.scope.append(node.name)
        if len(self.scope) <= MAX_NESTING:
            unit = "function" if isinstance(node, FUNCTIONS) else "class"
            name = ".".join(self.scope)
            self.definitions.append(Definition(len(self.label), unit, name, node.lineno, node.end_lineno))

    def _add_constant(self, value: Any, level: int) -> None:
        kind = LITERALS.get(type(value))
        if kind is None:  # None, True, False and the ellipsis
            self._add(str(value), level)
        else:
            self._add_text(kind, _text(value), level, self.settings.literals)

    def _add_text(self, kind: str, text: str, level: int, policy: str) -> None:
        if policy == "drop":
            return
        if policy == "blur" and self.settings.blurred:
            self.blurred.append((len(self.label), text))
        self._add(kind, level)
        if policy == "keep":
            self._add(text if text.isascii() else _utf8(text), level + 1)

    def _add(self, text: str, level: int) -> None:
        self.label.append(self.index.setdefault(text, len(self.index)))
        self.depth.append(level)

    def _result(self) -> SyntaxTree:
        return SyntaxTree(
            np.array(self.label, np.int64),
            np.array(self.depth, np.int64),
            tuple(self.index),
            self.definitions,
            np.array([node for node, _ in self.blurred], np.int64),
            np.array([stable_hash(_utf8(text).encode()) for _, text in self.blurred], np.int64),
            np.zeros(0, np.int64),
        )


def _is_plain_string(value: ast.expr) -> bool:
    """Tell whether a statement's value is a docstring, or another string that nothing is done with."""
    return type(value) is ast.Constant and isinstance(value.value, str)


def _text(value: Any) -> str:
    """Return a literal in one of the ways to write it, a string without its quotation marks."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return "b" + value.decode("latin-1")
    try:
        return repr(value)
    except ValueError:  # an integer with more digits than Python likes to write
        return hex(value)


def _utf8(text: str) -> str:
    """Return a text that UTF-8 can carry."""
    return text.encode(errors="backslashreplace").decode()
