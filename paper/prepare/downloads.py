"""Find the files of a corpus in what was downloaded: folders, zip files, single files."""

from __future__ import annotations

import contextlib
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from treedot._storage.files import reason
from treedot.errors import SourceError

ZIPPED = (".zip", ".whl")  # a wheel is a zip file


class Downloads:
    """Files by name, wherever they are in the folders and files given."""

    def __init__(self, places: Sequence[Path], given: Sequence[str | Path]) -> None:
        self.places = places
        self.given = ", ".join(str(path) for path in given)

    def file(self, *names: str) -> Path:
        """Return the file with the first of some names that exists.

        A name may have folders before it, ``trees/train.txt``, and stars.
        """
        for name in names:
            if found := self.files(name, required=False):
                if len(found) > 1:
                    raise SourceError(
                        f"{name} is there {len(found)} times, as {found[0]} and {found[1]}: give only one"
                    )
                return found[0]
        raise SourceError(f"no file {' or '.join(names)} in {self.given}; docs/reproduce.md says where it is")

    def files(self, name: str, *, required: bool = True) -> list[Path]:
        """Return all files of a name, sorted."""
        found = {path for place in self.places for path in _matching(place, name) if path.is_file()}
        if required and not found:
            raise SourceError(f"no file {name} in {self.given}; docs/reproduce.md says where it is")
        return sorted(found)


def _matching(place: Path, name: str) -> Iterator[Path]:
    if place.is_file():
        return iter([place] if place.match(name) else [])
    return place.rglob(name)


@contextlib.contextmanager
def open_downloads(paths: Sequence[str | Path]) -> Iterator[Downloads]:
    """Yield the files in some folders and files; zip files are unpacked, and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="treedot-") as aside:
        places = []
        for k, path in enumerate(map(Path, paths)):
            if not path.exists():
                raise SourceError(f"{path} does not exist")
            places.append(_unpacked(path, Path(aside, str(k))) if path.suffix in ZIPPED else path)
        yield Downloads(places, paths)


def _unpacked(path: Path, target: Path) -> Path:
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(target)
    except (zipfile.BadZipFile, OSError) as error:
        raise SourceError(f"cannot unpack {path}: {reason(error)}") from error
    return target


def text_lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """Return the lines of a text file; bytes that are not text become spaces."""
    text = path.read_bytes().decode(encoding, errors="replace").replace("\N{REPLACEMENT CHARACTER}", " ")
    return text.splitlines()
