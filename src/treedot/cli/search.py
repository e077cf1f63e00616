"""The command ``treedot search``: find the units of an index that are most similar to a query."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import treedot as td
from treedot.cli.options import (
    QUERY_HELP,
    add_jobs,
    add_language,
    add_no_cache,
    add_text_or_json,
    add_unpacking,
)
from treedot.cli.pipes import note
from treedot.cli.units import read_query, syntax_errors
from treedot.errors import SourceError
from treedot.parameters import checked_integer
from treedot.search.reading import Reading, main_language, place_of

if TYPE_CHECKING:
    from treedot.search.matches import Match

NONE = "no unit of the index is similar (--threshold 0 lists the nearest)"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("index", metavar="INDEX", help="a file that treedot index wrote")
    command.add_argument("query", metavar="QUERY", help=QUERY_HELP)
    command.add_argument(
        "-k", type=int, default=10, metavar="K", help="largest number of results (default: 10)"
    )
    command.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="leave out units with a lower similarity, unless their cosine is at least half of it (default: "
        "0.55 for source code; 0 otherwise, and if the index holds a metric)",
    )
    command.add_argument(
        "--expand",
        type=int,
        default=0,
        metavar="K",
        help="of an index with a metric: add to the query its K nearest units, then search again. This helps "
        "to find all of a large family, and leads away from a small one",
    )
    add_unpacking(command)
    add_no_cache(command)
    add_language(command, "language of a query that is not a file", "that of most units in the index")
    add_text_or_json(command)
    add_jobs(command)


def run(options: argparse.Namespace) -> None:
    """Find the units of an index that are most similar to a query.

    Print the units of the index that are most similar to each unit of the query, with two numbers: the cosine
    of their rows of fragments, in which rare names and constructs count most, and their similarity: of the
    productions in either, the share in both, whatever the names and literals. They are sorted by both, and
    left out if both are low (--threshold). Units that share no fragment with the query are left out, too. If
    the index holds a metric, the cosine is the learned similarity, by which units are sorted, and those whose
    cosine is not above 0 are left out.

    Example: treedot search code.index src/parser.py:120
    """
    from treedot.search.matches import find_matches

    found = td.TreeIndex.open(options.index)
    checked_integer("-k", options.k, at_least=1)
    reading = Reading.of(found.reading)
    language = options.language or reading.language or main_language(found.column("language"))
    queries = read_query(options.query, reading, language)
    matches = find_matches(
        found,
        queries,
        options.k,
        threshold=options.threshold,
        expand=options.expand,
        n_jobs=options.jobs,
    )
    if errors := syntax_errors(queries, options.query, language):
        if not any(matches):
            raise SourceError(errors)
        note(errors)
    answers: list[dict[str, Any]] = [
        {"query": place_of(queries, i), "found": _answer(found, of_query)}
        for i, of_query in enumerate(matches)
    ]
    if options.format == "json":
        print(json.dumps(answers, indent=2))
        return
    for answer in answers:
        print(answer["query"])
        print("  cosine  similarity" if answer["found"] else f"  {NONE}")
        for one in answer["found"]:
            print(f"  {one['cosine']:6.3f}  {one['similarity']:10.3f}  {one['place']}")


def _answer(index: td.TreeIndex, matches: list[Match]) -> list[dict[str, Any]]:
    trees = index.forest([match.row for match in matches])
    return [
        {
            **{name: values[j] for name, values in trees.columns.items() if name != "digest"},
            "row": match.row,
            "cosine": round(match.cosine, 4),
            "similarity": round(match.similarity, 4),
            "place": place_of(trees, j),
        }
        for j, match in enumerate(matches)
    ]
