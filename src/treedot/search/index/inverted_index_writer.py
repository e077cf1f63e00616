"""Turn sparse rows into the posting lists of an inverted index, in bounded memory, through files."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.sorted_arrays import order_of, runs
from treedot._runtime.threads import thread_map
from treedot._storage.growing_array import GrowingArray
from treedot.errors import LimitError
from treedot.parameters import n_threads
from treedot.vectors.sparse.idf import inverse_frequency

BUCKETS = 256  # ranges of columns that are sorted one by one
RECORDS = 1 << 23  # non-zeros that are held in memory before they are spilled

MAX_ROWS = 2**31 - 1

Records = tuple[np.ndarray, np.ndarray, np.ndarray]  # columns, rows, values


class Lists(NamedTuple):
    """Posting lists: for each column in use, the rows that hold it and their values; both ascend."""

    column: np.ndarray
    start: np.ndarray  # the list of column[i] is from start[i] to start[i + 1]
    row: np.ndarray
    value: np.ndarray


class InvertedIndexWriter(contextlib.ExitStack):
    """Collects rows, at least one, and turns them into posting lists.

    Non-zeros are spilled to files in portions, each ordered by buckets: ranges of columns that divide the
    first portion evenly. At the end, the records of one bucket after the other are read, sorted and written.

    Parameters
    ----------
    target : Path
        The file that the lists are for. Its folder needs space for about 20 bytes per non-zero.
    idf : bool, default=False
        Multiply every column by its inverse document frequency among the rows, and bring the rows to length 1
        again. Existing lists must have such weights, too; they are taken off first.
    """

    def __init__(self, target: Path, idf: bool = False) -> None:
        super().__init__()
        self._target = target
        self._idf = idf
        self._spilled: tuple[GrowingArray, ...] = ()  # columns, rows, values
        self._ends: list[np.ndarray] = []  # for every portion, where its buckets end
        self._waiting: list[Any] = []
        self._n_waiting = 0
        self._limits: np.ndarray | None = None  # the first column of each bucket but the first
        self.n_rows = 0

    def _file(self, dtype: Any) -> GrowingArray:
        return self.enter_context(GrowingArray(dtype, self._target))

    def add(self, rows: Any) -> None:
        """Add CSR rows."""
        if self.n_rows + rows.shape[0] > MAX_ROWS:
            raise LimitError(f"an index holds at most {MAX_ROWS} trees: build several")
        number = np.arange(self.n_rows, self.n_rows + rows.shape[0], dtype=np.int32)
        self._waiting.append((rows.indices, np.repeat(number, np.diff(rows.indptr)), rows.data))
        self._n_waiting += rows.nnz
        self.n_rows += rows.shape[0]
        if not self._spilled:
            self._open(np.int32 if rows.shape[1] <= 2**31 else np.int64, rows.dtype)
        if self._n_waiting >= RECORDS:
            self._spill()

    def add_lists(self, lists: Lists, rows: np.ndarray, n_rows: int) -> None:
        """Add ``rows`` of an existing index of ``n_rows`` rows; call this before ``add``."""
        self._open(lists.column.dtype, lists.value.dtype)
        if lists.row.size:
            places = np.arange(1, BUCKETS) * lists.row.size // BUCKETS
            self._limits = lists.column[np.searchsorted(lists.start, places, "right") - 1]
        weight = idf_weights(lists.start, n_rows)
        number = np.full(n_rows, -1, np.int32)
        number[rows] = np.arange(rows.size, dtype=np.int32)
        for start in range(0, lists.row.size, RECORDS):
            stop = min(start + RECORDS, lists.row.size)
            row = number[lists.row[start:stop]]
            kept = row >= 0
            column, value = _spread(lists.column, lists.start, start, stop), lists.value[start:stop]
            if self._idf:
                value = value / _spread(weight, lists.start, start, stop)
            self._waiting.append((column[kept], row[kept], value[kept]))
            self._n_waiting += int(kept.sum())
            self._spill()
        self.n_rows = rows.size

    def _open(self, column_type: Any, value_type: Any) -> None:
        self._column_type = column_type
        self._spilled = tuple(self._file(dtype) for dtype in (column_type, np.int32, value_type))

    def _spill(self) -> None:
        if not self._n_waiting:
            return
        parts = zip(*self._waiting, strict=True)
        columns, rows, values = (
            np.concatenate(part, dtype=file.dtype) for part, file in zip(parts, self._spilled, strict=True)
        )
        self._waiting, self._n_waiting = [], 0
        if self._limits is None:
            self._limits = np.sort(columns)[np.arange(1, BUCKETS) * columns.size // BUCKETS]
        order, ends = _by_bucket(columns, self._limits)
        self._ends.append(ends + len(self._spilled[0]))
        for file, array in zip(self._spilled, (columns, rows, values), strict=True):
            file.append(array[order])

    def finish(self, n_jobs: int | None = None) -> dict[str, GrowingArray]:
        """Return the arrays of ``Lists`` by name, in files."""
        self._spill()
        kinds = self._column_type, np.int64, np.int32, self._spilled[2].dtype
        lists = {name: self._file(kind) for name, kind in zip(Lists._fields, kinds, strict=True)}
        threads = n_threads(n_jobs)
        with thread_map(n_jobs) as run_all:
            for first in range(0, BUCKETS, threads):  # no more buckets in memory than are being sorted
                buckets = [self._bucket(b) for b in range(first, min(first + threads, BUCKETS))]
                for column, start, row, value in run_all(_sorted_lists, buckets):
                    begin = start[:-1] + len(lists["row"])
                    for file, array in zip(lists.values(), (column, begin, row, value), strict=True):
                        file.append(array)
        lists["start"].append([len(lists["row"])])
        return self._weighted(lists) if self._idf else lists

    def _weighted(self, lists: dict[str, GrowingArray]) -> dict[str, GrowingArray]:
        """Return the lists with the weights of their columns, in rows of length 1."""
        bounds = lists["start"].read(0, len(lists["start"]))
        weight, squares = idf_weights(bounds, self.n_rows), np.zeros(self.n_rows)
        size = len(lists["row"])
        portions = [(start, min(start + RECORDS, size)) for start in range(0, size, RECORDS)]

        def weighted(start: int, stop: int) -> np.ndarray:
            return lists["value"].read(start, stop) * _spread(weight, bounds, start, stop)

        for portion in portions:
            squares += np.bincount(lists["row"].read(*portion), weighted(*portion) ** 2, self.n_rows)
        values = self._file(lists["value"].dtype)
        for portion in portions:
            values.append(weighted(*portion) / np.sqrt(squares[lists["row"].read(*portion)]))
        return lists | {"value": values}

    def _bucket(self, bucket: int) -> Records:
        """Return the records of a bucket in the order of their rows."""
        places = [(ends[bucket], ends[bucket + 1]) for ends in self._ends]
        columns, rows, values = (
            np.concatenate([np.zeros(0, file.dtype), *(file.read(*place) for place in places)])
            for file in self._spilled
        )
        return columns, rows, values


def idf_weights(start: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the inverse document frequency of every column: its list has one entry for each row."""
    return inverse_frequency(np.diff(start), n_rows)


def _spread(of_columns: np.ndarray, bounds: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return for each entry from ``start`` to ``stop`` the value of its column; lists end at ``bounds``."""
    first, last = np.searchsorted(bounds, start, "right") - 1, np.searchsorted(bounds, stop)
    return np.repeat(of_columns[first:last], np.diff(bounds[first : last + 1].clip(start, stop)))


def _sorted_lists(records: Records) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    columns, rows, values = records
    order = order_of(columns - (columns.min() if columns.size else 0))  # small integers are sorted faster
    return *runs(columns[order]), rows[order], values[order]


def _by_bucket(columns: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a stable order of records by bucket, and the bounds of the buckets.

    Bucket k + 1 starts with column ``limits[k]``; the first bucket starts with column 0.
    """
    buckets = np.searchsorted(limits, columns, "right")
    counts = np.bincount(buckets, minlength=limits.size + 1)
    return order_of(buckets), np.concatenate([[0], np.cumsum(counts)])
