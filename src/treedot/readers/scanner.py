"""The compiled bracket scanner: bytes in, packed columns out, one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treedot.array_types import IntArray
from treedot.jit import njit

# What the scanner stopped for.
COMPLETE = 0  # the buffer or the wanted number of trees is used up, nothing is left open
OPEN = 1  # the buffer ends inside a tree or a token
CLOSED_TOO_OFTEN = 2
TEXT_OUTSIDE = 3
NEW_TREE_INSIDE = 4  # a bracket in the first column although the last tree is open (only with `column_one`)
TOO_LONG = 5  # a label, or blanks inside a tree, of more than MAX_RUN bytes

MAX_RUN = 1 << 24

_SPACE, _OPEN, _CLOSE, _TEXT = 0, 1, 2, 3

BYTE_KIND = np.full(256, _TEXT, np.uint8)
BYTE_KIND[[9, 10, 11, 12, 13, 32]] = _SPACE
BYTE_KIND[ord("(")] = _OPEN
BYTE_KIND[ord(")")] = _CLOSE

Text = npt.NDArray[np.uint8]


class Scan(NamedTuple):
    """The trees that were found in a text, and why the scanner stopped."""

    stop: int  # COMPLETE, or what is wrong
    position: int  # where that is; for a tree that is not closed, where it starts
    used: int  # the position after the last finished tree
    label: IntArray  # for every node of the finished trees, in post-order, the number of its token
    arity: IntArray  # for every node, its number of children
    ends: IntArray  # for every tree, the number of nodes up to its last one
    starts: IntArray  # for every tree, the position where it starts
    token_start: IntArray  # for every distinct token, where it first begins
    token_end: IntArray  # and where it ends


@njit
def _twice(array: IntArray) -> IntArray:
    larger = np.empty(2 * array.size, array.dtype)
    larger[: array.size] = array
    return larger


@njit
def _end_of_run(text: Text, at: int, kind: Text, what: int) -> int:
    """Return the first position from ``at`` whose byte is of another kind."""
    while at < text.size and kind[text[at]] == what:
        at += 1
    return at


@njit
def _find(table: IntArray, text: Text, start: IntArray, end: IntArray, a: int, b: int) -> int:
    """Return the bucket of the hash table for the token ``text[a:b]``, or the free one where it belongs."""
    code = 0
    for k in range(a, b):
        code = ((code ^ (code >> 23)) & 0x3FFFFFFF) * 0x2545F491 + int(text[k])
    bucket = (code ^ (code >> 31)) & (table.size - 1)
    while table[bucket] >= 0:
        known = start[table[bucket]]
        same = end[table[bucket]] - known == b - a
        k = 0
        while same and k < b - a:
            same = text[known + k] == text[a + k]
            k += 1
        if same:
            break
        bucket = (bucket + 1) & (table.size - 1)
    return bucket


@njit
def _number_of(
    table: IntArray, text: Text, start: IntArray, end: IntArray, known: int, a: int, b: int
) -> int:
    """Return the number of the token ``text[a:b]``: the next after ``known`` where it is new."""
    bucket = _find(table, text, start, end, a, b)
    if table[bucket] < 0:
        table[bucket] = known
        start[known], end[known] = a, b
    return int(table[bucket])


@njit
def _larger_table(table: IntArray, text: Text, start: IntArray, end: IntArray, tokens: int) -> IntArray:
    larger = np.full(4 * table.size, -1, table.dtype)
    for t in range(tokens):
        larger[_find(larger, text, start, end, start[t], end[t])] = t
    return larger


@njit
def next_bracket(text: Text, at: int, column_one: bool) -> int:
    """Return the position of the first opening bracket from ``at`` on, or the size of the text.

    With ``column_one``, only a bracket at the beginning of a line counts; ``at`` is then at least 1.
    """
    while at < text.size and not (text[at] == 40 and (not column_one or text[at - 1] == 10)):
        at += 1
    return at


@njit
def scan(text: Text, wanted: int, column_one: bool, kind: Text) -> Scan:
    """Scan up to ``wanted`` trees from a text, and tell whether what follows them may begin another one.

    An opening bracket reads its label along; a node is written down when it is closed, so nodes come in
    post-order. With ``column_one``, a bracket at the beginning of a line always starts a new tree.
    """
    label, arity = np.empty(1024, np.int32), np.empty(1024, np.int32)
    ends, starts = np.empty(64, np.int64), np.empty(64, np.int64)
    open_label, open_arity = np.empty(64, np.int32), np.empty(64, np.int32)  # the stack of open brackets
    token_start, token_end = np.empty(256, np.int64), np.empty(256, np.int64)
    table = np.full(1024, -1, np.int32)  # a hash table of the tokens' numbers
    nodes = trees = tokens = depth = 0
    stop, position, used, at = COMPLETE, 0, 0, 0
    while True:
        before = at
        at = _end_of_run(text, at, kind, _SPACE)
        if depth > 0 and at - before > MAX_RUN:
            stop, position = TOO_LONG, before
            break
        if at == text.size or (trees == wanted and kind[text[at]] == _OPEN):
            break
        if tokens == token_start.size:
            token_start, token_end = _twice(token_start), _twice(token_end)
        if 2 * tokens > table.size:
            table = _larger_table(table, text, token_start, token_end, tokens)

        what = kind[text[at]]
        if what == _OPEN:
            if depth == open_label.size:
                open_label, open_arity = _twice(open_label), _twice(open_arity)
            if depth == 0:
                if trees == starts.size:
                    starts, ends = _twice(starts), _twice(ends)
                starts[trees] = at
            elif column_one and text[at - 1] == 10:
                stop, position = NEW_TREE_INSIDE, starts[trees]
                break
            bracket = at
            at = _end_of_run(text, at + 1, kind, _SPACE)
            if at - bracket > MAX_RUN:
                stop, position = TOO_LONG, bracket
                break
            after = _end_of_run(text, at, kind, _TEXT)  # where a bracket follows, the label is empty
            if after - at > MAX_RUN:
                stop, position = TOO_LONG, at
                break
            if at < text.size:
                open_label[depth] = _number_of(table, text, token_start, token_end, tokens, at, after)
                tokens = max(tokens, open_label[depth] + 1)
                open_arity[depth] = 0
            depth += 1
            at = after
            continue
        if depth == 0:
            stop, position = (CLOSED_TOO_OFTEN if what == _CLOSE else TEXT_OUTSIDE), at
            break
        if nodes == label.size:
            label, arity = _twice(label), _twice(arity)
        if what == _CLOSE:
            at += 1
            depth -= 1
            label[nodes], arity[nodes] = open_label[depth], open_arity[depth]
        else:
            after = _end_of_run(text, at, kind, _TEXT)
            if after - at > MAX_RUN:
                stop, position = TOO_LONG, at
                break
            label[nodes] = _number_of(table, text, token_start, token_end, tokens, at, after)
            tokens = max(tokens, label[nodes] + 1)
            arity[nodes] = 0
            at = after
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
    return Scan(
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
