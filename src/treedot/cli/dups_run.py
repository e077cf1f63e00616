"""The run that a report of near-duplicates is about: its project, settings, files and date."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from treedot.cli.files_read import FilesRead
from treedot.clones.report.contents import About
from treedot.clones.report.text import count_of

MARKS = (".git", "pyproject.toml", "treedot.toml", "package.json", "Cargo.toml", "go.mod", "pom.xml")
SETTINGS = (
    "unit",
    "threshold",
    "min_nodes",
    "blocks",
    "language",
    "exclude",
    "include_vendored",
    "tests",
    "changed_since",
    "baseline",
    "top",
)


def run_of(options: argparse.Namespace, read: FilesRead, units: int) -> About:
    """Return what a report says about a run of the command; ``units`` were compared."""
    return About(
        project=_project(options.paths).name,
        root=Path.cwd().as_posix(),
        date=_day(),
        paths=tuple(map(str, options.paths)),
        settings={name.replace("_", "-"): text for name in SETTINGS if (text := _shown(options, name))},
        left_out=read.skip.counts,
        lines=_line_counts(read),
        units=f"{count_of(units, options.unit)} in {count_of(len(read), 'file')}",
    )


def _shown(options: argparse.Namespace, name: str) -> str:
    value = getattr(options, name)
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, list):
        return " ".join(value)
    if name == "baseline" and value is not None:  # from the settings, it is absolute
        value = os.path.relpath(value)
    return "" if value is None else str(value)


def _project(paths: Iterable[str]) -> Path:
    """Return the nearest folder around the paths that looks like a project, or their common folder."""
    common = Path(os.path.commonpath([os.path.realpath(path) for path in paths]))
    folder = common if common.is_dir() else common.parent
    around = (folder, *folder.parents)
    return next((place for place in around if any((place / mark).exists() for mark in MARKS)), folder)


def _day() -> str:
    """Return the date; SOURCE_DATE_EPOCH overrides it, for reproducible files."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = float(seconds) if seconds.isdecimal() else time.time()
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def _line_counts(files: Iterable[str]) -> dict[str, int]:
    return {file: _lines(file) for file in files}


def _lines(file: str) -> int:
    """Return the number of lines of a file; 0 if it was deleted since it was read."""
    try:
        content = Path(file).read_bytes()
    except OSError:
        return 0
    return content.count(b"\n") + (content[-1:] not in (b"", b"\n"))
