"""Copies of JavaScript functions, renamed and edited to a known degree; their layout stays."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from benchmarks.planting import ACTIONS, KINDS, Names, Planted, chosen_to_edit, is_suitable

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

FUNCTIONS = ("function_declaration", "method_definition")
FOREIGN = ("expression_statement", "lexical_declaration", "variable_declaration", "throw_statement")
NESTED = ("statement_block", "switch_body", "class_body")
SHORT = ("shorthand_property_identifier", "shorthand_property_identifier_pattern")
NAMES = ("identifier", "property_identifier", "private_property_identifier", *SHORT)
PATTERNS = (
    "array_pattern",
    "assignment_pattern",
    "object_assignment_pattern",
    "object_pattern",
    "pair_pattern",
    "rest_pattern",
)
DECLARING = {  # the fields of names that nodes declare
    "arrow_function": "parameter",
    "catch_clause": "parameter",
    "for_in_statement": "left",
    "variable_declarator": "name",
}
METHOD = b"class NAME extends Object {\n"
KEPT = (b"arguments", b"constructor", b"undefined")
Edit = tuple[int, int, bytes]  # the bytes from, to: their new text


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_javascript

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_javascript.language()))


def functions_in(source: bytes) -> Iterator[Node]:
    """Yield the functions and methods of a file that follows the grammar."""
    root = _parser().parse(source).root_node
    if not root.has_error:
        yield from (node for node in _below(root) if node.type in FUNCTIONS)


def plant(functions: Sequence[Node], per_kind: int, seed: int) -> list[Planted]:
    """Return edited copies of randomly chosen functions; no function is copied twice."""
    chance = random.Random(seed)
    suitable = [k for k, function in enumerate(functions) if is_suitable(len(_statements(function)))]
    chosen = chance.sample(suitable, per_kind * len(KINDS))
    donors = [
        statement.text or b""
        for k in chance.sample(suitable, min(300, len(suitable)))
        for statement in _statements(functions[k])
        if statement.type in FOREIGN and not _is_compound(statement)
    ]
    return [
        Planted(_changed(functions[number], *KINDS[kind], donors, chance).decode(), kind, number)
        for number, kind in zip(chosen, list(KINDS) * per_kind, strict=True)
    ]


def _below(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it, in the order of the source."""
    waiting = [node]
    while waiting:
        waiting.extend(reversed((node := waiting.pop()).children))
        yield node


def _statements(function: Node) -> list[Node]:
    """Return the statements of a function, at every depth."""
    blocks = (node for node in _below(function) if node.type == "statement_block")
    return [child for block in blocks for child in block.named_children if child.type != "comment"]


def _is_compound(statement: Node) -> bool:
    return any(node.type in NESTED for node in _below(statement))


def _changed(
    function: Node, share: float, names: Names, foreign: Sequence[bytes], chance: random.Random
) -> bytes:
    """Return the source of an edited copy, in a scope of its own."""
    text = _with_edits(function.text or b"", _edits(function, share, foreign, chance))
    before, after = (b"{\n", b"\n}\n") if function.type == "function_declaration" else (METHOD, b"\n}\n")
    text = before.replace(b"NAME", b"Copy%d" % chance.randrange(10**6)) + text + after
    return text if names == "kept" else _with_edits(text, _renaming(text, names, chance))


def _with_edits(text: bytes, edits: Sequence[Edit]) -> bytes:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _edits(function: Node, share: float, foreign: Sequence[bytes], chance: random.Random) -> list[Edit]:
    """Insert a foreign statement before, delete or replace a share of the statements, a third each.

    A statement that contains others is kept: it gets a foreign one before it.
    """
    every = _statements(function)
    edits = []
    for number in sorted(chosen_to_edit(len(every), share, chance)):
        statement, action = every[number], chance.choice(ACTIONS)
        start, end = statement.start_byte - function.start_byte, statement.end_byte - function.start_byte
        if action == "insert" or _is_compound(statement):
            edits.append((start, start, chance.choice(foreign) + b"\n"))
        else:
            edits.append((start, end, b"" if action == "delete" else chance.choice(foreign)))
    return edits


def _renaming(text: bytes, names: Names, chance: random.Random) -> list[Edit]:
    """Rename the variables of a function, or all names, with other numbers and strings."""
    nodes = list(_below(_parser().parse(text).root_node))
    local = {name.text for node in nodes for name in _declared(node)}
    new: dict[bytes, bytes] = {}
    edits: list[Edit] = []
    for node in nodes:
        old = node.text or b""
        if names == "all" and node.type == "number":
            edits.append((node.start_byte, node.end_byte, b"%d" % chance.randrange(1000)))
        if not _is_renamed(node, names, local):
            continue
        name = new.setdefault(old, b"n%d_%d" % (len(new), chance.randrange(10**6)))
        if node.type == "private_property_identifier":
            name = b"#" + name
        if names == "local" and node.type in SHORT:
            name = old + b": " + name
        edits.append((node.start_byte, node.end_byte, name))
    return edits


def _is_renamed(node: Node, names: Names, local: set[bytes | None]) -> bool:
    if node.text in KEPT:
        return False
    if names == "all":
        return node.type in (*NAMES, "string_fragment")
    return node.type in ("identifier", *SHORT) and node.text in local


def _declared(node: Node) -> Iterator[Node]:
    """Yield the names that a node declares in its function."""
    if node.type == "formal_parameters":
        yield from (name for child in node.named_children for name in _bound(child))
    elif node.type in DECLARING:
        yield from _bound(node.child_by_field_name(DECLARING[node.type]))


def _bound(pattern: Node | None) -> Iterator[Node]:
    """Yield the names that a pattern binds; default values and keys bind none."""
    if pattern is None:
        return
    if pattern.type in ("identifier", "shorthand_property_identifier_pattern"):
        yield pattern
    elif pattern.type in PATTERNS:
        for field in ("left", "value"):
            if (inner := pattern.child_by_field_name(field)) is not None:
                yield from _bound(inner)
                return
        yield from (name for child in pattern.named_children for name in _bound(child))
