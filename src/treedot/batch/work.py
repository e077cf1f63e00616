"""The work on the trees of a shard, and reading them in pieces."""

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
BYTES_AT_A_TIME = 1 << 25  # bytes of dense vectors at a time
SMALL_TREE = "(S (A a) (B b c))"

Columns = Mapping[str, Any]
T = TypeVar("T")


class Work(ABC):
    """A computation on trees. Everything that it needs is stored in the folder of the parts."""

    key: bytes  # the description's key in the metadata of parts
    reads_trees = True  # whether the inputs are files of trees

    @property
    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Everything that determines a row, as JSON values."""

    def save(self, folder: Path) -> None:  # noqa: B027 (most works need nothing)
        """Write to a folder the data that the description does not contain."""

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """The metadata of parts: the description of the work."""
        return {self.key: json.dumps(self.description).encode()}

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns of the input that the parts leave out."""
        return ()

    @abstractmethod
    def batches(self, source: Source) -> Iterator[tuple[Columns, Columns]]:
        """Yield the results of a shard as Arrow columns, and the other columns of its input.

        This runs in one thread and yields a batch of rows at a time; an empty one if there are no rows.
        """

    @abstractmethod
    def warm_up(self) -> None:
        """Load and compile the code that ``batches`` runs on a tree."""


@dataclass
class Source:
    """The trees of a shard; they are counted while they are read."""

    path: str
    range: FileRange
    reading: Reading
    on_bad: OnBad
    n_trees: int = 0

    def pieces(self, row_bytes: int = 0) -> Iterator[tuple[Forest, Columns]]:
        """Yield trees and their other columns in pieces that fit in memory; at least one, possibly empty.

        ``row_bytes`` is the least memory per tree, however small it is.
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
    """Return the chosen values of a column, a list or an Arrow array."""
    return values.take(chosen) if hasattr(values, "take") else [values[i] for i in chosen.tolist()]


def _slices(forest: Forest) -> Iterator[slice]:
    """Yield slices of a forest, so that vectors of large trees do not fill the memory."""
    start = 0
    while start < len(forest):
        last = np.searchsorted(forest.offsets, forest.offsets[start] + NODES_AT_A_TIME, side="right") - 1
        stop = max(start + 1, int(last))
        yield slice(start, stop)
        start = stop


def kept(load: Callable[[Path], T], folder: Path, file: str) -> T:
    """Load an object from a folder; the last one is cached until this file of the folder changes."""
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
    """Let the first process of a machine compile; the others then load its compiled code."""
    kept = cache_folder()
    with contextlib.nullcontext() if kept is None else lock(kept / "compilation", "first"):
        yield
