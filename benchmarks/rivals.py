"""Other programs that find duplicated code, run if they are installed: jscpd and pyscn."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Place(NamedTuple):
    """A range of lines of a file."""

    file: str
    start: int
    end: int

    def touches(self, other: Place) -> bool:
        """Return whether two places share a line."""
        return self.file == other.file and self.start <= other.end and other.start <= self.end


Pairs = list[tuple[Place, Place]]


def jscpd(folder: Path, *options: str) -> Pairs:
    """Return the pairs that jscpd reports, ordered by tokens."""
    with tempfile.TemporaryDirectory() as out:
        command = ["jscpd", "--reporters", "json", "--output", out, "--silent", *options, "."]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        found = json.loads(Path(out, "jscpd-report.json").read_bytes())["duplicates"]
    found.sort(key=lambda pair: -pair["tokens"])
    return [(_jscpd_place(pair["firstFile"]), _jscpd_place(pair["secondFile"])) for pair in found]


def _jscpd_place(side: dict[str, Any]) -> Place:
    return Place(side["name"].removeprefix("./"), side["start"], side["end"])


def pyscn(folder: Path) -> Pairs:
    """Return the pairs that pyscn reports, ordered by similarity and then by size."""
    command = ["pyscn", "analyze", "--json", "--select", "clones", "--output", "-", "."]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True)
    found = json.loads(done.stdout)["clone"]["clone_pairs"] or []
    found.sort(key=lambda pair: (-pair["similarity"], -pair["clone1"]["size"]))
    return [(_pyscn_place(pair["clone1"]), _pyscn_place(pair["clone2"])) for pair in found]


def _pyscn_place(side: dict[str, Any]) -> Place:
    at = side["location"]
    return Place(at["file_path"].removeprefix("./"), at["start_line"], at["end_line"])


BLURRED = ("--ignore-identifiers", "--ignore-literals")
RIVALS: dict[str, tuple[str, Callable[[Path], Pairs]]] = {  # by name: the program, and how to run it
    "jscpd": ("jscpd", jscpd),
    "jscpd, names ignored": ("jscpd", lambda folder: jscpd(folder, *BLURRED)),
    "jscpd, names ignored, gaps of 5": (
        "jscpd",
        lambda folder: jscpd(folder, *BLURRED, "--max-gap-lines", "5"),
    ),
    "pyscn": ("pyscn", pyscn),
}


def installed() -> Iterator[tuple[str, Callable[[Path], Pairs]]]:
    """Yield the names of the installed programs, and how to run them."""
    for name, (program, run) in RIVALS.items():
        if shutil.which(program):
            yield name, run
