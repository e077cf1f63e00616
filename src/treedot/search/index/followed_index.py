"""``FollowedIndex``: search an index of source code, and see the files as they are now.

The file of the index stays as it is: the units of files that changed since are held in memory, and their rows
in the file are passed over. Writing the file again takes seconds for 100,000 units, too long to wait for
after each edit; the file may be read-only or shared; and several programs may follow one index.
``treedot index --update`` writes the changes.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot._runtime.sorted_arrays import locate
from treedot._storage.files import identity_of
from treedot.errors import ParameterError, TreedotError
from treedot.languages import LANGUAGES
from treedot.parameters import CODE_UNITS
from treedot.readers.code.source_files import read_units
from treedot.readers.folders import FoundFile
from treedot.search.index.index_file import BATCH, weighted_rows
from treedot.search.index.tree_index import TreeIndex
from treedot.search.reading import Reading, digest_of, main_language
from treedot.trees import Forest

PAUSE = 1.0  # least seconds from one look at the files to the next
SHARE = 0.05  # most of the time that looking may take
READING = 5.0  # seconds after which a search no longer waits for changed files to be read
PARSING = 2.0  # processor seconds to parse a changed file
UNSETTLED = 50_000_000  # nanoseconds within which a file can change twice and have the same times
MARGIN = 16  # rows to find beyond those wanted, in place of rows of changed files

Stamp = tuple[int, ...] | None


class Found(NamedTuple):
    """The units that a search found, and their cosines with the query."""

    units: Forest
    cosines: FloatArray


class _State(NamedTuple):
    """An index, the files in it, and the units of those that changed."""

    base: TreeIndex
    reading: Reading
    language: str  # of most units
    digests: dict[str, str | None]  # of all files in the index
    rows: dict[str, IntArray]
    is_elsewhere: bool
    changed: dict[str, Forest | None]  # None: a deleted file
    gone: IntArray  # the rows of changed files, ascending
    fresh: Forest | None  # the units of all changed files
    fresh_rows: Any  # their rows of fragments, a CSR matrix

    @property
    def written(self) -> int:
        """The time in nanoseconds when the file of the index was written."""
        return self.base._file.identity[-1]

    def with_changed(self, changed: dict[str, Forest | None]) -> _State:
        """Return the state with other changed files."""
        gone = [self.rows[file] for file in changed if file in self.rows]
        units = [forest for forest in changed.values() if forest is not None and len(forest)]
        fresh = Forest.concat(units) if units else None
        return self._replace(
            changed=changed,
            gone=np.sort(np.concatenate([np.zeros(0, np.int64), *gone])),
            fresh=fresh,
            fresh_rows=None if fresh is None else weighted_rows(self.base._file, fresh),
        )


class FollowedIndex:
    """An index of source code whose searches see edited, deleted and new files.

    Before a search, the files are looked at: at most once a second, and for at most a twentieth of the time.
    If reading the changed files takes longer than five seconds, the search uses those that were read, and
    ``waiting`` is the number of the others. If the index weighs fragments by their rarity, edited files do
    not change the weights.

    Parameters
    ----------
    path : path
        The file of the index, which is never written. If another one takes its place, it is used from the
        next look on.
    paths : iterable of str, default=()
        Files and folders in which new files are found. By default, they are found in the folders that hold
        a file of the index, if they are newer than the index.
    """

    def __init__(self, path: str | os.PathLike[str], paths: Iterable[str] = ()) -> None:
        self._path, self._paths = Path(path), list(paths)
        self._lock = threading.Lock()
        self._due = 0.0  # the time of the next look
        self._open()

    def _open(self) -> None:
        self._state = _opened(self._path)
        self._stamps: dict[str, Stamp] = {}
        self._folders: dict[str, Stamp] = {}
        self._known: set[str] | None = None
        self.waiting = 0

    @property
    def language(self) -> str:
        """The language of most units."""
        return self._state.reading.language or self._state.language

    @property
    def reading(self) -> Reading:
        """How units are read."""
        return self._state.reading

    @property
    def is_elsewhere(self) -> bool:
        """Whether none of the files exists, so that they cannot be followed.

        Their names are relative to the folder that was the current one when the index was built.
        """
        return self._state.is_elsewhere

    def __len__(self) -> int:
        state = self._state
        return len(state.base) - state.gone.size + (0 if state.fresh is None else len(state.fresh))

    def search(self, query: Forest, k: int) -> Found:
        """Return the units with the largest cosines with a query of one tree, best first."""
        self.look()
        state = self._state  # another thread may replace it
        found = _kept(state.base, state.gone, query, k)
        if state.fresh is None:
            return found
        cosines = _products(state.fresh_rows, weighted_rows(state.base._file, query))
        best = np.argsort(-cosines, kind="stable")[:k]
        best = best[cosines[best] > 0]
        both = np.concatenate([found.cosines, cosines[best]])
        order = np.argsort(-both, kind="stable")[:k]
        return Found(Forest.concat([found.units, state.fresh[best]])[order], both[order])

    def units_of(self, file: str) -> Forest | None:
        """Return the units of a file; None if the index has no such file."""
        self.look()
        state = self._state
        if file in state.changed:
            return state.changed[file]
        return state.base.forest(state.rows[file]) if file in state.rows else None

    def look(self) -> None:
        """Read the files that changed, at most once per interval."""
        with self._lock:
            begin = time.monotonic()
            if begin < self._due:
                return
            if identity_of(self._path) not in (None, self._state.base._file.identity):
                self._open()
            if not self._state.is_elsewhere:
                self._read_changed(begin + READING)
            now = time.monotonic()
            self._due = now if self.waiting else now + max(PAUSE, (now - begin) / SHARE)

    def _read_changed(self, deadline: float) -> None:
        """Read the files that changed, until the deadline."""
        state = self._state
        changed, is_other, self.waiting = dict(state.changed), False, 0
        for file in self._to_read(state):
            if time.monotonic() > deadline:
                self.waiting += 1
                continue
            stamp = _stamp(file)
            if _is_as_indexed(state, file, stamp):
                is_other |= file in changed
                changed.pop(file, None)
            else:
                changed[file] = None if stamp is None else _units(state, file)
                is_other = True
            if _is_settled(stamp):
                self._stamps[file] = stamp
            else:  # look again
                self._stamps.pop(file, None)
        if is_other:
            self._state = state.with_changed(changed)

    def _to_read(self, state: _State) -> list[str]:
        """Return the files whose times or sizes differ from those when they were last read."""
        known = {**state.digests, **state.changed}
        files = [*known, *self._new_files(state, known)]
        return [file for file in files if file not in self._stamps or self._stamps[file] != _stamp(file)]

    def _new_files(self, state: _State, known: dict[str, Any]) -> Iterator[str]:
        """Yield files that are not known."""
        if self._paths:
            found = state.reading.files([path for path in self._paths if os.path.exists(path)])
        else:
            found = state.reading.files(self._grown_folders(state), ["*/"])  # not the folders inside
        for file in found:
            if file in known or (not self._paths and not _is_since(_stamp(file), state.written)):
                continue
            if self._known is None:
                self._known = set(map(os.path.realpath, state.digests))
            if os.path.realpath(file) not in self._known:  # not known by another name, either
                yield file

    def _grown_folders(self, state: _State) -> list[str]:
        """Return the folders of the index that files were added to since the last look."""
        grown = []
        for folder in {os.path.dirname(file) or os.curdir for file in state.digests}:
            stamp = _stamp(folder)
            if not _is_since(stamp, state.written) or self._folders.get(folder) == stamp:
                continue
            grown.append(folder)
            if _is_settled(stamp):  # otherwise look again
                self._folders[folder] = stamp
        return grown


def _opened(path: Path) -> _State:
    """Return the state of an index whose files have not been looked at."""
    index = TreeIndex.open(path)
    reading = Reading.of(index.reading)
    if reading.unit not in CODE_UNITS:
        raise ParameterError(f"{path} is an index of {reading.unit}s: give an index of source code")
    rows: dict[str, list[int]] = {}
    digests: dict[str, str | None] = {}
    languages: list[Any] = []
    trees = index._file.trees
    for start in range(0, len(trees), BATCH):
        numbers = np.arange(start, min(start + BATCH, len(trees)))
        for number, unit in zip(numbers.tolist(), trees.rows(numbers), strict=True):
            file, language = unit.get("file"), unit.get("language")
            languages.append(language)
            if isinstance(file, str) and language in LANGUAGES:
                rows.setdefault(file, []).append(number)
                digests[file] = unit.get("digest")
    if not digests:
        raise ParameterError(f"{path} holds no source code: build an index of source code")
    return _State(
        index,
        reading,
        main_language(languages),
        digests,
        {file: np.array(numbers) for file, numbers in rows.items()},
        # An index without its files must not lose all its units.
        not any(map(os.path.exists, digests)),
        changed={},
        gone=np.zeros(0, np.int64),
        fresh=None,
        fresh_rows=None,
    )


def _is_as_indexed(state: _State, file: str, stamp: Stamp) -> bool:
    """Return whether the units of a file in the index are those of the file."""
    if file not in state.digests:
        return stamp is None
    digest = state.digests[file]
    if digest is None:  # TreeIndex.build was given no digests
        return stamp is not None and not _is_since(stamp, state.written)
    return stamp is not None and digest_of(file) == digest


def _units(state: _State, file: str) -> Forest:
    """Return the units of a file as they are now; none if it cannot be read."""
    found = FoundFile(file, named=file in state.digests)
    settings = state.reading.code(max_seconds=PARSING)
    try:
        reading = state.reading
        units = read_units(found, reading.language, settings, reading.include_vendored).forest
    except TreedotError:  # no parser for this language is installed
        units = None
    return Forest.concat([]) if units is None else units


def _stamp(path: str) -> Stamp:
    """Return values that change when a file does, its times first; None if there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _is_since(stamp: Stamp, when: int) -> bool:
    """Return whether a file may have changed at a time or after it: equal times say nothing."""
    return stamp is not None and max(stamp[:2]) >= when


def _is_settled(stamp: Stamp) -> bool:
    """Return whether the next change of a file changes its stamp, too."""
    return stamp is None or time.time_ns() - max(stamp[:2]) > UNSETTLED


def _kept(index: TreeIndex, gone: IntArray, query: Forest, k: int) -> Found:
    """Return the best ``k`` units of an index, without the rows that are gone."""
    wanted = k + min(gone.size, MARGIN)
    while True:
        (rows,), (values,) = index.search(query, wanted, learned=False)
        stays = ~np.isin(rows, gone) & (values > 0)
        if stays.sum() >= k or rows.size < wanted or values[-1] <= 0:
            break
        wanted *= 4
    return Found(index.forest(rows[stays][:k]), values[stays][:k].astype(np.float64))


def _products(rows: Any, query: Any) -> Array:
    """Return the dot products of CSR rows with one row."""
    order = np.argsort(query.indices)
    known, place = locate(rows.indices, query.indices[order])
    row: Array = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[known]
    weights = rows.data[known].astype(np.float64) * query.data[order][place]
    return np.bincount(row, weights, rows.shape[0])
