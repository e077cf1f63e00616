"""Write files and folders atomically; open and read files with clear errors."""

from __future__ import annotations

import contextlib
import errno
import io
import lzma
import os
import re
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from treedot._runtime.ending import before_end
from treedot._storage.compression import COMPRESSED
from treedot.errors import ParameterError, SourceError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

AT_FDCWD = -100  # Linux constant: paths are relative to the working folder
MAX_LINE = 1 << 27  # bytes of a line of a table; a file without line breaks would fill the memory

_unfinished: set[Path] = set()  # temporary files that this process is writing


@contextlib.contextmanager
def write_whole(path: str | os.PathLike[str], *, sweep: bool = True) -> Iterator[Path]:
    """Yield a path beside the target to write to; on success, it is renamed to the target.

    If it cannot be written, a ``SourceError`` names the target. The temporary file is locked while it is
    written. So an unlocked one for the same target was left by a killed process, and is removed. This lists
    all names in the folder; with ``sweep=False``, only ``remove_stale`` does it.
    """
    target = Path(path)
    check_target(target)
    if sweep:
        remove_stale(target.parent, target.name)
    with _temporary(target) as aside:
        try:
            with _locked(aside):
                yield aside
                aside.chmod(0o666 & ~_umask())
                aside.replace(target)
        except BrokenPipeError:  # an error of another file
            raise
        except OSError as error:
            named = {error.filename, error.filename2}  # both names, when a file is copied
            if named == {None} or aside in {Path(name) for name in named if isinstance(name, (str, Path))}:
                raise SourceError(f"cannot write {target}: {reason(error)}") from error
            raise


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """Yield a new name beside a target; in the end its file is removed, even after a signal.

    The name is recorded before the file exists, so no signal can arrive between the two.
    """
    aside = _aside(target)
    _unfinished.add(aside)
    try:
        yield aside
    finally:
        _remove(aside)
        _unfinished.discard(aside)


def _aside(target: Path, suffix: str = ".part") -> Path:
    """Return a new name beside a target that identifies it as temporary."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}{suffix}")


def _is_aside(name: str, suffix: str, target: str | None) -> bool:
    """Return whether ``_aside`` made a name, for the given target or for any."""
    wanted = ".+" if target is None else re.escape(target)
    return re.fullmatch(rf"\.{wanted}\.[0-9a-f]{{16}}{re.escape(suffix)}", name) is not None


def reason(error: Exception) -> str:
    """Return the text of an error, without the number that system errors begin with."""
    number = getattr(error, "errno", None)
    if number == errno.ENOENT:
        return "no such file or folder"
    return os.strerror(number) if isinstance(number, int) else str(error)


@before_end
def remove_unfinished() -> None:
    """Remove the temporary files that this process is writing, before it exits."""
    for aside in list(_unfinished):
        _remove(aside)


@contextlib.contextmanager
def write_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty folder beside the target to write to; on success, it is renamed to the target.

    This is ``write_whole`` for folders. On Linux, an existing folder is exchanged with the new one
    atomically. Elsewhere it is first moved aside, so for a moment there is no folder of that name;
    ``existing_folder`` finds it even then.
    """
    target = Path(path)
    check_parent(target)
    remove_stale(target.parent, target.name)
    with _temporary(target) as aside:  # in the end it has the name of the replaced folder
        try:
            with _locked(aside, folder=True):
                yield aside
                _replace_folder(aside, target)
        except OSError as error:
            raise SourceError(f"cannot write {target}: {reason(error)}") from error
        except SourceError as error:  # an error of a file in the folder; report it under its final name
            if str(aside) in str(error):
                raise SourceError(str(error).replace(str(aside), str(target))) from error
            raise


def existing_folder(path: str | os.PathLike[str]) -> Path:
    """Return the location of a folder: under its name, or aside while it is being replaced."""
    target = Path(path)
    if not target.exists():
        with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
            for entry in entries:
                if _is_aside(entry.name, ".old", target.name) and entry.is_dir(follow_symlinks=False):
                    return Path(entry.path)
    return target


def _replace_folder(new: Path, target: Path) -> None:
    """Rename a folder, replacing the target if it exists; the old folder then has the first name."""
    if not target.is_dir():
        new.rename(target)
    elif not _exchange(new, target):
        old = _aside(target, ".old")
        target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise
        _remove(old)


def _exchange(a: Path, b: Path) -> bool:
    """Exchange two paths atomically; return False if the system cannot."""
    import ctypes

    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    if rename is None:
        return False
    # Two paths, each relative to the working folder, and the flag RENAME_EXCHANGE.
    return bool(rename(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), 2) == 0)


def remove_folder(path: str | os.PathLike[str]) -> None:
    """Remove a folder, moved aside first: if the process dies midway, the next run removes the remains."""
    target = Path(path)
    with _temporary(target) as aside:
        try:
            target.rename(aside)
        except OSError as error:
            raise SourceError(f"cannot remove {target}: {reason(error)}") from error


def _remove(path: Path) -> None:
    """Remove a file or a folder, ignoring errors."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def check_target(target: Path, *sources: Any) -> None:
    """Raise if a file cannot be written, or is one of the sources; call this before the work starts.

    Sources may be paths, ``-`` for standard input, and open files; other objects are ignored.
    """
    check_parent(target)
    if target.is_dir():
        raise SourceError(f"cannot write {target}: it is a folder")
    if target.exists() and not target.is_file():  # a file would replace a device or a pipe
        raise SourceError(f"cannot write {target}: it is not a plain file")
    if any(_is_file(source, target) for source in sources):
        raise ParameterError(f"{target} is the file that the trees are read from: write to another file")


def check_parent(target: Path) -> None:
    """Raise if a file or folder cannot be created because its parent folder is missing or read-only."""
    if not target.parent.is_dir():
        raise SourceError(f"cannot write {target}: the folder {target.parent} does not exist")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise SourceError(f"cannot write {target}: the folder {target.parent} is not writable")


def _is_file(source: Any, path: Path) -> bool:
    if isinstance(source, str) and source == "-":
        source = sys.stdin
    try:
        found = os.stat(source) if isinstance(source, (str, os.PathLike)) else os.fstat(source.fileno())
        return os.path.samestat(found, os.stat(path))
    except (OSError, ValueError, AttributeError):  # one is not a file, or standard input is closed
        return False


@contextlib.contextmanager
def _locked(path: Path, *, folder: bool = False) -> Iterator[None]:
    """Create an empty private file or folder, and lock it if the system supports locks.

    The lock marks the file itself as in use, for ``remove_stale``. ``locks`` cannot do that: its lock is a
    second file, which would outlive a killed process and would need a sweep of its own.
    """
    while True:
        if folder:
            path.mkdir()
        else:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        if fcntl is None:
            yield
            return
        try:
            handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)  # NFS locks only writable files
        except FileNotFoundError:  # another process removed it before it was locked
            continue
        try:
            with contextlib.suppress(OSError):  # a file system without locks: nothing is removed there either
                fcntl.flock(handle, fcntl.LOCK_EX)
            if path.exists():
                yield
                return
        finally:
            os.close(handle)


def remove_stale(folder: Path, name: str | None = None) -> None:
    """Remove the remains of killed processes from a folder: temporary files and folders without a lock.

    With ``name``, only those of this target. A folder of that name that was moved aside is removed, too,
    unless it is the only one left.
    """
    if fcntl is None:
        return
    replaced = name is not None and (folder / name).exists()
    suffixes = (".part", ".old") if replaced else (".part",)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            stale = any(_is_aside(entry.name, suffix, name) for suffix in suffixes)
            if not stale or entry.is_symlink():
                continue
            with contextlib.suppress(OSError):
                handle = os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe would wait
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(Path(entry.path))
                finally:
                    os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def path_list(paths: Any) -> list[str | os.PathLike[str]]:
    """Return one path, or several, as a list."""
    some = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    given = list(some) if isinstance(some, Iterable) else [some]
    if wrong := [path for path in given if not isinstance(path, (str, os.PathLike)) or "\0" in str(path)]:
        raise ParameterError(f"paths must be a path or an iterable of paths, but {wrong[0]!r} is not a path")
    return given


def content_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix that names the format, in lower case: ``.tsv`` for ``a.tsv.gz``."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def open_raw(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file of trees or words for reading bytes; pipes and devices are allowed."""
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise SourceError(f"cannot open {path}: {reason(error)}") from error


def open_plain(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a stored file for reading bytes; raise unless it is a plain file, or a link to one.

    Opening a pipe would wait for its writer, and reading a device may never end. The file is checked after it
    is opened, so no other file can take its place in between.
    """
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)  # flags that some systems lack
    try:
        handle = os.open(path, flags)
    except OSError as error:
        raise SourceError(f"cannot open {path}: {reason(error)}") from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"
        raise SourceError(f"cannot read {path}: it is {what}, not a plain file")
    return os.fdopen(handle, "rb")


def identity_of(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """Return values that change when something else takes this name; None if there is nothing."""
    try:
        return identity(os.stat(path))
    except OSError:
        return None


def identity(found: os.stat_result) -> tuple[int, ...]:
    """Return values that tell a file or folder, as it is now, from all others."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def read_plain(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """Return the content of a stored file, or its first bytes; raise unless it is a plain file."""
    with open_plain(path) as file, _clear_errors(os.fspath(path)):
        return file.read(most)


def check_plain(path: str | os.PathLike[str]) -> None:
    """Raise unless a stored file is plain and can be opened, for libraries that take its name."""
    open_plain(path).close()


def standard_input() -> IO[bytes]:
    """Return standard input for reading bytes; raise if it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        raise SourceError("cannot read standard input: it is closed")
    return sys.stdin.buffer


@contextlib.contextmanager
def _clear_errors(name: str) -> Iterator[None]:
    """Turn the errors of a damaged or unreadable file into one clear error."""
    try:
        yield
    except Exception as error:
        from_zstd = any(kind.__module__.startswith("zstandard") for kind in type(error).__mro__)
        if from_zstd or isinstance(error, (EOFError, OSError, lzma.LZMAError, zlib.error)):
            raise SourceError(f"cannot read {name}: {reason(error)}") from error
        raise


def read_chunk(stream: IO[Any], size: int, name: str) -> bytes:
    """Read up to ``size`` bytes from a binary or text stream."""
    with _clear_errors(name):
        chunk = stream.read(size)
    return chunk.encode(errors="surrogateescape") if isinstance(chunk, str) else chunk


def read_lines(stream: IO[Any], name: str) -> Iterator[bytes]:
    """Yield the lines of a binary or text stream without line ends; raise if one is too long."""
    with _clear_errors(name):
        number = 0
        while line := stream.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise SourceError(
                    f"{name}:{number}: this line is longer than {MAX_LINE >> 20} MiB: a table needs a line "
                    "break after each row; use brackets or Parquet for larger trees"
                )
            raw = line.encode(errors="surrogateescape") if isinstance(line, str) else line
            yield raw.rstrip(b"\r\n")
