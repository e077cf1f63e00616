"""Which lines of which files have changed since a commit, as git tells."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from treedot.errors import SourceError

_RANGE = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


class Changes:
    """The lines that were added or changed since a commit, those of files that git does not know yet too."""

    def __init__(self, reference: str, folder: Path) -> None:
        if reference.startswith("-"):
            raise SourceError(f"{reference!r} is no commit: give a branch, a tag or a hash")
        self._root = Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel")).rstrip("\n")).resolve()
        _git(self._root, "rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}")
        self._lines: dict[Path, list[tuple[int, int]]] = {}
        # Each option takes back what a user's settings may say.
        diff = (
            *("diff", "-M", "--no-color", "--no-ext-diff", "--no-textconv", "--no-relative"),
            *("--submodule=short", "--inter-hunk-context=0"),
        )
        names = _git(self._root, *diff, "--name-only", "-z", reference, "--").split(b"\0")[:-1]
        self._read(names, _git(self._root, *diff, "--unified=0", reference, "--"))
        for name in _git(self._root, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")[:-1]:
            self._lines[self._path(name)] = [(1, 2**62)]

    def touch(self, file: str, start: int, end: int) -> bool:
        """Tell whether any of the lines from start to end is new or changed, or one was deleted there."""
        return any(a <= end and b >= start for a, b in self._lines.get(Path(file).resolve(), ()))

    def _read(self, names: Sequence[bytes], patch: bytes) -> None:
        """Note the lines of a patch; the names of its files come apart, since a patch may quote them."""
        left = iter(names)
        lines: list[tuple[int, int]] = []
        for line in patch.split(b"\n"):
            if line.startswith(b"diff --git "):
                lines = self._lines.setdefault(self._path(next(left)), [])
            elif found := _RANGE.match(line):
                first, count = int(found[1]), int(found[2] or 1)
                lines.append((first, first + max(count, 1) - 1))

    def _path(self, name: bytes) -> Path:
        return self._root / os.fsdecode(name)


def _git(folder: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)
    except OSError as error:
        raise SourceError(f"--changed-since needs git, which cannot be run: {error}") from error
    if done.returncode:
        said = (
            os.fsdecode(done.stderr).strip()
            or f"there is no commit {arguments[-1].removesuffix('^{commit}')}"
        )
        raise SourceError(f"--changed-since: git {arguments[0]} failed: {said}")
    return done.stdout
