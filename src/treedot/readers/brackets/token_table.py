"""A hash table, in compiled code, that numbers the distinct tokens of a text."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import inlined, njit_borrowing, njit_inside
from treedot.readers.brackets.words import Text, first_bytes, scrambled, word_at

SOME_KEY = 0x1E3779B97F4A7C15  # for texts that are too short for an attack


class Table(NamedTuple):
    """A hash table of tokens; at least half of it is free."""

    slot: IntArray  # the token in each slot, -1 if it is free; hashes give the first slot to try
    place: IntArray  # the slot of every token
    head: npt.NDArray[np.uint64]  # its first eight bytes
    start: IntArray  # where it starts in the pool; the last entry is where the next one will start
    pool: Text  # all tokens, each followed by a line break
    key: int  # an odd key of the hashes; a secret one prevents files made to collide


@inlined
def find(table: Table, text: Text, at: int, length: int) -> int:
    """Return the slot of the token ``text[at : at + length]``, or the free slot for it."""
    head = word_at(text, at)
    last = at + length - 8
    if length <= 8:
        head = first_bytes(head, length)
        code = scrambled(0, head, table.key)
    else:
        code = scrambled(0, head, table.key)
        for k in range(at + 8, last, 8):
            code = scrambled(code, word_at(text, k), table.key)
        code = scrambled(code, word_at(text, last), table.key)
    slot: Any = np.int64(code) & (table.slot.size - 1)  # int() would be compiled too
    searching = True
    while searching:  # the only exit: with two, Numba would count references here
        known = table.slot[slot]
        if known < 0:
            searching = False
        else:
            start = table.start[known]
            same = table.head[known] == head and table.start[known + 1] - start == length + 1
            if same and length > 8:
                for k in range(at + 8, last, 8):
                    same = same and word_at(table.pool, start + k - at) == word_at(text, k)
                same = same and word_at(table.pool, start + length - 8) == word_at(text, last)
            if same:
                searching = False
            else:
                slot = (slot + 1) & (table.slot.size - 1)
    return slot


@njit_inside
def add(table: Table, slot: int, number: int, text: Text, at: int, length: int) -> None:
    """Put the token ``text[at : at + length]`` into a free slot; the pool must have room for it."""
    start = table.start[number]
    table.slot[slot], table.place[number] = number, slot
    table.head[number] = first_bytes(word_at(text, at), length if length < 8 else 8)
    for k in range(length):
        table.pool[start + k] = text[at + k]
    table.pool[start + length] = 10
    table.start[number + 1] = start + length + 1


def empty_table(slots: int, pool: Text, key: int) -> Table:
    """Return an empty table; the number of slots must be a power of two."""
    return Table(
        np.full(slots, -1, np.int32),
        np.empty(slots // 2, np.int32),
        np.empty(slots // 2, np.uint64),
        np.zeros(slots // 2 + 1, np.int64),
        pool,
        key,
    )


def larger_table(table: Table, slots: int) -> Table:
    """Return a table with more slots, and the tokens of a full one."""
    larger = empty_table(slots, table.pool, table.key)
    tokens = table.head.size
    larger.head[:tokens], larger.start[: tokens + 1] = table.head, table.start
    _place_all(larger, tokens)
    return larger


@njit_borrowing
def _place_all(table: Table, tokens: int) -> None:
    """Insert the first ``tokens`` tokens of the pool into the slots."""
    for token in range(tokens):
        start = table.start[token]
        slot = find(table, table.pool, start, table.start[token + 1] - start - 1)
        table.slot[slot], table.place[token] = token, slot


@njit_borrowing
def merge(table: Table, n_tokens: int, pool: Text, start: IntArray, moves: IntArray, first: int) -> int:
    """Map the tokens of a pool, from ``first`` on, to their numbers in a table.

    New tokens are added to the table. Return the number of tokens done so far: fewer than all if the table is
    full.
    """
    for token in range(first, moves.size):
        length = start[token + 1] - start[token] - 1
        slot = find(table, pool, start[token], length)
        if table.slot[slot] < 0:
            if n_tokens == table.place.size:
                return token
            add(table, slot, n_tokens, pool, start[token], length)
            n_tokens += 1
        moves[token] = table.slot[slot]
    return moves.size
