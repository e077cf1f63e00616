"""A file of results that are kept between runs, so that the same work is not done twice.

It is one SQLite file with a table for each kind of result. The key of an entry is a digest of all that
determines the result. Each entry contains a digest of itself and its key, so damaged or foreign entries are
ignored. Several processes may use the file; if it cannot be used, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array

if TYPE_CHECKING:
    import sqlite3

DIGEST = 16  # bytes
PENDING = 2**23  # bytes of new entries that are written together
DAY = 24 * 3600.0  # seconds between updates of an entry's last use
PATIENCE = 2.0  # seconds to wait for another process
TABLE = """CREATE TABLE IF NOT EXISTS {} (
    key BLOB PRIMARY KEY, entry BLOB NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL
) WITHOUT ROWID"""


class CacheFacts(NamedTuple):
    """The contents of a table."""

    entries: int
    size: int  # bytes


class CacheFile:
    """Entries of bytes in one SQLite file.

    Parameters
    ----------
    path : Path
        The file.
    limits : mapping of str to int
        The tables, with the largest total size of their entries in bytes. The least recently used ones are
        removed first.
    """

    def __init__(self, path: Path, limits: Mapping[str, int]) -> None:
        self.path = path
        self.limits = limits
        self._lock = threading.Lock()
        self._new: dict[str, dict[bytes, bytes]] = {table: {} for table in limits}
        self._new_size = 0
        self._used: dict[str, list[bytes]] = {table: [] for table in limits}
        self._connection: sqlite3.Connection | None = None
        self._is_open = False

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the content of an entry; None if there is none, or if it is damaged."""
        with self._lock, self._ignoring_trouble():
            connection = self._connected()
            if connection is None:
                return None
            query = f"SELECT entry, used FROM {table} WHERE key = ?"
            found = connection.execute(query, (key,)).fetchone()
            if found is not None:
                entry, used = found
                if time.time() - used > DAY:
                    self._used[table].append(key)
                return _content(key, entry)
        return None

    def put(self, table: str, key: bytes, content: bytes) -> None:
        """Keep an entry, unless it is larger than half of the table may be."""
        entry = _digest(key, content) + content
        if len(entry) > self.limits[table] // 2:
            return
        with self._lock:
            self._new[table][key] = entry
            self._new_size += len(entry)
            if self._new_size > PENDING:
                self._write()

    def close(self) -> None:
        """Write new entries, and remove old ones above the size limits."""
        with self._lock:
            self._write()
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connected(self) -> sqlite3.Connection | None:
        """Return the connection, opened on first use; None if the file cannot be used."""
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
                for table in self.limits:
                    connection.execute(TABLE.format(table))
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
        new, used = self._new, self._used
        self._new, self._new_size = {table: {} for table in new}, 0
        self._used = {table: [] for table in used}
        connection = self._connected() if any(new.values()) or any(used.values()) else None
        if connection is None:
            return
        with self._ignoring_trouble():
            connection.execute("BEGIN IMMEDIATE")
            for table in self.limits:
                rows = [(key, entry, len(entry), now) for key, entry in new[table].items()]
                connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)", rows)
                times = [(now, key) for key in used[table]]
                connection.executemany(f"UPDATE {table} SET used = ? WHERE key = ?", times)
                self._shrink(connection, table)
            connection.execute("COMMIT")

    def _shrink(self, connection: sqlite3.Connection, table: str) -> None:
        """Remove the least recently used entries until the others fit."""
        (size,) = connection.execute(f"SELECT COALESCE(SUM(size), 0) FROM {table}").fetchone()
        if size <= self.limits[table]:
            return
        gone = []
        for key, entry_size in connection.execute(f"SELECT key, size FROM {table} ORDER BY used"):
            gone.append((key,))
            size -= entry_size
            if size <= 0.9 * self.limits[table]:
                break
        connection.executemany(f"DELETE FROM {table} WHERE key = ?", gone)

    @contextlib.contextmanager
    def _ignoring_trouble(self) -> Iterator[None]:
        """Stop using the file if it cannot be read or written; remove it if it is damaged."""
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


def facts(path: Path, table: str) -> CacheFacts:
    """Return the size of a table; zeros if there is none."""
    import sqlite3

    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", PATIENCE, uri=True)
        with contextlib.closing(connection):
            query = f"SELECT COUNT(*), COALESCE(SUM(size), 0) FROM {table}"
            return CacheFacts(*connection.execute(query).fetchone())
    except sqlite3.DatabaseError:
        return CacheFacts(0, 0)


def remove(path: Path) -> None:
    """Remove a file, and SQLite's auxiliary files."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def to_bytes(described: Any, arrays: Mapping[str, Array]) -> bytes:
    """Serialise a JSON value and arrays: the length of the header, the header, the arrays.

    Examples
    --------
    >>> from_bytes(to_bytes({"a": 1}, {"b": np.arange(3)}))
    ({'a': 1}, {'b': array([0, 1, 2])})
    """
    kinds = {name: [array.dtype.str, array.size] for name, array in arrays.items()}
    header = json.dumps([described, kinds]).encode()
    contents = (array.tobytes() for array in arrays.values())
    return b"".join([len(header).to_bytes(8, "little"), header, *contents])


def from_bytes(content: bytes) -> tuple[Any, dict[str, Array]]:
    """Return what ``to_bytes`` serialised; the arrays are read-only."""
    place = 8 + int.from_bytes(content[:8], "little")
    described, kinds = json.loads(content[8:place])
    arrays: dict[str, Array] = {}
    for name, (kind, size) in kinds.items():
        arrays[name] = np.frombuffer(content, np.dtype(kind), size, place)
        place += arrays[name].nbytes
    return described, arrays


def _digest(key: bytes, content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST, key=key).digest()


def _content(key: bytes, entry: Any) -> bytes | None:
    """Return the content of an entry; None if it is damaged or belongs to another key."""
    if not isinstance(entry, bytes) or _digest(key, memoryview(entry)[DIGEST:]) != entry[:DIGEST]:
        return None
    return entry[DIGEST:]
