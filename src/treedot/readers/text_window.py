"""The part of a text that is being parsed, while the text is read from a stream piece by piece."""

from __future__ import annotations

import codecs
import re
from abc import ABC, abstractmethod

from treedot.errors import SourceError
from treedot.readers.packer import MAX_TEXT
from treedot.readers.stream import TreeStream

CHUNK_BYTES = 1 << 18


class TextWindow(ABC):
    """A part of a text, and the position after the last token in it.

    Attributes
    ----------
    text : str
        The part.
    at : int
        The position after the last token.
    ended : bool
        Whether the text ends where the part does.
    problem : str
        Why the text cannot be decoded beyond its end; "" where it can.
    """

    def __init__(self, stream: TreeStream) -> None:
        self.stream = stream
        self.text, self.at, self.ended, self.problem = "", 0, False, ""
        self._line, self._line_start, self._counted = 1, 0, 0  # of the position that was asked for last
        self._decoder: codecs.IncrementalDecoder | None = None

    @abstractmethod
    def encoding(self, head: bytes) -> tuple[str, str]:
        """Return the encoding of a text that begins so, and how errors in it are handled."""

    @abstractmethod
    def too_long(self) -> SourceError:
        """Return the error of a token that is longer than any may be."""

    def grow(self) -> None:
        """Read on, at least as much as is waiting, so that looking at it again costs linear time in all."""
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
        """Return the line of a position, which does not lie before the last one that was asked for."""
        ends = self.text.count("\n", self._counted, position)
        if ends:
            self._line += ends
            self._line_start = self.text.rfind("\n", self._counted, position) + 1
        self._counted = position
        return self._line

    def place(self, position: int) -> str:
        """Return the file, line and column of a position, under the same condition."""
        return f"{self.stream.name}:{self.line(position)}:{position - self._line_start + 1}"

    def skip(self, pattern: re.Pattern[str]) -> bool:
        """Move behind the next match of a pattern of at most two characters; return False without one."""
        while (found := pattern.search(self.text, self.at)) is None:
            if self.ended:
                self.at = len(self.text)
                return False
            self.at = max(self.at, len(self.text) - 1)  # which may begin a match
            self.grow()
        self.at = found.end()
        return True
