"""Read source code, pages and files of trees for ``index``, ``search``, ``similar`` and ``cluster``."""

from __future__ import annotations

import argparse
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import treedot as td
from treedot._pages.printable import first_few
from treedot._storage.files import standard_input
from treedot.cli.files_read import FilesRead
from treedot.cli.pipes import note
from treedot.errors import ParameterError, SourceError
from treedot.languages import language_of
from treedot.parameters import checked_integer
from treedot.readers.folders import OnSkip, Skipped
from treedot.search.reading import Reading

PAGE = "page"  # the unit of HTML
NO_UNITS = (
    "in folders, only source code is read, or with --unit page only HTML (see also --language, --min-nodes); "
    "for XML and JSON, name the files, or make one file of trees with treedot convert"
)
SNIPPET = "<snippet>"  # in place of the name of a file
PLACE = re.compile(r"(?P<file>.+?)::?(?P<part>[\w.~]+)")  # file:120 or file:Class.method


def asked_reading(options: argparse.Namespace, min_nodes: int = 1) -> Reading:
    """Return the settings that the options of a command give; ``min_nodes`` is the default of that option."""
    min_nodes = checked_integer("--min-nodes", options.min_nodes or min_nodes, at_least=1)
    if options.unit == PAGE and (options.exclude or options.include_vendored):
        raise ParameterError(
            "--exclude and --include-vendored apply to source code: for pages, add lines to .treedotignore"
        )
    return Reading(
        unit=options.unit or "function",
        min_nodes=min_nodes,
        language=options.language,
        exclude=tuple(options.exclude or ()),
        include_vendored=bool(options.include_vendored),
    )


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
    source file; without it, a folder in which no file can be read raises SourceError. Each of ``columns`` is
    a function that computes a column of that name from the path.
    """
    paths, read = list(paths), FilesRead(on_skip)
    if reading.unit == PAGE:
        pages = td.readers.read_html(paths, on_skip=read.skip)
        for file in pages.columns.get("file", ()):
            read.add(file)
        if only is None:
            read.check(paths, "HTML")
        for name, value in columns.items():
            pages.columns[name] = [value(file) for file in pages.columns["file"]]
        yield pages
        return
    code = [path for path in paths if is_code(path)]
    if code:
        for forest in td.iter_code(
            code,
            settings=reading.code(stubs=reading.include_vendored),
            language=reading.language,
            exclude=reading.exclude,
            include_vendored=reading.include_vendored,
            only=only or read.add,
            on_skip=read.skip,
            n_jobs=n_jobs,
        ):
            for name, value in columns.items():
                forest.columns[name] = [value(forest.columns["file"][0])] * len(forest)
            yield forest
        if only is None:
            read.check(code, reading.language or "source")
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
    file = text if place is None else place["file"]
    if "\n" not in file and Path(file).suffix and language_of(file):
        raise SourceError(f"cannot open {file}: no such file or folder")
    return _snippet(text, SNIPPET, reading, language, one, changes)


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
    """Return the innermost unit around a line number, or the first unit of a name.

    The last part of a name suffices if no other unit has it: ``read`` for the method ``Table.read``.
    """
    if "start" not in forest.columns:
        raise ParameterError(f"{file} is a file of trees, which have no lines or names: give the file only")
    if not part.isdecimal():
        return forest[[_named(list(forest.columns["name"]), part, file)]]
    line = int(part[:18])  # no file has a line number of more digits
    places = zip(forest.columns["start"], forest.columns["end"], strict=True)
    found = [(start - end, i) for i, (start, end) in enumerate(places) if start <= line <= end]
    if not found:
        raise SourceError(f"{file}: no unit contains line {part}")
    return forest[[max(found)[1]]]


def _named(names: list[str], part: str, file: str) -> int:
    """Return the number of the unit with a name; raise SourceError if it is unknown or ambiguous."""
    known = dict.fromkeys(filter(None, names))
    like = [name for name in known if name.endswith(f".{part}")]
    if part in known or len(like) == 1:
        return names.index(part if part in known else like[0])
    if like:
        raise SourceError(f"{file}: {part} is the name of several units: give one of {first_few(like)}")
    called = {name.rpartition(".")[2]: name for name in known} | {name: name for name in known}
    meant = "".join(f" (did you mean {called[name]}?)" for name in get_close_matches(part, called, 1))
    its = f"its units are {first_few(known)}" if known else "its units have no names"
    raise SourceError(f"{file}: no unit is called {part}{meant}; {its}")


def syntax_errors(query: td.Forest, text: str, language: str) -> str:
    """Return a message about the syntax errors of the query that a text stands for; "" if it has none."""
    counts = [count or 0 for count in query.columns.get("errors", ())]
    errors = sum(counts)
    if not errors:
        return ""
    first = next(i for i, count in enumerate(counts) if count)
    file, own, start, end = (query.columns[name][first] for name in ("file", "language", "start", "end"))
    is_text, own = file == SNIPPET, own or language
    near = _first_error(text.encode() if is_text else _content(file), own, start, end)
    return (
        f"{'the query' if is_text else file} has {errors} syntax error{'s' * (errors > 1)} as {own} code"
        f"{near}: for another language, use --language" + ("; for a file, check its path" if is_text else "")
    )


def _content(file: str) -> bytes:
    """Return the content of a file; nothing for standard input."""
    return Path(file).read_bytes() if os.path.isfile(file) else b""


def _first_error(source: bytes, language: str, start: int, end: int) -> str:
    """Return the place of the first syntax error in a range of lines, for a message; "" if unknown."""
    from treedot.readers.code.source_files import as_utf8
    from treedot.readers.code.syntax_errors import error_places

    places = error_places(as_utf8(source, language), language, "the query")
    inside = (place for place in places if start <= place[0] <= end)
    line, column = next(inside, (0, 0))
    return f", near line {line}, column {column}" if line else ""


def report_skipped(skipped: Skipped) -> None:
    """Print to stderr how many files were left out and why, if any."""
    if skipped.counts:
        note(f"left out {skipped}")
