"""HTML, XML and JSON as targets, with every setting of their readers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from fuzz.readers import check_forest, check_reader, check_round_trip
from fuzz.seeds import read_seeds
from fuzz.target import FileTarget, Target, require
from fuzz.tokens import CODE, MARKUP, Syntax, mutate_text
from treedot import Forest, TreedotError
from treedot.parameters import DOCUMENT_UNITS, POLICIES
from treedot.readers import read_html, read_json, read_xml


def choose(data: bytes, choices: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Return settings derived from the bytes of a case."""
    random = Random(zlib.crc32(data))
    return {name: random.choice(values) for name, values in choices.items()}


def check_places(forest: Forest) -> None:
    """Raise if the columns do not give the lines of every tree."""
    columns = forest.columns
    require(all(len(column) == len(forest) for column in columns.values()), "a column is too short")
    lines = zip(columns.get("start", []), columns.get("end", []), strict=True)
    require(all(1 <= start <= end for start, end in lines), "a tree ends before it begins")


def _document(
    kind: str,
    read: Callable[..., Forest],
    syntaxes: tuple[Syntax, ...],
    *needs: str,
    **choices: tuple[str, ...],
) -> Target:
    def check(path: Path) -> None:
        problems: list[TreedotError] = []
        settings = choose(path.read_bytes(), choices)
        forest = read(path, **settings, on_bad=problems.append)
        check_forest(forest)
        check_places(forest)
        if not problems and path.stat().st_size % 4 == 0:  # it takes as long as reading
            check_round_trip(forest, path.parent)
        check_reader(path)

    seeds = cache(partial(read_seeds, kind))
    return FileTarget(f".{kind}", seeds, check, damage=partial(mutate_text, syntaxes=syntaxes), needs=needs)


_MARKUP = {"attributes": POLICIES, "text": POLICIES, "comments": POLICIES}

DOCUMENTS = {
    "html": _document("html", read_html, (CODE, MARKUP), "lxml", **_MARKUP),
    "xml": _document("xml", read_xml, (CODE, MARKUP, MARKUP, MARKUP), **_MARKUP, unit=DOCUMENT_UNITS),
    "json": _document("json", read_json, (CODE,), values=POLICIES, unit=DOCUMENT_UNITS),
}
