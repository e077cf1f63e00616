"""Cut a file into ranges that several processes can read independently.

Text is cut at the start of a tree or a line, Parquet between row groups, Arrow between record batches. A
range records what precedes it, so that errors name the same line or row as when the whole file is read.
Compressed files, CSV (whose fields may contain line breaks), documents and source code are one range each.
"""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np

from treedot._runtime.jit import njit
from treedot._storage.compression import COMPRESSED
from treedot._storage.files import open_plain, read_lines
from treedot.errors import ParameterError
from treedot.readers.brackets.reader import read_brackets
from treedot.readers.on_bad import OnBad
from treedot.readers.sources import format_of, iter_file
from treedot.readers.stream import TreeStream
from treedot.readers.tables import DEFAULT_COLUMN, read_jsonl, read_record_batches, read_tsv
from treedot.trees import Forest

CHUNK_BYTES = 1 << 22
LINES, TABLES = ("tsv", "jsonl"), ("parquet", "arrow")


class FileRange(NamedTuple):
    """A part of a file: a range of bytes, or of row groups or record batches."""

    begin: int
    end: int
    lines: int = 0  # lines before it, in text
    rows: int = 0  # trees in brackets, or rows of Parquet and Arrow, before it


class Reading(NamedTuple):
    """How to read trees: the parameters of ``read_trees``, and whether to skip bad trees.

    Parameters
    ----------
    format, column, unit : str, default=None
        As in ``read_trees``.
    skip_bad : bool, default=False
        Skip trees that cannot be read. By default the first one raises an error.
    """

    format: str | None = None
    column: str | None = None
    unit: str | None = None
    skip_bad: bool = False


def checked_reading(reading: Any) -> Reading:
    """Return the settings if they are a ``Reading``, else raise ParameterError."""
    if isinstance(reading, Reading):
        return reading
    raise ParameterError(f"reading must be a Reading, such as Reading(column='tree'), not {reading!r}")


class _Count(NamedTuple):
    """The depth of brackets at a position of a text, and the numbers of lines and trees before it."""

    depth: int
    lines: int
    trees: int


def split_file(path: str, format: str | None, size: int) -> list[FileRange]:
    """Return the ranges of a file, of about ``size`` bytes each; a single one if the file cannot be cut.

    Text is read once completely to find them.
    """
    kind = _cut_as(path, format)
    if kind == "brackets":
        return _split_brackets(path, size)
    if kind in LINES:
        return _split_lines(path, size)
    if kind in TABLES:
        return _split_table(path, kind, size)
    return [FileRange(0, os.path.getsize(path))]


def iter_range(
    path: str, within: FileRange, how: Reading, batch_size: int, on_bad: OnBad
) -> Iterator[tuple[Forest, Mapping[str, Any]]]:
    """Yield the trees of a range in batches, with the other columns: lists, or Arrow arrays.

    A range may contain no trees, as may a file among many.
    """
    kind = _cut_as(path, how.format)
    if kind in TABLES:
        row_groups = range(within.begin, within.end)
        yield from read_record_batches(path, kind, how.column, batch_size, on_bad, row_groups, within.rows)
        return
    if not kind or within == FileRange(0, os.path.getsize(path)):
        forests = iter_file(path, how.format, how.column, how.unit, batch_size, on_bad)
    else:
        forests = _read_text(path, kind, within, how.column, batch_size, on_bad)
    for forest in forests:
        yield forest, forest.columns


def _cut_as(path: str, format: str | None) -> str:
    """Return the format of a file that can be cut, "" if it must be read as a whole."""
    kind = format or format_of(path)
    packed = Path(path).suffix.lower() in COMPRESSED
    return kind if kind in ("brackets", *LINES, *TABLES) and not packed else ""


def _read_text(
    path: str, kind: str, within: FileRange, column: str | None, batch_size: int, on_bad: OnBad
) -> Iterator[Forest]:
    with open_plain(path) as file:
        numbers: Iterator[int] = itertools.count(within.lines + 1)
        header = b""
        if kind == "tsv" and within.begin:
            header = next(read_lines(file, path)) + b"\n"
            numbers = itertools.chain([1], numbers)
        stream = cast(IO[bytes], io.BufferedReader(_Slice(file, within.begin, within.end, header)))
        trees = TreeStream(stream, path, batch_size, on_bad)
        if kind == "brackets":
            yield from read_brackets(trees, lines_before=within.lines, trees_before=within.rows)
        else:
            read = read_tsv if kind == "tsv" else read_jsonl
            yield from read(trees, column or DEFAULT_COLUMN, numbers)


class _Slice(io.RawIOBase):
    """A stream of some bytes, followed by a range of a file."""

    def __init__(self, file: IO[bytes], begin: int, end: int, first: bytes) -> None:
        self._file, self._left, self._first = file, end - begin, first
        file.seek(begin)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._first:
            chunk, self._first = self._first[: len(buffer)], self._first[len(buffer) :]
        else:
            chunk = self._file.read(min(len(buffer), self._left))
            self._left -= len(chunk)
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _split_brackets(path: str, size: int) -> list[FileRange]:
    """Cut a text where a tree begins outside all brackets; stop cutting where brackets do not balance."""
    starts, at, count = [FileRange(0, 0)], 0, _Count(0, 0, 0)
    with open_plain(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            text, position = np.frombuffer(chunk, np.uint8), 0
            while count.depth >= 0 and position < text.size:
                position, count = _next_tree(text, position, starts[-1].begin + size - at, count)
                if count.depth == 0 and position < text.size:
                    starts.append(FileRange(at + position, 0, count.lines, count.trees))
            at += len(chunk)
    return _up_to(starts, at)


@njit
def _next_tree(text: np.ndarray, at: int, wanted: int, count: _Count) -> tuple[int, _Count]:
    """Return the start of the first tree from ``wanted`` on, and what precedes it.

    A depth of -1 means an extra closing bracket.
    """
    depth, lines, trees = count
    while at < text.size:
        byte = text[at]
        if byte == 10:
            lines += 1
        elif byte == 40:
            if depth == 0:
                if at >= wanted:
                    break
                trees += 1
            depth += 1
        elif byte == 41:
            depth -= 1
            if depth < 0:
                break
        at += 1
    return at, _Count(depth, lines, trees)


def _split_lines(path: str, size: int) -> list[FileRange]:
    """Cut a text after line ends."""
    starts, at, lines = [FileRange(0, 0)], 0, 0
    with open_plain(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            start = 0
            while (end := chunk.find(b"\n", max(start, starts[-1].begin + size - at - 1))) >= 0:
                lines += chunk.count(b"\n", start, end + 1)
                start = end + 1
                starts.append(FileRange(at + start, 0, lines))
            lines += chunk.count(b"\n", start)
            at += len(chunk)
    return _up_to(starts, at)


def _split_table(path: str, kind: str, size: int) -> list[FileRange]:
    """Cut a table between row groups or record batches."""
    from treedot.trees.arrow import row_group_sizes

    starts, rows, taken = [FileRange(0, 0)], 0, 0
    row_groups = row_group_sizes(path, kind)
    for number, (group_rows, group_bytes) in enumerate(row_groups):
        if taken >= size:
            starts.append(FileRange(number, 0, 0, rows))
            taken = 0
        rows, taken = rows + group_rows, taken + group_bytes
    return _up_to(starts, len(row_groups))


def _up_to(starts: list[FileRange], end: int) -> list[FileRange]:
    """Return ranges that end where the next one begins."""
    ends = [start.begin for start in starts[1:]] + [end]
    ranges = [start._replace(end=stop) for start, stop in zip(starts, ends, strict=True)]
    return [found for found in ranges if found.begin < found.end] or ranges[:1]
