"""The command ``treedot similar``: measure the similarity of two pieces of code or trees."""

from __future__ import annotations

import argparse
import json

import treedot as td
from treedot._pages.printable import printable
from treedot.cli.options import QUERY_HELP, add_language, add_no_cache, add_text_or_json, add_unpacking
from treedot.cli.pipes import note
from treedot.cli.units import read_query, syntax_errors
from treedot.errors import ParameterError
from treedot.languages import language_of
from treedot.search.reading import Reading, place_of

EXPLAINED = 12  # listed productions in both, in A and in B


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    for name in ("a", "b"):
        command.add_argument(name, metavar=name.upper(), help=QUERY_HELP)
    command.add_argument(
        "--explain", action="store_true", help="also list the productions in both, in A only and in B only"
    )
    add_unpacking(command)
    add_no_cache(command)
    add_language(command, "language of code that is not in a file", "that of the other side, or python")
    add_text_or_json(command)


def run(options: argparse.Namespace) -> None:
    """Measure the similarity of two pieces of code or trees.

    Print the similarity of two files, functions, pieces of code or trees (the productions in both, as a share
    of those in either), the cosine of their rows of fragments, the same share of names and literals, and the
    edit distance unless the trees are large.

    Example: treedot similar src/a.py:read src/b.py:load --explain
    """
    texts = (options.a, options.b)
    known = (language_of(text.split(":")[0]) for text in texts)
    language = options.language or next(filter(None, known), "python")
    a, b = (read_query(text, Reading(), language, one=True, blurred=True) for text in texts)
    for text, forest in zip(texts, (a, b), strict=True):
        if len(forest) != 1:
            raise ParameterError(f"{text} has {len(forest)} trees: give one tree, or use treedot search")
        if errors := syntax_errors(forest, text, language):
            note(errors)
    found = td.compare(a, b)
    if options.format == "json":
        facts = found._asdict() | {"a": place_of(a, 0), "b": place_of(b, 0)}
        print(json.dumps(facts, indent=2))
        return
    print(f"A: {place_of(a, 0)}, {a.n_nodes} nodes\nB: {place_of(b, 0)}, {b.n_nodes} nodes\n")
    print(f"similarity     {found.similarity:.3f}  productions in both, as a share of those in either")
    print(f"cosine         {found.cosine:.3f}  of their rows of fragments")
    if found.agreement is not None:
        print(f"agreement      {found.agreement:.3f}  the same share of names and literals")
    edits = "not computed" if found.edits is None else f"{found.edits:,}"
    why = "the trees are too large" if found.edits is None else "nodes to insert, delete or relabel"
    print(f"edit distance  {edits}  {why}")
    if options.explain:
        _explain("in both", found.shared)
        _explain("in A only", found.only_a)
        _explain("in B only", found.only_b)


def _explain(title: str, productions: dict[str, int]) -> None:
    """Print the most frequent of some productions, given how often each occurs."""
    from treedot.clones.report.text import count_of

    print(f"\n{title}: {count_of(sum(productions.values()), 'production')}")
    for text, times in list(productions.items())[:EXPLAINED]:
        print(f"  {times:4d} × {printable(text)}")
    if len(productions) > EXPLAINED:
        print(f"         and {len(productions) - EXPLAINED:,} others")
