"""Where source code does not follow the grammar of its language."""

from __future__ import annotations

from treedot.languages import LANGUAGES, Language
from treedot.readers.code.processes import do_apart
from treedot.readers.code.settings import CodeSettings
from treedot.readers.code.treesitter import load_grammar


def error_places(source: bytes, language: str, file: str) -> list[tuple[int, int]]:
    """Return the line and the column, both from 1, of every syntax error of a UTF-8 text, in order."""
    found = do_apart(
        _error_bytes, source, LANGUAGES[language], file=file, max_seconds=CodeSettings().max_seconds
    )
    return [_place(source[:byte]) for byte in found]


def _error_bytes(source: bytes, entry: Language) -> list[int]:
    """Return where errors begin: nodes that are not of the grammar, or that are missing."""
    import tree_sitter

    nodes = [tree_sitter.Parser(load_grammar(entry).language).parse(source).root_node]
    found = []
    while nodes:
        node = nodes.pop()
        if node.is_error or node.is_missing:
            found.append(node.start_byte)
        if node.has_error:
            nodes += node.children
    return sorted(found)


def _place(before: bytes) -> tuple[int, int]:
    """Return the line and the column that follow a text."""
    line = before.rpartition(b"\n")[2].decode(errors="replace")
    return before.count(b"\n") + 1, len(line) + 1
