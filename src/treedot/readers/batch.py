"""The trees of bracket text on their way into a Forest: scanned text by text, packed as one."""

from __future__ import annotations

import itertools
import secrets

import numpy as np

from treedot.array_types import IntArray
from treedot.readers import scanner
from treedot.readers.scanner import Scan
from treedot.readers.token_table import empty_table, larger_table
from treedot.readers.words import Text
from treedot.trees import Forest
from treedot.trees.brackets import unescape

FEWEST_SLOTS, MOST_SLOTS = 64, 1 << 16  # of a new table


class Batch:
    """Trees that become one Forest, with a table of their tokens that is filled while texts are scanned.

    Parameters
    ----------
    size : int
        The bytes of a text, about: for few of them a small table will do.
    """

    def __init__(self, size: int) -> None:
        slots = min(max(FEWEST_SLOTS, 1 << (size // 16).bit_length()), MOST_SLOTS)
        self._table = empty_table(slots, np.empty(0, np.uint8), secrets.randbits(62) | 1)
        self._nodes_per_byte = 0.25  # that there is room for
        self._begin()

    def _begin(self) -> None:
        self._n_tokens = 0
        self._tokens: list[str] = []  # those that were decoded
        self._undecodable: dict[int, bytes] = {}  # tokens that are not UTF-8, by their numbers
        self._has_escapes = False
        self._scans: list[Scan] = []
        self._all_there = True  # whether no tree was left out
        self.n_trees = 0  # with those that were left out

    def scan(self, text: Text, wanted: int, column_one: bool = False) -> Scan:
        """Scan a padded text; the numbers of its tokens go on where those of the last one ended."""
        self._make_room(text.size)
        while True:
            room = 16 + int(self._nodes_per_byte * text.size)
            scan = scanner.scan(text, wanted, column_one, self._table, self._n_tokens, room)
            self._n_tokens = scan.n_tokens
            if scan.stop != scanner.NO_ROOM:
                return scan
            # The text is scanned anew, and has the same tokens.
            if self._n_tokens == self._table.head.size:
                self._table = larger_table(self._table, 4 * self._table.slot.size)
            else:
                self._nodes_per_byte *= 2

    def _make_room(self, size: int) -> None:
        """See to it that the tokens of a text fit into the pool: they are no longer than the text."""
        pool = self._table.pool
        filled = int(self._table.start[self._n_tokens])
        if pool.size < filled + size:
            larger = np.empty(2 * filled + size, np.uint8)
            larger[:filled] = pool[:filled]
            self._table = self._table._replace(pool=larger)

    def add(self, scan: Scan) -> dict[int, bytes]:
        """Add the trees of a scan.

        Those with labels that are not UTF-8 are left out: their numbers are returned, each with such a label.
        """
        self._decode()
        self.n_trees += scan.starts.size
        bad = self._bad_trees(scan) if self._undecodable else {}
        if scan.starts.size:
            self._scans.append(_without(scan, list(bad)) if bad else scan)
        self._all_there = self._all_there and not bad
        return bad

    def _decode(self) -> None:
        """Decode the tokens that are new."""
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

    def take(self) -> Forest:
        """Return the forest of all trees that were added, and forget them and their tokens."""
        label, arity, offsets = _joined(self._scans)
        tokens = self._tokens[: label.max(initial=-1) + 1]  # without those of a tree that is not finished
        if self._has_escapes:
            tokens = [unescape(token) for token in tokens]
            index = dict(zip(dict.fromkeys(tokens), itertools.count()))
            if len(index) < len(tokens):  # two of them stand for one label
                moves = np.array([index[token] for token in tokens], np.int32)
                label, tokens = moves[label], list(index)
        forest = Forest._trusted(label, arity, offsets, tuple(tokens))
        if not self._all_there:
            forest = forest[:]  # without the labels that only trees left out have
        self._table.slot[self._table.place[: self._n_tokens]] = -1
        self._begin()
        return forest


def _joined(scans: list[Scan]) -> tuple[IntArray, IntArray, IntArray]:
    """Return the labels, the arities and the offsets of all trees of several scans."""
    if len(scans) == 1:
        return scans[0].label, scans[0].arity, scans[0].offsets
    none, zero = np.zeros(0, np.int32), np.zeros(1, np.int64)
    before = np.cumsum([0, *(scan.label.size for scan in scans)])
    return (
        np.concatenate([none, *(scan.label for scan in scans)]),
        np.concatenate([none, *(scan.arity for scan in scans)]),
        np.concatenate([zero, *(scan.offsets[1:] + k for k, scan in zip(before, scans, strict=False))]),
    )


def _without(scan: Scan, trees: list[int]) -> Scan:
    """Return a scan without some of its trees."""
    sizes = np.diff(scan.offsets)
    kept = np.ones(sizes.size, bool)
    kept[trees] = False
    nodes = np.repeat(kept, sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes[kept])])
    return scan._replace(
        label=scan.label[nodes],
        arity=scan.arity[nodes],
        offsets=offsets,
        starts=scan.starts[kept],
        ends=scan.ends[kept],
    )
