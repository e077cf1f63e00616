"""What is made of the trees of a shard, and how these are read some at a time."""

from __future__ import annotations

import contextlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import cache_folder
from treedot._storage.files import reason
from treedot._storage.locks import lock
from treedot.errors import SourceError
from treedot.readers.on_bad import OnBad
from treedot.readers.ranges import FileRange, Reading, iter_range
from treedot.trees import Forest

TREES_AT_A_TIME = 2048
NODES_AT_A_TIME = 1 << 17
BYTES_AT_A_TIME = 1 << 25  # of dense vectors
SMALL_TREE = "(S (A a) (B b c))"

Columns = Mapping[str, Any]
T = TypeVar("T")


class Work(ABC):
    """What is made of trees. All that it needs is kept in the folder of the parts."""

    key: bytes  # of the description, in the metadata of parts
    reads_trees = True  # whether the inputs are files of trees

    @property
    @abstractmethod
    def description(self) -> dict[str, Any]:
        """All that determines a row, as JSON values."""

    def save(self, folder: Path) -> None:  # noqa: B027 (most works need nothing)
        """Put into a folder what the description does not hold."""

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """What parts say of how they were made."""
        return {self.key: json.dumps(self.description).encode()}

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that came with the trees and are not in the parts."""
        return ()

    @abstractmethod
    def batches(self, source: Source) -> Iterator[tuple[Columns, Columns]]:
        """Yield what is made of a shard as columns of Arrow, and the columns that came with the trees.

        By one thread, and some rows at a time; also where there are none.
        """

    @abstractmethod
    def warm_up(self) -> None:
        """Load and compile what ``batches`` does with a tree."""


@dataclass
class Source:
    """The trees of a shard, which are counted while they are read."""

    path: str
    range: FileRange
    reading: Reading
    on_bad: OnBad
    n_trees: int = 0

    def pieces(self, row_bytes: int = 0) -> Iterator[tuple[Forest, Columns]]:
        """Yield trees and their other columns, no more than memory holds, and none where there are none.

        ``row_bytes`` is how much memory is needed for a tree at least, however small it is.
        """
        at_a_time = max(1, min(TREES_AT_A_TIME, BYTES_AT_A_TIME // max(1, row_bytes)))
        for forest, columns in iter_range(self.path, self.range, self.reading, at_a_time, self.on_bad):
            for some in _slices(forest):
                trees = forest if len(forest) == some.stop - some.start else forest[some]
                yield trees, {name: values[some] for name, values in columns.items()}
                self.n_trees += len(trees)
        if not self.n_trees:
            yield Forest([], [], [0], []), {}


def taken(values: Any, chosen: IntArray) -> Any:
    """Return some values of a column: of a list, or of an array of Arrow."""
    return values.take(chosen) if hasattr(values, "take") else [values[i] for i in chosen.tolist()]


def _slices(forest: Forest) -> Iterator[slice]:
    """Yield which trees to take at a time, so that vectors of large trees do not fill the memory."""
    start = 0
    while start < len(forest):
        last = np.searchsorted(forest.offsets, forest.offsets[start] + NODES_AT_A_TIME, side="right") - 1
        stop = max(start + 1, int(last))
        yield slice(start, stop)
        start = stop


def kept(load: Callable[[Path], T], folder: Path, file: str) -> T:
    """Return what is loaded from a folder; the last result is kept until this file of the folder changes."""
    path = folder / file
    try:
        found = os.stat(path)
    except OSError as error:
        raise SourceError(f"cannot open {path}: {reason(error)}") from None
    loaded: T = _loaded(load, folder, found.st_mtime_ns, found.st_ino)
    return loaded


@lru_cache(maxsize=1)
def _loaded(load: Callable[[Path], Any], folder: Path, *version: int) -> Any:
    return load(folder)


@contextlib.contextmanager
def first_to_compile() -> Iterator[None]:
    """Let one process of a machine compile before the others, which then load what it compiled."""
    kept = cache_folder()
    with contextlib.nullcontext() if kept is None else lock(kept / "compilation", "first"):
        yield
