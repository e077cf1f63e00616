"""The names of definitions, also of functions that have none of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

MAX_NAME = 100
WRAPPING = ("reference_declarator", "parenthesized_declarator")  # declarators whose last child is another one

_NAMES = {"value": ("name", "key", "property", "declarator"), "right": ("left",)}  # fields of assignments
_ARGUMENTS = ("arguments", "argument_list")
_LISTS = ("argument", "expression_list", "parenthesized_expression")  # around a function that is named
_STRING = re.compile(r"(?s)[A-Za-z@$]*([\"'`]+)(.*)\1")
_PASSED = re.compile(r".*string|.*string_literal|.*symbol|constant|scope_resolution")
_N_PASSED = 2  # the arguments that may name a function


def name_of(node: Any, above: Sequence[Any], source: bytes, start: int, is_accessor: bool) -> str:
    """Return the name of a definition.

    A function without a name has that of the variable that it is assigned to, or the string that it is passed
    with. An accessor has that of its property. ``above`` are the nodes around the definition, the outermost
    first; ``start`` is the number of bytes before the source in its file.
    """

    def tidy(named: Any) -> str:
        first = named.start_byte - start
        text = source[first : min(named.end_byte - start, first + 4 * MAX_NAME)]
        return " ".join(text.decode(errors="replace").split())[:MAX_NAME]

    if is_accessor:
        owner = above[-2].child_by_field_name("name") if len(above) > 1 else None
        return f"{'this' if owner is None else tidy(owner)}.{_keyword(node)}"
    if node.type == "static_initializer":
        return "static"
    own = _own_name(node)
    if own is None:
        found = _given_name(node, above)
        return "" if found is None else _unquoted(tidy(found))
    name = tidy(own)
    owner = node.child_by_field_name("receiver")  # receiver of a Go method: (s *Server)
    if owner is not None:
        words = re.findall(r"[^\W\d]\w*", tidy(owner))
        name = f"{words[min(1, len(words) - 1)]}.{name}" if words else name
    return name


def _keyword(accessor: Any) -> str:
    """Return the keyword of an accessor, such as ``get``."""
    return next((child.type for child in accessor.children if not child.is_named), "")


def _own_name(node: Any) -> Any:
    """Return the node of a definition's name; in C it is nested in the declarator."""
    fields = map(node.child_by_field_name, ("name", "declarator", "operator", "type"))
    found = next((child for child in fields if child is not None), None)
    if found is not None and found.type == "abstract_function_declarator":  # the parameters of a lambda
        return None
    inner = found
    while inner is not None:
        found = inner
        inner = found.child_by_field_name("declarator")
        if inner is None and found.type in WRAPPING:
            inner = found.named_child(found.named_child_count - 1)
    return found


def _given_name(node: Any, above: Sequence[Any]) -> Any:
    """Return the node that names a function without a name: a variable, a key, or a string; or None."""
    for parent in reversed(above):
        for value, names in _NAMES.items():
            if parent.child_by_field_name(value) == node:
                found = filter(None, map(parent.child_by_field_name, names))
                return _at_the_place_of(node, next(found, None))
        if parent.type == "variable_declarator":  # of C#
            return parent.child_by_field_name("name")
        if parent.type in _ARGUMENTS:
            return _passed(parent, node)
        if parent.child_by_field_name("block") == node:  # a block of Ruby
            arguments = parent.child_by_field_name("arguments")
            passed = None if arguments is None else _passed(arguments, node)
            if passed is not None:
                return passed
        elif parent.type not in _LISTS:
            return None
        node = parent
    return None


def _passed(arguments: Any, function: Any) -> Any:
    """Return the string among the first arguments of a call that names the function passed with it."""
    for argument in arguments.named_children[:_N_PASSED]:
        if argument == function:
            break
        text = argument.named_child(0) if argument.type == "argument" else argument
        if text is not None and _PASSED.fullmatch(text.type):
            return text
    return None


def _at_the_place_of(value: Any, names: Any) -> Any:
    """Return a name, or the first of a list of names."""
    if names is not None and names.type == "expression_list" and value.named_child_count == 1:
        return names.named_child(0)
    return names


def _unquoted(text: str) -> str:
    """Return a string without its quotation marks, or a symbol without its colon."""
    quoted = _STRING.fullmatch(text)
    return (text if quoted is None else quoted[2]).removeprefix(":").strip()
