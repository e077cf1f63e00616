"""Read RNA structures in dot-bracket notation: a sequence, and a line that marks paired bases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from treedot.errors import SourceError
from treedot.readers.packer import PostOrder, pack_post_order
from treedot.readers.stream import TreeStream
from treedot.trees import Forest

ROOT = "ROOT"
PAIR = "P"  # prefix of the two bases in the label of a pair
UNPAIRED = ".,:_-"  # the variants that programs write
MAX_LINES = 1 << 10  # a record should have three
_OTHER_PAIR = re.compile(r"[\[\]{}<>A-Za-z]")


class _Record(NamedTuple):
    """A structure: its name, if it has one, the number of its first line, and its lines."""

    header: str
    first: int
    lines: list[tuple[int, str]]


def read_structures(stream: TreeStream) -> Iterator[Forest]:
    """Yield the trees of structures; a bad one is skipped."""
    return pack_post_order(stream, _trees(stream))


def _trees(stream: TreeStream) -> Iterator[PostOrder]:
    for record in _records(stream):
        try:
            sequence, structure = _checked(record, stream)
            last = record.lines[1][0]
            labels, arity = _tree(sequence, structure, f"{stream.name}:{last}")
        except SourceError as error:
            stream.on_bad(error)
            continue
        known = {"name": record.header, "sequence": sequence, "structure": structure}
        yield PostOrder(labels, arity, record.first, last, known)


def _records(stream: TreeStream) -> Iterator[_Record]:
    """Yield the records, which begin with a line ``>name``; before the first such line, every two lines."""
    record: _Record | None = None
    for number, raw in stream.lines():
        line = raw.decode(errors="surrogateescape").strip()
        if not line or line.startswith("#"):  # a comment, as in bpRNA files
            continue
        if line.startswith(">"):
            if record is not None:
                yield record
            record = _Record(line[1:].strip(), number, [])
            continue
        if record is None or (not record.header and len(record.lines) == 2):
            if record is not None:
                yield record
            record = _Record("", number, [])
        if len(record.lines) < MAX_LINES:
            record.lines.append((number, line))
    if record is not None:
        yield record


def _checked(record: _Record, stream: TreeStream) -> tuple[str, str]:
    """Return the sequence and the structure of a record, without the energy after a blank."""
    if len(record.lines) != 2:
        problem = "expected a line with the sequence and one with the structure, found"
        raise stream.error(record.first, f"{problem} {len(record.lines)} line(s)")
    (_, first), (number, second) = record.lines
    try:
        f"{record.header}{first}{second}".encode()
    except UnicodeEncodeError:
        raise stream.error(record.first, "it contains bytes that are not UTF-8") from None
    sequence, structure = first, second.split()[0]
    if len(first.split()) > 1:
        raise stream.error(record.lines[0][0], f"a sequence must not contain blanks, as in {first!r:.40}")
    if len(sequence) != len(structure):
        problem = f"the sequence has {len(sequence)} bases, but the structure {len(structure)}"
        raise stream.error(number, problem)
    return sequence, structure


def _tree(sequence: str, structure: str, place: str) -> tuple[list[str], list[int]]:
    """Return the labels and arities of the nodes in post-order."""
    labels: list[str] = []
    arity: list[int] = []
    opened: list[int] = []  # the positions of open pairs
    counts = [0]  # children so far, of the root and of open pairs
    for position, (base, mark) in enumerate(zip(sequence, structure, strict=True)):
        if mark == "(":
            opened.append(position)
            counts.append(0)
            continue
        if mark == ")":
            if not opened:
                raise SourceError(f"{place}:{position + 1}: a ')' without an opening '('")
            labels.append(PAIR + sequence[opened.pop()] + base)
            arity.append(counts.pop())
        elif mark in UNPAIRED:
            labels.append(base)
            arity.append(0)
        else:
            why = (
                "pairs in other brackets or letters may cross those in round ones (a pseudoknot), and then "
                "are no tree: write '.' for their bases"
                if _OTHER_PAIR.match(mark)
                else "a structure consists of '(', ')' and '.'"
            )
            raise SourceError(f"{place}:{position + 1}: the mark {mark!r}: {why}")
        counts[-1] += 1
    if opened:
        raise SourceError(f"{place}:{opened[-1] + 1}: a '(' that is never closed")
    return [*labels, ROOT], [*arity, counts[0]]
