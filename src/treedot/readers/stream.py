"""An open file of trees with its name, batch size and error handling, for all readers."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

from treedot._storage.files import read_chunk, read_lines
from treedot.errors import SourceError
from treedot.readers.on_bad import OnBad
from treedot.readers.recognition import refuse_other_files
from treedot.trees import Forest


class TreeStream(NamedTuple):
    """An open file; a reader yields its trees in forests of at most ``batch_size``."""

    file: IO[Any]  # binary or text
    name: str  # for errors
    batch_size: int
    on_bad: OnBad  # handles the error of a tree that cannot be read

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes."""
        return read_chunk(self.file, size, self.name)

    def lines(self, numbers: Iterable[int] | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their numbers, without line ends; raise if the file is not text."""
        lines = read_lines(self.file, self.name)
        for number, line in zip(numbers or itertools.count(1), lines, strict=False):
            if number == 1:
                refuse_other_files(line, self.name)
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line

    def error(self, line: int, problem: str) -> SourceError:
        """Return an error that names the file and a line."""
        return SourceError(f"{self.name}:{line}: {problem}")

    def report(self, line: int, problem: str) -> None:
        """Handle a problem in a line: raise an error, or skip the line."""
        self.on_bad(self.error(line, problem))


def in_batches(forest: Forest, batch_size: int) -> Iterator[Forest]:
    """Yield the trees of a forest in batches."""
    return (forest[start : start + batch_size] for start in range(0, len(forest), batch_size))
