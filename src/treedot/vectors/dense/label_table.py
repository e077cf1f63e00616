"""A table of label vectors that are computed once and kept for later trees, in limited memory."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from threading import Lock
from typing import Any

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.threads import Threads

TABLE_BYTES = 1 << 30  # for label vectors that are kept
DRAWN = 64  # labels, at a time

_table_bytes: ContextVar[int] = ContextVar("table_bytes")


@contextlib.contextmanager
def small_tables(size: int) -> Iterator[None]:
    """Let tables that are made meanwhile take at most so many bytes, where many processes share a memory."""
    before = _table_bytes.set(size)
    try:
        yield
    finally:
        _table_bytes.reset(before)


class LabelTable:
    """The labels met so far, in limited memory: new ones replace those not used for longest.

    The limit is ``TABLE_BYTES``, or what ``small_tables`` says. The table is larger only where trees that are
    being encoded hold more labels than that.

    Parameters
    ----------
    make : callable
        Returns the vectors of some labels: a named tuple of arrays with one row each.
    """

    def __init__(self, make: Callable[[Sequence[str]], Any]) -> None:
        self._make = make
        self._table = make([])
        self._row_bytes: int = sum(array.itemsize * math.prod(array.shape[1:]) for array in self._table)
        self.capacity = max(1, _table_bytes.get(TABLE_BYTES) // self._row_bytes)
        self._row: dict[str, int] = {}
        self._text: list[str] = []
        self._used = np.zeros(0, np.int64)  # by which call each row was last asked for
        self._last = 0  # call
        self._under_way: list[int] = []  # calls
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """How much memory the labels met so far take: rows that were never written to take none."""
        return len(self._text) * self._row_bytes

    @property
    def is_busy(self) -> bool:
        """Whether any thread is using the table."""
        return self._lock.locked() or bool(self._under_way)

    @contextlib.contextmanager
    def rows(self, texts: Sequence[str], threads: Threads) -> Iterator[tuple[IntArray, Any]]:
        """Give the rows of different texts, and the table, in which they stay as they are meanwhile."""
        with self._lock:
            self._last += 1
            call = self._last
            rows, table = self._find(texts, threads), self._table
            self._under_way.append(call)
        try:
            yield rows, table
        finally:
            self._under_way.remove(call)

    def _find(self, texts: Sequence[str], threads: Threads) -> IntArray:
        known = self._row
        missing = [text for text in texts if text not in known]
        if missing:
            self._used[[known[text] for text in texts if text in known]] = self._last
            self._draw(missing, threads)
        rows = np.array([known[text] for text in texts], np.int32)
        self._used[rows] = self._last
        return rows

    def _draw(self, texts: list[str], threads: Threads) -> None:
        """Make the vectors of new texts."""
        rows = self._free_rows(len(texts))

        def draw(first: int, last: int) -> None:
            fresh = self._make(texts[first:last])
            for array, values in zip(self._table, fresh, strict=True):
                array[rows[first:last]] = values

        starts = range(0, len(texts), DRAWN)
        threads.run(draw, [(start, min(start + DRAWN, len(texts))) for start in starts])
        for text, row in zip(texts, rows.tolist(), strict=True):
            self._row[text] = row
            self._text[row] = text

    def _free_rows(self, count: int) -> IntArray:
        """Return rows to write to: those never used, then those that no call under way has asked for."""
        taken = len(self._text)
        idle = np.flatnonzero(self._used[:taken] < min(self._under_way, default=self._last))
        if taken - idle.size + count > len(self._used):
            self._enlarge(max(self.capacity, taken - idle.size + count))
        never = min(len(self._used) - taken, count)
        oldest = idle[np.argsort(self._used[idle], kind="stable")[: count - never]]
        for row in oldest:
            self._row.pop(self._text[row], None)
        self._text += [""] * never
        return np.concatenate([oldest, np.arange(taken, taken + never)])

    def _enlarge(self, size: int) -> None:
        """Move to larger arrays; who is using the others goes on with them."""
        old = len(self._used)
        table = [np.empty((size, *array.shape[1:]), array.dtype) for array in self._table]
        for array, values in zip(table, self._table, strict=True):
            array[:old] = values
        self._table = type(self._table)(*table)
        self._used = np.concatenate([self._used, np.zeros(size - old, np.int64)])
