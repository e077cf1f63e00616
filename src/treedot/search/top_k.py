"""Keep the k largest of many values in one pass; equal values are ordered by row number."""

from __future__ import annotations

import numpy as np

from treedot._runtime.jit import njit_borrowing, njit_inside

NO_ROW = 2**62  # marks a free place; larger than any row number, so that it loses every tie


def empty(count: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ``count`` empty lists of the k best: their rows and values."""
    return np.full((count, k), NO_ROW, np.int64), np.full((count, k), -np.inf)


def ranked(rows: np.ndarray, values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best of each line, best first, padded with -1 and -inf."""
    order = np.lexsort((rows, -values))[:, :k]
    rows, values = np.take_along_axis(rows, order, 1), np.take_along_axis(values, order, 1)
    return np.where(rows == NO_ROW, -1, rows), values


@njit_inside
def keep(row: int, value: float, rows: np.ndarray, values: np.ndarray) -> None:
    """Replace the worst of the best, which is the root of a heap, by a row."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= rows.size:
            break
        other = child + 1
        if other < rows.size and (
            values[other] < values[child] or (values[other] == values[child] and rows[other] > rows[child])
        ):
            child = other
        if value < values[child] or (value == values[child] and row > rows[child]):
            break
        rows[at], values[at] = rows[child], values[child]
        at = child
    rows[at], values[at] = row, value


@njit_borrowing
def keep_best(line: np.ndarray, first: int, rows: np.ndarray, values: np.ndarray) -> bool:
    """Keep the best of a line whose row numbers start at ``first``; return whether all were finite.

    Lines come in the order of their rows, so a value equal to the worst of the best comes too late.
    """
    for i in range(line.size):
        value = line[i]
        if -np.inf < value <= values[0]:
            continue
        if not np.isfinite(value):
            return False
        keep(first + i, value, rows, values)
    return True
