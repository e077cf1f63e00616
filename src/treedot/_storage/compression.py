"""Read compressed files, with a limit on their unpacked size.

A file of a few kilobytes can be made to unpack to gigabytes. So a file may unpack to 64 MiB or to 200 times
its size, whichever is more; larger files are read only on request.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from treedot.errors import SourceError, missing

COMPRESSED = (".gz", ".xz", ".zst")
MAX_RATIO = 200
ALWAYS = 1 << 26  # bytes that any file may unpack to
VARIABLE = "TREEDOT_UNPACK_LARGE"  # environment variable, shared with the processes that read files


@contextlib.contextmanager
def unpacking_large(allowed: bool) -> Iterator[None]:
    """Let files unpack to any size in a ``with`` block, also in processes started in it."""
    before = os.environ.get(VARIABLE)
    if allowed:
        os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        if allowed:
            os.environ.pop(VARIABLE)
            if before is not None:
                os.environ[VARIABLE] = before


def check_unpacked(
    name: str, unpacked: int, packed: int, allowed: bool, function: str = "read_trees"
) -> None:
    """Raise if a file unpacks to more bytes than allowed; ``function`` has the parameter to allow more."""
    if allowed or unpacked <= max(ALWAYS, MAX_RATIO * packed) or os.environ.get(VARIABLE, "0") != "0":
        return
    raise SourceError(
        f"{name} unpacks to more than {MAX_RATIO} times its size, like files made to exhaust memory: "
        f"to read it, use --unpack-large, or {function}(…, unpack_large=True) in Python, or set {VARIABLE}=1 "
        "(also on the machines of a cluster)"
    )


def decompressed(
    raw: IO[bytes], name: str, unpack_large: bool = False, function: str = "read_trees"
) -> IO[bytes]:
    """Return a stream of the content; ``.gz``, ``.xz`` and ``.zst`` files are unpacked, up to a limit."""
    match Path(name).suffix.lower():
        case ".gz":
            unpacked = cast(IO[bytes], gzip.GzipFile(fileobj=raw))
        case ".xz":
            unpacked = cast(IO[bytes], lzma.LZMAFile(raw))  # noqa: SIM115 (whoever opened the file closes it)
        case ".zst":
            try:
                import zstandard
            except ModuleNotFoundError:
                raise missing("zstandard", "zstd", f"reading {name}") from None
            unpacked = cast(IO[bytes], _Frames(raw, zstandard.ZstdDecompressor()))
        case _:
            return raw
    size = os.fstat(raw.fileno()).st_size
    limited = _Limited(unpacked, lambda total: check_unpacked(name, total, size, unpack_large, function))
    return cast(IO[bytes], io.BufferedReader(limited, 1 << 16))


class _Limited(io.RawIOBase):
    """A stream that counts and limits the bytes read."""

    def __init__(self, stream: IO[bytes], check: Callable[[int], None]) -> None:
        self._stream, self._check, self._total = stream, check, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        self._total += count
        self._check(self._total)
        return count


class _Frames(io.RawIOBase):
    """The content of successive zstd frames; a file that ends inside a frame is an error."""

    def __init__(self, raw: IO[bytes], decompressor: Any) -> None:
        self._raw, self._decompressor = raw, decompressor
        self._frame: Any = None
        self._ready = memoryview(b"")
        self._input = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            self._input = self._input or self._raw.read(1 << 10)  # a kilobyte may unpack to 32 MiB of zeros
            if not self._input:
                if self._frame is not None:
                    raise EOFError("the file ends inside a compressed frame")
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._ready = memoryview(self._frame.decompress(self._input))
            self._input = b""
            if self._frame.eof:
                self._input, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
