"""Penn brackets: one tree per line, or pretty-printed over many."""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from treedot.errors import SourceError, TreeSyntaxError
from treedot.files import read_chunk
from treedot.readers import scanner
from treedot.readers.problems import OnBad
from treedot.readers.recognition import HEAD, refuse_other_files, table_hint
from treedot.trees import Forest
from treedot.trees.brackets import unescape

CHUNK_BYTES = 1 << 20
BLANK_BYTES = 1 << 20
_TOKEN = re.compile(rb"\)|[^\s()]+|\(")

_COMPLAINTS = {
    scanner.OPEN: "this tree is never closed: {missing} closing bracket(s) missing",
    scanner.CLOSED_TOO_OFTEN: "a closing bracket without an opening one",
    scanner.TEXT_OUTSIDE: "text outside a tree: {token!r}; a tree starts with '('{hint}",
    scanner.NEW_TREE_INSIDE: "this tree is not closed where the next one begins",
    scanner.TOO_LONG: f"more than {scanner.MAX_RUN >> 20} MiB without a bracket or a break: no tree looks so",
}


class _Window:
    """The part of a stream that is being scanned, and how many lines went before it."""

    def __init__(self, stream: IO[Any], name: str, one_tree: bool = False) -> None:
        self.stream, self.name, self.one_tree = stream, name, one_tree
        self.text = np.zeros(0, np.uint8)
        self.lines_before = 0
        self.line, self.line_start = 0, 0  # of the last place that was asked for: the next ones lie after it
        self.at_end = False
        self.fresh = True

    def grow(self) -> None:
        """Read on; at least doubling keeps scanning again what is still open linear in all."""
        chunk = read_chunk(self.stream, max(CHUNK_BYTES, self.text.size), self.name)
        self.at_end = not chunk
        if self.fresh:
            if not self.one_tree:
                refuse_other_files(chunk, self.name)
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
            self.fresh = False
        self.text = np.concatenate([self.text, np.frombuffer(chunk, np.uint8)])

    def drop(self, length: int) -> None:
        self.lines_before += int(np.count_nonzero(self.text[:length] == 10))
        self.text = self.text[length:]
        self.line, self.line_start = 0, 0

    def drop_to_bracket(self, position: int, column_one: bool) -> None:
        """Move on to the next bracket after a position, or to the end of the stream."""
        after = position + 1
        while (found := scanner.next_bracket(self.text, after, column_one)) == self.text.size:
            if self.at_end:
                break
            self.drop(max(0, self.text.size - 1))  # the end of a line, perhaps, before the bracket
            after = self.text.size
            self.grow()
        self.drop(found)

    def place(self, position: int, tree: int) -> str:
        """Say where a position is: line and column in a file, the character in the text of one tree."""
        if self.one_tree:
            return f"{self.name}, character {position + 1}"
        if position < self.line_start:
            self.line, self.line_start = 0, 0
        before = self.text[self.line_start : position].tobytes()
        line_start = before.rfind(b"\n") + 1
        self.line += before.count(10)
        self.line_start += line_start
        column = len(before[line_start:].decode(errors="replace")) + 1
        return f"{self.name}:{self.lines_before + self.line + 1}:{column} (tree {tree})"

    def complaint(self, stop: int, position: int) -> str:
        rest = self.text[position:]
        missing, hint = 0, ""
        if stop == scanner.OPEN:
            missing = int(np.count_nonzero(rest == ord("(")) - np.count_nonzero(rest == ord(")")))
        if not self.one_tree and self.lines_before == 0 and not self.text[:position].tobytes().strip():
            hint = table_hint(rest[:HEAD].tobytes())
        token = _TOKEN.search(rest[:160].tobytes())
        shown = token[0].decode(errors="replace")[:40] if token else ""
        return _COMPLAINTS[stop].format(missing=missing, token=shown, hint=hint)


def read_brackets(
    stream: IO[Any],
    name: str,
    batch_size: int,
    on_bad: OnBad,
    lines_before: int = 0,
    trees_before: int = 0,
) -> Iterator[Forest]:
    """Yield forests of at most ``batch_size`` trees from a stream of bytes.

    Errors are handed to ``on_bad``. Where that goes on, all up to the first error is read as without it.
    After stray text, or a closing bracket too many, reading goes on with the next bracket. A tree that is
    never closed ends where a line starts with a bracket; from it on, such a bracket always begins a new
    tree. The same holds from the tree before a closing bracket too many, if it has such a line.

    Where the stream is a part of a file, ``lines_before`` and ``trees_before`` say what went before it.
    """
    window = _Window(stream, name)
    window.lines_before = lines_before
    return _read_window(window, batch_size, on_bad, trees_before)


def _read_window(window: _Window, batch_size: int, on_bad: OnBad, trees: int = 0) -> Iterator[Forest]:
    column_one = False  # whether a bracket at the beginning of a line begins a tree, come what may
    while True:
        scan = scanner.scan(window.text, batch_size, column_one, scanner.BYTE_KIND)
        found = scan.ends.size
        unfinished = scan.stop == scanner.OPEN and window.at_end
        broken = scan.stop > scanner.OPEN or unfinished
        # What follows the last tree can put it in doubt: wait for it where errors are to be survived.
        wanting = found < batch_size or (on_bad.skips and scan.used == window.text.size)
        blanks = scan.stop == scanner.COMPLETE and _ends_blank(window.text)
        if wanting and not broken and not blanks and not window.at_end:
            window.grow()
            continue
        again = broken and on_bad.skips and not column_one and _in_doubt(window.text, scan)
        if again:
            keep = found if unfinished else found - 1
            scan = scanner.scan(window.text, keep, False, scanner.BYTE_KIND)
            found, column_one = keep, True
        if found:
            forest = _forest(window, scan, trees, on_bad)
            trees += found
            if len(forest):
                yield forest
        if broken and not again:
            where = window.place(scan.position, trees + 1)
            on_bad(TreeSyntaxError(f"{where}: {window.complaint(scan.stop, scan.position)}"))
            between = scan.stop in (scanner.TEXT_OUTSIDE, scanner.CLOSED_TOO_OFTEN)  # no tree is lost
            trees += not between
            column_one = column_one or not between
            window.drop_to_bracket(scan.position, column_one=not between)
        elif found < batch_size and window.at_end and not again:
            return
        else:
            window.drop(scan.used)


def _ends_blank(text: scanner.Text) -> bool:
    """Tell whether a text ends in so many blanks that they are not to be kept."""
    return text.size >= BLANK_BYTES and not scanner.BYTE_KIND[text[-BLANK_BYTES:]].any()  # blanks are kind 0


def _in_doubt(text: scanner.Text, scan: scanner.Scan) -> bool:
    """Tell whether an error may come from a tree that runs on over the beginning of another line's tree."""
    if scan.stop == scanner.OPEN:
        start, end = scan.position, text.size
    elif scan.stop == scanner.CLOSED_TOO_OFTEN and scan.starts.size:
        start, end = int(scan.starts[-1]), scan.position
    else:
        return False
    return bool(scanner.next_bracket(text[:end], start + 1, True) < end)


def read_cell(cell: str) -> Forest | None:
    """Pack the text of one tree; return None where it is anything else."""
    raw = cell.encode(errors="surrogatepass")
    scan = scanner.scan(np.frombuffer(raw, np.uint8), 2, False, scanner.BYTE_KIND)
    if scan.stop != scanner.COMPLETE or scan.ends.size != 1:
        return None
    try:
        return _packed(_tokens(raw, scan), scan, b"\\x" not in raw)
    except UnicodeDecodeError:
        return None


def read_cells(cells: Sequence[str | None], places: Sequence[str], on_bad: OnBad) -> tuple[Forest, list[int]]:
    """Pack texts of one tree each; return the forest and the indices of the texts that were good."""
    if len(cells) == 1 and cells[0] is not None and (one := read_cell(cells[0])) is not None:
        return one, [0]
    texts = [cell for cell in cells if cell is not None]
    if len(texts) == len(cells):
        raw = [text.encode(errors="surrogatepass") for text in texts]
        window = _Window(io.BytesIO(), "")
        window.text = np.frombuffer(b"".join(text + b"\n" for text in raw), np.uint8)
        limits = np.cumsum([0] + [len(text) + 1 for text in raw])
        scan = scanner.scan(window.text, len(cells) + 1, False, scanner.BYTE_KIND)
        if scan.stop == scanner.COMPLETE and scan.starts.size == len(cells):
            # Every text is balanced and every tree starts in a text of its own: so it ends there too.
            opening, closing = window.text == ord("("), window.text == ord(")")
            balance = np.add.reduceat(opening.astype(np.int64) - closing, limits[:-1])
            inside = (limits[:-1] <= scan.starts) & (scan.starts < limits[1:]) & (balance == 0)
            errors: list[SourceError] = []
            forest = _forest(window, scan, 0, OnBad(errors.append))
            if inside.all() and not errors:
                return forest, list(range(len(cells)))
    # Something is wrong: find out where, text by text.
    good: list[int] = []
    forests = [Forest([], [], [0], [])]
    for i, cell in enumerate(cells):
        try:
            if cell is None:
                raise TreeSyntaxError(f"{places[i]}: expected a tree, found None")
            if not cell.lstrip().startswith("(") and os.path.isfile(cell):
                raise TreeSyntaxError(
                    f"{places[i]}: {cell!r} is not a tree but the name of a file: give pathlib.Path({cell!r})"
                )
            stream = io.BytesIO(cell.encode(errors="surrogatepass"))
            found = list(_read_window(_Window(stream, places[i], one_tree=True), 2, OnBad()))
            if [len(forest) for forest in found] != [1]:
                raise TreeSyntaxError(
                    f"{places[i]}: expected one tree, found {'several' if found else 'none'}"
                )
        except SourceError as error:
            on_bad(error)
        else:
            forests += found
            good.append(i)
    return Forest.concat(forests), good


def _tokens(raw: bytes, scan: scanner.Scan) -> list[str]:
    """Return the distinct tokens that the scanner found in a text."""
    extents = zip(scan.token_start.tolist(), scan.token_end.tolist(), strict=True)
    if raw.isascii():
        text = raw.decode()
        return [text[a:b] for a, b in extents]
    return [raw[a:b].decode() for a, b in extents]


def _packed(tokens: list[str], scan: scanner.Scan, one_to_one: bool) -> Forest:
    """Return the forest that the scanner found; unless ``one_to_one``, two tokens may stand for one label."""
    label = scan.label
    if not one_to_one:
        index: dict[str, int] = {}
        moves = np.array([index.setdefault(unescape(token), len(index)) for token in tokens], np.int32)
        label, tokens = moves[label] if label.size else label, list(index)
    offsets = np.zeros(scan.ends.size + 1, np.int64)
    offsets[1:] = scan.ends
    return Forest._trusted(label, scan.arity, offsets, tuple(tokens))


def _forest(window: _Window, scan: scanner.Scan, trees_before: int, on_bad: OnBad) -> Forest:
    """Name the scanned labels; trees with labels that are not UTF-8 go to ``on_bad``."""
    text = window.text[: scan.token_end.max(initial=0)].tobytes()
    try:
        return _packed(_tokens(text, scan), scan, b"\\x" not in text)
    except UnicodeDecodeError:
        pass
    tokens: list[str] = []
    broken: dict[int, bytes] = {}
    for k, (a, b) in enumerate(zip(scan.token_start.tolist(), scan.token_end.tolist(), strict=True)):
        try:
            tokens.append(text[a:b].decode())
        except UnicodeDecodeError:
            broken[k] = text[a:b]
            tokens.append("")  # only until its trees are left out
    forest = _packed(tokens, scan, False)
    nodes = np.flatnonzero(np.isin(scan.label, list(broken)))
    bad_trees, first = np.unique(np.searchsorted(scan.ends, nodes, side="right"), return_index=True)
    for tree, node in zip(bad_trees, nodes[first], strict=True):
        raw = broken[scan.label[node]]
        start = int(scan.starts[tree])
        where = window.place(text.find(raw, start), trees_before + tree + 1)
        on_bad(SourceError(f"{where}: the bytes {raw[:40]!r} are not UTF-8"))
    return forest[np.setdiff1d(np.arange(len(forest)), bad_trees)]
