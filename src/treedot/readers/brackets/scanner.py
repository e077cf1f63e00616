"""Scan brackets in one pass of compiled code, from bytes to the arrays of a Forest."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import inlined, njit_borrowing
from treedot.readers.brackets.token_table import SOME_KEY, Table, add, empty_table, find
from treedot.readers.brackets.words import PADDING, Text, byte_at, label_bytes

# The reasons to stop:
NO_ROOM = -1  # the table needs more tokens, or the arrays more nodes or trees
COMPLETE = 0  # the end of the text or the wanted number of trees is reached; nothing is open
OPEN = 1  # the text ends inside a tree or a token
CLOSED_TOO_OFTEN = 2
TEXT_OUTSIDE = 3
NEW_TREE_INSIDE = 4  # a bracket in the first column while a tree is open (only with `column_one`)
TOO_LONG = 5  # a label, or blanks inside a tree, of more than MAX_RUN bytes

MAX_RUN = 1 << 24

_BREAK, _OPEN, _CLOSE = ord("\n"), ord("("), ord(")")


class Scan(NamedTuple):
    """The trees found in a text, and why the scanner stopped."""

    stop: int  # COMPLETE, or the error
    position: int  # where the error is; for an unclosed tree, its start
    used: int  # the position after the last finished tree and, without an error, after the next blanks
    n_tokens: int  # the number of known tokens
    label: IntArray  # the token number of every node of the finished trees, in post-order
    arity: IntArray  # the number of children of every node
    offsets: IntArray  # 0, and for every tree the number of nodes up to its end
    starts: IntArray  # the start position of every tree
    ends: IntArray  # the position after its last bracket


@inlined
def _is_blank(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13


@inlined
def _end_of_blanks(text: Text, at: int) -> int:
    """Return the first position from ``at`` on that is not a blank, or the end of the text."""
    while at < text.size - PADDING and _is_blank(byte_at(text, at)):
        at += 1
    return at


@inlined
def _token_length(text: Text, at: int) -> int:
    """Return the length of the label at ``at``: 0 before a bracket."""
    length = more = label_bytes(text, at)
    while more == PADDING:
        more = label_bytes(text, at + length)
        length += more
    return length


@njit_borrowing
def next_bracket(text: Text, at: int, column_one: bool) -> int:
    """Return the position of the first opening bracket from ``at`` on, or the size of the text.

    With ``column_one``, only a bracket at the beginning of a line counts; ``at`` is then at least 1.
    """
    while at < text.size and not (text[at] == _OPEN and (not column_one or text[at - 1] == _BREAK)):
        at += 1
    return at


def scan(text: Text, wanted: int, column_one: bool, table: Table, n_tokens: int, room: int) -> Scan:
    """Scan up to ``wanted`` trees from a padded text; return also whether another tree may follow.

    With ``column_one``, a bracket at the start of a line always starts a new tree. A token at the end of the
    text may continue in the next text, so it is not added to the table. The arrays
    have room for ``room`` nodes, and for a quarter as many trees.
    """
    label, arity = np.empty(room, np.int32), np.empty(room, np.int32)
    most = min(wanted, room // 4)
    starts, ends, offsets = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most + 1, np.int64)
    stop, position, used, n_tokens, trees, nodes = _scan(
        text, wanted, column_one, table, n_tokens, label, arity, offsets, starts, ends
    )
    found = label[:nodes].copy(), arity[:nodes].copy(), offsets[: trees + 1].copy()
    return Scan(stop, position, used, n_tokens, *found, starts[:trees].copy(), ends[:trees].copy())


@njit_borrowing
def _scan(
    text: Text, wanted: int, column_one: bool, table: Table, n_tokens: int,
    label: IntArray, arity: IntArray, offsets: IntArray, starts: IntArray, ends: IntArray,
) -> tuple[int, int, int, int, int, int]:  # fmt: skip
    """Fill arrays with trees; return the four numbers of a ``Scan``, and the numbers of trees and nodes.

    The label is read together with the opening bracket. A node is written when it is closed, so nodes are in
    post-order. Closed nodes are at the beginning of the arrays; open ones form a stack at the end.
    """
    size, room, most = text.size - PADDING, label.size, starts.size
    offsets[0] = 0
    nodes = trees = depth = at = position = 0
    stop = COMPLETE
    while at < size:
        byte = byte_at(text, at)
        if byte == _CLOSE:
            if depth == 0:
                stop, position = CLOSED_TOO_OFTEN, at
                break
            at += 1
            label[nodes], arity[nodes] = label[room - depth], arity[room - depth]
            nodes += 1
            depth -= 1
            if depth > 0:
                arity[room - depth] += 1
            else:
                ends[trees] = at
                trees += 1
                offsets[trees] = nodes
            continue
        before = at
        if _is_blank(byte):
            at = _end_of_blanks(text, at + 1)
            if depth > 0 and at - before > MAX_RUN:
                stop, position = TOO_LONG, before
                break
            continue
        if byte == _OPEN:
            if depth == 0:
                if trees == wanted:
                    break
                if trees == most:
                    stop = NO_ROOM
                    break
                starts[trees] = at
            elif column_one and byte_at(text, at - 1) == _BREAK:
                stop, position = NEW_TREE_INSIDE, starts[trees]
                break
            at = _end_of_blanks(text, at + 1)
            if at - before > MAX_RUN:
                stop, position = TOO_LONG, before
                break
        elif depth == 0:
            stop, position = TEXT_OUTSIDE, at
            break
        length = _token_length(text, at)
        if length > MAX_RUN:
            stop, position = TOO_LONG, at
            break
        if at + length == size:
            stop, position = OPEN, starts[trees]
            break
        slot = find(table, text, at, length)
        token = table.slot[slot]
        if nodes + depth == room:
            stop = NO_ROOM
            break
        if token < 0:
            if n_tokens == table.place.size:
                stop = NO_ROOM
                break
            token = n_tokens
            add(table, slot, token, text, at, length)
            n_tokens += 1
        at += length
        if byte == _OPEN:
            depth += 1
            label[room - depth], arity[room - depth] = token, 0
        else:
            label[nodes], arity[nodes] = token, 0
            nodes += 1
            arity[room - depth] += 1
    if stop == COMPLETE and depth > 0:
        stop, position = OPEN, starts[trees]
    used = at
    if stop != COMPLETE:
        used = ends[trees - 1] if trees > 0 else 0
    return stop, position, used, n_tokens, trees, offsets[trees]


def scan_alone(text: Text, wanted: int) -> tuple[Scan, bytes]:
    """Scan a short padded text with its own table; return also its tokens in the form of a pool."""
    size = max(64, 1 << text.size.bit_length())  # there are at most half as many tokens as bytes
    table, label, arity, offsets, starts, ends = _kept_arrays(size, wanted)
    table.slot.fill(-1)
    stop, position, used, n_tokens, trees, nodes = _scan(
        text, wanted, False, table, 0, label, arity, offsets, starts, ends
    )
    found = label[:nodes].copy(), arity[:nodes].copy(), offsets[: trees + 1].copy()
    scanned = Scan(stop, position, used, n_tokens, *found, starts[:trees].copy(), ends[:trees].copy())
    return scanned, table.pool[: table.start[n_tokens]].tobytes()


Arrays = tuple[Table, IntArray, IntArray, IntArray, IntArray, IntArray]


class _Kept(threading.local):
    """The arrays in which a thread scans short texts: to allocate them takes longer than to scan one."""

    def __init__(self) -> None:
        self.arrays: dict[tuple[int, int], Arrays] = {}


_kept = _Kept()


def _kept_arrays(size: int, wanted: int) -> Arrays:
    """Return a table, and arrays for the nodes and the trees of a text of fewer than ``size`` bytes."""
    found = _kept.arrays.get((size, wanted))
    if found is None:
        table = empty_table(size, np.empty(size, np.uint8), SOME_KEY)
        label, arity = np.empty((2, size), np.int32)
        offsets, starts, ends = np.empty((3, wanted + 1), np.int64)
        found = _kept.arrays[size, wanted] = table, label, arity, offsets, starts, ends
    return found
