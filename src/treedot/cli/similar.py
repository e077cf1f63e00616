"""The command ``treedot similar``: how similar two pieces of code or trees are."""

from __future__ import annotations

import argparse
import json

import treedot as td
from treedot._pages.printable import printable
from treedot.cli.options import QUERY_HELP, add_language, add_no_cache, add_text_or_json, add_unpacking
from treedot.cli.units import Reading, place_of, read_query
from treedot.errors import ParameterError
from treedot.languages import language_of

EXPLAINED = 12  # productions of each kind that are listed


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    for name in ("a", "b"):
        command.add_argument(name, metavar=name.upper(), help=QUERY_HELP)
    command.add_argument(
        "--explain", action="store_true", help="also list the productions of both, and of only one"
    )
    add_unpacking(command)
    add_no_cache(command)
    add_language(command, "of what is not a file (default: that of the other one, or python)")
    add_text_or_json(command)


def run(options: argparse.Namespace) -> None:
    """Measure how similar two pieces of code or trees are.

    Print how similar two files, units, pieces of code or trees are: the share of the productions of either
    that occur in both, the cosine of their rows, how far names and literals agree, and the edit distance
    where the trees are small.

    Example: treedot similar src/a.py:read src/b.py:load --explain
    """
    texts = (options.a, options.b)
    known = (language_of(text.split(":")[0]) for text in texts)
    language = options.language or next(filter(None, known), "python")
    a, b = (read_query(text, Reading(), language, one=True, blurred=True) for text in texts)
    for text, forest in zip(texts, (a, b), strict=True):
        if len(forest) != 1:
            raise ParameterError(f"{text} holds {len(forest)} trees: give one, or use treedot search")
    found = td.compare(a, b)
    if options.format == "json":
        facts = found._asdict() | {"a": place_of(a, 0), "b": place_of(b, 0)}
        print(json.dumps(facts, indent=2))
        return
    print(f"A: {place_of(a, 0)}, {a.n_nodes} nodes\nB: {place_of(b, 0)}, {b.n_nodes} nodes\n")
    print(f"similarity     {found.similarity:.3f}  of all productions in either, this share occurs in both")
    print(f"cosine         {found.cosine:.3f}  of their rows of fragments")
    if found.agreement is not None:
        print(f"agreement      {found.agreement:.3f}  of all names and literals in either, the share in both")
    edits = "too large to tell" if found.edits is None else f"{found.edits:,}"
    print(f"edit distance  {edits}  nodes to insert, delete or label anew")
    if options.explain:
        _explain("in both", found.shared)
        _explain("in A alone", found.only_a)
        _explain("in B alone", found.only_b)


def _explain(title: str, productions: dict[str, int]) -> None:
    from treedot.clones.report.text import count_of

    print(f"\n{title}: {count_of(sum(productions.values()), 'production')}")
    for text, times in list(productions.items())[:EXPLAINED]:
        print(f"  {times:4d} × {printable(text)}")
    if len(productions) > EXPLAINED:
        print(f"         and {len(productions) - EXPLAINED:,} others")
