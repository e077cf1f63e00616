"""A cache of parsed source files by content, so that no text is parsed twice.

It is one SQLite file in the user's cache folder, or in ``TREEDOT_CACHE_DIR``. The key of an entry is a digest
of the text, the language, the settings and the versions of the grammar and of treedot's reader. Each entry
contains a digest of itself, so damaged or foreign entries are ignored. Several processes may use the file; if
it cannot be used, nothing is cached.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treedot._version import __version__
from treedot.errors import SourceError
from treedot.readers.code.settings import CodeSettings
from treedot.trees import Forest
from treedot.trees.packed import FOREST, pack, unpack

if TYPE_CHECKING:
    import sqlite3

READER = 1  # increased when the reader makes other trees from the same text
MAX_BYTES = 2**29
DIGEST = 16  # bytes
PENDING = 2**23  # bytes of new entries that are written together
DAY = 24 * 3600.0  # seconds between updates of an entry's last use
PATIENCE = 2.0  # seconds to wait for another process
FILE = "parsed.sqlite"
TABLE = """CREATE TABLE IF NOT EXISTS parsed (
    key BLOB PRIMARY KEY, entry BLOB NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL
) WITHOUT ROWID"""


class CacheFacts(NamedTuple):
    """The contents of a cache."""

    path: Path
    entries: int
    size: int  # bytes


class ParseCache:
    """Parsed files in one SQLite file.

    Parameters
    ----------
    folder : Path, optional
        The folder of the file; by default ``cache_folder()``.
    max_bytes : int, default=2**29
        The largest total size of the entries. The least recently used ones are removed first.
    """

    def __init__(self, folder: Path | None = None, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._new: dict[bytes, bytes] = {}
        self._new_size = 0
        self._used: list[bytes] = []
        self._connection: sqlite3.Connection | None = None
        self._is_open = False

    @functools.cached_property
    def path(self) -> Path:
        """The file."""
        return (self._folder or cache_folder()) / FILE

    def get(self, key: bytes) -> tuple[Forest, int] | None:
        """Return the units of a key, with an empty ``file``, and the number of ignored ones; or None."""
        with self._lock, self._ignoring_trouble():
            connection = self._connected()
            if connection is None:
                return None
            query = "SELECT entry, used FROM parsed WHERE key = ?"
            found = connection.execute(query, (key,)).fetchone()
            if found is not None:
                entry, used = found
                if time.time() - used > DAY:
                    self._used.append(key)
                return _read(entry)
        return None

    def put(self, key: bytes, forest: Forest, n_ignored: int) -> None:
        """Store the units of a key."""
        entry = _written(forest, n_ignored)
        with self._lock:
            self._new[key] = entry
            self._new_size += len(entry)
            if self._new_size > PENDING:
                self._write()

    def close(self) -> None:
        """Write new entries, and remove old ones above the size limit."""
        with self._lock:
            self._write()
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connected(self) -> sqlite3.Connection | None:
        """Return the connection, opened on first use; None if the cache cannot be used."""
        if not self._is_open:
            self._connection, self._is_open = self._open(), True
        return self._connection

    def _open(self) -> sqlite3.Connection | None:
        import sqlite3

        for _ in range(2):
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                connection = sqlite3.connect(
                    self.path, PATIENCE, isolation_level=None, check_same_thread=False
                )
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=NORMAL")
                connection.execute(TABLE)
                return connection
            except sqlite3.OperationalError:  # locked, read-only, disk full
                return None
            except sqlite3.DatabaseError:  # damaged, or another kind of file
                remove(self.path)
            except OSError:
                return None
        return None

    def _write(self) -> None:
        """Write new entries; drop them if they cannot be written."""
        now = time.time()
        new = [(key, entry, len(entry), now) for key, entry in self._new.items()]
        used = [(now, key) for key in self._used]
        self._new, self._new_size, self._used = {}, 0, []
        connection = self._connected() if new or used else None
        if connection is None:
            return
        with self._ignoring_trouble():
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO parsed VALUES (?, ?, ?, ?)", new)
            connection.executemany("UPDATE parsed SET used = ? WHERE key = ?", used)
            self._shrink(connection)
            connection.execute("COMMIT")

    def _shrink(self, connection: sqlite3.Connection) -> None:
        """Remove the least recently used entries until the others fit."""
        (size,) = connection.execute("SELECT COALESCE(SUM(size), 0) FROM parsed").fetchone()
        if size <= self.max_bytes:
            return
        gone = []
        for key, entry_size in connection.execute("SELECT key, size FROM parsed ORDER BY used"):
            gone.append((key,))
            size -= entry_size
            if size <= 0.9 * self.max_bytes:
                break
        connection.executemany("DELETE FROM parsed WHERE key = ?", gone)

    @contextlib.contextmanager
    def _ignoring_trouble(self) -> Iterator[None]:
        """Stop using the cache if it cannot be read or written; remove it if it is damaged."""
        import sqlite3

        try:
            yield
        except sqlite3.DatabaseError as error:
            if self._connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.close()
                self._connection = None
            if not isinstance(error, sqlite3.OperationalError):
                remove(self.path)


_current: ParseCache | None = None


@contextlib.contextmanager
def keeping_parsed(cache: ParseCache | None) -> Iterator[None]:
    """Let all readers of source code use a cache in a ``with`` block; None for no cache."""
    global _current
    before, _current = _current, cache
    try:
        yield
    finally:
        _current = before
        if cache is not None:
            cache.close()


def current_cache() -> ParseCache | None:
    """Return the cache that readers of source code currently use, if any."""
    return _current


def cache_folder() -> Path:
    """Return the folder for caches: TREEDOT_CACHE_DIR, or treedot's folder in the user's cache folder."""
    given = os.environ.get("TREEDOT_CACHE_DIR")
    if given:
        return Path(given)
    from platformdirs import user_cache_path

    return user_cache_path("treedot")


def cache_facts(folder: Path | None = None) -> CacheFacts:
    """Return the size of the cache; zeros if there is none."""
    import sqlite3

    path = (folder or cache_folder()) / FILE
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", PATIENCE, uri=True)
        with contextlib.closing(connection):
            found = connection.execute("SELECT COUNT(*), COALESCE(SUM(size), 0) FROM parsed").fetchone()
    except sqlite3.DatabaseError:
        return CacheFacts(path, 0, 0)
    return CacheFacts(path, *found)


def remove(path: Path) -> None:
    """Remove a cache and SQLite's auxiliary files."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def key_of(text: bytes, language: str, settings: CodeSettings) -> bytes:
    """Return the key of a text in a language; equal keys have equal units."""
    chosen = [settings.unit, settings.identifiers, settings.literals, settings.min_nodes, settings.blurred]
    context = json.dumps([READER, __version__, language, _grammar(language), chosen]).encode()
    return hashlib.blake2b(text, digest_size=DIGEST, key=hashlib.blake2b(context).digest()).digest()


@functools.cache
def _grammar(language: str) -> dict[str, str]:
    from treedot.readers.code.grammars import grammar_versions

    return grammar_versions([language])


def _written(forest: Forest, n_ignored: int) -> bytes:
    """Serialise units: a digest, the length of the header, the header, the arrays."""
    arrays = {name: np.asarray(values).astype(FOREST[name]) for name, values in pack(forest).items()}
    columns = {name: values for name, values in forest.columns.items() if name != "file"}
    blurred = columns.pop("blurred", None)
    if blurred is not None:
        arrays["blurred"] = np.concatenate([np.zeros(0, np.int64), *blurred]).astype("<i8")
        arrays["blurred_sizes"] = np.array([len(hashes) for hashes in blurred], "<i8")
    described: list[Any] = [n_ignored, columns, {name: [a.dtype.str, a.size] for name, a in arrays.items()}]
    header = json.dumps(described).encode()
    body = b"".join([len(header).to_bytes(8, "little"), header, *(a.tobytes() for a in arrays.values())])
    return _digest(body) + body


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST).digest()


def _read(entry: Any) -> tuple[Forest, int] | None:
    """Deserialise units; return None if they are damaged."""
    if not isinstance(entry, bytes) or _digest(entry[DIGEST:]) != entry[:DIGEST]:
        return None
    length = int.from_bytes(entry[DIGEST : DIGEST + 8], "little")
    place = DIGEST + 8 + length
    try:
        n_ignored, columns, kinds = json.loads(entry[DIGEST + 8 : place])
        arrays = {}
        for name, (kind, size) in kinds.items():
            arrays[name] = np.frombuffer(entry, np.dtype(kind), size, place)
            place += arrays[name].nbytes
        forest = unpack(arrays)
    except (ValueError, KeyError, TypeError, SourceError):
        return None
    if "blurred" in arrays:
        ends = np.cumsum(arrays["blurred_sizes"])[:-1]
        columns["blurred"] = np.split(arrays["blurred"].astype(np.int64), ends) if len(forest) else []
    forest.columns.update({"file": [], **columns})  # the caller sets the file
    return forest, n_ignored
