"""Read JSON: every value, or every item of a top-level array, is a tree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from treedot.errors import SourceError, TreeSyntaxError
from treedot.readers.packer import MAX_TEXT, Packer
from treedot.readers.recognition import refuse_other_files
from treedot.readers.stream import TreeStream
from treedot.readers.text_window import TextWindow
from treedot.trees import Forest

# Tokens are groups: brackets and commas; strings, which are keys if a colon follows; numbers;
# words; anything else.
_TOKEN = re.compile(
    r'([{}\[\],])|("[^"\\]*+(?:\\.[^"\\]*+)*+")(?:[ \t\n\r]*+(:))?+'
    r"|(-?+(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|Infinity)|NaN)"
    r"|(true|false)|(null)|([^ \t\n\r])",
    re.DOTALL,
)
_MARK, _STRING, _KEY, _NUMBER, _BOOLEAN, _NULL, _OTHER = range(1, 8)
_SCALARS = {_STRING: "string", _NUMBER: "number", _BOOLEAN: "boolean", _NULL: "null"}
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_NEXT_VALUE = re.compile(r"\n(?=[{\[])")

# What may come next, as worded in errors.
_VALUE, _ITEM = "a value", "a value or ']'"
_MEMBER, _FIRST_MEMBER = "a key in double quotes and ':'", "a key in double quotes and ':', or '}'"
_AFTER_ITEM, _AFTER_MEMBER = "',' or ']'", "',' or '}'"
_MAY_CLOSE = {"]": (_ITEM, _AFTER_ITEM), "}": (_FIRST_MEMBER, _AFTER_MEMBER)}
_CONTAINERS = {"[": ("array", _ITEM), "{": ("object", _FIRST_MEMBER)}


def read_values(stream: TreeStream, unit: str = "document", values: str = "blur") -> Iterator[Forest]:
    """Yield a tree for every value of a stream, or for every item of a top-level array (``"record"``).

    An object is a node ``object`` with a child ``key:`` for every member, in file order, which holds the
    value; an array is a node ``array``. Other values are ``string``, ``number``, ``boolean`` and ``null``;
    ``values`` is the policy for their texts. After an error, if ``on_bad`` returns, reading resumes at the
    next line that starts with a bracket.
    """
    window = _Window(stream)
    packer = Packer(stream.name, "json", named=True)
    while True:
        parser = _Parser(window, packer, unit == "record", values)
        try:
            for token in window.tokens():
                if parser.add(token) and len(packer) >= stream.batch_size:
                    yield packer.take()
            parser.end()
            break
        except SourceError as error:
            stream.on_bad(error)
            packer.forget_unfinished()
            if not window.skip(_NEXT_VALUE):
                break
    if len(packer):
        yield packer.take()


class _Window(TextWindow):
    """The tokens of a text."""

    def encoding(self, head: bytes) -> tuple[str, str]:
        encoding = json.detect_encoding(head)
        if encoding == "utf-8":
            refuse_other_files(head, self.stream.name)
        return encoding, "strict"

    def too_long(self) -> SourceError:
        return SourceError(f"{self.place(0)}: no comma or bracket within {MAX_TEXT:,} characters")

    def tokens(self) -> Iterator[re.Match[str]]:
        """Yield the remaining tokens; one that may continue after the window waits for more text."""
        while True:
            text = self.text
            end = len(text) if self.ended else max(map(text.rfind, ",]}")) + 1
            for token in _TOKEN.finditer(text, self.at, end):
                if token[0] == '"' and (self.problem or not self.ended):  # the string continues
                    break
                self.at = token.end()
                yield token
            if self.problem:
                raise SourceError(f"{self.place(len(text))}: {self.problem}")
            if self.ended:
                return
            self.grow()


class _Parser:
    """Packs the values of tokens, to any depth."""

    def __init__(self, window: _Window, packer: Packer, records: bool, policy: str) -> None:
        self._window, self._packer, self._records, self._policy = window, packer, records, policy
        self._open: list[str] = []  # brackets of the enclosing arrays and objects
        self._outside = 0  # the depth of trees: 1 in an array of records
        self._expected = _VALUE
        self._first_line = 0

    def add(self, token: re.Match[str]) -> bool:
        """Add a token; return whether it completes a tree."""
        kind, expected = token.lastindex, self._expected
        if expected is _VALUE or expected is _ITEM:
            if len(self._open) == self._outside:
                self._first_line = self._window.line(token.start())
            if kind in _SCALARS:
                self._add_scalar(token)
                return self._value_ends()
            if token[0] in _CONTAINERS:
                self._begin(token[0])
                return False
        elif kind == _KEY and expected in (_MEMBER, _FIRST_MEMBER):
            self._packer.begin(f"{self._string(token)}:")
            self._expected = _VALUE
            return False
        elif token[0] == "," and expected in (_AFTER_ITEM, _AFTER_MEMBER):
            self._expected = _VALUE if expected is _AFTER_ITEM else _MEMBER
            return False
        if expected in _MAY_CLOSE.get(token[0], ()):
            return self._finish()
        shown = "a quote that is never closed" if token[0] == '"' else repr(token[0][:40])
        raise TreeSyntaxError(f"{self._window.place(token.start())}: expected {expected}, found {shown}")

    def end(self) -> None:
        """Raise if a value is incomplete."""
        if self._open:
            place = self._window.place(self._window.at)
            raise TreeSyntaxError(f"{place}: expected {self._expected}, found the end of the file")

    def _add_scalar(self, token: re.Match[str]) -> None:
        kind = token.lastindex or _OTHER
        if self._policy == "keep" and kind != _NULL:
            self._packer.add(_SCALARS[kind], self._string(token) if kind == _STRING else token[0], "keep")
        elif self._policy != "drop" or len(self._open) == self._outside:  # a tree has one root
            self._packer.leaf(_SCALARS[kind])

    def _string(self, token: re.Match[str]) -> str:
        """Return the value of a string; half a surrogate pair, which is not a character, is replaced."""
        text = token[_STRING][1:-1]
        if "\\" not in text:
            return text
        try:
            return _HALF_PAIR.sub("\ufffd", json.loads(token[_STRING], strict=False))
        except ValueError as error:
            raise TreeSyntaxError(f"{self._window.place(token.start())}: {error}") from None

    def _begin(self, bracket: str) -> None:
        label, self._expected = _CONTAINERS[bracket]
        if self._records and bracket == "[" and not self._open:
            self._outside = 1
        else:
            self._packer.begin(label)
        self._open.append(bracket)

    def _finish(self) -> bool:
        self._open.pop()
        if len(self._open) < self._outside:  # the end of the array of records
            self._outside, self._expected = 0, _VALUE
            return False
        self._packer.finish()
        return self._value_ends()

    def _value_ends(self) -> bool:
        depth = len(self._open)
        if depth and self._open[-1] == "{":
            self._packer.finish()
            self._expected = _AFTER_MEMBER
        else:
            self._expected = _AFTER_ITEM if depth else _VALUE
        if depth > self._outside:
            return False
        self._packer.finish_tree(self._first_line, self._window.line(self._window.at))
        return True
