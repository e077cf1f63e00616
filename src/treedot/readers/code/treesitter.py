"""Convert tree-sitter syntax trees to nodes, for any language with a grammar."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treedot.languages import Language
from treedot.readers.code.settings import CodeSettings
from treedot.readers.code.units import MAX_NESTING, Definition, SyntaxTree, cut_units, stable_hash
from treedot.trees import Forest

if TYPE_CHECKING:
    import tree_sitter

N_KINDS = 1 << 16  # node kinds; the last one is ERROR
MAX_NAME = 100

# What to do with a node of a kind:
_LEAVE_OUT, _STRUCTURE, _IDENTIFIER, _LITERAL, _OPERATOR, _STATEMENT, _DEFINITION, _PARENTHESES = range(8)

# In all grammars, tokens inside these expressions are operators.
_OPERATION = re.compile(r"binary|unary|update|boolean_op|comparison|assignment|not_op|pointer_expression")
_OPERATOR_TOKEN = re.compile(r"(?!(?:=|=>|->|\?)$)[-+*/%&|^~<>=!?@]+|[a-z][a-z? ]*")
_QUOTED = re.compile(rb"(?s)([A-Za-z@$]*)(\"\"\"|'''|[\"'`])(.*)\2")


_ASSIGNMENTS = (("value", "name"), ("value", "key"), ("value", "property"), ("right", "left"))  # fields


class _Grammar(NamedTuple):
    """A grammar, and the action for each kind of node."""

    language: tree_sitter.Language
    roles: bytes  # indexed by the kind's number
    operations: frozenset[int]
    interpolations: frozenset[int]
    strings: frozenset[int]
    with_body: frozenset[int]
    classes: frozenset[int]
    names: list[str]


def parse(
    source: bytes, language: str, entry: Language, file: str, settings: CodeSettings
) -> tuple[Forest, int]:
    """Return the units of a UTF-8 text, and the number of units that comments ignore.

    Some texts take practically for ever, so call this only in a process that can be killed. (The parser's own
    timeout, a callback, crashes before Python 3.14. Attributes of positions leak references in tree-sitter
    0.26.0, so lines are counted here.)
    """
    import tree_sitter

    grammar = load_grammar(entry)
    tree = tree_sitter.Parser(grammar.language).parse(source)
    return cut_units(_Walk(source, grammar, settings).walk(tree), source, file, language, settings)


@cache
def is_installed(entry: Language) -> bool:
    """Return whether the grammar of a language is installed."""
    return find_spec(entry.module) is not None


@cache
def load_grammar(entry: Language) -> _Grammar:
    """Load the grammar of a language."""
    import tree_sitter

    module = import_module(entry.module)
    language = tree_sitter.Language(getattr(module, entry.grammar)())
    kinds = range(language.node_kind_count)
    names = [language.node_kind_for_id(kind) or "" for kind in kinds]
    named = [language.node_kind_is_named(kind) for kind in kinds]

    def numbers(*wanted: str) -> frozenset[int]:
        return frozenset(kind for kind in kinds if named[kind] and names[kind] in wanted)

    roles = bytearray([_STRUCTURE]) * N_KINDS
    for kind in kinds:
        if not named[kind]:
            roles[kind] = _OPERATOR if _OPERATOR_TOKEN.fullmatch(names[kind]) else _LEAVE_OUT
    for role, wanted in (
        (_LEAVE_OUT, entry.omitted),
        (_IDENTIFIER, entry.identifiers),
        (_LITERAL, entry.literals),
        (_STATEMENT, ("expression_statement",)),
        (_PARENTHESES, ("parenthesized_expression",)),
        (_DEFINITION, (*entry.functions, *entry.classes)),
    ):
        for kind in numbers(*wanted):
            roles[kind] = role
    return _Grammar(
        language,
        bytes(roles),
        frozenset(kind for kind in kinds if named[kind] and _OPERATION.search(names[kind])),
        numbers(*entry.interpolations),
        numbers(*(kind for kind in entry.literals if "string" in kind)),
        numbers(*entry.with_body),
        numbers(*entry.classes),
        names,
    )


class _Walk:
    """One walk over a syntax tree, and its results so far."""

    def __init__(self, source: bytes, grammar: _Grammar, settings: CodeSettings) -> None:
        self.source, self.grammar, self.settings = source, grammar, settings
        self.label: list[int] = []  # numbers of kinds; from N_KINDS on, of texts
        self.depth: list[int] = []
        self.texts: dict[bytes, int] = {}
        self.number_of: dict[bytes, int] = {}  # number of a text as written, with its quotation marks
        self.found: list[tuple[int, str, str, int, int]] = []
        self.scope: list[tuple[Any, int, str]] = []  # enclosing definitions, with their depths and full names
        self.blurred: list[tuple[int, int]] = []  # nodes, and the numbers of their texts
        self.errors: list[int] = []

    def walk(self, tree: tree_sitter.Tree) -> SyntaxTree:
        """Visit all nodes. Every instruction counts here, so this is one long loop."""
        grammar, source, settings = self.grammar, self.source, self.settings
        roles, operations, number_of = grammar.roles, grammar.operations, self.number_of
        add_label, add_depth = self.label.append, self.depth.append
        policy = {_IDENTIFIER: settings.identifiers, _LITERAL: settings.literals}
        cursor = tree.walk()
        go_down, go_right, go_up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
        broken = tree.root_node.has_error
        above: list[Any] = [None]  # the node at each depth whose children are next
        depth = 0
        around: list[int] = []  # the depths of open parentheses
        n_around = 0  # their number; they are not nodes of the tree
        while True:
            node: Any = cursor.node
            kind = node.kind_id
            role = roles[kind]
            if broken:
                if node.is_missing:
                    self.errors.append(self._last_above(depth - n_around))  # the node that it is missing from
                    role = _LEAVE_OUT
                elif node.is_error:
                    self.errors.append(len(self.label))
            if role == _LITERAL and self._has_expressions(node):
                role = _STRUCTURE
            elif role == _STATEMENT:
                role = _LEAVE_OUT if self._is_plain_string(node) else _STRUCTURE  # a docstring or a directive
            elif role == _DEFINITION:
                self._define(node, above, depth)
                role = _STRUCTURE

            if role in (_STRUCTURE, _PARENTHESES):
                if role == _STRUCTURE:
                    add_label(kind)
                    add_depth(depth - n_around)
                if go_down():
                    if role == _PARENTHESES:
                        around.append(depth)
                        n_around += 1
                    depth += 1
                    if depth == len(above):
                        above.append(node)
                    else:
                        above[depth] = node
                    continue
            elif role == _OPERATOR:
                if above[depth].kind_id in operations:
                    add_label(kind)
                    add_depth(depth - n_around)
            elif role != _LEAVE_OUT and policy[role] != "drop":
                add_label(kind)
                add_depth(depth - n_around)
                if policy[role] == "keep" or settings.blurred:
                    text = source[node.start_byte : node.end_byte]
                    number = number_of.get(text)
                    if number is None:
                        number = self._number_text(text)
                    if policy[role] == "keep":
                        add_label(number)
                        add_depth(depth - n_around + 1)
                    else:
                        self.blurred.append((len(self.label) - 1, number))
            while not go_right():
                if not go_up():
                    return self._result()
                depth -= 1
                if around and around[-1] == depth:
                    around.pop()
                    n_around -= 1

    def _last_above(self, level: int) -> int:
        """Return the last node above a level, the parent of the next node at this level."""
        node = len(self.depth) - 1
        while self.depth[node] >= level:
            node -= 1
        return node

    def _number_text(self, text: bytes) -> int:
        """Return the number of a text; its quotation marks do not matter."""
        number = self.texts.setdefault(_unquoted(text), N_KINDS + len(self.texts))
        self.number_of[text] = number
        return number

    def _has_expressions(self, node: Any) -> bool:
        """Return whether a literal contains expressions."""
        kinds = self.grammar.interpolations
        return bool(kinds) and node.child_count > 2 and any(c.kind_id in kinds for c in node.named_children)

    def _is_plain_string(self, statement: Any) -> bool:
        if statement.named_child_count != 1:
            return False
        only = statement.named_child(0)
        return only.kind_id in self.grammar.strings and not self._has_expressions(only)

    def _define(self, node: Any, above: list[Any], depth: int) -> None:
        """Record a definition, unless it only refers to another one."""
        if node.kind_id in self.grammar.with_body and node.child_by_field_name("body") is None:
            return
        scope = self.scope
        while scope and (scope[-1][1] >= depth or above[scope[-1][1] + 1] is not scope[-1][0]):
            scope.pop()
        if len(scope) == MAX_NESTING:
            return
        name = self._name(node, above[depth])
        full_name = ".".join(filter(None, (scope[-1][2] if scope else "", name)))
        scope.append((node, depth, full_name))
        unit = "class" if node.kind_id in self.grammar.classes else "function"
        self.found.append((len(self.label), unit, full_name, node.start_byte, node.end_byte))

    def _name(self, node: Any, parent: Any) -> str:
        """Return the name of a definition; for an anonymous function, the variable that it is assigned to."""
        named = _name_node(node)
        if named is None and parent is not None:
            for value, name in _ASSIGNMENTS:
                if parent.child_by_field_name(value) == node:
                    named = named or parent.child_by_field_name(name)
        if named is None:
            return ""
        name = self._tidy(named)
        owner = node.child_by_field_name("receiver")  # receiver of a Go method: (s *Server)
        if owner is not None:
            words = re.findall(r"[^\W\d]\w*", self._tidy(owner))
            name = f"{words[min(1, len(words) - 1)]}.{name}" if words else name
        return name

    def _tidy(self, node: Any) -> str:
        text = self.source[node.start_byte : min(node.end_byte, node.start_byte + 4 * MAX_NAME)]
        return " ".join(text.decode(errors="replace").split())[:MAX_NAME]

    def _result(self) -> SyntaxTree:
        names = self.grammar.names
        texts = [text.decode(errors="backslashreplace") for text in self.texts]
        label = np.array(self.label, np.int64)
        index: dict[str, int] = {}
        number = np.zeros(N_KINDS + len(texts), np.int64)
        for k in np.flatnonzero(np.bincount(label)).tolist():
            text = texts[k - N_KINDS] if k >= N_KINDS else names[k] if k < len(names) else "ERROR"
            number[k] = index.setdefault(text, len(index))
        nodes, blurred = np.array(self.blurred, np.int64).reshape(-1, 2).T
        hashes = np.array([stable_hash(text) for text in self.texts] if nodes.size else [0], np.int64)
        return SyntaxTree(
            number[label],
            np.array(self.depth, np.int64),
            tuple(index),
            self._definitions(),
            nodes,
            hashes[blurred - N_KINDS],
            np.array(sorted(self.errors), np.int64),
        )

    def _definitions(self) -> list[Definition]:
        newlines = np.flatnonzero(np.frombuffer(self.source, np.uint8) == 10)
        places = np.array([(start, max(start, end - 1)) for *_, start, end in self.found], np.int64)
        lines = (np.searchsorted(newlines, places) + 1).tolist()
        return [
            Definition(node, unit, name, *span)
            for (node, unit, name, _, _), span in zip(self.found, lines, strict=True)
        ]


def _unquoted(text: bytes) -> bytes:
    """Return a literal without its quotation marks, but with its prefix."""
    quoted = _QUOTED.fullmatch(text)
    return text if quoted is None else quoted[1] + quoted[3]


def _name_node(node: Any) -> Any:
    """Return the node of a definition's name; in C it is nested in the declarator."""
    fields = map(node.child_by_field_name, ("name", "declarator", "operator", "type"))
    found = next((child for child in fields if child is not None), None)
    inner = found
    while inner is not None:
        found = inner
        inner = found.child_by_field_name("declarator")
        if inner is None and found.type in ("reference_declarator", "parenthesized_declarator"):
            inner = found.named_child(found.named_child_count - 1)
    return found
