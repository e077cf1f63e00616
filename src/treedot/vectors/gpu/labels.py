"""Tables that keep label vectors in the memory of a GPU for later trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from treedot._runtime.array_types import Array, IntArray
from treedot._runtime.threads import Threads
from treedot.vectors.gpu.device import Gpu

TABLE_BYTES = 1 << 32  # the limit of the tables, which is also an eighth of the memory
DRAWN = 64  # labels drawn at a time


class LabelTables(ABC):
    """The labels met so far; each has one row in every table.

    If new labels would exceed the memory limit, all others are dropped first.

    Parameters
    ----------
    gpu : Gpu
        The device of the tables.
    widths : sequence of int
        The number of elements of a label in each table.
    dtype : str
        Their type.
    besides : int
        The number of further elements per label, in tables of a subclass.
    """

    def __init__(self, gpu: Gpu, widths: Sequence[int], dtype: str, besides: int = 0) -> None:
        self._gpu, self._dtype = gpu, dtype
        self.tables = [gpu.empty((0, width), dtype) for width in widths]
        self._row: dict[str, int] = {}
        of_label = np.dtype(dtype).itemsize * (sum(widths) + besides)
        self.capacity = max(1, min(TABLE_BYTES, int(gpu.properties.total_memory) // 8) // of_label)

    @abstractmethod
    def make(self, texts: Sequence[str]) -> Sequence[Array]:
        """Return the rows of new labels for each table."""

    def rows(self, texts: Sequence[str], threads: Threads) -> IntArray:
        """Return the row numbers of labels; add new labels to the tables."""
        new = [text for text in texts if text not in self._row]
        if len(self._row) + len(new) > self.capacity:
            self._row, new = {}, list(texts)
        if new:
            self._draw(new, threads)
        return np.array([self._row[text] for text in texts], np.int32)

    def _draw(self, texts: list[str], threads: Threads) -> tuple[int, int]:
        """Add the rows of new labels to the tables; return the limits of these rows."""
        made = [np.empty((len(texts), table.shape[1]), self._dtype) for table in self.tables]

        def draw(first: int, last: int) -> None:
            for rows, new in zip(made, self.make(texts[first:last]), strict=True):
                rows[first:last] = new

        starts = range(0, len(texts), DRAWN)
        threads.run(draw, [(start, min(start + DRAWN, len(texts))) for start in starts])
        first, last = len(self._row), len(self._row) + len(texts)
        if last > len(self.tables[0]):
            self._enlarge(max(last, min(2 * len(self.tables[0]), self.capacity)))
        for table, rows in zip(self.tables, made, strict=True):
            table[first:last] = self._gpu.sent(rows)
        self._row.update(zip(texts, range(first, last), strict=True))
        return first, last

    def _enlarge(self, count: int) -> None:
        tables: list[Any] = []
        for table in self.tables:
            tables.append(self._gpu.empty((count, table.shape[1]), self._dtype))
            tables[-1][: len(table)] = table
        self.tables = tables
