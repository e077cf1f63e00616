"""A table that keeps label vectors for later trees, in limited memory."""

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

TABLE_BYTES = 1 << 30  # the default limit of a table
DRAWN = 64  # labels drawn at a time

_table_bytes: ContextVar[int] = ContextVar("table_bytes")


@contextlib.contextmanager
def small_tables(size: int) -> Iterator[None]:
    """Limit tables made inside the context to ``size`` bytes, since many processes share the memory."""
    before = _table_bytes.set(size)
    try:
        yield
    finally:
        _table_bytes.reset(before)


class LabelTable:
    """The vectors of the labels met so far, in limited memory: new ones replace the least recently used.

    The limit is ``TABLE_BYTES``, or the size given to ``small_tables``. The table exceeds it only if the
    trees that are being encoded hold more labels.

    Parameters
    ----------
    make : callable
        Returns the vectors of labels: a named tuple of arrays with one row per label.
    """

    def __init__(self, make: Callable[[Sequence[str]], Any]) -> None:
        self._make = make
        self._table = make([])
        self._row_bytes: int = sum(array.itemsize * math.prod(array.shape[1:]) for array in self._table)
        self.capacity = max(1, _table_bytes.get(TABLE_BYTES) // self._row_bytes)
        self._row: dict[str, int] = {}
        self._text: list[str] = []
        self._used = np.zeros(0, np.int64)  # the last call that used each row
        self._last = 0  # number of the last call
        self._under_way: list[int] = []  # numbers of the calls under way
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """The memory of the labels met so far; rows that were never written take none."""
        return len(self._text) * self._row_bytes

    @property
    def is_busy(self) -> bool:
        """Whether a thread is using the table."""
        return self._lock.locked() or bool(self._under_way)

    @contextlib.contextmanager
    def rows(self, texts: Sequence[str], threads: Threads) -> Iterator[tuple[IntArray, Any]]:
        """Yield the row numbers of distinct texts, and the table; these rows do not change meanwhile."""
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
        """Add the vectors of new texts to the table."""
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
        """Return rows to write to: rows never used, then the oldest that no call under way uses."""
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
        """Move to larger arrays; calls under way keep using the old ones."""
        old = len(self._used)
        table = [np.empty((size, *array.shape[1:]), array.dtype) for array in self._table]
        for array, values in zip(table, self._table, strict=True):
            array[:old] = values
        self._table = type(self._table)(*table)
        used = np.zeros(size, np.int64)  # of rows never used, no page is touched
        used[:old] = self._used
        self._used = used
