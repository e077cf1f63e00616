"""Read Penn brackets, one tree per line or pretty-printed, and recover after errors."""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import numpy as np

from treedot._runtime.threads import open_threads
from treedot._storage.files import read_chunk
from treedot.errors import SourceError, TreeSyntaxError
from treedot.readers.brackets import scanner
from treedot.readers.brackets.batch import Batch, Scanned, without
from treedot.readers.brackets.pieces import UNKNOWN, Before, Piece, Pieces, begin_text
from treedot.readers.brackets.scanner import Scan
from treedot.readers.brackets.words import PADDING, Text, padded
from treedot.readers.on_bad import OnBad
from treedot.readers.recognition import HEAD, table_hint
from treedot.readers.stream import TreeStream
from treedot.trees import Forest

CHUNK_BYTES = 1 << 18  # bytes; with the resulting arrays, they fit in the caches of a core
BLANK_BYTES = 1 << 20
SHORT = 1 << 14  # most bytes of a tree that ``read_cell`` reads
_TOKEN = re.compile(rb"\)|[^\s()]+|\(")

_COMPLAINTS = {
    scanner.OPEN: "this tree is never closed: {missing} closing bracket(s) missing",
    scanner.CLOSED_TOO_OFTEN: "a closing bracket without an opening one",
    scanner.TEXT_OUTSIDE: "text outside a tree: {token!r}; a tree starts with '('{hint}",
    scanner.NEW_TREE_INSIDE: "this tree is not closed before the next one begins",
    scanner.TOO_LONG: f"more than {scanner.MAX_RUN >> 20} MiB without a bracket or line break: not a tree",
}


class _Window:
    """The part of a stream that is not scanned yet, and its position in the stream."""

    def __init__(self, stream: IO[Any], name: str, one_tree: bool = False) -> None:
        self.stream, self.name, self.one_tree = stream, name, one_tree
        self.padded = padded()
        self.bytes_before, self.before = 0, Before()
        self.blank_before = True  # whether only blanks precede it
        self.line, self.line_start = 0, 0  # those of the last position looked up; the next ones follow it
        self.at_end = False
        self.fresh = True

    @property
    def text(self) -> Text:
        """The bytes themselves."""
        return self.padded[:-PADDING]

    def grow(self) -> None:
        """Read more; at least double the size, so that rescanning an open tree takes linear time in total."""
        chunk = read_chunk(self.stream, max(CHUNK_BYTES, self.text.size), self.name)
        self.at_end = not chunk
        if self.fresh:
            chunk = chunk.removeprefix(codecs.BOM_UTF8) if self.one_tree else begin_text(chunk, self.name)
            self.fresh = False
        self.padded = padded(self.text, chunk)

    def drop(self, length: int) -> None:
        """Drop the first ``length`` bytes."""
        breaks = int(np.count_nonzero(self.text[:length] == ord("\n")))
        self.before = self.before.then(self.text, length, breaks)
        self.blank_before = self.blank_before and not self.text[:length].tobytes().strip()
        self.bytes_before += length
        self.padded = self.padded[length:]
        self.line, self.line_start = 0, 0

    def drop_to_bracket(self, position: int, column_one: bool) -> None:
        """Drop everything before the next bracket after a position, or to the end of the stream."""
        after = position + 1
        while (found := scanner.next_bracket(self.text, after, column_one)) == self.text.size:
            if self.at_end:
                break
            self.drop(max(0, self.text.size - 1))  # the bracket may follow a line end here
            after = self.text.size
            self.grow()
        self.drop(found)

    def place(self, position: int, tree: int) -> str:
        """Describe a position: line and column in a file, the character in the text of a single tree."""
        if self.one_tree:
            return f"{self.name}, character {self.bytes_before + position + 1}"
        if position < self.line_start:
            self.line, self.line_start = 0, 0
        before = self.text[self.line_start : position].tobytes()
        line_start = before.rfind(b"\n") + 1
        self.line += before.count(10)
        self.line_start += line_start
        column = len(before[line_start:].decode(errors="replace")) + 1
        column += self.before.column if self.line == 0 else 0
        return f"{self.name}:{self.before.lines + self.line + 1}:{column} (tree {tree})"

    def complaint(self, stop: int, position: int) -> str:
        while self.text.size < position + HEAD and not self.at_end:
            self.grow()
        rest = self.text[position:]
        missing, hint = 0, ""
        if stop == scanner.OPEN:
            missing = int(np.count_nonzero(rest == ord("(")) - np.count_nonzero(rest == ord(")")))
        if not self.one_tree and self.blank_before and not self.text[:position].tobytes().strip():
            hint = table_hint(rest[:HEAD].tobytes())
        token = _TOKEN.search(rest[:160].tobytes())
        shown = token[0].decode(errors="replace")[:40] if token else ""
        return _COMPLAINTS[stop].format(missing=missing, token=shown, hint=hint)


def read_brackets(
    stream: TreeStream, n_jobs: int = 1, lines_before: int = 0, trees_before: int = 0
) -> Iterator[Forest]:
    """Yield the trees of a stream; with ``n_jobs`` above 1, by several threads.

    Errors are passed to ``on_bad``. If it returns, everything before the first error is read as if there were
    none. After stray text or an extra closing bracket, reading resumes at the next opening bracket. A tree
    that is never closed ends before a line that starts with a bracket; from then on, such a bracket always
    begins a new tree. The same holds from the tree before an extra closing bracket on, if it contains such a
    line.

    If the stream is a part of a file, ``lines_before`` and ``trees_before`` count what precedes it.
    """
    if n_jobs > 1:
        return _read_in_threads(stream, n_jobs)
    window = _Window(stream.file, stream.name)
    window.before = Before(lines_before)
    return _read_window(window, Batch(CHUNK_BYTES), stream.batch_size, stream.on_bad, trees_before)


def _read_in_threads(stream: TreeStream, n_jobs: int) -> Iterator[Forest]:
    """Yield the same forests and errors by several threads.

    The threads scan pieces of the text. From the first piece with an error on, a single thread reads the
    rest.
    """
    batch, batch_size, trees = Batch(CHUNK_BYTES), stream.batch_size, 0
    idle: list[Batch] = []

    def read(piece: Piece) -> tuple[int, Forest | Scanned | None]:
        if piece.trees == UNKNOWN:
            return 0, None
        try:
            own = idle.pop()
        except IndexError:
            own = Batch(CHUNK_BYTES)
        found = (own.forest_of if piece.trees == batch_size else own.scan_alone)(piece.text)
        idle.append(own)
        return piece.trees, found

    with open_threads(n_jobs) as threads:
        pieces = Pieces(stream.file, stream.name, batch_size, threads)
        for n_trees, found in threads.in_order(read, pieces):
            if found is None:
                break
            pieces.done()
            trees += n_trees
            if isinstance(found, Scanned):
                batch.merge(found)
                found = batch.take(threads) if batch.n_trees == batch_size else None
            if found is not None:
                yield found
        else:
            if batch.n_trees:
                yield batch.take(threads)
            return
    before, rest = pieces.rest()
    window = _Window(rest, stream.name)
    window.before = before
    window.fresh, window.blank_before = False, trees == 0
    yield from _read_window(window, batch, batch_size, stream.on_bad, trees)


def _read_window(
    window: _Window, batch: Batch, batch_size: int, on_bad: OnBad, trees: int = 0
) -> Iterator[Forest]:
    column_one = False  # whether a bracket at the start of a line always begins a tree
    while True:
        scan = batch.scan(window.padded, batch_size - batch.n_trees, column_one)
        unfinished = scan.stop == scanner.OPEN and window.at_end
        broken = scan.stop > scanner.OPEN or unfinished
        read_on = not broken and (scan.stop == scanner.OPEN or scan.used == window.text.size)
        again = broken and on_bad.skips and not column_one and _in_doubt(window.text, scan)
        if again:
            scan = scan if unfinished else _without_last(scan)
            column_one = True
        elif read_on and on_bad.skips and not window.at_end and _may_be_closed_again(scan):
            scan = _without_last(scan)
        if bad := batch.add(scan):
            text = window.text.tobytes()
            for tree, raw in bad.items():
                where = window.place(text.find(raw, scan.starts[tree]), trees + tree + 1)
                on_bad(SourceError(f"{where}: the bytes {raw[:40]!r} are not UTF-8"))
        trees += scan.starts.size
        if broken or batch.n_trees == batch_size or (read_on and window.at_end):
            forest = batch.take()
            if len(forest):
                yield forest
        if broken and not again:
            where = window.place(scan.position, trees + 1)
            on_bad(TreeSyntaxError(f"{where}: {window.complaint(scan.stop, scan.position)}"))
            between = scan.stop in (scanner.TEXT_OUTSIDE, scanner.CLOSED_TOO_OFTEN)  # no tree is lost
            trees += not between
            column_one = column_one or not between
            window.drop_to_bracket(scan.position, column_one=not between)
            continue
        window.drop(scan.used)
        if read_on and window.at_end:
            return
        if read_on:
            window.grow()


def _without_last(scan: Scan) -> Scan:
    """Return a scan without its last tree, which is to be scanned again."""
    return without(scan, [-1])._replace(used=int(scan.starts[-1]))


def _may_be_closed_again(scan: Scan) -> bool:
    """Return whether the following text can still affect the last tree, until enough blanks have followed."""
    finished = scan.stop == scanner.COMPLETE and scan.ends.size > 0
    return finished and scan.used - int(scan.ends[-1]) < BLANK_BYTES


def _in_doubt(text: Text, scan: Scan) -> bool:
    """Return whether an error may come from a tree that was not closed before a later line's tree."""
    if scan.stop == scanner.OPEN:
        start, end = scan.position, text.size
    elif scan.stop == scanner.CLOSED_TOO_OFTEN and scan.starts.size:
        start, end = int(scan.starts[-1]), scan.position
    else:
        return False
    return bool(scanner.next_bracket(text[:end], start + 1, True) < end)


def read_cell(cell: str) -> Forest | None:
    """Pack the text of one short tree by a fast path; return None for any other text."""
    raw = cell.encode(errors="surrogatepass")
    if len(raw) > SHORT or b"\\x" in raw:
        return None
    scan, tokens = scanner.scan_alone(padded(raw, b"\n"), 2)
    if scan.stop != scanner.COMPLETE or scan.starts.size != 1:
        return None
    try:
        labels = tokens.decode().split("\n")
    except UnicodeDecodeError:
        return None
    return Forest._trusted(scan.label, scan.arity, scan.offsets, tuple(labels[:-1]))


def _read_whole(cells: Sequence[str]) -> Forest | None:
    """Pack texts of one tree each; return None if one of them is anything else."""
    joined = "\n".join(cells)
    raw = joined.encode(errors="surrogatepass")
    if joined.isascii():
        sizes = [len(cell) + 1 for cell in cells]
    else:
        sizes = [len(cell.encode(errors="surrogatepass")) + 1 for cell in cells]
    batch = Batch(len(raw))
    scan = batch.scan(padded(raw, b"\n"), len(cells) + 1)
    if scan.stop != scanner.COMPLETE or scan.starts.size != len(cells):
        return None
    limits = np.cumsum(sizes)
    if (scan.ends >= limits).any() or (scan.starts[1:] < limits[:-1]).any():
        return None  # one tree spans several texts
    return None if batch.add(scan) else batch.take()


def read_cells(
    cells: Sequence[str | None], place_of: Callable[[int], str], on_bad: OnBad
) -> tuple[Forest, list[int]]:
    """Pack texts of one tree each; return the forest and the indices of the good texts."""
    texts = [cell for cell in cells if cell is not None]
    if len(texts) == len(cells):
        forest = read_cell(texts[0]) if len(texts) == 1 else None
        forest = _read_whole(texts) if forest is None else forest
        if forest is not None:
            return forest, list(range(len(cells)))
    # There is an error: find it by reading text by text.
    good: list[int] = []
    forests = [Forest([], [], [0], [])]
    for i, cell in enumerate(cells):
        place = place_of(i)
        try:
            if cell is None:
                raise TreeSyntaxError(f"{place}: expected a tree, found None")
            if not cell.lstrip().startswith("(") and os.path.isfile(cell):
                raise TreeSyntaxError(
                    f"{place}: {cell!r} is not a tree but the name of a file: pass pathlib.Path({cell!r})"
                )
            raw = cell.encode(errors="surrogatepass")
            window = _Window(io.BytesIO(raw), place, one_tree=True)
            found = list(_read_window(window, Batch(len(raw)), 2, OnBad()))
            if [len(forest) for forest in found] != [1]:
                raise TreeSyntaxError(f"{place}: expected one tree, found {'several' if found else 'none'}")
        except SourceError as error:
            on_bad(error)
        else:
            forests += found
            good.append(i)
    return Forest.concat(forests), good
