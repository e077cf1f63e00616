"""Convert tree-sitter syntax trees to nodes, for any language with a grammar."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot.languages import Language
from treedot.readers.code.naming import WRAPPING, name_of
from treedot.readers.code.settings import CodeSettings
from treedot.readers.code.stubs import is_stub
from treedot.readers.code.units import MAX_NESTING, Definition, SyntaxTree, cut_units, stable_hash
from treedot.trees import Forest

if TYPE_CHECKING:
    import tree_sitter

N_KINDS = 1 << 16  # node kinds; the last one is ERROR
MIN_LAMBDA = 40  # nodes of the smallest lambda that is a unit
MAX_ABOVE = 6  # nodes around a function that may give it a name

# What to do with a node of a kind:
_LEAVE_OUT, _STRUCTURE, _IDENTIFIER, _LITERAL, _OPERATOR, _STATEMENT, _DEFINITION, _PARENTHESES = range(8)

# In all grammars, tokens inside these expressions are operators.
_OPERATION = re.compile(r"binary|unary|update|boolean_op|comparison|assignment|not_op|pointer_expression")
_OPERATOR_TOKEN = re.compile(r"(?!(?:=|=>|->|\?)$)[-+*/%&|^~<>=!?@]+|[a-z][a-z? ]*")
# In all grammars, the children of these nodes are statements: of a block, a body, a file or a case.
_BODY = re.compile(
    r"(?:.*_)?(?:block|body|body_statement|program|module|source_file|unit|statements?_list|statements|declaration_list"
    r"|compound_statement|case_statement|case|default|section|group|then|else|ensure|begin|do)"
    r"|enum_body_declarations|preproc_(?:if|ifdef|elif)"
)
_QUOTED = re.compile(rb"(?s)([A-Za-z@$]*)(\"\"\"|'''|[\"'`])(.*)\2")


class _Grammar(NamedTuple):
    """A grammar, and the action for each kind of node."""

    language: tree_sitter.Language
    roles: bytes  # indexed by the kind's number
    operations: frozenset[int]
    interpolations: frozenset[int]
    strings: frozenset[int]
    with_body: frozenset[int]
    classes: frozenset[int]
    bodies: frozenset[int]
    lambdas: frozenset[int]
    accessors: frozenset[int]
    declared: frozenset[int]  # functions that must have one of the declarators
    declarators: frozenset[int]
    names: list[str]


def parse(
    source: bytes, language: str, entry: Language, file: str, settings: CodeSettings
) -> tuple[Forest, dict[str, int]]:
    """Return the units of a UTF-8 text, and the numbers of units left out, by reason.

    Some texts take practically for ever, so call this only in a process that can be killed. (The parser's own
    timeout, a callback, crashes before Python 3.14. Attributes of positions leak references in tree-sitter
    0.26.0, so lines are counted here.)
    """
    import tree_sitter

    tree = tree_sitter.Parser(load_grammar(entry).language).parse(source)
    return cut_units(walk(tree.root_node, source, entry, settings), source, file, language, settings)


def walk(
    root: tree_sitter.Node, source: bytes, entry: Language, settings: CodeSettings, start: int = 0
) -> SyntaxTree:
    """Return the nodes of a syntax tree that become nodes of a tree.

    ``start`` is the number of bytes before the source in its file.
    """
    return _Walk(source, load_grammar(entry), settings, start).walk(root)


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
        (_DEFINITION, (*entry.functions, *entry.classes, *entry.lambdas)),
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
        frozenset(kind for kind in kinds if named[kind] and _BODY.fullmatch(names[kind])),
        numbers(*entry.lambdas),
        numbers(*entry.accessors),
        numbers(*entry.functions) if entry.declarators else frozenset(),
        numbers(*entry.declarators),
        names,
    )


class _Found(NamedTuple):
    """A definition that was found; ``start`` and ``end`` count bytes."""

    node: int
    unit: str
    name: str
    start: int
    end: int
    min_nodes: int
    is_stub: bool


class _Walk:
    """One walk over a syntax tree, and its results so far."""

    def __init__(self, source: bytes, grammar: _Grammar, settings: CodeSettings, start: int) -> None:
        self.source, self.grammar, self.settings, self.start = source, grammar, settings, start
        self.label: list[int] = []  # numbers of kinds; from N_KINDS on, of texts
        self.depth: list[int] = []
        self.texts: dict[bytes, int] = {}
        self.number_of: dict[bytes, int] = {}  # number of a text as written, with its quotation marks
        self.found: list[_Found] = []
        self.dropped: list[int] = []  # the first bytes of names and literals that are not nodes of the tree
        self.scope: list[tuple[Any, int, str]] = []  # enclosing definitions, with their depths and full names
        self.blurred: list[tuple[int, int]] = []  # nodes, and the numbers of their texts
        self.errors: list[int] = []
        self.statements: list[tuple[int, int, int]] = []  # nodes, and where they start and end

    def walk(self, root: tree_sitter.Node) -> SyntaxTree:
        """Visit all nodes. Every instruction counts here, so this is one long loop."""
        grammar, source, settings = self.grammar, self.source, self.settings
        roles, operations, number_of = grammar.roles, grammar.operations, self.number_of
        start = self.start
        add_label, add_depth = self.label.append, self.depth.append
        policy = {_IDENTIFIER: settings.identifiers, _LITERAL: settings.literals}
        cursor = root.walk()
        go_down, go_right, go_up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
        broken = root.has_error
        above: list[Any] = [None]  # the node at each depth whose children are next
        bodies = grammar.bodies if settings.statements else frozenset()
        holds = [False]  # for each depth, whether its nodes are statements
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
                    if holds[depth]:
                        self.statements.append((len(self.label) - 1, node.start_byte, node.end_byte))
                if go_down():
                    if role == _PARENTHESES:
                        around.append(depth)
                        n_around += 1
                    depth += 1
                    if depth == len(above):
                        above.append(node)
                        holds.append(kind in bodies)
                    else:
                        above[depth] = node
                        holds[depth] = kind in bodies
                    continue
            elif role == _OPERATOR:
                if above[depth].kind_id in operations:
                    add_label(kind)
                    add_depth(depth - n_around)
            elif role != _LEAVE_OUT and policy[role] == "drop":
                self.dropped.append(node.start_byte - start)
            elif role != _LEAVE_OUT:
                add_label(kind)
                add_depth(depth - n_around)
                if policy[role] == "keep" or settings.blurred:
                    text = source[node.start_byte - start : node.end_byte - start]
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
        grammar, kind = self.grammar, node.kind_id
        is_lambda = kind in grammar.lambdas
        if is_lambda and (node.descendant_count < MIN_LAMBDA or _kind(above[depth]) in grammar.lambdas):
            return
        if kind in grammar.with_body and node.child_by_field_name("body") is None:
            return
        if kind in grammar.declared and not _has_declarator(node, grammar.declarators):
            return
        scope = self.scope
        while scope and (scope[-1][1] >= depth or above[scope[-1][1] + 1] is not scope[-1][0]):
            scope.pop()
        if len(scope) == MAX_NESTING:
            return
        name = name_of(
            node,
            above[max(1, depth - MAX_ABOVE) : depth + 1],
            self.source,
            self.start,
            kind in grammar.accessors,
        )
        full_name = ".".join(filter(None, (scope[-1][2] if scope else "", name)))
        scope.append((node, depth, full_name))
        is_function = kind not in grammar.classes
        self.found.append(
            _Found(
                len(self.label),
                "function" if is_function else "class",
                full_name,
                node.start_byte - self.start,
                node.end_byte - self.start,
                MIN_LAMBDA if is_lambda else 1,
                is_function and not is_lambda and is_stub(node, above[depth], self.source, self.start),
            )
        )

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
            self._statements(),
            np.flatnonzero(label >= N_KINDS),
        )

    def _definitions(self) -> list[Definition]:
        places = [(d.start, d.end) for d in self.found]
        ranges = np.array(places, np.int64).reshape(-1, 2)
        n_dropped = np.diff(np.searchsorted(self.dropped, ranges)).ravel().tolist()
        lines = self._lines(places).tolist()
        return [
            Definition(d.node, d.unit, d.name, first, last, d.min_nodes, dropped, d.is_stub)
            for d, (first, last), dropped in zip(self.found, lines, n_dropped, strict=True)
        ]

    def _statements(self) -> IntArray:
        node = np.array([node for node, *_ in self.statements], np.int64)
        places = [(start - self.start, end - self.start) for _, start, end in self.statements]
        return np.column_stack((node, self._lines(places)))

    def _lines(self, places: list[tuple[int, int]]) -> IntArray:
        """Return the first and the last lines of ranges of bytes."""
        newlines = np.flatnonzero(np.frombuffer(self.source, np.uint8) == 10)
        start, end = np.array(places, np.int64).reshape(-1, 2).T
        places_of_ends = np.column_stack((start, np.maximum(start, end - 1)))
        return np.searchsorted(newlines, places_of_ends) + 1


def _unquoted(text: bytes) -> bytes:
    """Return a literal without its quotation marks, but with its prefix."""
    quoted = _QUOTED.fullmatch(text)
    return text if quoted is None else quoted[1] + quoted[3]


def _kind(node: Any) -> int | None:
    """Return the kind of a node, None above the root of a walk."""
    return None if node is None else int(node.kind_id)


def _has_declarator(function: Any, kinds: frozenset[int]) -> bool:
    """Return whether a node of one of the kinds is in the declarator of a function."""
    inner = function.child_by_field_name("declarator")
    while inner is not None and inner.kind_id not in kinds:
        below = inner.child_by_field_name("declarator") or inner.child_by_field_name("name")
        if below is None and inner.type in WRAPPING:
            below = inner.named_child(inner.named_child_count - 1)
        inner = below
    return inner is not None
