"""Secondary structures of RNA in dot-bracket notation: a sequence, and below it which bases are paired."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from treedot._storage.files import read_lines
from treedot.errors import SourceError
from treedot.readers.on_bad import OnBad
from treedot.readers.packer import PostOrderPacker
from treedot.readers.recognition import refuse_other_files
from treedot.trees import Forest

ROOT = "ROOT"
PAIR = "P"  # before the two bases in the label of a pair
UNPAIRED = ".,:_-"  # as different programs write it
MAX_LINES = 1 << 10  # of a record, which has three
_OTHER_PAIR = re.compile(r"[\[\]{}<>A-Za-z]")


class _Record(NamedTuple):
    """The lines of a structure, with their numbers: its name, where there is one, and the others."""

    header: str
    first: int
    lines: list[tuple[int, str]]


def read_structures(stream: IO[Any], name: str, batch_size: int, on_bad: OnBad) -> Iterator[Forest]:
    """Yield the trees of structures; a bad one is left out."""
    packer = PostOrderPacker(name)
    for record in _records(stream, name):
        try:
            sequence, structure = _checked(record, name)
            labels, arity = _tree(sequence, structure, f"{name}:{record.lines[1][0]}")
        except SourceError as error:
            on_bad(error)
            continue
        place = (record.first, record.lines[1][0])
        packer.add(labels, arity, place, name=record.header, sequence=sequence, structure=structure)
        if len(packer) == batch_size:
            yield packer.take()
    if len(packer):
        yield packer.take()


def _records(stream: IO[Any], name: str) -> Iterator[_Record]:
    """Yield what begins with a line ``>name``, and before the first of these every two lines."""
    record: _Record | None = None
    for number, raw in enumerate(read_lines(stream, name), 1):
        if number == 1:
            refuse_other_files(raw, name)
        line = raw.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape").strip()
        if not line or line.startswith("#"):  # a comment, as in the files of bpRNA
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


def _checked(record: _Record, name: str) -> tuple[str, str]:
    """Return the sequence and the structure of a record, without what stands behind a blank: an energy."""
    if len(record.lines) != 2:
        raise SourceError(
            f"{name}:{record.first}: expected a line with the sequence and one with the structure, found "
            f"{len(record.lines)} line(s)"
        )
    (_, first), (number, second) = record.lines
    try:
        f"{record.header}{first}{second}".encode()
    except UnicodeEncodeError:
        raise SourceError(f"{name}:{record.first}: there is a byte that is not UTF-8") from None
    sequence, structure = first, second.split()[0]
    if len(first.split()) > 1:
        raise SourceError(f"{name}:{record.lines[0][0]}: a sequence has no blanks, unlike {first!r:.40}")
    if len(sequence) != len(structure):
        raise SourceError(
            f"{name}:{number}: the sequence has {len(sequence)} bases, and the structure {len(structure)}"
        )
    return sequence, structure


def _tree(sequence: str, structure: str, place: str) -> tuple[list[str], list[int]]:
    """Return the labels and the numbers of children of the nodes in post-order."""
    labels: list[str] = []
    arity: list[int] = []
    opened: list[int] = []  # the positions of the pairs that are open
    counts = [0]  # children so far, of the root and of these
    for position, (base, mark) in enumerate(zip(sequence, structure, strict=True)):
        if mark == "(":
            opened.append(position)
            counts.append(0)
            continue
        if mark == ")":
            if not opened:
                raise SourceError(f"{place}:{position + 1}: a ')' that closes no pair")
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
                else "a structure is written with '(', ')' and '.'"
            )
            raise SourceError(f"{place}:{position + 1}: the mark {mark!r}: {why}")
        counts[-1] += 1
    if opened:
        raise SourceError(f"{place}:{opened[-1] + 1}: a '(' that is not closed")
    return [*labels, ROOT], [*arity, counts[0]]
