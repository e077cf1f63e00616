"""Recognise stubs: functions that only declare how they are called."""

from __future__ import annotations

import re
from typing import Any

MAX_BYTES = 400  # of the only statement of a stub
MAX_STATEMENTS = 3  # children of a body, with comments and a docstring, up to which it may be that of a stub

_OVERLOAD = re.compile(rb"@\s*(?:\w+\.)*overload\b")
_ABSTRACT = re.compile(rb"@\s*(?:\w+\.)*abstract\w+")
_SAYS_NOTHING = re.compile(
    rb"""(?isx) (?: pass | \.\.\.
    | (?:raise|throw|panic) \b .* (?: not[ ]?_?implemented | unimplemented | not[ ]?supported | unsupported
        | abstract | subclass | must[ ](?:be[ ])?(?:implement|overrid) ) .*
    | (?:todo|unimplemented)!\s*\(.*\)
    ) \s*;?"""
)
_NOT_STATEMENTS = ("comment", "line_comment", "block_comment")
_BODIES = ("block", "try_statement")  # of functions whose body is not a field
_INITIALIZERS = ("field_initializer_list", "constructor_initializer")  # do work without a body


def is_stub(function: Any, parent: Any, source: bytes, start: int) -> bool:
    """Return whether a function has no implementation.

    It is an overload of Python, it has no body, or its body is empty, ``...``, ``pass``, or an error that the
    function is not implemented. A method marked as abstract may have any single statement. ``start`` is the
    number of bytes before the source in its file.
    """

    def text(node: Any) -> bytes:
        return source[node.start_byte - start : min(node.end_byte, node.start_byte + MAX_BYTES + 1) - start]

    marks = _decorators(parent, text)
    if any(map(_OVERLOAD.match, marks)):
        return True
    body = function.child_by_field_name("body")
    if body is None:
        return not _has(function, _BODIES)
    if body.named_child_count == 1 and body.named_child(0).type == "statement_list":  # of Go
        body = body.named_child(0)
    if body.named_child_count > MAX_STATEMENTS:
        return False
    statements = [child for child in body.named_children if child.type not in _NOT_STATEMENTS]
    if statements and _is_string(statements[0]):
        del statements[0]
    if not statements:
        return _is_block(body) and not _has(function, _INITIALIZERS)
    if len(statements) > 1:
        return False
    return any(map(_ABSTRACT.match, marks)) or _SAYS_NOTHING.fullmatch(text(statements[0])) is not None


def _has(function: Any, kinds: tuple[str, ...]) -> bool:
    return any(child.type in kinds for child in function.named_children)


def _decorators(parent: Any, text: Any) -> list[bytes]:
    if parent is None or parent.type != "decorated_definition":
        return []
    return [text(child) for child in parent.named_children if child.type == "decorator"]


def _is_string(statement: Any) -> bool:
    """Return whether a statement is a docstring."""
    if statement.type == "expression_statement" and statement.named_child_count == 1:
        statement = statement.named_child(0)
    return bool(statement.type == "string")


def _is_block(body: Any) -> bool:
    """Return whether a body is a block of statements, not the expression that a function returns."""
    return any(word in body.type for word in ("block", "body", "statement"))
