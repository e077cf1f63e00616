"""Find the units of an index that are most similar to a snippet."""

from __future__ import annotations

import textwrap
import warnings
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Self

from treedot.clones.differences import Difference
from treedot.languages import LANGUAGES
from treedot.search.comparison import productions_of
from treedot.search.index.tree_index import TreeIndex
from treedot.search.matches import Match, find_matches, structure
from treedot.search.reading import Reading, main_language, place_of
from treedot.search.sources import is_as_indexed, lines_difference, lines_of
from treedot.serve.fields import AUTO, Value
from treedot.serve.inputs import guessed_format, read_input
from treedot.trees import Forest

NAMED = 3  # productions that differ and are named


class Source(NamedTuple):
    """The lines of a unit of source code, without their common indentation, and the number of the first."""

    lines: list[str]
    start: int

    @classmethod
    def of(cls, lines: list[str], unit: Forest) -> Self:
        """Return the source of a unit, given its lines."""
        return cls(textwrap.dedent("\n".join(lines)).split("\n"), unit.columns["start"][0])


class Query(NamedTuple):
    """What to search for: a tree, the format that it was read in, and its source if that is code."""

    tree: Forest
    format: str
    source: Source | None

    @classmethod
    def of(cls, index: TreeIndex, fields: Mapping[str, Value]) -> Self:
        """Read the snippet of a request as the units of an index were read."""
        reading = Reading.of(index.reading)
        text, format = str(fields["text"]), str(fields["text_format"])
        if format == AUTO and text.strip() and guessed_format(text) == "python":
            format = reading.language or language_of_index(index)
        tree, kind = read_input(text, format, "text", reading)
        if kind not in LANGUAGES:
            return cls(tree, kind, None)
        lines = text.split("\n")[tree.columns["start"][0] - 1 : tree.columns["end"][0]]
        return cls(tree, kind, Source.of(lines, tree))


class Result(NamedTuple):
    """A unit of an index, and how it differs from the query.

    The lists name constructs, without the texts of names and literals, that only one of both has. The source
    and the difference of lines are None unless both are code, and the file of the unit is as it was indexed.
    """

    row: int
    place: str
    language: str | None
    cosine: float
    similarity: float
    only_query: list[str]
    only_found: list[str]
    difference: Difference | None
    source: Source | None
    tree: Forest  # without the texts of names and literals

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        shown = {name: value for name, value in self._asdict().items() if name not in ("source", "tree")}
        return shown | {"difference": self.difference and vars(self.difference)}


class Found(NamedTuple):
    """The query, and the results of a search, as ``treedot search`` orders and drops them."""

    query: Query
    results: list[Result]

    @classmethod
    def of(cls, index: TreeIndex, fields: Mapping[str, Value]) -> Self:
        """Search an index with the settings of a request."""
        query = Query.of(index, fields)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about grammars of other versions
            (matches,) = find_matches(index, query.tree, int(fields["k"]))
        units, reading = index.forest([match.row for match in matches]), Reading.of(index.reading)
        asked, bare = productions_of(structure(query.tree, reading)), structure(units, reading)
        results = [
            _result(query.source, asked, match, units[[j]], bare[[j]]) for j, match in enumerate(matches)
        ]
        return cls(query, results)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as JSON values."""
        return {
            "format": self.query.format,
            "nodes": self.query.tree.n_nodes,
            "results": [one.to_dict() for one in self.results],
        }


@lru_cache(maxsize=4)  # it reads a column of all trees
def language_of_index(index: TreeIndex) -> str:
    """Return the language of most units of an index."""
    known = [language for language in index.grammars if language in LANGUAGES]
    return known[0] if len(known) == 1 else main_language(index.column("language"))


def _result(asked: Source | None, ours: Counter[str], match: Match, unit: Forest, bare: Forest) -> Result:
    language = unit.columns.get("language", [None])[0]
    lines = lines_of(unit) if is_as_indexed(unit) else []
    source = Source.of(lines, unit) if lines else None
    theirs = productions_of(bare)
    return Result(
        match.row,
        place_of(unit, 0),
        language,
        round(match.cosine, 4),
        round(match.similarity, 4),
        _named(ours - theirs),
        _named(theirs - ours),
        lines_difference(asked.lines, source.lines, language) if asked and source else None,
        source,
        bare,
    )


def _named(productions: Counter[str]) -> list[str]:
    return [text for text, _ in sorted(productions.items(), key=lambda item: (-item[1], item[0]))[:NAMED]]
