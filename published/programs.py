"""POJ-104: programs in C++ that solve 104 problems, parsed once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from treedot import Forest, iter_code
from treedot._runtime.array_types import IntArray
from treedot.errors import SourceError
from treedot.readers import CodeSettings
from treedot.readers.code.grammars import grammar_versions

LAYOUT = (
    "DIR holds POJ-104, a folder for each problem:\n"
    "  git clone https://github.com/guilhermeivo/dataset-poj-104 DIR/dataset-poj-104"
)
FOLDER = "dataset-poj-104/codexglue"
SETTINGS = CodeSettings(unit="file", identifiers="blur")  # literals are kept


class Programs:
    """The programs of POJ-104, each a tree without names; byte-identical copies in a problem are left out.

    Parameters
    ----------
    data : Path
        The folder of the data.
    out : Path
        The folder that keeps the parsed trees.
    """

    def __init__(self, data: Path, out: Path) -> None:
        self._folder, self._out = data / FOLDER, out
        if not self._folder.is_dir():
            raise SourceError(f"{self._folder} is not a folder.\n{LAYOUT}")

    @cached_property
    def files(self) -> list[Path]:
        """The programs, in the order of their problems and numbers."""
        return list(_without_copies(self._folder))

    @cached_property
    def digest(self) -> str:
        """A name for the content of the files, for what parsed them, and how."""
        parser = sorted(grammar_versions({"cpp"}).items()), SETTINGS
        found = hashlib.sha256(repr(parser).encode())
        for path in self.files:
            found.update(str(path.relative_to(self._folder)).encode())
            found.update(path.read_bytes())
        return found.hexdigest()[:16]

    @cached_property
    def trees(self) -> Forest:
        """The trees, parsed, or read from where they were kept."""
        kept = self._out / f"programs-{self.digest}.parquet"
        if not kept.exists():
            Forest.concat(iter_code(self.files, settings=SETTINGS, n_jobs=-1)).save(kept)
        return Forest.load(kept)

    @cached_property
    def problems(self) -> IntArray:
        """The number of the problem of each tree."""
        return np.array([int(Path(file).parent.name) for file in self.trees.columns["file"]])


def _without_copies(folder: Path) -> Iterator[Path]:
    for problem in sorted((path for path in folder.iterdir() if path.name.isdecimal()), key=_number):
        seen = set[bytes]()
        for path in sorted(problem.glob("*.cpp"), key=_number):
            content = path.read_bytes()
            if content not in seen:
                seen.add(content)
                yield path


def _number(path: Path) -> int:
    return int(path.stem)
