"""A window on a text that is read from a stream piece by piece."""

from __future__ import annotations

import codecs
import re
from abc import ABC, abstractmethod

from treedot.errors import SourceError
from treedot.readers.packer import MAX_TEXT
from treedot.readers.stream import TreeStream

CHUNK_BYTES = 1 << 18


class TextWindow(ABC):
    """A window on a text, and the position after the last token.

    Attributes
    ----------
    text : str
        The text in the window.
    at : int
        The position after the last token.
    ended : bool
        Whether the window reaches the end of the text.
    problem : str
        Why the text after the window cannot be decoded; "" if it can.
    """

    def __init__(self, stream: TreeStream) -> None:
        self.stream = stream
        self.text, self.at, self.ended, self.problem = "", 0, False, ""
        self._line, self._line_start, self._counted = 1, 0, 0  # those of the last position looked up
        self._decoder: codecs.IncrementalDecoder | None = None

    @abstractmethod
    def encoding(self, head: bytes) -> tuple[str, str]:
        """Return the encoding of a text from its first bytes, and the handling of encoding errors."""

    @abstractmethod
    def too_long(self) -> SourceError:
        """Return the error for a token that exceeds the limit."""

    def grow(self) -> None:
        """Read at least as much as the window holds, so that rescanning it takes linear time in total."""
        self.line(self.at)
        self.text = self.text[self.at :]
        self._line_start -= self.at
        self._counted = self.at = 0
        if len(self.text) > MAX_TEXT:
            raise self.too_long()
        raw = self.stream.read(max(CHUNK_BYTES, len(self.text)))
        if self._decoder is None:
            name, errors = self.encoding(raw)
            self._decoder = codecs.getincrementaldecoder(name)(errors)
        self.ended = not raw
        try:
            self.text += self._decoder.decode(raw, self.ended)
        except UnicodeDecodeError as error:
            self.text += error.object[: error.start].decode(error.encoding)
            self.problem = f"the byte {error.object[error.start]:#x} is not {error.encoding.upper()}"
            self.ended = True

    def line(self, position: int) -> int:
        """Return the line of a position; positions must be looked up in ascending order."""
        ends = self.text.count("\n", self._counted, position)
        if ends:
            self._line += ends
            self._line_start = self.text.rfind("\n", self._counted, position) + 1
        self._counted = position
        return self._line

    def place(self, position: int) -> str:
        """Return the file, line and column of a position; positions must be looked up in ascending order."""
        return f"{self.stream.name}:{self.line(position)}:{position - self._line_start + 1}"

    def skip(self, pattern: re.Pattern[str]) -> bool:
        """Skip to the end of the next match of a pattern of at most two characters; return False if none."""
        while (found := pattern.search(self.text, self.at)) is None:
            if self.ended:
                self.at = len(self.text)
                return False
            self.at = max(self.at, len(self.text) - 1)  # the last character may begin a match
            self.grow()
        self.at = found.end()
        return True
