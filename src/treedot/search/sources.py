"""The lines of units of source code, and how those of two units differ."""

from __future__ import annotations

from collections.abc import Sequence

from treedot.clones.differences import Difference, difference
from treedot.languages import LANGUAGES
from treedot.readers.code.source_files import source_lines
from treedot.search.reading import digest_of
from treedot.trees import Forest

MAX_LINES = 400  # lines of each text to align


def lines_of(units: Forest, i: int = 0) -> list[str]:
    """Return the lines of a unit, none if it is not source code or its file cannot be read."""
    file, language, start, end = (
        units.columns.get(name, [None])[i] for name in ("file", "language", "start", "end")
    )
    return source_lines(file, language, slice(start - 1, end)) if language in LANGUAGES else []


def is_as_indexed(unit: Forest) -> bool:
    """Return whether the file of a unit has the content that the index was made of."""
    file, digest = (unit.columns.get(name, [None])[0] for name in ("file", "digest"))
    return isinstance(file, str) and isinstance(digest, str) and digest_of(file) == digest != ""


def lines_difference(a: Sequence[str], b: Sequence[str], language: str) -> Difference | None:
    """Return how the lines of two texts differ; None if there are too many to align."""
    if max(len(a), len(b)) > MAX_LINES:
        return None
    return difference(a, b, LANGUAGES[language])
