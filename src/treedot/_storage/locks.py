"""A lock between processes and between threads, with three modes.

The lock of ``FOLDER/NAME`` is the file ``FOLDER/.NAME.lock``. The system locks that file and unlocks it when
the process ends, however it ends, so a file that a killed process left is harmless: the next holder takes it
over. The holder removes it at the end, while it still has the lock. A process that waited with the old file
open notices that the file is gone and tries again, so there are never two holders.

Only writers take locks. Readers open files that are replaced atomically, and never wait.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from treedot._runtime.ending import before_end
from treedot._storage.files import check_parent, reason
from treedot.errors import SourceError

if TYPE_CHECKING:
    from filelock import BaseFileLock

Mode = Literal["wait", "refuse", "first"]

POLL = 0.02  # seconds between two attempts
WITHOUT_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # errors of file systems without locks

_held: dict[str, tuple[int, ...]] = {}  # the files of the locks that this process holds, by name


@contextlib.contextmanager
def lock(target: str | os.PathLike[str], mode: Mode = "wait", *, busy: str = "") -> Iterator[None]:
    """Hold the lock of a file or folder, which need not exist; with "wait", a thread may lock it repeatedly.

    Parameters
    ----------
    target : path
        The protected file or folder. The lock file is created beside it.
    mode : {"wait", "refuse", "first"}
        If another process or thread holds the lock: wait for it; raise ``SourceError``; or wait for it, then
        continue without the lock. The last mode is for work that only the first process has to do. It also
        continues if locks are unavailable, which is an error in the other modes.
    busy : str
        The message of the ``SourceError`` in the mode "refuse"; by default it names the target.
    """
    from filelock import FileLock

    path = Path(os.path.abspath(target))
    if not path.name:
        raise SourceError(f"cannot lock {target}: it is the root of a file system")
    name = path.with_name(f".{path.name}.lock")
    # A singleton: the same thread may take it again. Each thread has its own descriptor.
    found = FileLock(name, is_singleton=True, poll_interval=POLL, fallback_to_soft=False)
    if mode == "first":
        held = _is_first(found)
    else:
        check_parent(path)
        _acquire(found, target, mode == "wait", busy)
        held = True
    try:
        yield
    finally:
        if held:
            _release(found)


def _acquire(found: BaseFileLock, target: str | os.PathLike[str], wait: bool, busy: str) -> None:
    try:
        # "wait" may take again a lock of its own thread; "refuse" may not.
        if (wait or not found.is_locked) and _take(found, wait=wait):
            return
    except OSError as error:
        raise SourceError(
            f"cannot lock {target}: {reason(error)} ({found.lock_file}); changing it requires a file system "
            "with locks and a writable folder"
        ) from error
    raise SourceError(busy or f"{target} is in use by another process: wait until it ends")


def _is_first(found: BaseFileLock) -> bool:
    """Take a free lock and return True; or wait until it is free, and return False."""
    try:
        if _take(found, wait=False):
            return True
        if _take(found, wait=True):
            _release(found)
    except OSError:  # without locks, nobody waits
        pass
    return False


def _take(found: BaseFileLock, *, wait: bool) -> bool:
    """Take a lock; return whether it succeeded."""
    from filelock import Timeout

    try:
        found.acquire(blocking=wait)
    except Timeout:
        return False
    except OSError as error:
        if error.errno in WITHOUT_LOCKS:  # no locks here, so nobody holds it
            with contextlib.suppress(OSError):
                os.unlink(found.lock_file)
        raise
    with contextlib.suppress(OSError):
        _held[found.lock_file] = _identity(found.lock_file)
    return True


def _release(found: BaseFileLock) -> None:
    """Release a lock; the thread's last release removes the file first, as another may take it after."""
    if found.lock_counter == 1:
        _remove(found.lock_file)
    found.release()


def _remove(name: str) -> None:
    """Remove the file of a held lock, but not a newer file that another process created."""
    known = _held.pop(name, None)
    with contextlib.suppress(OSError):  # on Windows, filelock removes it later
        if _identity(name) == known:
            os.unlink(name)


def _identity(name: str) -> tuple[int, ...]:
    found = os.stat(name)
    return os.getpid(), found.st_dev, found.st_ino  # a forked process does not hold inherited locks


@before_end
def remove_locks() -> None:
    """Remove the lock files that this process holds, before it exits without releasing them."""
    for name in list(_held):
        _remove(name)
