"""Read source code, pages and files of trees for ``index``, ``search``, ``similar`` and ``cluster``."""

from __future__ import annotations

import argparse
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import treedot as td
from treedot._pages.printable import printable
from treedot._storage.files import standard_input
from treedot.cli.pipes import note
from treedot.errors import ParameterError, SourceError
from treedot.languages import LANGUAGES, language_of
from treedot.parameters import checked_integer
from treedot.readers.folders import OnSkip, Skipped

PAGE = "page"  # the unit of HTML
NO_UNITS = (
    "in folders, only source code is read, or with --unit page only HTML (see also --language, --min-nodes); "
    "for XML and JSON, name the files, or make one file of trees with treedot convert"
)
PLACE = re.compile(r"(?P<file>.+?)::?(?P<part>[\w.]+)")  # file:120 or file:Class.method


class Reading(NamedTuple):
    """Settings that say how files become trees, the same for an index and its queries."""

    unit: str = "function"
    identifiers: str = "blur"
    literals: str = "blur"
    min_nodes: int = 1
    language: str | None = None

    @classmethod
    def asked(cls, options: argparse.Namespace) -> Reading:
        """Return the settings that the options of a command give."""
        min_nodes = checked_integer("--min-nodes", options.min_nodes or 1, at_least=1)
        return cls(unit=options.unit or "function", min_nodes=min_nodes, language=options.language)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Reading:
        """Return the settings stored in an index; raise SourceError if they are invalid."""
        known = {name: settings[name] for name in cls._fields if name in settings}
        if known.get("language") not in (None, *LANGUAGES):
            raise SourceError(f"the index is damaged: unknown language {known['language']!r}")
        return cls(**known)

    def code(self, **changes: Any) -> td.readers.CodeSettings:
        """Return the settings for source code."""
        settings = {name: value for name, value in self._asdict().items() if name != "language"}
        return td.readers.CodeSettings(**settings | changes)


def is_code(path: str) -> bool:
    """Return whether a path is read as source code: a folder, or a file in a known language."""
    return os.path.isdir(path) or language_of(path) is not None


def iter_units(
    paths: Iterable[str],
    reading: Reading,
    *,
    only: Callable[[str], bool] | None = None,
    on_skip: OnSkip | None = None,
    n_jobs: int | None = None,
    **columns: Callable[[str], Any],
) -> Iterator[td.Forest]:
    """Yield the units of source files and folders, then the trees of other files, with a column ``file``.

    With the unit ``page``, yield the pages of HTML files and folders. ``only`` returns whether to read a
    source file. Each of ``columns`` is a function that computes a column of that name from the path.
    """
    paths = list(paths)
    if reading.unit == PAGE:
        pages = td.readers.read_html(paths, on_skip=on_skip)
        for name, value in columns.items():
            pages.columns[name] = [value(file) for file in pages.columns["file"]]
        yield pages
        return
    code = [path for path in paths if is_code(path)]
    if code:
        for forest in td.iter_code(
            code,
            settings=reading.code(),
            language=reading.language,
            only=only,
            on_skip=on_skip,
            n_jobs=n_jobs,
        ):
            for name, value in columns.items():
                forest.columns[name] = [value(forest.columns["file"][0])] * len(forest)
            yield forest
    for path in paths:
        if not is_code(path):
            file = os.path.normpath(path).replace(os.sep, "/")
            for forest in td.iter_trees(path):
                forest.columns["file"] = [file] * len(forest)
                yield forest


def read_query(text: str, reading: Reading, language: str, *, one: bool = False, **changes: Any) -> td.Forest:
    """Return the units that the text of a query names or contains.

    The text is ``-`` for standard input; a file; a unit of a file, ``file:line`` or ``file:name``; a tree in
    brackets; or source code in ``language``. With ``one``, a file or text of several units becomes one tree.
    """
    if text == "-":
        return _snippet(_standard_input(), "<stdin>", reading, language, one, changes)
    if os.path.exists(text):
        return _file(text, reading, one, changes)
    place = PLACE.fullmatch(text)
    if place is not None and os.path.exists(place["file"]):
        return _part(_file(place["file"], reading, False, changes), place["part"], place["file"])
    if "\n" not in text and Path(text).suffix and language_of(text):
        raise SourceError(f"cannot open {text}: no such file")
    return _snippet(text, "<snippet>", reading, language, one, changes)


def _standard_input() -> str:
    return standard_input().read().decode("utf-8-sig", errors="replace")


def _file(path: str, reading: Reading, one: bool, changes: dict[str, Any]) -> td.Forest:
    if not is_code(path):
        found = td.read_trees(path)
    else:
        whole = reading.code(**changes | {"unit": "file"})
        settings = whole if one else reading.code(**changes)
        found = td.Forest.concat(td.iter_code(path, settings=settings))
        if not len(found) and not one:
            found = td.Forest.concat(td.iter_code(path, settings=whole))
    if not len(found):
        raise SourceError(f"{path}: no trees found")
    return found


def _snippet(
    text: str, name: str, reading: Reading, language: str, one: bool, changes: dict[str, Any]
) -> td.Forest:
    if text.lstrip().startswith("("):
        return td.read_trees([text])
    if text.lstrip().startswith("<"):
        return td.read_trees(io.BytesIO(text.encode()), "html")
    if not text.strip():
        raise SourceError(f"{name} is empty: give source code or a tree in brackets")
    found = td.readers.parse_code(
        text, language, file=name, settings=reading.code(**changes | {"min_nodes": 1})
    )
    if not len(found) or (one and len(found) > 1):
        whole = reading.code(**changes | {"min_nodes": 1, "unit": "file"})
        found = td.readers.parse_code(text, language, file=name, settings=whole)
    return found


def _part(forest: td.Forest, part: str, file: str) -> td.Forest:
    """Return the innermost unit around a line number, or the first unit of a name."""
    if "start" not in forest.columns:
        raise ParameterError(f"{file} is a file of trees, which have no lines or names: give the file only")
    places = zip(forest.columns["start"], forest.columns["end"], forest.columns["name"], strict=True)
    if part.isdecimal():
        line = int(part[:18])  # no file has a line number of more digits
        found = [(start - end, i) for i, (start, end, _) in enumerate(places) if start <= line <= end]
        found.sort(reverse=True)
    else:
        found = [(0, i) for i, (_, _, name) in enumerate(places) if name == part]
    if not found:
        raise SourceError(f"{file}: no unit at {part}")
    return forest[[found[0][1]]]


def main_language(values: Iterable[Any]) -> str:
    """Return the language of most units, given their languages; Python if there are none."""
    counts = Counter(value for value in values if isinstance(value, str) and value in LANGUAGES)
    return max(counts, key=lambda name: (counts[name], name), default="python")


def place_of(forest: td.Forest, i: int) -> str:
    """Return the place of a unit, ``file:start-end name``; for a tree without lines, its brackets."""
    return printable(_place(forest, i))


def _place(forest: td.Forest, i: int) -> str:
    row = {name: values[i] for name, values in forest.columns.items()}
    if row.get("start") is not None and row.get("end") is not None:
        return f"{row.get('file')}:{row['start']}-{row['end']} {row.get('name') or ''}".rstrip()
    text = str(forest[i])
    short = text if len(text) <= 70 else text[:69] + "…"
    return f"{row['file']}: {short}" if row.get("file") else short


def report_skipped(skipped: Skipped) -> None:
    """Print to stderr how many files were left out and why, if any."""
    if skipped.counts:
        note(f"left out {skipped}")
