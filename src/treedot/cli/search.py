"""The command ``treedot search``: find the units of an index that are most similar to a query."""

from __future__ import annotations

import argparse
import json
from typing import Any

import treedot as td
from treedot.cli.options import (
    QUERY_HELP,
    add_jobs,
    add_language,
    add_no_cache,
    add_text_or_json,
    add_unpacking,
)
from treedot.cli.units import Reading, main_language, place_of, read_query
from treedot.parameters import checked_integer


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("index", metavar="INDEX", help="a file that treedot index wrote")
    command.add_argument("query", metavar="QUERY", help=QUERY_HELP)
    command.add_argument("-k", type=int, default=10, metavar="K", help="number of results (default: 10)")
    add_unpacking(command)
    add_no_cache(command)
    add_language(command, "language of a query that is not a file", "that of most units in the index")
    add_text_or_json(command)
    add_jobs(command)


def run(options: argparse.Namespace) -> None:
    """Find the units of an index that are most similar to a query.

    Print the units of the index that are most similar to each unit of the query, with two numbers: the cosine
    of their rows of fragments, by which they are sorted, and their similarity: the productions in both, as a
    share of those in either.

    Example: treedot search code.index src/parser.py:120
    """
    found = td.TreeIndex.open(options.index)
    checked_integer("-k", options.k, at_least=1)
    reading = Reading.of(found.reading)
    language = options.language or reading.language or main_language(found.column("language"))
    queries = read_query(options.query, reading, language)
    rows, cosines = found.search(queries, options.k, n_jobs=options.jobs)
    answers: list[dict[str, Any]] = [
        {
            "query": place_of(queries, i),
            "found": _answer(queries[[i]], found.forest(rows[i]), rows[i].tolist(), cosines[i].tolist()),
        }
        for i in range(len(queries))
    ]
    if options.format == "json":
        print(json.dumps(answers, indent=2))
        return
    for answer in answers:
        print(f"{answer['query']}\n  cosine  similarity")
        for one in answer["found"]:
            print(f"  {one['cosine']:6.3f}  {one['similarity']:10.3f}  {one['place']}")


def _answer(
    query: td.Forest, trees: td.Forest, rows: list[int], cosines: list[float]
) -> list[dict[str, Any]]:
    return [
        {
            **{name: values[j] for name, values in trees.columns.items() if name != "digest"},
            "row": row,
            "cosine": round(cosine, 4),
            "similarity": round(td.similarity(query, trees[[j]]), 4),
            "place": place_of(trees, j),
        }
        for j, (row, cosine) in enumerate(zip(rows, cosines, strict=True))
    ]
