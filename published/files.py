"""The files of data that a table is measured on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from treedot.errors import SourceError


def checked_files(data: Path, names: Iterable[str], layout: str) -> list[Path]:
    """Return the files of a folder; raise SourceError, with the layout of the folder, if one is missing."""
    files = [data / name for name in names]
    for path in files:
        if not path.is_file():
            raise SourceError(f"{path} is missing.\n{layout}")
    return files


def digest_of(files: Sequence[Path]) -> str:
    """Return a name for the content of files."""
    found = hashlib.sha256()
    for path in files:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]
