"""The answers to coding agents: what is similar to a piece of code, and how two pieces differ.

An answer is text of at most 4,000 characters, since all of it enters the context of a language model.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import NamedTuple

from treedot._pages.printable import first_few, printable
from treedot.clones.report.text import count_of
from treedot.errors import LimitError, ParameterError, SourceError
from treedot.languages import LANGUAGES, language_of
from treedot.readers import parse_code
from treedot.search.comparison import compare as compared
from treedot.search.index.followed_index import FollowedIndex
from treedot.search.matches import CANDIDATES, CODE_THRESHOLD, Match, similarities_of
from treedot.search.reading import Reading, outermost, place_of
from treedot.search.sources import MAX_LINES, lines_difference, lines_of
from treedot.trees import Forest

MAX_CODE = 100_000  # characters of a piece of code
MAX_ANSWER = 4_000  # characters
MAX_RESULTS = 20
MAX_UNITS = 3  # units of a piece of code to search for
MAX_DIFF = 40  # lines of a difference to show
MAX_WIDTH = 100  # characters of a line to show
PARSING = 2.0  # processor seconds

_PLACE = re.compile(r"(?P<file>[^\n:]+(?::[^\n:]+)*?):(?P<line>\d{1,9})(-\d+)?( [^\n]*)?")


class Piece(NamedTuple):
    """A unit of code: a forest of one tree, and its lines."""

    tree: Forest
    lines: list[str]


def find_similar(index: FollowedIndex, code: str, language: str | None = None, k: int = 5) -> str:
    """Return the units of an index that are most similar to each unit of a piece of code.

    Raises one of treedot's errors if the code cannot be read, or an argument is out of range.
    """
    if not 1 <= k <= MAX_RESULTS:
        raise ParameterError(f"k must be from 1 to {MAX_RESULTS}, not {k}")
    name = _language(language, index.language)
    pieces = _outermost(code, name, index.reading)
    parts = [_results(index, piece, name, k, len(pieces) > 1) for piece in pieces[:MAX_UNITS]]
    if len(pieces) > MAX_UNITS:
        parts.append(
            f"Only the first {MAX_UNITS} of {len(pieces)} units were searched for: ask for the others."
        )
    return _short("\n".join([*parts, *_notes(index)]))


def compare(index: FollowedIndex | None, a: str, b: str, language: str | None = None) -> str:
    """Return how similar two pieces of code are, and where they differ.

    Each is code, or the place of a unit of the index, as ``find_similar`` gives it.
    """
    name = _language(language, index.language if index is not None else "python")
    x, y = _piece(index, a, name, "a"), _piece(index, b, name, "b")
    found = compared(x.tree, y.tree)
    agreement = "" if found.agreement is None else f"; {found.agreement:.2f} of the names and literals agree"
    text = [
        f"similarity {found.similarity:.2f}, cosine {found.cosine:.2f}{agreement}",
        "edit distance: not computed, the trees are too large" if found.edits is None
        else f"edit distance: {count_of(found.edits, 'node')} to insert, delete or relabel "
        f"({x.tree.n_nodes:,} and {y.tree.n_nodes:,} nodes)",
        _difference(x, y, name),
        *_changed_lines(x.lines, y.lines),
    ]  # fmt: skip
    return _short("\n".join(text))


def _results(index: FollowedIndex, piece: Piece, language: str, k: int, is_named: bool) -> str:
    """Return the results for one unit; with a headline if there are several."""
    found = _matches(index, piece.tree, k)
    near = [pair for pair in found if pair[1].likeness >= CODE_THRESHOLD]
    shown = f" to {_title(piece)}" if is_named else ""
    if not near:
        nearest = ""
        if found:
            unit, match = found[0]
            nearest = f"; the nearest is {place_of(unit, 0)}, similarity {match.similarity:.2f}"
        return f"Nothing similar{shown} among {len(index):,} {index.reading.unit} units{nearest}."
    head = [f"Similar{shown}:"] if is_named else []
    lines = [text for number, pair in enumerate(near, 1) for text in _result(number, piece, *pair, language)]
    return "\n".join(head + lines)


def _matches(index: FollowedIndex, tree: Forest, k: int) -> list[tuple[Forest, Match]]:
    """Return the best ``k`` units, ordered by both measures, with the measures."""
    units, cosines = index.search(tree, max(k, CANDIDATES))
    shared = similarities_of(tree, units, index.reading)
    matches = map(Match, range(len(units)), cosines.tolist(), shared.tolist())
    best = sorted(matches, key=lambda match: -match.rank)[:k]
    return [(units[[match.row]], match) for match in best]


def _result(number: int, piece: Piece, unit: Forest, match: Match, language: str) -> Iterator[str]:
    """Yield the lines about a result: its place, how similar it is, its first line and what differs."""
    other = _stored(unit, 0)
    yield f"{number}. {place_of(unit, 0)}: similarity {match.similarity:.2f}, cosine {match.cosine:.2f}"
    if other.lines:
        yield f"   {_line(other.lines[0].strip())}"
        yield f"   {_difference(piece, other, language)}"


def _difference(a: Piece, b: Piece, language: str) -> str:
    found = lines_difference(a.lines, b.lines, language)
    return f"lines not compared: more than {MAX_LINES}" if found is None else printable(str(found))


def _changed_lines(a: list[str], b: list[str]) -> Iterator[str]:
    """Yield the lines that are only in a, with ``-``, and only in b, with ``+``."""
    if max(len(a), len(b)) > MAX_LINES:
        return
    x, y = ([line.strip() for line in lines if line.strip()] for lines in (a, b))
    marked = [line for line in difflib.unified_diff(x, y, n=0, lineterm="") if line[:1] in "+-"][2:]
    yield from (_line(line) for line in marked[:MAX_DIFF])
    if len(marked) > MAX_DIFF:
        yield f"… and {len(marked) - MAX_DIFF} lines"


def _piece(index: FollowedIndex | None, text: str, language: str, name: str) -> Piece:
    """Return the unit that a text contains or names; a text of several units is one piece."""
    place = _PLACE.fullmatch(text.strip())
    if place is not None and index is not None:
        units = index.units_of(place["file"])
        if units is not None:
            text = "\n".join(_at_line(units, int(place["line"]), place["file"]).lines)
        elif language_of(place["file"]):
            raise SourceError(f"{name}: {printable(place['file'])} is not in the index: give code instead")
    reading = Reading()
    pieces = _outermost(text, language, reading, name, blurred=True)
    if len(pieces) == 1:
        return pieces[0]
    return _whole(text, language, reading, name, blurred=True)


def _at_line(units: Forest, line: int, file: str) -> Piece:
    """Return the innermost unit around a line."""
    places = zip(units.columns.get("start", ()), units.columns.get("end", ()), strict=True)
    around = [(start - end, i) for i, (start, end) in enumerate(places) if start <= line <= end]
    if not around:
        raise SourceError(f"{printable(file)}: no unit contains line {line}")
    return _stored(units, max(around)[1])


def _stored(units: Forest, i: int) -> Piece:
    """Return a unit of the index with its lines, none if its file cannot be read."""
    return Piece(units[[i]], lines_of(units, i))


def _outermost(
    code: str, language: str, reading: Reading, name: str = "code", *, blurred: bool = False
) -> list[Piece]:
    """Return the units of a piece of code without those inside others; the whole if it has none."""
    units = _parsed(code, language, reading, name, blurred=blurred)
    if not len(units):
        return [_whole(code, language, reading, name, blurred=blurred)]
    lines, starts, ends = code.split("\n"), units.columns["start"], units.columns["end"]
    found = [Piece(units[[i]], lines[starts[i] - 1 : ends[i]]) for i in outermost(units)]
    for piece in found:
        _check_syntax(piece.tree, language, name)
    return found


def _whole(code: str, language: str, reading: Reading, name: str, *, blurred: bool = False) -> Piece:
    whole = _parsed(code, language, reading._replace(unit="file"), name, blurred=blurred)
    if whole.n_nodes < 2:
        raise SourceError(f"{name} has no {language} code: comments cannot be compared")
    _check_syntax(whole, language, name)
    return Piece(whole, code.split("\n"))


def _parsed(code: str, language: str, reading: Reading, name: str, *, blurred: bool) -> Forest:
    if len(code) > MAX_CODE:
        raise LimitError(f"{name} has {len(code):,} characters (at most {MAX_CODE:,}): give a part of it")
    if not code.strip():
        raise SourceError(f"{name} is empty: give source code")
    settings = reading.code(min_nodes=1, max_seconds=PARSING, blurred=blurred)
    return parse_code(code, language, file=name, settings=settings)


def _check_syntax(tree: Forest, language: str, name: str) -> None:
    if errors := sum(tree.columns["errors"]):
        raise SourceError(
            f"{name} has {errors} syntax error{'s' * (errors > 1)} as {language} code: give whole functions "
            "or statements, or set the language"
        )


def _language(name: str | None, default: str) -> str:
    """Return a language, also given by another spelling or by a suffix of its files."""
    if not name:
        return default
    plain = name.strip().lower()
    found = plain if plain in LANGUAGES else language_of(f"code.{plain.lstrip('.')}")
    if found is None:
        raise ParameterError(f"unknown language {first_few([name])}: use one of {', '.join(LANGUAGES)}")
    return found


def _title(piece: Piece) -> str:
    name = (piece.tree.columns.get("name") or [""])[0]
    return printable(name) if name else f"the unit at line {piece.tree.columns['start'][0]}"


def _notes(index: FollowedIndex) -> Iterator[str]:
    if index.is_elsewhere:
        yield "Note: the files of the index are not below the current folder, so edits are not followed."
    if index.waiting:
        yield f"Note: {index.waiting:,} changed files are not read yet: ask again in a few seconds."


def _line(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= MAX_WIDTH else shown[: MAX_WIDTH - 1] + "…"


def _short(text: str) -> str:
    if len(text) <= MAX_ANSWER:
        return text
    end = "\n… cut: ask for fewer results or smaller pieces"
    return text[: MAX_ANSWER - len(end)] + end
