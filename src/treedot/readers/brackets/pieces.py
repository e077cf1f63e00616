"""Cut bracketed text into pieces at the beginnings of trees, for several threads to scan.

In text without errors, a bracket that opens outside all others begins a tree, whatever the layout. In text
with errors, cuts may be anywhere; but everything before the first piece with an error is sound.
"""

from __future__ import annotations

import codecs
import io
from collections import deque
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import njit
from treedot._runtime.threads import Threads
from treedot._storage.files import read_chunk
from treedot.errors import SourceError
from treedot.readers.brackets.words import PADDING, Text, first_mark, marks, n_marks, padded
from treedot.readers.recognition import refuse_other_files

CHUNK_BYTES = 1 << 18  # bytes read from the stream at a time
READ_BYTES = 1 << 22  # bytes read before the first pieces are made; more for many threads
BLOCK_BYTES = 1 << 18  # bytes that are searched for trees at a time
PIECE_BYTES = 1 << 20  # bytes after which a piece ends, except that
BATCH_BYTES = 1 << 22  # a batch of at most this many bytes
BATCH_TREES = 1 << 14  # and trees is one piece
MOST_BYTES = 1 << 24  # bytes of one tree; a text with a larger tree is not cut any further
UNKNOWN = -1
LINE_BYTES = 1 << 12  # longer than most lines

_BREAK, _OPEN, _CLOSE = ord("\n"), ord("("), ord(")")


class Before(NamedTuple):
    """The lines before a part of a text, and the characters before it in its first line."""

    lines: int = 0
    column: int = 0

    def then(self, text: Text, end: int, breaks: int) -> Before:
        """Return the same for the rest of a text from ``end`` on, after ``breaks`` line breaks."""
        size = min(LINE_BYTES, end)
        while (at := (line := text[end - size : end].tobytes()).rfind(b"\n")) < 0 and size < end:
            size = min(4 * size, end)
        column = len(line[at + 1 :].decode(errors="replace"))
        return Before(self.lines + breaks, column + (0 if breaks else self.column))


class Piece(NamedTuple):
    """Some whole trees of a padded text."""

    whole: Text
    before: Before  # the lines before the whole text
    begin: int
    end: int
    trees: int  # UNKNOWN for all that was read, if the text is not cut any further

    @property
    def text(self) -> Text:
        """The bytes of the piece, with some of the following bytes as padding."""
        return self.whole[self.begin : self.end + PADDING]

    def place(self) -> Before:
        """Return the lines and characters before it."""
        breaks = self.whole[: self.begin].tobytes().count(b"\n")
        return self.before.then(self.whole, self.begin, breaks)


class Found(NamedTuple):
    """Possible beginnings of trees in a block of text, before anything is known about the text before it."""

    starts: IntArray  # brackets that open at the lowest depth
    fewest: int  # their depth, relative to the start of the block
    more: int  # the depth at the end, relative to the start
    breaks: int  # line breaks


@njit
def find_starts(text: Text, at: int, end: int) -> Found:
    """Find the brackets that open at the lowest depth, from ``at`` to before ``end``."""
    starts, count = np.empty((end - at) // 2 + 1, np.int64), 0
    depth, fewest, breaks = 0, 0, 0
    waiting = True  # for the next opening bracket
    while at < end:
        known = (1 << min(PADDING, end - at)) - 1
        opened, closed = marks(text, at, _OPEN) & known, marks(text, at, _CLOSE) & known
        breaks += n_marks(marks(text, at, _BREAK) & known)
        if waiting and opened:
            starts[count], waiting = at + first_mark(opened), False
            count += 1
        if depth - n_marks(closed) <= fewest:  # otherwise none of these bytes is at such a low depth
            last = closed & ~(closed >> 1)  # the last of adjacent closing brackets
            while last:
                before = (last & -last) * 2 - 1  # the bytes up to this bracket
                last &= last - 1
                here = depth + n_marks(opened & before) - n_marks(closed & before)
                if here > fewest:
                    continue
                if here < fewest:
                    fewest, count = here, 0
                waiting = (opened & ~before) == 0
                if not waiting:
                    starts[count] = at + first_mark(opened & ~before)
                    count += 1
        depth += n_marks(opened) - n_marks(closed)
        at += PADDING
    return Found(starts[:count].copy(), fewest, depth, breaks)


class Pieces:
    """The pieces of a stream; pieces that are not done can be read again.

    Parameters
    ----------
    stream : binary or text stream
        The text.
    name : str
        The name of the stream, for errors.
    batch_size : int
        The number of trees per batch; no piece contains trees of two batches.
    threads : Threads
        Threads that find the beginnings of trees.
    """

    def __init__(self, stream: IO[Any], name: str, batch_size: int, threads: Threads) -> None:
        self._stream, self._name, self._batch_size, self._threads = stream, name, batch_size, threads
        self._most_bytes = BATCH_BYTES if batch_size <= BATCH_TREES else PIECE_BYTES
        self._not_done: deque[Piece] = deque()
        self._text, self._used = padded(), 0  # the text, and the number of its bytes in pieces
        self._begun = False
        self._failure: SourceError | None = None  # the error of the stream

    def __iter__(self) -> Iterator[Piece]:
        before, left = Before(), self._batch_size
        while True:
            more = self._read_on()
            starts, breaks, sound = self._find_starts()
            first = 0  # number of the first tree of the next piece
            while (last := self._last_of_piece(starts, first, left)) < starts.size:
                yield self._piece(before, int(starts[last]), last - first)
                first, left = last, left - (last - first) or self._batch_size
            sound = sound and self._failure is None and self._unused.size <= MOST_BYTES
            if not more or not sound:
                yield self._piece(
                    before, self._text.size - PADDING, starts.size - first if sound else UNKNOWN
                )
                return
            breaks -= self._unused.tobytes().count(b"\n")
            before = before.then(self._text, self._used, breaks)

    def _last_of_piece(self, starts: IntArray, first: int, left: int) -> int:
        """Return the number of the tree before which a piece that begins with tree ``first`` ends."""
        fitting = int(np.searchsorted(starts, self._used + self._most_bytes))
        return min(first + left, max(first + 1, fitting))

    def _piece(self, before: Before, end: int, trees: int) -> Piece:
        piece = Piece(self._text, before, self._used, end, trees)
        self._not_done.append(piece)
        self._used = end
        return piece

    @property
    def _unused(self) -> Text:
        return self._text[self._used : -PADDING]

    def _read_on(self) -> bool:
        """Read more of the stream; return whether there may be more still."""
        unused = self._unused
        wanted = unused.size + max(self._threads.count * PIECE_BYTES, READ_BYTES, unused.size)
        text = np.empty(wanted + 4 * CHUNK_BYTES + PADDING, np.uint8)  # a character has at most four bytes
        text[: unused.size], size = unused, unused.size
        try:
            while size < wanted and (chunk := read_chunk(self._stream, CHUNK_BYTES, self._name)):
                chunk, self._begun = chunk if self._begun else begin_text(chunk, self._name), True
                text[size : size + len(chunk)] = np.frombuffer(chunk, np.uint8)
                size += len(chunk)
        except SourceError as error:
            if not self._begun:
                raise
            self._failure = error  # the bytes read before may contain another piece
        text[size : size + PADDING] = ord(" ")
        self._text, self._used = text[: size + PADDING], 0
        return size >= wanted

    def _find_starts(self) -> tuple[IntArray, int, bool]:
        """Return the starts of trees in the text, its line breaks, and whether brackets balance so far."""
        text, size = self._text, self._text.size - PADDING
        begins = range(0, size, BLOCK_BYTES)
        found = self._threads.map(lambda at: find_starts(text, at, min(at + BLOCK_BYTES, size)), begins)
        starts, depth, breaks = [np.zeros(0, np.int64)], 0, 0
        for block in found:
            if depth + block.fewest < 0:
                return np.concatenate(starts), breaks, False
            if depth + block.fewest == 0:
                starts.append(block.starts)
            depth, breaks = depth + block.more, breaks + block.breaks
        return np.concatenate(starts), breaks, True

    def done(self) -> None:
        """Drop the first piece."""
        self._not_done.popleft()

    def rest(self) -> tuple[Before, IO[Any]]:
        """Return a stream that starts at the first piece that is not done, and the lines before it."""
        raw = [piece.text[:-PADDING].tobytes() for piece in self._not_done]
        rest: Any = Rest(b"".join([*raw, self._unused.tobytes()]), self._stream, self._failure)
        return self._not_done[0].place(), rest


class Rest:
    """A stream that replays bytes already read, and then continues with the stream or its error."""

    def __init__(self, raw: bytes, stream: IO[Any], failure: SourceError | None) -> None:
        self._raw, self._stream, self._failure = io.BytesIO(raw), stream, failure

    def read(self, size: int) -> Any:
        """Read up to ``size`` bytes."""
        chunk = self._raw.read(size)
        if not chunk and self._failure is not None:
            raise self._failure
        return chunk or self._stream.read(size)


def begin_text(chunk: bytes, name: str) -> bytes:
    """Return the beginning of a text without a byte order mark; raise if it is not text."""
    refuse_other_files(chunk, name)
    return chunk.removeprefix(codecs.BOM_UTF8)
