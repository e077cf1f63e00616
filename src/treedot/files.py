"""Files that appear whole or not at all, and readers that see through compression."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from treedot.errors import SourceError, missing

COMPRESSED = (".gz", ".xz", ".zst")


@contextlib.contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path beside the target to write to; it takes the target's name when all went well."""
    target = Path(path)
    check_target(target)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        # mkstemp makes private files; the finished one gets the rights any new file would have.
        mask = os.umask(0)
        os.umask(mask)
        aside.chmod(0o666 & ~mask)
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def check_target(target: Path) -> None:
    """Raise where a file cannot be written; worth knowing before the work that fills it."""
    if not target.parent.is_dir():
        raise SourceError(f"cannot write {target}: the folder {target.parent} does not exist")
    if target.is_dir():
        raise SourceError(f"cannot write {target}: it is a folder")


def content_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix that names the format: ``.tsv`` for ``a.tsv.gz``, lower-cased."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def open_raw(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading bytes."""
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise SourceError(f"cannot open {path}: {error.strerror or error}") from error


def decompressed(raw: IO[bytes], name: str) -> IO[bytes]:
    """Return what a file holds, decompressing ``.gz``, ``.xz`` and ``.zst`` by its name."""
    match Path(name).suffix.lower():
        case ".gz":
            return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
        case ".xz":
            return cast(IO[bytes], lzma.LZMAFile(raw))
        case ".zst":
            try:
                import zstandard
            except ModuleNotFoundError:
                raise missing("zstandard", "zstd", f"reading {name}") from None
            return cast(IO[bytes], io.BufferedReader(_Frames(raw, zstandard.ZstdDecompressor())))
        case _:
            return raw


class _Frames(io.RawIOBase):
    """The content of one zstd frame after the other; a file that ends inside one is an error."""

    def __init__(self, raw: IO[bytes], decompressor: Any) -> None:
        self._raw, self._decompressor = raw, decompressor
        self._frame: Any = None
        self._ready = b""
        self._input = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            self._input = self._input or self._raw.read(1 << 17)
            if not self._input:
                if self._frame is not None:
                    raise EOFError("the file ends inside a compressed frame")
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._ready = self._frame.decompress(self._input)
            self._input = b""
            if self._frame.eof:
                self._input, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


@contextlib.contextmanager
def _clear_errors(name: str) -> Iterator[None]:
    """Turn what a damaged or unreadable file raises into one clear error."""
    try:
        yield
    except Exception as error:
        from_zstd = any(kind.__module__.startswith("zstandard") for kind in type(error).__mro__)
        if from_zstd or isinstance(error, (EOFError, OSError, lzma.LZMAError, zlib.error)):
            raise SourceError(f"cannot read {name}: {error}") from error
        raise


def read_chunk(stream: IO[Any], size: int, name: str) -> bytes:
    """Read up to ``size`` bytes from a binary or text stream."""
    with _clear_errors(name):
        chunk = stream.read(size)
    return chunk.encode(errors="surrogateescape") if isinstance(chunk, str) else chunk


def read_lines(stream: IO[Any], name: str) -> Iterator[bytes]:
    """Yield the lines of a binary or text stream without their line ends."""
    with _clear_errors(name):
        for line in stream:
            raw = line.encode(errors="surrogateescape") if isinstance(line, str) else line
            yield raw.rstrip(b"\r\n")
