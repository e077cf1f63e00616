"""The index and the model as they are on disk, or as they were when they could last be read.

Both may be replaced at any time, and work on a request may begin before and open them after that. So the
server keeps the last version that a worker could read: of an index the open file, which workers open again by
its number, and of a model a copy. Where the system has no such names of open files, workers open the path.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable

from treedot._storage.files import identity_of, open_plain
from treedot.errors import TreedotError
from treedot.serve.workers import CrashError, TooSlowError

ATTEMPTS = 5
RELEASE = 300.0  # seconds until a version that was replaced is given up; all work on it has ended then


class Kept:
    """A file or folder whose last readable version stays available.

    Parameters
    ----------
    path : str
        Its path.
    folder : str
        Where copies of a folder are kept.
    check : callable
        Reads a version, and raises an error if that fails.
    """

    def __init__(self, path: str, folder: str, check: Callable[[str], Awaitable[object]]) -> None:
        self._path, self._folder, self._check = path, folder, check
        self._lock = asyncio.Lock()
        self._seen: tuple[int, ...] | None = None  # the identity of the version that was looked at last
        self._kept: str | None = None

    async def current(self) -> str:
        """Return where to read what is at the path now; if that cannot be read, what was there before."""
        async with self._lock:
            for _ in range(ATTEMPTS):
                identity = identity_of(self._path)
                if identity in (None, self._seen) or await self._look(identity):
                    break
        return self._kept or self._path

    async def _look(self, identity: tuple[int, ...] | None) -> bool:
        """Keep the version at the path if it can be read; return False if it was replaced meanwhile."""
        version = None
        try:
            version = await asyncio.to_thread(self._keep)
            if identity_of(self._path) == identity:
                await self._check(version)
        except (TreedotError, OSError, shutil.Error, CrashError, TooSlowError):
            self._release(version)
        else:
            if identity_of(self._path) == identity:
                asyncio.get_running_loop().call_later(RELEASE, self._release, self._kept)
                self._kept = version
            else:
                self._release(version)
        if identity_of(self._path) != identity:
            return False
        self._seen = identity
        return True

    def _keep(self) -> str:
        """Return a name of what is at the path, which stays the same when that is replaced."""
        if os.path.isdir(self._path):
            copy = os.path.join(tempfile.mkdtemp(dir=self._folder), os.path.basename(self._path))
            return str(shutil.copytree(self._path, copy))
        with open_plain(self._path) as file:
            number = os.dup(file.fileno())
        name = f"/proc/{os.getpid()}/fd/{number}"
        if os.path.exists(name):
            return name
        os.close(number)
        return self._path

    def _release(self, version: str | None) -> None:
        if version is None or version == self._path:
            return
        if version.startswith("/proc/"):
            os.close(int(version.rpartition("/")[2]))
        else:
            shutil.rmtree(os.path.dirname(version), ignore_errors=True)
