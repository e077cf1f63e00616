"""The plan of a folder of parts: the inputs, the shards they are cut into, and the work on them.

It is stored as ``_treedot.json`` in the folder, and determines every byte of every part.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

from treedot._pages.printable import first_few
from treedot._runtime.threads import thread_map
from treedot._storage.files import check_parent, path_list, reason, write_whole
from treedot._version import __version__
from treedot.errors import ParameterError, SourceError, SpecMismatchError, TreedotError
from treedot.parameters import checked_integer
from treedot.readers.folders import walk
from treedot.readers.on_bad import OnBad
from treedot.readers.ranges import FileRange, Reading, iter_range, split_file
from treedot.readers.sources import check_file_settings, check_settings, format_of, is_known
from treedot.vectors.parts import (
    ANEW,
    CHECKSUM,
    PLAN,
    PLAN_FORMAT,
    checksum_of,
    is_sealed,
    part_name,
    read_plan,
)

SHARD_SIZE = 1 << 24  # bytes of a file per part
FIRST_TREES = 1024  # trees whose columns are inspected


class Input(NamedTuple):
    """A file of trees, as it was when the plan was made.

    A relative path is a file in the folder itself; its digest is part of the work.
    """

    path: str
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, path: str) -> Self:
        """Return the input for a file in its current state."""
        try:
            found = os.stat(path)
        except OSError as error:
            raise SourceError(f"cannot open {path}: {reason(error)}") from None
        return cls(path, found.st_size, found.st_mtime_ns)

    def check_unchanged(self) -> None:
        """Raise if the file has changed since the plan was made."""
        if os.path.isabs(self.path) and Input.of(self.path) != self:
            raise SourceError(
                f"{self.path} has changed since its shards were planned: write to another folder, so that "
                "old and new trees are not mixed"
            )


class Shard(NamedTuple):
    """A range of one input."""

    file: int
    begin: int
    end: int
    lines: int
    rows: int

    @property
    def part(self) -> str:
        """The name of its part."""
        return part_name(self.file, self.begin, self.end)

    @property
    def range(self) -> FileRange:
        """Its range within the file."""
        return FileRange(*self[1:])


@dataclass(frozen=True)
class Plan:
    """The work on the shards of the inputs, and how the inputs are read."""

    work: dict[str, Any]
    reading: Reading
    shard_size: int
    inputs: tuple[Input, ...]
    shards: tuple[Shard, ...]
    columns: str = ""  # columns of the first trees: an Arrow schema in Base64
    sealed: bool = True  # whether all parts contain digests

    @classmethod
    def make(
        cls, work: dict[str, Any], reading: Reading, shard_size: int | None, inputs: tuple[Input, ...]
    ) -> Self:
        """Cut the inputs into shards; raise if one of them cannot be read with these settings."""
        size = SHARD_SIZE if shard_size is None else checked_integer("shard_size", shard_size, at_least=1)
        check_settings(reading.format, reading.unit)
        for source in inputs:
            kind = reading.format or format_of(source.path)
            check_file_settings(source.path, kind, reading.column, reading.unit)
        with thread_map(-1, len(inputs)) as run_all:
            ranges = run_all(lambda source: split_file(source.path, reading.format, size), inputs)
            shards = tuple(Shard(number, *found) for number, some in enumerate(ranges) for found in some)
        for source in inputs:
            source.check_unchanged()
        return cls(work, reading, size, inputs, shards, _first_columns(inputs, shards, reading))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the plan of a folder."""
        found = read_plan(folder)
        try:
            return cls(
                dict(found["work"]),
                Reading(**found["reading"]),
                int(found["shard_size"]),
                tuple(Input(*x) for x in found["inputs"]),
                tuple(Shard(*x) for x in found["shards"]),
                str(found["columns"]),
                is_sealed(found),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SourceError(f"{folder / PLAN} is damaged ({error!r}): {ANEW}") from None

    def save(self, folder: Path) -> None:
        """Write the plan to a folder."""
        fields = {**self._fields(), "reading": self.reading._asdict()}
        content = {"format": PLAN_FORMAT, "version": 1, "treedot": __version__, **fields}
        content[CHECKSUM] = checksum_of(content)
        with write_whole(folder / PLAN) as aside:
            aside.write_text(json.dumps(content) + "\n", encoding="utf-8")

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the plan; plans with the same digest have the same parts."""
        return blake2b(json.dumps(self._fields()).encode(), digest_size=16).hexdigest()

    def _fields(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "sealed"}

    def shard(self, number: int) -> Shard:
        """Return a shard by its number; raise if it does not exist."""
        if checked_integer("the number of a shard", number) not in range(len(self.shards)):
            raise ParameterError(f"there is no shard {number}: there are {len(self.shards)}, from 0")
        return self.shards[number]

    def where(self, number: int) -> str:
        """Return a description of a shard for messages: its range and its file."""
        shard = self.shards[number]
        return f"{self.inputs[shard.file].path} [{shard.begin}:{shard.end}]"

    def check_same(self, other: Plan, folder: Path) -> None:
        """Raise if a second run asks for other work, settings or files than the plan of this folder."""
        instead = "write to another folder, or delete this one to start again"
        if self.work != other.work:
            differing = _difference(self.work, other.work)
            raise SpecMismatchError(f"{folder} holds parts with other settings ({differing}): {instead}")
        if self.reading != other.reading:
            raise ParameterError(f"the trees of {folder} were read with other settings: {instead}")
        if self.shard_size != other.shard_size:
            raise ParameterError(f"{folder} was planned with shard_size={self.shard_size}: {instead}")
        old, new = ({source.path: source for source in plan.inputs} for plan in (self, other))
        if old.keys() != new.keys():
            differing = first_few(sorted(old.keys() ^ new.keys()))
            raise ParameterError(f"{folder} was made from other files (different: {differing}): {instead}")
        for source in self.inputs:
            source.check_unchanged()


def _first_columns(inputs: tuple[Input, ...], shards: tuple[Shard, ...], reading: Reading) -> str:
    """Return the columns of the first trees found; parts without rows have these columns, too."""
    from treedot.trees.arrow import first_columns, pa

    for shard in shards:
        path = inputs[shard.file].path
        if (reading.format or format_of(path)) == "brackets":
            return ""
        with contextlib.suppress(TreedotError):  # ``do_shard`` will report the error
            for forest, columns in iter_range(path, shard.range, reading, FIRST_TREES, OnBad(lambda _: None)):
                found = first_columns(columns, len(forest), {})
                schema = pa.schema([(name, array.type) for name, array in found.items()])
                return base64.b64encode(schema.serialize()).decode()
    return ""


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe the first difference of two works; vectors are compared by their fingerprint."""
    key = next(key for key in {**old, **new} if old.get(key) != new.get(key))
    a, b = (x.get("fingerprint") if isinstance(x, dict) else x for x in (old.get(key), new.get(key)))
    return f"{key} is {a}, not {b}"


def find_inputs(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], format: str | None, folder: Path
) -> tuple[Input, ...]:
    """Return the files that paths refer to; those of patterns and folders are sorted by name."""
    given = path_list(paths)
    own = os.path.abspath(folder)
    files = dict.fromkeys(os.path.abspath(file) for path in given for file in _files(os.fspath(path), format))
    inputs = tuple(Input.of(file) for file in files if not file.startswith(os.path.join(own, "")))
    if not inputs:
        raise SourceError(f"no file of trees found in {first_few([os.fspath(path) for path in given])}")
    return inputs


def _files(path: str, format: str | None) -> Iterator[str]:
    if path == "-":
        raise ParameterError("standard input cannot be cut into shards: pass files")
    if os.path.isdir(path):
        yield from (file.path for file in walk([path], lambda name: is_known(name, format)))
    elif os.path.exists(path) or not glob.has_magic(path):
        yield path
    else:
        found = [name for name in sorted(glob.glob(path, recursive=True)) if os.path.isfile(name)]
        if not found:
            raise SourceError(f"no file matches {path}")
        yield from found


def check_folder(folder: Path) -> None:
    """Raise if a folder cannot hold parts; it must not contain other files."""
    try:
        os.fspath(folder).encode()
    except UnicodeEncodeError:
        raise ParameterError(
            f"cannot write parts to {folder}: its name is not UTF-8, which Arrow requires; choose another"
        ) from None
    check_parent(folder)
    if folder.exists() and not folder.is_dir():
        raise SourceError(f"cannot write parts to {folder}: it is not a folder")
    others = [name for name in os.listdir(folder) if name[0] not in "_."] if folder.exists() else []
    if others and not (folder / PLAN).exists():
        raise SourceError(f"cannot write parts to {folder}: it contains other files, such as {others[0]}")
