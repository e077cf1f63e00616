"""Detect damage to a file by a digest of its bytes that the file contains.

The digest is 32 hexadecimal digits somewhere in the file. It is computed while the file is written, with
``BLANK`` in its place, so nothing is read twice.
"""

from __future__ import annotations

import hashlib
import io
import mmap
from pathlib import Path
from typing import Any

from treedot._storage.files import open_plain

DIGEST_BYTES = 16
BLANK = b"-" * (2 * DIGEST_BYTES)  # placeholder of the digest


def new_hash(data: Any = b"") -> Any:
    """Return the hash object of all digests, fast without special processor instructions."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES)


class SealedFile(io.BufferedWriter):
    """A new file, hashed while it is written from start to end.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "file")
    >>> with SealedFile(path) as file:
    ...     _ = file.write(b"digest: " + BLANK + b" and all the rest")
    ...     file.seal(0)
    >>> digest = path.read_bytes()[8:40]
    >>> is_whole(path, digest)
    True
    >>> _ = path.write_bytes(path.read_bytes().replace(b"rest", b"best"))
    >>> is_whole(path, digest)
    False
    """

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "w+"))
        self._hash = new_hash()

    def write(self, data: Any) -> int:
        """Write bytes."""
        self._hash.update(data)
        return super().write(data)

    def seal(self, after: int) -> None:
        """Write the digest over the first blank after a position; nothing may be written afterwards."""
        self.flush()
        with mmap.mmap(self.fileno(), 0, access=mmap.ACCESS_READ) as written:
            self.seek(written.find(BLANK, after))
        super().write(self._hash.hexdigest().encode())
        self.flush()


def is_whole(path: Path, digest: bytes) -> bool:
    """Return whether a file matches the digest that it contains."""
    with open_plain(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        place = raw.rfind(digest) if len(digest) == len(BLANK) else -1
        if place < 0:
            return False
        found = new_hash()
        with memoryview(raw) as whole:
            for part in (whole[:place], BLANK, whole[place + len(BLANK) :]):
                found.update(part)
                if isinstance(part, memoryview):
                    part.release()
        return bool(found.hexdigest().encode() == digest)
