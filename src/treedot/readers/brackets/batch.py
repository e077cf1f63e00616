"""Collect the trees of several scanned texts into one Forest."""

from __future__ import annotations

import itertools
import secrets
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.ragged import ends_of
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.readers.brackets import scanner
from treedot.readers.brackets.scanner import Scan
from treedot.readers.brackets.token_table import empty_table, larger_table, merge
from treedot.readers.brackets.words import Text, padded
from treedot.trees import Forest
from treedot.trees.brackets import unescape

EVERYTHING = 2**31 - 1  # more trees than any text has
LEAST_NODES = 1 << 16  # the fewest nodes that pay for a thread
FEWEST_SLOTS, MOST_SLOTS = 64, 1 << 16  # slots of a new table


class Scanned(NamedTuple):
    """The trees of a text that was scanned separately, and its tokens."""

    scan: Scan
    pool: Text  # all tokens, each followed by a line break, and padding
    start: IntArray  # the start of each token, and the end of the last one


class Batch:
    """Trees for one Forest, with a table of their tokens that grows while texts are scanned.

    Parameters
    ----------
    size : int
        The approximate size of the text in bytes; a small text gets a small table.
    """

    def __init__(self, size: int) -> None:
        slots = min(max(FEWEST_SLOTS, 1 << (size // 16).bit_length()), MOST_SLOTS)
        self._table = empty_table(slots, np.empty(0, np.uint8), secrets.randbits(62) | 1)
        self._nodes_per_byte = 0.25  # determines the size of the arrays of a scan
        self._begin()

    def _begin(self) -> None:
        self._n_tokens = 0
        self._tokens: list[str] = []  # the tokens decoded so far
        self._undecodable: dict[int, bytes] = {}  # tokens that are not UTF-8, by number
        self._has_escapes = False
        self._scans: list[tuple[Scan, IntArray | None]] = []  # scans, with the token numbers of other tables
        self._all_there = True  # whether no tree was left out
        self.n_trees = 0  # including trees that were left out

    def scan(self, text: Text, wanted: int, column_one: bool = False) -> Scan:
        """Scan a padded text; number its new tokens after those of earlier texts."""
        self._make_room(text.size)
        while True:
            room = 16 + int(self._nodes_per_byte * text.size)
            scan = scanner.scan(text, wanted, column_one, self._table, self._n_tokens, room)
            self._n_tokens = scan.n_tokens
            if scan.stop != scanner.NO_ROOM:
                return scan
            # The text is scanned again, and has the same tokens.
            if self._n_tokens == self._table.head.size:
                self._table = larger_table(self._table, 4 * self._table.slot.size)
            else:
                self._nodes_per_byte *= 2

    def _make_room(self, size: int) -> None:
        """Make room in the pool for the tokens of a text; they are no longer than the text."""
        pool = self._table.pool
        filled = int(self._table.start[self._n_tokens])
        if pool.size < filled + size:
            larger = np.empty(2 * filled + size, np.uint8)
            larger[:filled] = pool[:filled]
            self._table = self._table._replace(pool=larger)

    def add(self, scan: Scan) -> dict[int, bytes]:
        """Add the trees of a scan.

        Trees with labels that are not UTF-8 are left out; their numbers are returned, each with such a label.
        """
        self._decode()
        self.n_trees += scan.starts.size
        bad = self._bad_trees(scan) if self._undecodable else {}
        if scan.starts.size:
            self._scans.append((without(scan, list(bad)) if bad else scan, None))
        self._all_there = self._all_there and not bad
        return bad

    def forest_of(self, text: Text) -> Forest | None:
        """Return the trees of a padded text if nothing else was added; None if the text has an error."""
        scan = self.scan(text, EVERYTHING)
        if scan.stop == scanner.COMPLETE and not self.add(scan):
            return self.take()
        self._forget()
        return None

    def scan_alone(self, text: Text) -> Scanned | None:
        """Scan a padded text for another batch to add; return None if it has an error."""
        scan = self.scan(text, EVERYTHING)
        start = self._table.start[: self._n_tokens + 1].copy()
        raw = self._table.pool[: start[-1]].tobytes()
        self._forget()
        return Scanned(scan, padded(raw), start) if scan.stop == scanner.COMPLETE and _is_text(raw) else None

    def merge(self, found: Scanned) -> None:
        """Add the trees of a text that was scanned separately."""
        self._make_room(found.pool.size)
        numbers, done = np.empty(found.start.size - 1, np.int32), 0
        while done < numbers.size:
            done = merge(self._table, self._n_tokens, found.pool, found.start, numbers, done)
            self._n_tokens = max(self._n_tokens, int(numbers[:done].max(initial=-1)) + 1)
            if done < numbers.size:
                self._table = larger_table(self._table, 4 * self._table.slot.size)
        self._decode()
        self.n_trees += found.scan.starts.size
        self._scans.append((found.scan, numbers))

    def _decode(self) -> None:
        """Decode the new tokens."""
        start = self._table.start
        first = len(self._tokens)
        raw = self._table.pool[start[first] : start[self._n_tokens]].tobytes()
        try:
            texts = raw.decode()
        except UnicodeDecodeError:
            for token in raw.split(b"\n")[:-1]:
                try:
                    self._tokens.append(token.decode())
                except UnicodeDecodeError:
                    self._undecodable[len(self._tokens)] = token
                    self._tokens.append("")
        else:
            self._tokens += texts.split("\n")
            self._tokens.pop()
        self._has_escapes = self._has_escapes or b"\\x" in raw

    def _bad_trees(self, scan: Scan) -> dict[int, bytes]:
        nodes = np.flatnonzero(np.isin(scan.label, list(self._undecodable)))
        trees, first = np.unique(np.searchsorted(scan.offsets, nodes, side="right") - 1, return_index=True)
        tokens = scan.label[nodes[first]]
        return {int(tree): self._undecodable[token] for tree, token in zip(trees, tokens, strict=True)}

    def take(self, threads: Threads = ONE_THREAD) -> Forest:
        """Return the forest of all trees added so far; reset the trees and the tokens."""
        label, arity, offsets = _joined(self._scans, threads)
        tokens = self._tokens[: label.max(initial=-1) + 1]  # without the tokens of an unfinished tree
        if self._has_escapes:
            tokens = [unescape(token) for token in tokens]
            index = dict(zip(dict.fromkeys(tokens), itertools.count()))
            if len(index) < len(tokens):  # two tokens are the same label
                moves = np.array([index[token] for token in tokens], np.int32)
                label, tokens = moves[label], list(index)
        forest = Forest._trusted(label, arity, offsets, tuple(tokens))
        if not self._all_there:
            forest = forest[:]  # without labels that occur only in trees that were left out
        self._forget()
        return forest

    def _forget(self) -> None:
        self._table.slot[self._table.place[: self._n_tokens]] = -1
        self._begin()


def _is_text(raw: bytes) -> bool:
    """Return whether all tokens of a pool are UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _joined(
    scans: list[tuple[Scan, IntArray | None]], threads: Threads
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the labels, the arities and the offsets of all trees of several scans."""
    if len(scans) == 1 and scans[0][1] is None:
        return scans[0][0].label, scans[0][0].arity, scans[0][0].offsets
    nodes = np.cumsum([0, *(scan.label.size for scan, _ in scans)])
    trees = np.cumsum([0, *(scan.starts.size for scan, _ in scans)])
    label, arity = np.empty(nodes[-1], np.int32), np.empty(nodes[-1], np.int32)
    offsets = np.zeros(trees[-1] + 1, np.int64)

    def write(first: int, last: int) -> None:
        for k in range(first, last):
            scan, numbers = scans[k]
            here = slice(nodes[k], nodes[k + 1])
            if numbers is None:
                label[here] = scan.label
            else:
                np.take(numbers, scan.label, out=label[here], mode="clip")  # "raise" would copy first
            arity[here] = scan.arity
            np.add(scan.offsets[1:], nodes[k], out=offsets[trees[k] + 1 : trees[k + 1] + 1])

    threads.run(write, threads.even_spans(nodes, LEAST_NODES))
    return label, arity, offsets


def without(scan: Scan, trees: list[int]) -> Scan:
    """Return a scan without the given trees."""
    sizes = np.diff(scan.offsets)
    kept = np.ones(sizes.size, bool)
    kept[trees] = False
    nodes = np.repeat(kept, sizes)
    return scan._replace(
        label=scan.label[nodes],
        arity=scan.arity[nodes],
        offsets=ends_of(sizes[kept]),
        starts=scan.starts[kept],
        ends=scan.ends[kept],
    )
