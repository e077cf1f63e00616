"""Find the rows of an inverted index with the largest dot products, exactly, query by query."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from treedot._runtime.jit import compiles, njit_borrowing
from treedot._runtime.sorted_arrays import locate
from treedot._runtime.threads import thread_map
from treedot.errors import SourceError
from treedot.parameters import n_threads
from treedot.search import top_k
from treedot.search.index.inverted_index_writer import Lists
from treedot.search.top_k import keep_best

BLOCK = 1 << 15  # rows whose sums fit into the cache
NUMPY_STEPS = 0.05  # the time of NumPy per posting and per row, in steps of plain Python


def best_rows(
    lists: Lists, n_rows: int, queries: Any, k: int, n_jobs: int | None, path: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best rows for each query.

    Threads share the queries or, if these are fewer than threads, ranges of rows. Errors name ``path``.
    """
    threads, count = n_threads(n_jobs), queries.shape[0]
    step = -(-n_rows // (1 if count >= threads else threads))
    starts = range(0, n_rows, step)
    places = [_places(lists, queries[i], path) for i in range(count)]
    postings = sum(int((last - first).sum()) for first, last, _ in places)
    search = _search if compiles(NUMPY_STEPS * (postings + count * n_rows)) else _search_by_numpy

    def task(which: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        query, first_row = which
        rows, values = top_k.empty(1, k)
        last_row = min(first_row + step, n_rows)
        first, last, weight = places[query]
        sound = search(
            first.copy(), last, weight, lists.row, lists.value, first_row, last_row, n_rows,
            np.empty(min(BLOCK, last_row - first_row)), rows[0], values[0],
        )  # fmt: skip
        if not sound:
            raise SourceError(
                f"{path}: a list of rows is out of order, or a product is not finite; "
                "build it again, with normalize=True if rows are not normalised"
            )
        return rows, values

    tasks = list(product(range(count), starts))
    with thread_map(n_jobs, len(tasks)) as run_all:
        found = [top_k.empty(0, k), *run_all(task, tasks)]
    rows, values = (np.concatenate(x).reshape(count, len(starts) * k) for x in zip(*found, strict=True))
    return top_k.ranked(rows, values, k)


def _places(lists: Lists, query: Any, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the starts and ends of the lists of a query's columns, and the query's values."""
    known, number = locate(query.indices.astype(lists.column.dtype), lists.column)
    first, last = lists.start[number], lists.start[number + 1]
    if not ((first >= 0) & (first <= last) & (last <= lists.row.size)).all():
        raise SourceError(f"{path} is damaged: a posting list ends outside the file; build it again")
    return first, last, query.data[known].astype(np.float64)


def _search_by_numpy(
    first: np.ndarray, last: np.ndarray, weight: np.ndarray, posting_row: np.ndarray, value: np.ndarray,
    first_row: int, last_row: int, n_rows: int, _: np.ndarray, rows: np.ndarray, values: np.ndarray,
) -> bool:  # fmt: skip
    """Run ``_search`` in NumPy: for a few queries, loading compiled code would take longer."""
    line = np.zeros(last_row - first_row)
    for a, b, x in zip(first.tolist(), last.tolist(), weight, strict=True):
        row = np.asarray(posting_row[a:b])
        if row.size and not (row[0] >= 0 and row[-1] < n_rows and (row[1:] > row[:-1]).all()):
            return False
        low, high = np.searchsorted(row, [first_row, last_row])
        line[row[low:high] - first_row] += x * value[a + low : a + high].astype(np.float64)
    best = np.argsort(-line, kind="stable")[: rows.size]
    rows[: best.size], values[: best.size] = best + first_row, line[best]
    return bool(np.isfinite(line).all())


@njit_borrowing
def _search(
    place: np.ndarray, last: np.ndarray, weight: np.ndarray, posting_row: np.ndarray, value: np.ndarray,
    first_row: int, last_row: int, n_rows: int, line: np.ndarray, rows: np.ndarray, values: np.ndarray,
) -> bool:  # fmt: skip
    """Add up a query's lists for a range of rows and keep the best; return whether the lists are valid.

    Rows are processed in blocks whose sums stay in the cache; each list is read once, block by block. Reading
    stops at a list that does not ascend, so nothing is ever written outside the block. ``place`` holds the
    current position in each list.
    """
    for j in range(place.size if first_row > 0 else 0):
        end = last[j]
        while place[j] < end:  # binary search for the first row
            middle = (place[j] + end) // 2
            if posting_row[middle] < first_row:
                place[j] = middle + 1
            else:
                end = middle
    for block in range(first_row, last_row, BLOCK):
        size = min(BLOCK, last_row - block)
        line[:] = 0
        for j in range(place.size):
            x, k, end = weight[j], place[j], last[j]
            while k < end:
                row = np.int64(posting_row[k]) - block
                if row < 0 or row >= size:
                    break
                line[row] += x * np.float64(value[k])
                k += 1
            place[j] = k
        if not keep_best(line[:size], block, rows, values):
            return False
    for j in range(place.size):
        if place[j] < last[j] and (last_row == n_rows or posting_row[place[j]] < last_row):
            return False
    return True
