"""Write files and folders whole or not at all; open and read files with clear errors."""

from __future__ import annotations

import contextlib
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

AT_FDCWD = -100  # of Linux: paths are relative to the working folder
MAX_LINE = 1 << 27  # bytes of a line of a table: what has no line breaks would fill the memory

_unfinished: set[Path] = set()  # the temporary files that this process is writing


@contextlib.contextmanager
def write_whole(path: str | os.PathLike[str], *, sweep: bool = True) -> Iterator[Path]:
    """Yield a path beside the target to write to; it takes the target's name when all went well.

    What cannot be written raises a ``SourceError`` that names the target. The temporary file is locked while
    it is written: one of the same target that is not belongs to a process that was killed, and is removed.
    That looks at all names in the folder; with ``sweep=False`` it is left to ``remove_stale``.
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
        except BrokenPipeError:  # not of this file
            raise
        except OSError as error:
            named = {error.filename, error.filename2}  # where a file is copied, both
            if named == {None} or aside in {Path(name) for name in named if isinstance(name, (str, Path))}:
                raise SourceError(f"cannot write {target}: {reason(error)}") from error
            raise


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """Yield a new name beside a target; what has the name in the end is removed, also where a signal comes.

    The name is noted before anything has it, so that no signal can come between the two.
    """
    aside = _aside(target)
    _unfinished.add(aside)
    try:
        yield aside
    finally:
        _remove(aside)
        _unfinished.discard(aside)


def _aside(target: Path, suffix: str = ".part") -> Path:
    """Return a new name beside a target, by which what was left there is known."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}{suffix}")


def _is_aside(name: str, suffix: str, target: str | None) -> bool:
    """Return whether a name was made by ``_aside``, for the target of some name or for any."""
    wanted = ".+" if target is None else re.escape(target)
    return re.fullmatch(rf"\.{wanted}\.[0-9a-f]{{16}}{re.escape(suffix)}", name) is not None


def reason(error: Exception) -> str:
    """Return why something failed, without the number of the error that texts of the system begin with."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if isinstance(number, int) else str(error)


@before_end
def remove_unfinished() -> None:
    """Remove the temporary files that this process is writing, before it ends."""
    for aside in list(_unfinished):
        _remove(aside)


@contextlib.contextmanager
def write_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty folder beside the target to write to; it takes the target's name when all went well.

    It is to ``write_whole`` as a folder is to a file. A folder that has the name already exchanges it with
    the new one at once, on Linux. Where the system cannot do that, it is first moved aside, so that for a
    moment there is none of that name; ``existing_folder`` finds it even then.
    """
    target = Path(path)
    check_parent(target)
    remove_stale(target.parent, target.name)
    with _temporary(target) as aside:  # which has the name of the folder that is replaced in the end
        try:
            with _locked(aside, folder=True):
                yield aside
                _replace_folder(aside, target)
        except OSError as error:
            raise SourceError(f"cannot write {target}: {reason(error)}") from error
        except SourceError as error:  # of a file in the folder, which is to be known by its later name
            if str(aside) in str(error):
                raise SourceError(str(error).replace(str(aside), str(target))) from error
            raise


def existing_folder(path: str | os.PathLike[str]) -> Path:
    """Return where a folder is: under its name, or aside while another takes its place."""
    target = Path(path)
    if not target.exists():
        with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
            for entry in entries:
                if _is_aside(entry.name, ".old", target.name) and entry.is_dir(follow_symlinks=False):
                    return Path(entry.path)
    return target


def _replace_folder(new: Path, target: Path) -> None:
    """Let a folder take the place of another, or of none; the other is then under the first one's name."""
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
    """Let two paths exchange what they name, at once; return False where the system cannot."""
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
    """Remove a file or a folder, where it can be."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def check_target(target: Path, *sources: Any) -> None:
    """Raise where a file cannot be written, or is one of those that are read; known before the work.

    Sources are paths, with ``-`` for standard input, and open files; all other ones are no file.
    """
    check_parent(target)
    if target.is_dir():
        raise SourceError(f"cannot write {target}: it is a folder")
    if target.exists() and not target.is_file():  # a file would take the place of a device or a pipe
        raise SourceError(f"cannot write {target}: it is not a plain file")
    if any(_is_file(source, target) for source in sources):
        raise ParameterError(f"{target} is the file that the trees are read from: write to another one")


def check_parent(target: Path) -> None:
    """Raise where a file or folder cannot be made, for want of the folder that it is to be in."""
    if not target.parent.is_dir():
        raise SourceError(f"cannot write {target}: the folder {target.parent} does not exist")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise SourceError(f"cannot write {target}: files cannot be made in the folder {target.parent}")


def _is_file(source: Any, path: Path) -> bool:
    if isinstance(source, str) and source == "-":
        source = sys.stdin
    try:
        found = os.stat(source) if isinstance(source, (str, os.PathLike)) else os.fstat(source.fileno())
        return os.path.samestat(found, os.stat(path))
    except (OSError, ValueError, AttributeError):  # one is no file, or standard input is closed
        return False


@contextlib.contextmanager
def _locked(path: Path, *, folder: bool = False) -> Iterator[None]:
    """Make an empty private file, or a folder, and hold a lock on it where the system has such locks.

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
            handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)  # NFS locks what can be written
        except FileNotFoundError:  # another process swept it before it was locked
            continue
        try:
            with contextlib.suppress(OSError):  # a file system without locks: nothing is swept there either
                fcntl.flock(handle, fcntl.LOCK_EX)
            if path.exists():
                yield
                return
        finally:
            os.close(handle)


def remove_stale(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes left in a folder: temporary files and folders that nobody locks.

    With a name, those of this target alone; a folder of that name that was moved aside goes, too, unless it
    is the only one there is.
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
                handle = os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would be waited for
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
        raise ParameterError(f"paths must be a path, or an iterable of paths, and {wrong[0]!r} is none")
    return given


def content_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix that names the format: ``.tsv`` for ``a.tsv.gz``, lower-cased."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def open_raw(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file of trees or words for reading bytes; it may be a pipe or a device."""
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise SourceError(f"cannot open {path}: {reason(error)}") from error


def open_plain(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a stored file for reading bytes; raise unless it is a plain file, or a link to one.

    Opening a pipe would wait for its writer, and reading a device may never end. The file is looked at after
    it is opened, so no other file can take its place in between.
    """
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)  # some systems lack some
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


def read_plain(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """Return what a stored file holds, or its first bytes; raise unless it is a plain file."""
    with open_plain(path) as file, _clear_errors(os.fspath(path)):
        return file.read(most)


def check_plain(path: str | os.PathLike[str]) -> None:
    """Raise unless a stored file can be opened and is a plain one, for libraries that open it by its name."""
    open_plain(path).close()


def standard_input() -> IO[bytes]:
    """Return standard input for bytes; raise where it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        raise SourceError("cannot read standard input: it is closed")
    return sys.stdin.buffer


@contextlib.contextmanager
def _clear_errors(name: str) -> Iterator[None]:
    """Turn what a damaged or unreadable file raises into one clear error."""
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
    """Yield the lines of a binary or text stream without their line ends; raise where one is too long."""
    with _clear_errors(name):
        number = 0
        while line := stream.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise SourceError(
                    f"{name}:{number}: this line is longer than {MAX_LINE >> 20} MiB: a table has a line "
                    "break after each row; larger trees are read from brackets or Parquet"
                )
            raw = line.encode(errors="surrogateescape") if isinstance(line, str) else line
            yield raw.rstrip(b"\r\n")
