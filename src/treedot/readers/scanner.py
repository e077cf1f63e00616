"""The compiled bracket scanner: bytes in, packed columns out, one pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treedot.jit import njit
from treedot.types import IntArray

# What the scanner stopped for.
COMPLETE = 0  # the buffer or the wanted number of trees is used up, nothing is left open
OPEN = 1  # the buffer ends inside a tree or a token
CLOSED_TOO_OFTEN = 2
TEXT_OUTSIDE = 3
NEW_TREE_INSIDE = 4  # a bracket in the first column although the last tree is open (only with `column_one`)

_SPACE, _OPEN, _CLOSE, _TEXT = 0, 1, 2, 3

BYTE_KIND = np.full(256, _TEXT, np.uint8)
BYTE_KIND[[9, 10, 11, 12, 13, 32]] = _SPACE
BYTE_KIND[ord("(")] = _OPEN
BYTE_KIND[ord(")")] = _CLOSE


@njit
def _twice(array: IntArray) -> IntArray:
    larger = np.empty(2 * array.size, array.dtype)
    larger[: array.size] = array
    return larger


@njit
def _find(
    table: IntArray, text: npt.NDArray[np.uint8], start: IntArray, end: IntArray, a: int, b: int
) -> int:
    """Return the slot of ``table`` that holds the token ``text[a:b]``, or the free one it belongs in."""
    code = 0
    for k in range(a, b):
        code = ((code ^ (code >> 23)) & 0x3FFFFFFF) * 0x2545F491 + int(text[k])
    slot = (code ^ (code >> 31)) & (table.size - 1)
    while table[slot] >= 0:
        known = start[table[slot]]
        same = end[table[slot]] - known == b - a
        k = 0
        while same and k < b - a:
            same = text[known + k] == text[a + k]
            k += 1
        if same:
            break
        slot = (slot + 1) & (table.size - 1)
    return slot


@njit
def scan(
    text: npt.NDArray[np.uint8], wanted: int, column_one: bool, kind: npt.NDArray[np.uint8]
) -> tuple[int, int, int, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Scan up to ``wanted`` trees from a text.

    Returns ``(stop, position, used, label, arity, ends, starts, token_start, token_end)``: why it
    stopped and where (for an open tree, where that tree starts), the position after the last
    finished tree, the nodes of all finished trees, where each tree's nodes end and its text starts,
    and the extent of each distinct token, the labels.
    """
    label, arity = np.empty(1024, np.int32), np.empty(1024, np.int32)
    ends, starts = np.empty(64, np.int64), np.empty(64, np.int64)
    token_start, token_end = np.empty(256, np.int64), np.empty(256, np.int64)
    table = np.full(1024, -1, np.int32)
    open_label, open_arity = np.empty(64, np.int32), np.empty(64, np.int32)  # -1: no label yet
    nodes = trees = tokens = depth = 0
    stop, position, used, at = COMPLETE, 0, 0, 0
    while at < text.size and trees < wanted:
        what = kind[text[at]]
        if what == _SPACE:
            at += 1
            continue
        if what != _TEXT and depth > 0 and open_label[depth - 1] < 0:
            after = at  # a bracket right after an opening one: the empty label
        elif what == _OPEN:
            if depth == 0:
                if trees == starts.size:
                    starts, ends = _twice(starts), _twice(ends)
                starts[trees] = at
            elif column_one and text[at - 1] == 10:
                stop, position = NEW_TREE_INSIDE, starts[trees]
                break
            if depth == open_label.size:
                open_label, open_arity = _twice(open_label), _twice(open_arity)
            open_label[depth] = -1
            open_arity[depth] = 0
            depth += 1
            at += 1
            continue
        elif depth == 0:
            stop, position = (CLOSED_TOO_OFTEN if what == _CLOSE else TEXT_OUTSIDE), at
            break
        elif what == _CLOSE:
            after = at + 1
        else:
            after = at + 1
            while after < text.size and kind[text[after]] == _TEXT:
                after += 1

        if nodes == label.size:
            label, arity = _twice(label), _twice(arity)
        if after == at or what == _TEXT:
            slot = _find(table, text, token_start, token_end, at, after)
            number = table[slot]
            if number < 0:
                if tokens == token_start.size:
                    token_start, token_end = _twice(token_start), _twice(token_end)
                number = tokens
                token_start[tokens] = at
                token_end[tokens] = after
                tokens += 1
                table[slot] = number
                if 2 * tokens > table.size:
                    table = np.full(4 * table.size, -1, np.int32)
                    for t in range(tokens):
                        table[_find(table, text, token_start, token_end, token_start[t], token_end[t])] = t
            at = after
            if open_label[depth - 1] < 0:
                open_label[depth - 1] = number
                continue
            label[nodes] = number
            arity[nodes] = 0
        else:
            at = after
            depth -= 1
            label[nodes] = open_label[depth]
            arity[nodes] = open_arity[depth]
        nodes += 1
        if depth > 0:
            open_arity[depth - 1] += 1
        else:
            ends[trees] = nodes
            trees += 1
            used = at
    if stop == COMPLETE and depth > 0:
        stop, position = OPEN, starts[trees]
    elif stop == COMPLETE:
        used = at
    finished = ends[trees - 1] if trees > 0 else 0
    return (
        stop,
        position,
        used,
        label[:finished].copy(),
        arity[:finished].copy(),
        ends[:trees].copy(),
        starts[:trees].copy(),
        token_start[:tokens].copy(),
        token_end[:tokens].copy(),
    )
