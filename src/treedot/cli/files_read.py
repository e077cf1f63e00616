"""Remember which source files are read, to report a folder in which there are none."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator

from treedot._pages.printable import printable
from treedot.errors import SourceError
from treedot.readers.folders import IGNORED_UNIT, NOT_WRITTEN, STUB, OnSkip, Skipped, walk

SHOWN = 5  # suffixes in a message


class FilesRead:
    """The files that ``iter_code`` reads; it takes ``add`` as ``only``, and ``skip`` as ``on_skip``.

    Parameters
    ----------
    on_skip : callable, default=None
        Called with the path and the reason for everything that is skipped.
    """

    def __init__(self, on_skip: OnSkip | None = None) -> None:
        self.skip = Skipped(self._leave_out)
        self._read: set[str] = set()
        self._on_skip = on_skip

    def __len__(self) -> int:
        return len(self._read)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._read))

    def add(self, path: str) -> bool:
        """Add a file; return True, since it is to be read."""
        self._read.add(path)
        return True

    def _leave_out(self, path: str, reason: str) -> None:
        if reason not in (IGNORED_UNIT, STUB):  # units, not files
            self._read.discard(path)
        if self._on_skip is not None:
            self._on_skip(path, reason)

    def check(self, paths: Iterable[str], kind: str) -> None:
        """Raise SourceError if one of the paths is a folder of which no file was read."""
        folders = {real_path(os.path.dirname(path)) for path in self._read}
        for path in paths:
            if os.path.isdir(path) and not any(is_under(folder, [real_path(path)]) for folder in folders):
                raise SourceError(_nothing_to_read(path, kind, self.skip))


def _nothing_to_read(folder: str, kind: str, skipped: Skipped) -> str:
    """Return a message that says which files a folder has, and which were left out."""
    suffixes = Counter(os.path.splitext(file.path)[1] for file in walk([folder], lambda name: True))
    listed = [
        f"{count:,} {printable(suffix) or 'without a suffix'}"
        for suffix, count in suffixes.most_common(SHOWN)
    ]
    there = ", ".join([*listed, "…"] if len(suffixes) > SHOWN else listed)
    has = f"its files are {there}" if there else "it has no files"
    left_out = f"; left out: {skipped}" if skipped.counts else ""
    if not NOT_WRITTEN.isdisjoint(skipped.counts):
        left_out += "; --include-vendored reads them"
    return f"no {kind} file to read in {folder}: {has}{left_out}"


def real_path(path: str) -> str:
    """Return the canonical path of a file; a text that cannot be a path is returned as it is."""
    try:
        return os.path.realpath(path)
    except ValueError:  # a stored name may be any text
        return path


def is_under(file: str, paths: Iterable[str]) -> bool:
    """Return whether a file is one of the paths, or inside one of them; all paths are canonical."""
    return any(file == path or file.startswith(path.rstrip(os.sep) + os.sep) for path in paths)
