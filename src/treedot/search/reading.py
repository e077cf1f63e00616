"""The settings with which an index reads files, which its queries share; the places of units."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from treedot._pages.printable import printable
from treedot.errors import SourceError
from treedot.languages import LANGUAGES, languages_of
from treedot.readers.code.foreign_folders import foreign_folder
from treedot.readers.code.settings import CodeSettings
from treedot.readers.folders import walk

if TYPE_CHECKING:
    from treedot.trees import Forest

_STORED = ("unit", "identifiers", "literals", "min_nodes", "language")


class Reading(NamedTuple):
    """Settings that say how files become trees, the same for an index and its queries."""

    unit: str = "function"
    identifiers: str = "blur"
    literals: str = "blur"
    min_nodes: int = 1
    language: str | None = None
    exclude: tuple[str, ...] = ()
    include_vendored: bool = False

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Reading:
        """Return the settings stored in an index; raise SourceError if they are invalid."""
        known = {name: settings[name] for name in cls._fields if name in settings}
        if known.get("language") not in (None, *LANGUAGES):
            raise SourceError(f"the index is damaged: unknown language {known['language']!r}")
        patterns = known.get("exclude", [])
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise SourceError(
                f"the index is damaged: exclude must be a list of strings, not {patterns!r:.40}"
            )
        return cls(**known | {"exclude": tuple(patterns)})

    def like(self, settings: Any) -> Reading:
        """Return these settings, but with the treatment of names and literals from stored settings."""
        if not isinstance(settings, dict):
            raise SourceError(f"the settings of reading are damaged: {settings!r:.80}")
        same = {name: settings[name] for name in ("identifiers", "literals") if name in settings}
        return self._replace(**same)

    def stored(self) -> dict[str, Any]:
        """Return the settings as an index stores them; those of files only if they are given."""
        files = {"exclude": list(self.exclude), "include_vendored": self.include_vendored}
        return {name: getattr(self, name) for name in _STORED} | {k: v for k, v in files.items() if v}

    def files(self, paths: Iterable[str], exclude: Iterable[str] = ()) -> Iterator[str]:
        """Yield the source files at some paths, also without those that further patterns exclude."""

        def wanted(name: str) -> bool:
            languages = languages_of(name)
            return bool(languages) if self.language is None else self.language in languages

        leave_out = None if self.include_vendored else foreign_folder
        for file in walk(paths, wanted, None, [*self.exclude, *exclude], leave_out):
            yield file.path

    def code(self, **changes: Any) -> CodeSettings:
        """Return the settings for source code."""
        settings = {name: getattr(self, name) for name in _STORED if name != "language"}
        return CodeSettings(**settings | changes)


def digest_of(path: str) -> str:
    """Return a digest of the content of a file; an empty text if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError:
        return ""


def main_language(values: Iterable[Any]) -> str:
    """Return the language of most units, given their languages; Python if there are none."""
    counts = Counter(value for value in values if isinstance(value, str) and value in LANGUAGES)
    return max(counts, key=lambda name: (counts[name], name), default="python")


def outermost(units: Forest) -> list[int]:
    """Return the numbers of the units of one text that are not inside others, in their order."""
    found, last = [], 0
    for i, (start, end) in enumerate(zip(units.columns["start"], units.columns["end"], strict=True)):
        if start > last or end > last:
            found.append(i)
            last = max(last, end)
    return found


def place_of(forest: Forest, i: int) -> str:
    """Return the place of a unit, ``file:start-end name``; for a tree without lines, its brackets."""
    return printable(_place(forest, i))


def _place(forest: Forest, i: int) -> str:
    row = {name: values[i] for name, values in forest.columns.items()}
    if row.get("start") is not None and row.get("end") is not None:
        return f"{row.get('file')}:{row['start']}-{row['end']} {row.get('name') or ''}".rstrip()
    text = str(forest[i])
    short = text if len(text) <= 70 else text[:69] + "…"
    return f"{row['file']}: {short}" if row.get("file") else short
